"""How many columns an embedding and its sketch have."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from sketchmeans.estimators.progress import Work
from sketchmeans.lowrank import METHODS, Request
from sketchmeans.operators import FeatureOperator, KernelOperator, NeighborOperator, SparseOperator

EXTRA_RANK = 10
"""rank="auto" is the number of clusters and this: see docs/defaults.md for the experiment."""
AUTO_CLUSTERS = 8
"""What rank="auto" takes for the number of clusters where there is none."""
WIDEST = 2048
"""Columns up to which a rank that is a fraction of the trace may widen the sketch."""
LANDMARKS_PER_CLUSTER, FEWEST_LANDMARKS, MOST_LANDMARKS = 40, 200, 2000
"""n_landmarks="auto" is so many per cluster, between these two: see docs/defaults.md."""


def auto_rank(n_clusters: int | None, n: int, *, extra: int = EXTRA_RANK) -> int:
    """Return what rank="auto" is for n samples, or for a sketch of n columns."""
    return min((n_clusters or AUTO_CLUSTERS) + extra, n)


def is_fraction(rank: Any) -> bool:
    """Whether ``rank`` is a fraction of the trace rather than a number of columns."""
    return isinstance(rank, Real) and not isinstance(rank, Integral)


def widest(n: int) -> int:
    """Return the most columns that a fraction of the trace may take."""
    return min(n, WIDEST)


def auto_landmarks(n_clusters: int | None, rank: int, n: int) -> int:
    """Return what n_landmarks="auto" is: it grows with the clusters, and with a rank that is large.

    More than the samples there cannot be.
    """
    wanted = LANDMARKS_PER_CLUSTER * (n_clusters or AUTO_CLUSTERS)
    return min(max(min(max(wanted, FEWEST_LANDMARKS), MOST_LANDMARKS), 2 * rank), n)


def rank_and_width(
    method: str, rank: Any, oversampling: Any, n_landmarks: Any, n_clusters: int | None, n: int
) -> tuple[int, int]:
    """Return the rank to recover and the width of the sketch, or the number of landmarks."""
    columns = int(rank) if isinstance(rank, Integral) else auto_rank(n_clusters, n)
    if METHODS[method].landmarks:
        auto = n_landmarks == "auto"
        width = auto_landmarks(n_clusters, columns, n) if auto else min(int(n_landmarks), n)
    else:
        extra = columns if oversampling == "auto" else int(oversampling)
        width = min(columns + (0 if method == "exact" else extra), n)
    if not is_fraction(rank):
        return min(columns, width), width
    if METHODS[method].stops_at_tolerance and n_landmarks == "auto":
        width = widest(n)
    return width, width


def work_of(operator: KernelOperator, passes: int) -> Work:
    """Return what passes over the whole of K do: entries are met, or rows of a feature map."""
    n = operator.shape[0]
    if isinstance(operator, FeatureOperator):
        return float(passes * n), "rows"
    if isinstance(operator, SparseOperator):
        return float(passes * operator.stored), "entries"
    return passes * n * (n + 1) / 2, "entries"


def request_of(
    estimator: Any, operator: KernelOperator, method: str, n_passes: int, seed: int = 0
) -> Request:
    """Return what an estimator asks of a method that was decided for."""
    n, asked = operator.shape[0], estimator.rank
    if asked == "auto" and isinstance(operator, NeighborOperator):
        asked = auto_rank(estimator._n_clusters, n, extra=0)
    rank, width = rank_and_width(
        method, asked, estimator.oversampling, estimator.n_landmarks, estimator._n_clusters, n
    )
    return Request(
        rank=rank,
        width=width,
        seed=seed,
        sketch=estimator.sketch,
        truncation=estimator.truncation,
        n_passes=n_passes,
        tolerance=1 - float(estimator.rank) if is_fraction(estimator.rank) else 0.0,
    )


def embedding_dtype(X: Any) -> np.dtype:
    """Return the precision that an embedding of these data is stored in."""
    dtype = X.dtype.newbyteorder("=")
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
