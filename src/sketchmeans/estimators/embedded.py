"""What fitting an embedding gives, before anything is clustered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.disk import FileRows
from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.memory import Plan
from sketchmeans.kernels.precision import SAFE_SIZE
from sketchmeans.lowrank import Cost, LowRank
from sketchmeans.operators import KernelOperator, NewPoints
from sketchmeans.rows import Part, Rows


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
    if dtype == np.float32 and not _fits_float32(low_rank, weights):
        dtype = np.float64
    n, factor = len(low_rank.factor), low_rank.embedding
    if low_rank.rank == 0:
        return np.zeros((n, 1), dtype), np.zeros((len(low_rank.dual), 1))
    return stored_rows(factor, weights, dtype), low_rank.dual


def stored_rows(factor: Any, weights: FloatArray | None, dtype: Any) -> Any:
    """Return rows of an embedding in this precision, scaled back by the weights."""
    given = () if weights is None else (weights,)
    if isinstance(factor, Rows):
        work = partial(_stored, dtype=dtype)
        return factor.run(work, *given, size=factor.span, stay=True, name="embedding").kept[0]
    embedding = np.empty(factor.shape, dtype)
    for rows in row_blocks(len(factor)):
        embedding[rows] = _unweighted(factor[rows], *(one[rows] for one in given))
    return embedding


def _stored(block: FloatArray, weights: FloatArray | None = None, *, dtype: Any) -> Part:
    """Return rows of the embedding as they are stored."""
    return Part((_unweighted(block, weights).astype(dtype),))


def _unweighted(block: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Divide rows of the embedding by the roots of their weights; those of weight zero are 0."""
    if weights is None:
        return block
    root = np.sqrt(weights[:, None])
    return np.divide(block, root, out=np.zeros_like(block), where=root > 0)


def _largest(block: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the largest number of some rows of the embedding, by its size."""
    sizes = np.abs(block).max(axis=1, initial=0.0, keepdims=True)
    return float(_unweighted(sizes, weights).max(initial=0.0))


def _fits_float32(low_rank: LowRank, weights: FloatArray | None) -> bool:
    """Whether float32 holds the numbers of the embedding, and their squares."""
    factor, given = low_rank.embedding, () if weights is None else (weights,)
    if isinstance(factor, Rows):
        found = factor.map(_largest, *given, name="look")
    else:
        blocks = row_blocks(len(factor))
        found = [_largest(factor[rows], *(one[rows] for one in given)) for rows in blocks]
    largest = max(found, default=0.0)
    return largest == 0 or SAFE_SIZE[0] < largest < SAFE_SIZE[1]


def replaced_rows(embedding: Any, rows: IntArray, values: FloatArray) -> Any:
    """Return the embedding with these values in some rows, in place where it is here."""
    if isinstance(embedding, FileRows):
        embedding.put(rows, values)
        return embedding
    if not isinstance(embedding, Rows):
        embedding[rows] = values
        return embedding
    changed = np.zeros(len(embedding), bool)
    changed[rows] = True
    new = np.zeros((len(embedding), values.shape[1]))
    new[rows] = values
    return embedding.run(
        _replaced, changed, new, size=embedding.span, stay=True, name="embedding"
    ).kept[0]


def _replaced(block: FloatArray, changed: FloatArray, values: FloatArray) -> Part:
    block = block.copy()
    block[changed] = values[changed]
    return Part((block,))
