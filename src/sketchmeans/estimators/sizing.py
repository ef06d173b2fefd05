"""How many columns an embedding and its sketch have."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sketchmeans.lowrank import METHODS

EXTRA_RANK = 10
"""rank="auto" is the number of clusters and this: see docs/defaults.md for the experiment."""
AUTO_CLUSTERS = 8
"""What rank="auto" takes for the number of clusters where there is none."""
WIDEST = 2048
"""Columns up to which a rank that is a fraction of the trace may widen the sketch."""


def auto_rank(n_clusters: int | None, n: int) -> int:
    """Return what rank="auto" is for n samples, or for a sketch of n columns."""
    return min((n_clusters or AUTO_CLUSTERS) + EXTRA_RANK, n)


def is_fraction(rank: Any) -> bool:
    """Whether ``rank`` is a fraction of the trace rather than a number of columns."""
    return isinstance(rank, Real) and not isinstance(rank, Integral)


def widest(n: int) -> int:
    """Return the most columns that a fraction of the trace may take."""
    return min(n, WIDEST)


def rank_and_width(
    method: str, rank: Any, oversampling: Any, n_clusters: int | None, n: int
) -> tuple[int, int]:
    """Return the rank to recover and the width of the sketch, or the number of landmarks."""
    columns = int(rank) if isinstance(rank, Integral) else auto_rank(n_clusters, n)
    extra = columns if oversampling == "auto" else int(oversampling)
    width = min(columns + (0 if method == "exact" else extra), n)
    if not is_fraction(rank):
        return columns, width
    if METHODS[method].stops_at_tolerance:
        width = widest(n)
    return width, width
