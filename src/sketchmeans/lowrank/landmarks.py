"""Where the landmarks of Nyström methods come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import first_distinct, row_blocks
from sketchmeans.centers import centers, rows_for_centers, subsample
from sketchmeans.engine import Crew, NumpyTiles, RightHandSide, Run, tournament_pass
from sketchmeans.lowrank.core import EPS
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import KernelOperator, NewPoints, SparseOperator
from sketchmeans.rows import Rows


@dataclass(frozen=True)
class Landmarks:
    """Where landmarks are: at these samples, or at these points."""

    indices: IntArray | None = None
    points: Any = None

    def __len__(self) -> int:
        return len(self.points if self.indices is None else self.indices)

    def kernel(self, operator: KernelOperator, *, fine: bool) -> NewPoints:
        """Return the kernel of any points with the landmarks; see ``landmarks_at``."""
        if self.indices is not None:
            return operator.landmarks(self.indices, fine=fine)
        return operator.landmarks_at(self.points, fine=fine)

    def square(self, operator: KernelOperator) -> FloatArray:
        """Return A, the landmarks' own kernel without weights, in float64: m² entries."""
        if self.indices is not None:
            return operator.unweighted().square(self.indices)
        return operator.landmarks_at(self.points).against(self.points).dense()


@dataclass(frozen=True)
class Draw:
    """What is drawn: so many samples of an operator with this diagonal."""

    operator: KernelOperator
    diagonal: FloatArray
    count: int
    random: np.random.Generator
    run: Run


def _uniform(draw: Draw) -> tuple[IntArray, Cost]:
    """Draw without replacement (Williams–Seeger)."""
    possible = weighty(draw.operator)
    count = min(draw.count, len(possible))
    return np.sort(possible[draw.random.choice(len(possible), count, replace=False)]), Cost()


def _by_diagonal(draw: Draw) -> tuple[IntArray, Cost]:
    """Draw in proportion to K_ii."""
    return _weighted_choice(draw.random, np.maximum(draw.diagonal, 0.0), draw.count), Cost()


def _by_column_norm(draw: Draw) -> tuple[IntArray, Cost]:
    """Draw in proportion to the squared norm of a column (Drineas–Mahoney; Kumar et al.)."""
    squares, entries = column_norms(draw.operator, draw.diagonal, draw.run)
    return _weighted_choice(draw.random, squares, draw.count), Cost(1, entries)


def _weighted_choice(random: np.random.Generator, sizes: FloatArray, count: int) -> IntArray:
    """Draw distinct indices with probability in proportion to sizes, one after the other."""
    possible = np.flatnonzero(sizes > 0)
    if len(possible) < count:
        others = np.setdiff1d(np.arange(len(sizes)), possible)
        return np.sort(np.concatenate([possible, others[: count - len(possible)]]))
    p = sizes / sizes.sum()
    return np.sort(random.choice(len(sizes), count, replace=False, p=p))


