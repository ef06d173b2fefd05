"""Anchors: where they stand among the samples, and which of them are nearest to a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import (
    data_blocks,
    dense,
    first_distinct,
    mapped,
    relative_weights,
    row_blocks,
    row_norms,
    rows_of,
    sums_of_squares,
)
from sketchmeans.centers import centers, rows_for_centers, subsample
from sketchmeans.engine import engine_name
from sketchmeans.engine.nearest import PackedAnchors
from sketchmeans.kernels.points import robust_center
from sketchmeans.kernels.sizes import largest_size
from sketchmeans.rows import is_sparse

DENSE = 1 << 22
"""Numbers of dense anchors that sparse data may always have: 32 MB."""
MORE = 3
"""Anchors that are looked at beyond the nearest ones, so that rounding does not choose."""
COARSE = 1e-6
"""Products of sparse rows are not trusted where they may be off by this part of a distance."""
ROOMIER = 0.6
"""Where anchors are placed, rows count by this power of the room around them, so that thin places
have more anchors than samples alone would give them. See docs/defaults.md."""
NEAR, COMPARED = 11, 4
"""The room of a row reaches to the eleventh nearest row, itself the first; and it is compared with
as many rows, at the most, as there are to be anchors, times four."""
_BLOCK = 256
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Frame:
    """How rows are seen before distances are taken: from a middle, or by their direction alone.

    Distances are only compared with each other, so that a power of two changes nothing.
    """

    center: FloatArray | None
    exponent: int = 0
    unit_rows: bool = False

    @classmethod
    def of(cls, X: Any, metric: str) -> Frame:
        """Return the frame of data."""
        if metric == "cosine":
            return cls(None, unit_rows=True)
        if is_sparse(X):
            center = None
            largest = largest_size(X)
        else:
            center = robust_center(X)
            ends = np.array(mapped(X, _ends, data_blocks(X)), np.float64)
            ends = np.stack([ends[:, 0].max(axis=0), ends[:, 1].min(axis=0)])
            # Of halves: a difference may be larger than float64 holds.
            largest = float(np.abs(ends / 2 - center / 2).max())
        exponent = int(np.frexp(largest)[1])
        return cls(center, exponent if abs(exponent) > 40 else 0)

    def rows(self, X: Any) -> Any:
        """Return rows as they are seen, in float64, dense or sparse as they are."""
        X = X.astype(np.float64)
        if self.unit_rows:
            return unit_rows(X)
        if self.center is None:
            return shifted_rows(X, np.full(X.shape[0], -self.exponent))
        return np.ldexp(dense(X), -self.exponent) - np.ldexp(self.center, -self.exponent)


def _ends(block: Any) -> FloatArray:
    """Return the largest and the smallest number of each column."""
    return np.stack([block.max(axis=0), block.min(axis=0)]).astype(np.float64)


def unit_rows(X: Any) -> Any:
    """Return rows of length one; those of zeros stay.

    A power of two brings each near one before: one over a subnormal length is infinite.
    """
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(X) else largest
    near = shifted_rows(X, -np.frexp(largest)[1])
    norms = row_norms(near)
    return scaled_rows(near, np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0))


def shifted_rows(X: Any, exponents: IntArray) -> Any:
    """Return rows times two to these powers."""
    if not sparse.issparse(X):
        return np.ldexp(X, exponents[:, None])
    data = np.ldexp(X.data, np.repeat(exponents, np.diff(X.indptr)))
    return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


def scaled_rows(X: Any, scale: FloatArray) -> Any:
    """Return rows times these numbers."""
    if not sparse.issparse(X):
        return X * scale[:, None]
    data = X.data * np.repeat(scale, np.diff(X.indptr))
    return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


class Anchors:
    """A set of anchors.

    Parameters
    ----------
    points : array or CSR matrix of shape (m, n_features)
        As the frame shows them, in float64.
    n_neighbors : int
        How many of the nearest count; all, where there are fewer.
    """

    def __init__(self, points: Any, n_neighbors: int) -> None:
        self.points = points
        self.n_neighbors = min(n_neighbors, len(self))
        self._looked_at = min(self.n_neighbors + MORE, len(self))

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def only(self, kept: IntArray) -> Anchors:
        """Return some of these anchors."""
        return Anchors(self.points[kept], self.n_neighbors)

    def nearest(self, rows: Any) -> IntArray:
        """Return the nearest anchors of rows, by their numbers.

        Distances: m per row. Products of rows and anchors find some more than are asked for;
        differences, which keep their digits, tell which of those are nearest, and of equally far
        ones the first counts. Where rounding could hide a nearer one among the others, all are
        looked at by differences. The native engine does it for dense rows: ``native/nearest.c``.
        """
        if searched_natively(rows) and not sparse.issparse(self.points):
            return self._packed.nearest(rows, self.n_neighbors, self._looked_at)
        if sparse.issparse(self.points):
            rows = sparse.csr_matrix(rows)
        far, found = self._index.kneighbors(rows)
        squares, kept = np.square(far), self.n_neighbors
        slack = self._slack(rows)
        if sparse.issparse(rows):
            beyond = squares[:, kept : kept + 1]
            unsure = (
                squares[:, kept - 1] + 2 * slack >= beyond[:, 0] if beyond.size else squares < 0
            )
        else:
            last = squares[:, -1] - slack
            away = rows[:, None, :] - self.points[found]
            squares = np.vecdot(away, away)
            unsure = np.partition(squares, kept - 1, axis=1)[:, kept - 1] >= last
        order = np.lexsort((found, squares))[:, :kept]
        nearest = np.sort(np.take_along_axis(found, order, axis=1), axis=1).astype(np.int32)
        if self._looked_at < len(self) and unsure.any():
            places = np.flatnonzero(unsure)
            coarse = slack > COARSE * squares.max(axis=1)
            if sparse.issparse(rows):
                for row in places[coarse[places]]:
                    nearest[row] = self._first(self._differences(rows[row]))
                places = places[~coarse[places]]
            for block in row_blocks(len(places), 256):
                few = rows[places[block]]
                nearest[places[block]] = self._first(self._all_squares(few))
        return nearest

    def _first(self, squares: FloatArray) -> IntArray:
        """Return the smallest of each row, of equal ones the first, by their places."""
        order = np.argsort(squares, axis=1, kind="stable")
        return np.sort(order[:, : self.n_neighbors], axis=1)

    def _all_squares(self, rows: Any) -> FloatArray:
        """Return squared distances to all anchors: by differences, of sparse rows by products.

        Those of whole numbers are exact either way.
        """
        if not sparse.issparse(rows):
            return cdist(rows, self.points, "sqeuclidean")
        inner = dense(rows @ self.points.T)
        return sums_of_squares(rows)[:, None] - 2 * inner + self._norms

    def _slack(self, rows: Any) -> FloatArray:
        """Return what a squared distance by products may be off by."""
        terms = int(np.diff(rows.indptr).max(initial=0)) if sparse.issparse(rows) else rows.shape[1]
        return 2 * (terms + 8) * _EPS * (sums_of_squares(rows) + self._norms.max())

    def _differences(self, row: Any) -> FloatArray:
        """Return the squared distances of one sparse row to all anchors, from differences."""
        if sparse.issparse(self.points):
            away = self.points - sparse.csr_matrix(np.ones((len(self), 1))) @ row
            return sums_of_squares(sparse.csr_matrix(away))[None]
        away = self.points - dense(row)
        return np.vecdot(away, away)[None]

    @cached_property
    def _packed(self) -> PackedAnchors:
        return PackedAnchors(self.points)

    @cached_property
    def _index(self) -> NearestNeighbors:
        index = NearestNeighbors(n_neighbors=self._looked_at, algorithm="brute", n_jobs=1)
        return index.fit(self.points)

    @cached_property
    def _norms(self) -> FloatArray:
        return sums_of_squares(self.points)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is asked for."""
        made = ("_packed", "_index", "_norms")
        return {name: value for name, value in self.__dict__.items() if name not in made}


