"""The leading eigenvectors of a kernel with sparse features, K = FFᵀ: exact, and linear in n."""

from __future__ import annotations

import numpy as np

from sketchmeans.blas import OneBlasThread
from sketchmeans.engine import ALONE, Run
from sketchmeans.lowrank.core import CUT, EPS
from sketchmeans.lowrank.eigen import leading_eigenvectors
from sketchmeans.lowrank.result import Cost, Facts, LowRank, Whole
from sketchmeans.operators import NeighborOperator

SEEN_BEYOND = 20
"""Eigenvalues and eigenvectors beyond the rank that are computed too: walks that end need them, and
how many clusters there are shows in them."""


def from_sparse_features(operator: NeighborOperator, *, rank: int, run: Run = ALONE) -> LowRank:
    """Decompose K = FFᵀ through FᵀF, or where there are more columns than samples through FFᵀ.

    Distances: those of ``build``, and n × anchors for each of two streams if F is made again (one,
    where there are more columns than samples). Kernel entries: none. Memory: F, the anchors, n ×
    rank numbers, and a few matrices as large as the lesser of anchors and samples, squared.
    """
    distances = operator.build(run.part(0, 3))
    return from_known_anchors(operator, rank=rank, run=run, distances=distances)


def from_known_anchors(
    operator: NeighborOperator, *, rank: int, run: Run = ALONE, distances: int = 0
) -> LowRank:
    """Decompose K = FFᵀ where the anchors are known already, by so many distances."""
    n, width = operator.shape[0], operator.map.count
    order = min(n, width)
    count = min(rank + SEEN_BEYOND, order)
    with OneBlasThread():
        if width <= n:
            matrix = operator.gram_of_features(run.part(1, 3))
        else:
            F = operator.all_features()
            matrix = (F @ F.T).toarray()
        distances += operator.stream_distances
        values, vectors = leading_eigenvectors(matrix, count, overwrite=True)
        del matrix
        values, vectors = values[::-1], vectors[:, ::-1]
        seen = values[values > CUT * order * EPS]
        vectors, leading = vectors[:, : len(seen)], seen[:rank]
        if width <= n:
            dual, factor = vectors, operator.product(vectors[:, :rank], run.part(2, 3))
            distances += operator.stream_distances
        else:
            dual = F.T @ (vectors / np.sqrt(seen))
            factor = vectors[:, :rank] * np.sqrt(leading)
    trace = float(operator.diagonal().sum())
    return LowRank(
        factor=factor,
        eigenvalues=np.clip(values, 0.0, 1.0),
        rank=len(leading),
        dual=dual[:, :rank],
        facts=Facts(trace, 16 * EPS),
        eta=order * EPS,
        cost=Cost(distances=distances),
        new_points=operator.for_new_points(),
        whole=Whole(operator, dual=dual),
    )