def column_norms(
    operator: KernelOperator, diagonal: FloatArray, run: Run
) -> tuple[FloatArray, int]:
    """Compute ‖K e_j‖² of every column: the row sums of a symmetric pass over the squares of K.

    Of K over its largest K_ii, for a pass squares its entries once more. Kernel entries:
    n(n + 1)/2 and half a tile per row; of a sparse K those that are stored. Memory: n numbers and
    two tiles per thread.
    """

    def squared(rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        np.divide(operator.tile(rows, columns), largest, out=out, dtype=np.float64)
        return np.square(out, out=out)

    largest = float(np.abs(diagonal).max(initial=0.0)) or 1.0
    if isinstance(operator, SparseOperator):
        return operator.column_squares(largest), operator.stored
    nothing = np.empty((operator.shape[0], 0))
    tiles = NumpyTiles(squared, RightHandSide(nothing, None, np.dtype(np.float64)))
    with Crew(run.n_threads) as crew:
        result = tournament_pass(tiles, len(nothing), 0, crew=crew)
    return result.row_sums, result.entries


def _by_leverage(draw: Draw) -> tuple[IntArray, Cost]:
    """Draw landmarks by recursive ridge leverage scores (Musco–Musco 2017).

    The data are halved until few are left; on the way back each level scores its points by the
    landmarks of the level below, with the ridge that makes the scores sum to about count / 2. A
    landmark stands for as many points as it was drawn from: one over the probability of that.

    Kernel entries: each level's points with the landmarks of the level below, and no others.
    Memory: n × count numbers.
    """
    possible = weighty(draw.operator)
    count = min(draw.count, len(possible))
    order = possible[draw.random.permutation(len(possible))]
    sizes = halvings(len(possible), count)
    # Places in ``order``, the same at every level.
    chosen: IntArray = np.arange(min(sizes[-1], count))
    masses = np.full(len(chosen), sizes[-1] / len(chosen))
    entries = 0
    for size in sizes[::-1]:
        level = order[:size]
        C = draw.operator.rectangle(level, order[chosen], draw.run)
        entries += C.size
        scores = _ridge_scores(C, C[chosen], masses, draw.diagonal[level], count)
        del C  # before the next level allocates its own
        chosen = _weighted_choice(draw.random, scores, min(count, size))
        masses = 1 / _probabilities(scores, min(count, size))[chosen]
    return np.sort(order[chosen]), Cost(entries=entries)


def halvings(size: int, count: int) -> list[int]:
    """Return the sizes of the levels: all points, half of them, and so on, until few are left."""
    sizes = [size]
    while sizes[-1] > 2 * count:
        sizes.append(-(-sizes[-1] // 2))
    return sizes


def _ridge_scores(
    C: FloatArray, A: FloatArray, masses: FloatArray, diagonal: FloatArray, count: int
) -> FloatArray:
    """Return ridge leverage scores K_ii − k_iᵀ(A + λM⁻¹)⁻¹k_i, over λ, estimated from landmarks.

    NOTE: the ridge stays far above the rounding of that difference. Of many samples that are alike
    the scores were rounding, and together more than those of the few that are not
    (test_leverage_scores_take_few_samples_of_the_many_that_are_alike).
    """
    with OneBlasThread():
        root = np.sqrt(masses)
        values, V = np.linalg.eigh((A + A.T) / 2 * np.outer(root, root))
        if not values.any():  # landmarks that are zero say nothing of the others
            return np.maximum(diagonal, 0.0)
        tail = np.sort(np.maximum(values, 0))[: max(len(values) - count // 2, 1)]
        least = np.sqrt(EPS) * float(np.abs(values).max())
        ridge = max(float(tail.sum()) / max(count // 2, 1), least)
        weights = 1.0 / (np.maximum(values, 0) + ridge)
        V *= root[:, None]
        held = np.concatenate([np.square(C[rows] @ V) @ weights for rows in row_blocks(len(C))])
    return np.maximum(diagonal - held, 0.0) / ridge


def _probabilities(scores: FloatArray, count: int) -> FloatArray:
    """Return min(1, c · score) with the c that makes them sum to count; 1 where a score is 0."""
    falling = np.sort(scores[scores > 0])[::-1]
    if len(falling) <= count:
        return np.ones(len(scores))
    rest = np.cumsum(falling[::-1])[::-1]
    factors = np.maximum(count - np.arange(len(falling)), 0) / rest
    sure = int(np.argmax(factors * falling < 1))  # that many are certain to be drawn
    shares = scores * factors[sure]
    certain = (scores == 0) | (scores >= falling[sure - 1]) if sure else scores == 0
    return np.where(certain, 1.0, np.clip(shares, 1 / len(scores), 1.0))


def refuse_without_data(operator: KernelOperator) -> None:
    """Refuse K-means as a way to find landmarks where there is nothing to put them among."""
    if operator.data is None:
        raise ValueError(
            'sketch="kmeans" needs data to put landmarks among, and a precomputed kernel has '
            'none. Choose sketch="uniform", "diagonal", "column-norm" or "leverage".'
        )


def kmeans_landmarks(operator: KernelOperator, count: int, seed: int) -> Landmarks:
    """Put landmarks at centers of K-means on a seeded subsample of the data (Zhang–Kwok 2010).

    Where it has no more distinct rows than there are to be landmarks, those rows are.
    """
    refuse_without_data(operator)
    chosen = subsample(weighty(operator), rows_for_centers(count), seed)
    whole = len(chosen) == operator.shape[0] and not isinstance(operator.data, Rows)
    X = operator.data if whole else operator.data[chosen]
    distinct = first_distinct(X, count + 1)
    if len(distinct) <= count:
        return Landmarks(indices=chosen[distinct])
    weights = None if operator.weights is None else operator.weights[chosen]
    return Landmarks(points=centers(X, weights, count, seed))


def weighty(operator: KernelOperator) -> IntArray:
    """Return the samples of positive weight."""
    root = operator.root_weights
    return np.arange(operator.shape[0]) if root is None else np.flatnonzero(root > 0)


SAMPLERS: dict[str, Callable[[Draw], tuple[IntArray, Cost]]] = {
    "uniform": _uniform,
    "diagonal": _by_diagonal,
    "column-norm": _by_column_norm,
    "leverage": _by_leverage,
}
"""How samples are drawn, and what that cost; "kmeans" puts landmarks elsewhere."""
