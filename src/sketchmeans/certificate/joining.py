"""Two certificates of one kernel and number of clusters: each is valid, and the best of both is."""

from __future__ import annotations

from dataclasses import replace

from sketchmeans.certificate.result import USELESS, Certificate


def with_best_of(
    found: Certificate, known: Certificate, *, same_labels: bool = True
) -> Certificate:
    """Return what was found, with what was known where that says more.

    Parameters
    ----------
    found, known : Certificate
        Of the same samples, weights, kernel and number of clusters. What contradicts each other is
        not of the same, and is not joined; nor are cuts, which have bounds of their own.
    same_labels : bool
        Whether both are of the same labels; if not, only the best possible is joined.
    """
    if found.objective_upper is None or known.objective_upper is None:
        return found
    if found.normalized_cut is not None or known.optimum_lower is None:
        return found
    if known.assumes_psd and not found.assumes_psd:
        return found  # which needs no such thing
    upper, best, source = found.objective_upper, found.optimum_lower, found
    lower = best if found.objective_lower is None else found.objective_lower
    if same_labels:
        least = known.optimum_lower if known.objective_lower is None else known.objective_lower
        upper = min(upper, known.objective_upper)
        lower = least if lower is None else max(lower, least)
    if best is None or known.optimum_lower > best:
        best, source = known.optimum_lower, known
    lower = best if lower is None else max(lower, best)
    if lower > upper:
        return found
    gap = upper / best - 1 if best > 0 else 0.0 if upper <= best else None
    return replace(
        found,
        objective_lower=lower,
        objective_upper=upper,
        objective_from=found.objective_from if upper == found.objective_upper else None,
        optimum_lower=best,
        relative_gap=gap,
        level=source.level,
        n_blocks=source.n_blocks,
        block_size=source.block_size,
        reason=None if gap is not None and gap <= USELESS else source.reason or found.reason,
    )
