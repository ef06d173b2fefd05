"""A certificate as intervals on one line: what plots and reports draw."""

from __future__ import annotations

from dataclasses import dataclass

from sketchmeans.certificate.result import USELESS, Certificate


@dataclass(frozen=True)
class Interval:
    """A statement: a number lies between ``low`` and ``high``."""

    name: str
    low: float
    high: float
    condition: str = ""
    """On what the statement rests; empty where it is certain."""


def intervals(certificate: Certificate) -> list[Interval]:
    """Return what is known of the objective found and of the best possible one.

    The best possible objective is at most that of the labels found: hence every interval ends at
    ``objective_upper``, and none begins below ``optimum_lower``. Empty where the certificate has
    no bound.
    """
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


def verdict(certificate: Certificate) -> str:
    """Return the certificate in one sentence.

    >>> verdict(Certificate(2, 1.0, 0.1, reason="Negative eigenvalues were seen."))
    'No bound. Negative eigenvalues were seen.'
    """
    if certificate.objective_upper is None:
        return f"No bound. {certificate.reason}"
    if certificate.relative_gap is None or certificate.relative_gap > USELESS:
        return f"No useful bound on the distance to the best. {certificate.reason}"
    return f"At most {certificate.relative_gap:.1%} above the best possible."
