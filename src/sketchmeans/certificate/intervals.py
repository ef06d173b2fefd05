"""A certificate as intervals on one line: what plots and reports draw.

The line is one of objectives, or of normalized cuts where the kernel is that of neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

from sketchmeans.certificate.result import USELESS, Certificate, gap_in_words

FOUND, PLAIN, BEST, RANDOM = "found", "plain K-means", "best possible", "labels at random"
"""Whose number it is."""
NOTHING = 1e-6
"""A cut below this part of that of labels at random is rounding."""


@dataclass(frozen=True)
class Interval:
    """A statement: a number lies between ``low`` and ``high``."""

    name: str
    low: float
    high: float
    told: str
    """The number in words."""

    @property
    def words(self) -> str:
        """The statement as it stands beside a drawing."""
        return f"{self.name}: {self.told}"


def intervals(
    certificate: Certificate, plain: float | None = None, *, at_most: bool = False
) -> list[Interval]:
    """Return the objective found, that of plain K-means, and where the best possible one lies.

    ``plain`` is that of the labels of K-means without the kernel, or what it is ``at_most``; None
    where it is not known. The best possible objective is no higher than any that somebody has.
    Normalized cuts stand in the place of objectives where the certificate has them, and without
    ``plain`` there is what labels at random cut. Empty where the certificate has no bound, and
    where there is one cluster: there is nothing to compare.
    """
    if certificate.n_clusters == 1:
        return []
    others = []
    if plain is not None:
        told = f"at most {plain:.6g}" if at_most else f"{plain:.6g}"
        others.append(Interval(PLAIN, plain, plain, told))
    if measures_cut(certificate):
        return _cuts(certificate, others)
    high, low = certificate.objective_upper, certificate.objective_lower
    best = certificate.optimum_lower
    if high is None or low is None or best is None:
        return []
    best = min(best, high)  # rounding
    if certificate.objective is not None:
        exact = certificate.objective
        found = Interval(FOUND, exact, exact, f"{exact:.6g}")
    else:
        low = max(low, best)
        found = Interval(FOUND, low, high, f"between {low:.6g} and {high:.6g}")
    return _with_best(best, [found, *others])


def _with_best(least: float, known: list[Interval]) -> list[Interval]:
    """Add where the best possible lies: above the bound, and not above what somebody has."""
    high = max(min(one.high for one in known), least)
    return [*known, Interval(BEST, least, high, f"at least {least:.6g}")]


def measures_cut(certificate: Certificate) -> bool:
    """Whether a certificate is one of a normalized cut, and not of an objective."""
    return certificate.normalized_cut is not None


def _cuts(certificate: Certificate, others: list[Interval]) -> list[Interval]:
    cut, least = certificate.normalized_cut, certificate.normalized_cut_lower
    assert cut is not None
    assert least is not None
    chance = float(certificate.n_clusters - 1)
    cut = cut if cut > NOTHING * chance else 0.0
    known = _with_best(min(least, cut), [Interval(FOUND, cut, cut, f"{cut:.6g}"), *others])
    return known if others else [*known, Interval(RANDOM, chance, chance, f"{chance:.0f}")]


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
        f"The objective is at most {gap_in_words(certificate.relative_gap)} above the least that "
        f"{certificate.n_clusters} clusters can have under this kernel."
    )


def _cut_in_words(certificate: Certificate) -> str:
    cut, least, chance = (one.low for one in _cuts(certificate, []))
    if not cut:
        return "No two clusters share a neighbour under this kernel: no clustering cuts less."
    return (
        f"Normalized cut {cut:.4g}, {cut / chance:.2%} of what labels at random have; no labels "
        f"have less than {least:.4g} under this kernel."
    )
