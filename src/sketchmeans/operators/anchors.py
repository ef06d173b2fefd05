"""Anchors: where they stand among the samples, and which of them are nearest to a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import dense, first_distinct, row_norms
from sketchmeans.centers import centers, rows_for_centers, subsample
from sketchmeans.kernels.points import robust_center

DENSE = 1 << 22
"""Numbers of dense anchors that sparse data may always have: 32 MB."""
MORE = 3
"""Anchors that are looked at beyond the nearest ones, so that rounding does not choose."""
ZERO = 1e-14
"""A squared distance below this part of ‖x‖² + ‖a‖² is rounding, where it comes from products."""


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
        center = None if sparse.issparse(X) else robust_center(X)
        largest = max(abs(float(X.max())), abs(float(X.min())))
        exponent = int(np.frexp(largest)[1])
        return cls(center, exponent if abs(exponent) > 40 else 0)

    def rows(self, X: Any) -> Any:
        """Return rows as they are seen, in float64, dense or sparse as they are."""
        X = X.astype(np.float64)
        if self.unit_rows:
            norms = row_norms(X)
            return scaled_rows(X, np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0))
        if self.center is None:
            return scaled_rows(X, np.ldexp(np.ones(X.shape[0]), -self.exponent))
        return np.ldexp(dense(X), -self.exponent) - np.ldexp(self.center, -self.exponent)


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
        looked_at = min(self.n_neighbors + MORE, len(self))
        index = NearestNeighbors(n_neighbors=looked_at, algorithm="brute", n_jobs=1)
        self._index = index.fit(points)
        self._norms = np.square(row_norms(points))

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def only(self, kept: IntArray) -> Anchors:
        """Return some of these anchors."""
        return Anchors(self.points[kept], self.n_neighbors)

    def nearest(self, rows: Any) -> IntArray:
        """Return the nearest anchors of rows, by their numbers.

        Distances: m per row. scikit-learn finds some more than are asked for by products of rows
        and anchors; differences, which keep their digits, tell which of those are nearest, and of
        equally far ones the first counts.
        """
        if sparse.issparse(self.points):
            rows = sparse.csr_matrix(rows)
        far, found = self._index.kneighbors(rows)
        if sparse.issparse(rows):
            squares = np.square(far)
            norms = np.square(row_norms(rows))[:, None] + self._norms[found]
            squares[squares < ZERO * norms] = 0.0
        else:
            away = rows[:, None, :] - self.points[found]
            squares = np.vecdot(away, away)
        order = np.lexsort((found, squares))[:, : self.n_neighbors]
        return np.sort(np.take_along_axis(found, order, axis=1), axis=1)


def find_anchors(
    X: Any, frame: Frame, possible: IntArray, weights: FloatArray | None, count: int, seed: int
) -> Any:
    """Return where anchors stand, as the frame shows them: at centers of K-means, or at samples.

    Of a seeded subsample. Where it has no more distinct rows than there are to be anchors, those
    rows are; for wide sparse rows, whose dense centers would take more than the data, some are.
    """
    chosen = subsample(possible, rows_for_centers(count), seed)
    rows = frame.rows(X[chosen])
    distinct = first_distinct(rows, count + 1)
    if len(distinct) <= count:
        return rows[distinct]
    if takes_samples(X, count):
        random = np.random.default_rng([seed, count])
        among = chosen[np.sort(random.choice(len(chosen), count, replace=False))]
        few = frame.rows(X[among])
        return few[first_distinct(few, count)]
    mass = None if weights is None else weights[chosen]
    found = centers(rows, mass, count, seed)
    if not frame.unit_rows:
        return found
    norms = row_norms(found)
    return scaled_rows(found, np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0))


def takes_samples(X: Any, count: int) -> bool:
    """Whether anchors are samples: centers of wide sparse rows would be larger than the data."""
    return sparse.issparse(X) and count * X.shape[1] > max(X.nnz, DENSE)