def searched_natively(rows: Any) -> bool:
    """Whether the native engine finds the anchors that are nearest to such rows."""
    return engine_name() == "native" and not is_sparse(rows)


@dataclass(frozen=True)
class Placed:
    """Where a set of anchors stands."""

    points: Any
    """As the frame shows them."""
    are_all: bool
    """All rows that there are: another seed would give the same."""
    distances: int = 0
    """Those between rows that it took."""


def find_anchors(
    X: Any, frame: Frame, possible: IntArray, weights: FloatArray | None, count: int, seed: int
) -> Placed:
    """Return where anchors stand, as the frame shows them: at centers of K-means, or at samples.

    Of a seeded subsample, whose rows count the more the more room they have. Where it has no more
    distinct rows than there are to be anchors, those rows are; for wide sparse rows, whose dense
    centers would take more than the data, some are.
    """
    chosen = subsample(possible, rows_for_centers(count), seed)
    rows = frame.rows(X[chosen])
    distinct = first_distinct(rows, count + 1)
    if len(distinct) <= count:
        return Placed(rows[distinct], len(chosen) == len(possible))
    if takes_samples(X, count):
        random = np.random.default_rng([seed, count])
        among = chosen[np.sort(random.choice(len(chosen), count, replace=False))]
        few = frame.rows(X[among])
        return Placed(few[first_distinct(few, count)], False)
    compared = subsample(np.arange(len(chosen)), COMPARED * count, seed)
    mass = room(rows, rows[compared]) ** ROOMIER
    if (given := relative_weights(None if weights is None else weights[chosen])) is not None:
        mass *= given
    found = centers(rows, mass, count, seed)
    points = unit_rows(found) if frame.unit_rows else found
    return Placed(points, False, len(chosen) * len(compared))


def room(rows: Any, others: Any) -> FloatArray:
    """Return how far the nearest of the others reach around each row, in the median's units.

    Between a hundredth and a hundred: neither copies, which have no room, nor outliers decide.
    """
    near = Anchors(others, NEAR)
    farthest = np.empty(rows.shape[0])
    for block in row_blocks(len(farthest), _BLOCK):
        some = rows_of(rows, block)
        each = near.nearest(some).T
        farthest[block] = np.max([sums_of_squares(some - others[one]) for one in each], axis=0)
    np.sqrt(farthest, out=farthest)
    positive = farthest[farthest > 0]
    if not len(positive):
        return np.ones_like(farthest)
    return np.clip(farthest / np.median(positive), 0.01, 100)


def room_bytes(n_features: int, count: int, n_rows: int) -> int:
    """Return what ``room`` takes for dense rows, where so many anchors are to be placed."""
    compared, looked_at = min(COMPARED * count, n_rows), NEAR + MORE
    block = min(_BLOCK, n_rows) * 8 * (2 * looked_at * (n_features + 8) + compared)
    return 3 * n_rows * 8 + compared * 8 * (3 * n_features + 20) + block


def takes_samples(X: Any, count: int) -> bool:
    """Whether anchors are samples: centers of wide sparse rows would be larger than the data."""
    return is_sparse(X) and count * X.shape[1] > max(X.nnz, DENSE)
