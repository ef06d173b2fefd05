"""What fitting an embedding gives, before anything is clustered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.memory import Plan
from sketchmeans.kernels.precision import SAFE_SIZE
from sketchmeans.lowrank import Cost, LowRank
from sketchmeans.operators import KernelOperator, NewPoints


@dataclass(frozen=True)
class Embedded:
    """An embedding, and what it came from."""

    low_rank: LowRank
    embedding: FloatArray
    dual: FloatArray
    """A of y(x) = k(x, X) A."""
    new_points: NewPoints
    plan: Plan
    random_state: Any
    width: int
    engine: str
    precision: Any
    cost: Cost
    decision: Decision
    operator: KernelOperator | None = None
    """None for a stream, whose kernel is gone."""
    gamma: float | None = None
    weights: FloatArray | None = None

    def spending(self, cost: Cost) -> Embedded:
        """Return the same after something more was spent."""
        return replace(self, cost=self.cost + cost)


def unweighted_rows(
    low_rank: LowRank, weights: FloatArray | None, dtype: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the embedding in the data's precision, scaled back by the weights, and the dual.

    It is in float64 where float32 cannot hold squares of its numbers, which K-means takes. Rows of
    weight zero are left to the map of new points. K = 0 gets one column of zeros.
    """
    n = len(low_rank.factor)
    if dtype == np.float32 and not _fits_float32(low_rank, weights):
        dtype = np.float64
    if low_rank.rank == 0:
        return np.zeros((n, 1), dtype), np.zeros((len(low_rank.dual), 1))
    embedding = np.empty((n, low_rank.rank), dtype)
    for rows in row_blocks(n):
        embedding[rows] = _unweighted(low_rank.embedding[rows], weights, rows)
    return embedding, low_rank.dual


def _unweighted(block: FloatArray, weights: FloatArray | None, rows: slice) -> FloatArray:
    """Divide rows of the embedding by the roots of their weights; those of weight zero are 0."""
    if weights is None:
        return block
    root = np.sqrt(weights[rows, None])
    return np.divide(block, root, out=np.zeros_like(block), where=root > 0)


def _fits_float32(low_rank: LowRank, weights: FloatArray | None) -> bool:
    """Whether float32 holds the numbers of the embedding, and their squares."""
    largest = 0.0
    for rows in row_blocks(len(low_rank.factor)):
        sizes = np.abs(low_rank.embedding[rows]).max(axis=1, initial=0.0, keepdims=True)
        largest = max(largest, float(_unweighted(sizes, weights, rows).max()))
    return largest == 0 or SAFE_SIZE[0] < largest < SAFE_SIZE[1]
