"""A certificate as intervals on one line: what plots and reports draw.

The line is one of objectives, or of normalized cuts where the kernel is that of neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

from sketchmeans.certificate.result import USELESS, Certificate

NOTHING = 1e-6
"""A cut below this part of that of labels at random is rounding."""


@dataclass(frozen=True)
class Interval:
    """A statement: a number lies between ``low`` and ``high``."""

    name: str
    low: float
    high: float
    condition: str = ""
    """On what the statement rests; empty where it is certain."""
    told: str = ""
    """The number in words, where a drawing alone would not tell it."""

    @property
    def words(self) -> str:
        """The statement as it stands beside a drawing."""
        name = f"{self.name}: {self.told}" if self.told else self.name
        return f"{name}, {self.condition}" if self.condition else name


def intervals(certificate: Certificate) -> list[Interval]:
    """Return what is known of the objective found and of the best possible one.

    The best possible objective is at most that of the labels found: hence every interval ends at
    ``objective_upper``, and none begins below ``optimum_lower``. Empty where the certificate has
    no bound. Where it has a normalized cut, that and the best possible one, and what labels at
    random have: the line goes from 0 to there.
    """
    if measures_cut(certificate):
        return _cuts(certificate)
    high, low = certificate.objective_upper, certificate.objective_lower
    best = certificate.optimum_lower
    if high is None or low is None or best is None:
        return []
    best = min(best, high)  # rounding
    if certificate.objective is not None:
        found = Interval("labels found", certificate.objective, certificate.objective)
    else:
        found = Interval("labels found", max(low, best), high)
    known = [found, Interval("best possible", best, high)]
    if certificate.optimum_lower_probabilistic is not None:
        known.append(
            Interval(
                "best possible",
                min(certificate.optimum_lower_probabilistic, high),
                high,
                f"except with probability {certificate.failure_probability:g}",
            )
        )
    if certificate.gap_bound is not None:
        least = max(low - certificate.gap_bound, best, 0.0)
        known.append(
            Interval(
                "best possible",
                min(least, high),
                high,
                "if K-means solved the embedding to optimality",
            )
        )
    return known


def measures_cut(certificate: Certificate) -> bool:
    """Whether a certificate is one of a normalized cut, and not of an objective."""
    return certificate.normalized_cut is not None


def _cuts(certificate: Certificate) -> list[Interval]:
    cut, least = certificate.normalized_cut, certificate.normalized_cut_lower
    assert cut is not None
    assert least is not None
    chance = float(certificate.n_clusters - 1)
    if not chance:
        return []
    cut = cut if cut > NOTHING * chance else 0.0
    least = min(least, cut)
    return [
        Interval("labels found", cut, cut, told=f"{cut:.3g}"),
        Interval("best possible", least, cut, told=f"at least {least:.3g}"),
        Interval("labels at random", chance, chance, told=f"{chance:.0f}"),
    ]


def verdict(certificate: Certificate) -> str:
    """Return the certificate in one sentence, of this kernel alone; ``scope`` says what it is not.

    >>> verdict(Certificate(2, 1.0, 0.1, reason="Negative eigenvalues were seen."))
    'No bound. Negative eigenvalues were seen.'
    """
    if certificate.n_clusters == 1:
        return "All samples are in one cluster: no other labels are possible."
    if certificate.objective_upper is None:
        return f"No bound. {certificate.reason}"
    if measures_cut(certificate):
        return _cut_in_words(certificate)
    if certificate.relative_gap is None or certificate.relative_gap > USELESS:
        return f"No useful bound on the distance to the best. {certificate.reason}"
    return (
        f"The objective is at most {certificate.relative_gap:.1%} above the least that "
        f"{certificate.n_clusters} clusters can have under this kernel."
    )


def _cut_in_words(certificate: Certificate) -> str:
    cut, least, chance = (one.low for one in _cuts(certificate))
    if not cut:
        return "No two clusters share a neighbour under this kernel: no clustering cuts less."
    return (
        f"Normalized cut {cut:.4g}, {cut / chance:.2%} of what labels at random have; no labels "
        f"have less than {least:.4g} under this kernel."
    )
