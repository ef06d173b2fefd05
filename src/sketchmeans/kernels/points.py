"""Rows of data made ready for tiles: centring, casting, and the pairwise statistics of blocks.

Everything here works on blocks of rows, so that a pass needs no second copy of the data. Where
that copy is small beside the sketch, ``pack`` makes it once and saves the repeated work; the
numbers are the same either way.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import (
    csr_rows,
    data_blocks,
    dense_rows,
    mapped,
    row_norms,
    sums_of_squares,
)
from sketchmeans.kernels.definitions import Statistic
from sketchmeans.rows import Rows, is_sparse


@dataclass(frozen=True)
class Prepared:
    """What is worked out from all rows before the first tile; a stored model brings it along."""

    center: FloatArray | None
    scale: FloatArray | None
    """One over the norms of the rows, where they are scaled to norm one."""
    norms: FloatArray | None
    """‖x‖² of the prepared rows in tile precision, where squared distances are taken."""


class Points:
    """The rows of ``X``, ready for tiles in ``dtype``.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Kept as it is; never copied whole, unless by ``pack``.
    statistic : Statistic
        What ``statistics`` computes.
    unit_rows : bool
        Scale rows to norm one first.
    dtype : dtype
        Of the tiles.
    center : array of shape (n_features,), optional
        Subtracted from dense rows before squared distances are taken from dot products: it
        leaves the distances alone and saves the digits that ‖x‖² + ‖y‖² − 2⟨x, y⟩ would lose.
    prepared : Prepared, optional
        Of the same rows and options: what it has is not worked out again.
    """

    def __init__(
        self,
        X: Any,
        statistic: Statistic,
        *,
        unit_rows: bool,
        dtype: Any,
        center: FloatArray | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        self.X = X
        self.statistic = statistic
        self.dtype = np.dtype(dtype)
        self.is_sparse = is_sparse(X)
        self.center = None if self.is_sparse else center
        self.n_samples, self.n_features = X.shape
        self._scale: FloatArray | None = None
        self._augmented: FloatArray | None = None
        self._scaled_rows: FloatArray | None = None
        self._packed_scale = 1.0
        self._norms: FloatArray | None = None  # in tile precision, for squared distances
        self.largest_norm = 0.0
        """The largest ‖x‖² that squared distances are made from; 0 for other statistics."""
        if prepared is not None:
            self.center, self._scale = prepared.center, prepared.scale
            self._norms = prepared.norms
        if unit_rows and self._scale is None:
            self._scale = self._unit_scale()
        if statistic is Statistic.SQUARED_DISTANCE and self._norms is None:
            self._norms = self._tile_norms()
        if self._norms is not None:
            self.largest_norm = float(self._norms.max(initial=0.0))

    def __getstate__(self) -> dict[str, Any]:
        """Return names for the statistic and the dtype: skops cannot make a member of an Enum."""
        return {**vars(self), "statistic": self.statistic.name, "dtype": self.dtype.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.statistic, self.dtype = Statistic[state["statistic"]], np.dtype(state["dtype"])

    def at(self, indices: IntArray) -> Points:
        """Return a few of these points, prepared as they are here."""
        few = copy.copy(self)
        few.X, few.n_samples = self.X[indices], len(indices)
        few._scale, few._norms = (
            None if one is None else one[indices] for one in (self._scale, self._norms)
        )
        few._augmented = few._scaled_rows = None
        return few

    @property
    def prepared(self) -> Prepared:
        """What was worked out from all rows."""
        return Prepared(self.center, self._scale, self._norms)

    def _unit_scale(self) -> FloatArray:
        """Return one over the norms of the rows as given, in float64; 0 for rows of zeros."""
        parts = mapped(self.X, _raw_norms, data_blocks(self.X))
        norms = np.concatenate(parts) if parts else np.zeros(0)  # K = 0 has no pivots
        with np.errstate(divide="ignore", over="ignore"):
            scale = np.where(norms > 0, 1.0 / norms, 0.0)
        lost = ~np.isfinite(scale) | ~np.isfinite(norms)
        if lost.any():
            row = int(lost.argmax())
            raise ValueError(
                f"row {row} of X has norm {norms[row]:g}, and one over it is no float: it cannot "
                "be scaled to norm one. Rescale X, or leave that row out."
            )
        return scale

    def _tile_norms(self) -> FloatArray:
        """‖x‖² of all prepared rows, in tile precision."""
        with np.errstate(over="ignore"):  # a new point may be infinitely far away
            if isinstance(self.X, Rows):
                look = partial(
                    _norms_of,
                    unit_rows=self._scale is not None,
                    dtype=self.dtype,
                    center=self.center,
                )
                return np.concatenate(self.X.map(look, name="norms"))
            parts = [self._squared_norms(rows) for rows in data_blocks(self.X)]
            return np.concatenate([np.zeros(0), *parts]).astype(self.dtype)

    def _squared_norms(self, rows: slice) -> FloatArray:
        """‖x‖² of prepared rows: rounded to the tile's precision first, then summed in float64."""
        return sums_of_squares(self.rows(rows).astype(np.float64))

    @property
    def norms(self) -> FloatArray:
        """‖x‖² of the prepared rows in tile precision, where squared distances need them."""
        assert self._norms is not None
        return self._norms

    def squared_norms(self) -> FloatArray:
        """‖x‖² of the rows, or of the rows scaled to norm one, as they are before any rounding."""
        if self._scale is not None:
            return (self._scale > 0).astype(np.float64)
        return np.concatenate([np.zeros(0), *mapped(self.X, _fine_squares, data_blocks(self.X))])

    def rows(self, rows: slice) -> Any:
        """Return a block of rows: centred, scaled, and in the tile's precision."""
        if self.is_sparse:
            block = csr_rows(self.X, rows)
            if self._scale is not None:
                block = sparse.diags_array(self._scale[rows]) @ block
            return sparse.csr_matrix(block).astype(self.dtype, copy=False)
        block = self.X[rows]
        if self.center is not None:
            # In the finer of the two precisions: float32 data may be wanted in float64 tiles.
            finer = np.result_type(block.dtype, self.dtype)
            block = block.astype(finer, copy=False) - self.center.astype(finer)
        if self._scale is not None:
            block = block * self._scale[rows, None]
        return block.astype(self.dtype, copy=False)

    def augmented(self, rows: slice) -> FloatArray:
        """[x, 1, ‖x‖²], so that one matrix product gives squared distances."""
        if self._augmented is not None:
            return self._augmented[rows]
        block = np.empty((rows.stop - rows.start, self.n_features + 2), self.dtype)
        block[:, :-2] = self.rows(rows)
        block[:, -2] = 1
        block[:, -1] = self.norms[rows]
        return block

    @property
    def packed_bytes(self) -> int:
        """What ``pack`` would allocate; 0 where it has nothing to gain."""
        if self.is_sparse or self.statistic is not Statistic.SQUARED_DISTANCE:
            return 0
        return 2 * self.n_samples * (self.n_features + 2) * self.dtype.itemsize

    def pack(self, scale: float = 1.0) -> None:
        """Make all augmented rows, left ones for this scale, once instead of once per tile.

        NOTE: the time is not in the copying but in the calls. Between two calls of NumPy a thread
        needs the interpreter's lock, and with two threads each hand-over costs microseconds
        (``python -m benchmarks.tile_parts``).
        """
        if not self.packed_bytes or self._augmented is not None:
            return
        whole = np.empty((self.n_samples, self.n_features + 2), self.dtype)
        scaled = np.empty_like(whole)
        for rows in data_blocks(self.X):
            whole[rows] = self.augmented(rows)
            scaled[rows] = self.scaled_augmented(rows, scale)
        self._augmented, self._scaled_rows, self._packed_scale = whole, scaled, scale

    def unpack(self) -> None:
        """Drop what ``pack`` made."""
        self._augmented = self._scaled_rows = None

    def scaled_augmented(self, rows: slice, scale: float) -> FloatArray:
        """Return scale · [−2x, ‖x‖², 1]: times ``augmented`` of others, that of distances."""
        if self._scaled_rows is not None and scale == self._packed_scale:
            return self._scaled_rows[rows]
        right = self.augmented(rows)
        left = np.empty_like(right)
        np.multiply(right[:, :-2], -2 * scale, out=left[:, :-2])
        np.multiply(right[:, -1], scale, out=left[:, -2])
        left[:, -1] = scale
        return left

    def statistics(
        self,
        rows: slice,
        others: Points,
        columns: slice,
        *,
        scale: float = 1.0,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return scale · statistic for every pair of a row of ours and a row of ``others``.

        Squared distances come from dot products, so that of two equal rows may be a rounding
        error to either side of zero; that of a row with itself is zero.

        Parameters
        ----------
        rows, columns : slice
            With start and stop.
        others : Points
            Prepared in the same way (the same center); may be this object.
        scale : float
            Folded into the matrix product, which saves a visit to every entry.
        out : array of shape (rows, columns), optional
            Scratch space in the tile's dtype, used where that saves an allocation.
        """
        if self.statistic is Statistic.MANHATTAN:
            block = self.manhattan(rows, others, columns)
            block *= scale
            return block
        if self.is_sparse:
            block = self.dots(rows, others, columns)
            if self.statistic is Statistic.SQUARED_DISTANCE:
                block *= -2
                block += self.norms[rows, None]
                block += others.norms[None, columns]
            block *= scale
        elif self.statistic is Statistic.SQUARED_DISTANCE:
            left = self.scaled_augmented(rows, scale)
            block = np.matmul(left, others.augmented(columns).T, out=out)
        else:
            left = self.rows(rows)
            block = np.matmul(left if scale == 1 else left * scale, others.rows(columns).T, out=out)
        if self.statistic is Statistic.SQUARED_DISTANCE and others is self and rows == columns:
            np.fill_diagonal(block, 0)
        return block

    def reaches(self, rows: slice, limit: float) -> bool:
        """Whether some of these rows have ‖x‖² above ``limit``, where distances need it."""
        if self._norms is None or self.largest_norm <= limit:
            return False
        return bool(self._norms[rows].max() > limit)

    def by_differences(self, rows: slice, others: Points, columns: slice) -> FloatArray:
        """Return squared distances from differences x − y: slower, and exact for close pairs."""
        ours = dense_rows(self.X, rows).astype(np.float64, copy=False)
        theirs = dense_rows(others.X, columns).astype(np.float64, copy=False)
        return cdist(ours, theirs, "sqeuclidean").astype(self.dtype, copy=False)

    def dots(
        self, rows: slice, others: Points, columns: slice, *, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the dot product of every pair of prepared rows, by BLAS or by SciPy."""
        if self.is_sparse:
            return (self.rows(rows) @ others.rows(columns).T).toarray()
        return np.matmul(self.rows(rows), others.rows(columns).T, out=out)

    def manhattan(self, rows: slice, others: Points, columns: slice) -> FloatArray:
        """Return the L1 distance of every pair of prepared rows."""
        ours, theirs = self.rows(rows), others.rows(columns)
        if self.is_sparse:
            distances = manhattan_distances(ours, theirs)
        else:
            distances = cdist(ours, theirs, "cityblock")
        return distances.astype(self.dtype, copy=False)

    def exact_rows(self, indices: IntArray, columns: slice) -> FloatArray:
        """Return the statistic of a few rows against a block of rows, in float64, with care."""
        theirs = np.arange(columns.start, columns.stop)
        return self.exact_block(indices, self, theirs)

    def exact_block(self, indices: IntArray, others: Points, theirs: IntArray) -> FloatArray:
        """Return the statistic of a few of our rows with a few of others, in float64, with care.

        An oracle for ``statistics``: nothing that was prepared for tiles is used. Distances of
        dense rows come from differences, not from dot products; sparse rows stay sparse, and theirs
        is the same formula in float64.
        """
        ours, theirs = self._exact(indices), others._exact(theirs)
        if not self.is_sparse:
            if self.statistic is Statistic.DOT:
                return ours @ theirs.T
            metric = "cityblock" if self.statistic is Statistic.MANHATTAN else "sqeuclidean"
            return cdist(ours, theirs, metric)
        if self.statistic is Statistic.MANHATTAN:
            return np.asarray(manhattan_distances(ours, theirs))
        dots: FloatArray = (ours @ theirs.T).toarray()
        if self.statistic is Statistic.DOT:
            return dots
        return np.abs(sums_of_squares(ours)[:, None] + sums_of_squares(theirs)[None, :] - 2 * dots)

    def _exact(self, indices: IntArray) -> Any:
        block = self.X[indices].astype(np.float64)
        if self._scale is None:
            return block
        norms = row_norms(block)
        scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        if self.is_sparse:
            return sparse.csr_matrix(sparse.diags_array(scale) @ block)
        return block * scale[:, None]


def _raw_norms(block: Any) -> FloatArray:
    """‖x‖ of rows as given, in float64."""
    return row_norms(block.astype(np.float64))


def _fine_squares(block: Any) -> FloatArray:
    """‖x‖² of rows as given, in float64."""
    return sums_of_squares(block.astype(np.float64))


def _norms_of(
    block: Any, *, unit_rows: bool, dtype: np.dtype, center: FloatArray | None
) -> FloatArray:
    """‖x‖² of rows prepared as those of the whole are, in tile precision."""
    statistic = Statistic.SQUARED_DISTANCE
    if not block.shape[0]:
        return np.zeros(0, dtype)
    return Points(block, statistic, unit_rows=unit_rows, dtype=dtype, center=center).norms


def robust_center(X: FloatArray) -> FloatArray:
    """Return the median of up to 1,000 rows, in float64: an outlier moves the mean, not this.

    Distances do not depend on it; the digits that ‖x‖² + ‖y‖² − 2⟨x, y⟩ keeps do.
    """
    chosen = np.linspace(0, len(X) - 1, min(len(X), 1000)).astype(int)
    return np.median(X[chosen].astype(np.float64), axis=0)
