"""TODO."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import data_blocks, rows_of
from sketchmeans.engine import (
    Crew,
    Pass,
    RightHandSide,
    engine_name,
    native_tile_rows,
    tile_rows,
    tournament_pass,
)
from sketchmeans.engine.native import Argument, Panels, has_map
from sketchmeans.engine.passes import Progress
from sketchmeans.kernels import Kernel, Statistic
from sketchmeans.kernels.points import Points, Prepared, robust_center
from sketchmeans.kernels.rounding import SHOWING, entry_rounding, largest_deviation
from sketchmeans.operators.base import (
    AUDITED_ROWS,
    THREAD_BYTES,
    KernelOperator,
    audited_rows,
    width_of,
)
from sketchmeans.operators.cross import CrossKernel
from sketchmeans.operators.tiles import (
    CROSS_COLUMNS,
    CROSS_PACKED_BYTES,
    CROSS_ROWS,
    NativeTiles,
    Side,
    by_panels,
    cross_product,
)
from sketchmeans.sketches import Sketch

_AUDITED_BLOCKS = 8
"""Blocks of as many columns, of which entries are computed again to measure their rounding."""


_LARGEST_FOLDED = 1e30
"""A scale is folded into the matrix product of a tile while it leaves ‖x‖² below this."""


class DataOperator(KernelOperator):
    """The kernel matrix of the rows of X, computed on the fly.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Float32 or float64; kept without a copy.
    kernel : Kernel
    dtype : dtype, optional
        Of the tiles; that of X if left out.
    weights : array of shape (n_samples,), optional
        Positive.
    prepared : Prepared, optional
        ``points.prepared`` of an operator with the same X, kernel and dtype.
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        *,
        dtype: Any = None,
        weights: FloatArray | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        super().__init__(X.shape[0], dtype or X.dtype, weights)
        self.kernel = kernel
        self.is_psd = kernel.is_psd
        self._center = None
        if prepared is not None:
            self._center = prepared.center
        elif kernel.statistic is Statistic.SQUARED_DISTANCE and not sparse.issparse(X):
            self._center = robust_center(X)
        self.points = self._prepare(X, prepared)
        self._folds = abs(kernel.scale) * max(1.0, self.points.largest_norm) < _LARGEST_FOLDED
        rounding = abs(kernel.scale) * float(np.finfo(self.dtype).eps)
        self._far_out = SHOWING[self.dtype.itemsize] / max(
            rounding, 1e-300
        )  # a ‖x‖² from which rounding would show

    @property
    def data(self) -> Any:
        """The rows that the kernel is of."""
        return self.points.X

    def _block(self, ours: Points, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        """Return the kernel of rows of ``ours`` with rows of the samples."""
        scale = self.kernel.scale
        if self._far(ours, rows, columns):
            # Both blocks hold points so far out that rounding would show in their distances:
            # these come from differences. A few outliers cost a few tiles.
            return self.kernel.of(ours.by_differences(rows, self.points, columns))
        if self._folds:
            scaled = ours.block(rows, self.points, columns, scale=scale, out=out)
            return self.kernel.of_scaled(scaled)
        # A huge γ times a norm would be infinite, and infinity minus infinity is not a number.
        return self.kernel.of(ours.block(rows, self.points, columns, out=out))

    def _far(self, ours: Points, rows: slice, columns: slice) -> bool:
        """Whether the distances of these rows would show the rounding of dot products."""
        return ours.reaches(rows, self._far_out) and self.points.reaches(columns, self._far_out)

    @property
    def engine(self) -> str:
        """What computes the tiles: "native", or "numpy" where that is missing or was asked for."""
        return "native" if self._native else "numpy"

    @property
    def _native(self) -> bool:
        return engine_name() == "native" and has_map(self.kernel)

    def _native_tiles(self, left: Side, right: Side, omega: Panels) -> NativeTiles:
        """Return native tiles of the kernel between two sides, the right one our samples."""
        ours = left.points

        def plain(rows: slice, columns: slice) -> FloatArray:
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            return self._block(ours, rows, columns, np.empty(shape, self.dtype))

        def is_plain(rows: slice, columns: slice) -> bool:
            return not self._folds or self._far(ours, rows, columns)

        return NativeTiles(self.kernel, left, right, omega, plain=plain, is_plain=is_plain)

    def _native_pass(
        self, right: RightHandSide, crew: Crew, progress: Progress | None, *, pack: bool
    ) -> Pass:
        """Return K Ω by native tiles."""
        n, block = right.n, native_tile_rows(right.n)
        omega = Panels(right.block, n, right.width + 1, self.dtype, whole=pack, block=block)
        side = Side(
            self.points,
            Argument.of(self.kernel, self.dtype),
            root_weights=self.root_weights,
            pack=pack and self._worth_packing(right.width),
            block=block,
        )
        tiles = self._native_tiles(side, side, omega)
        return tournament_pass(tiles, n, right.width, crew=crew, progress=progress)

    def _prepare(self, X: Any, prepared: Prepared | None = None) -> Points:
        return Points(
            X,
            self.kernel.statistic,
            unit_rows=self.kernel.unit_rows,
            dtype=self.dtype,
            center=self._center,
            prepared=prepared,
        )

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        return self._block(self.points, rows, columns, out)

    def _diagonal(self) -> FloatArray:
        if self.kernel.statistic is Statistic.DOT:
            return self.kernel.diagonal(self.points.squared_norms())
        return self.kernel.diagonal(np.zeros(self.shape[0]))

    def multiply(
        self,
        right: Sketch | FloatArray,
        *,
        n_threads: int = 1,
        progress: Progress | None = None,
        pack: bool = True,
    ) -> Pass:
        """Return K Ω and what else one pass gives; see ``KernelOperator.multiply``."""
        pack = pack and self.packs
        if self._native:
            matrix = right.matrix if isinstance(right, Sketch) else right
            side = RightHandSide(matrix, self.root_weights, self.dtype)
            with Crew(n_threads) as crew:
                return self._native_pass(side, crew, progress, pack=pack)
        if pack and self._worth_packing(width_of(right)):
            self.points.pack(self.kernel.scale if self._folds else 1.0)
        try:
            return super().multiply(right, n_threads=n_threads, progress=progress, pack=pack)
        finally:
            self.points.unpack()

    def _worth_packing(self, width: int) -> bool:
        """Whether prepared copies of the data take no more than twice W."""
        return 0 < self._packed_bytes <= 2 * self.shape[0] * (width + 1) * 8

    @property
    def _packed_bytes(self) -> int:
        """What prepared copies of the data take; 0 where they gain nothing."""
        if not self._native:
            return self.points.packed_bytes
        n, p = self.points.n_samples, self.points.n_features
        return (n + 15) * p * self.dtype.itemsize if by_panels(self.points) else 0

    def scratch_bytes(self, width: int, n_threads: int, *, pack: bool) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        n, p = self.points.n_samples, self.points.n_features
        packed = self._packed_bytes if pack and self._worth_packing(width) else 0
        norms = n * 8
        if self._native:
            own = NativeTiles.scratch_bytes(self.points, width + 1, packed=packed > 0)
            omega = (n + 15) * (width + 1) * self.dtype.itemsize if pack else 0
            return n_threads * (own + THREAD_BYTES) + omega + packed + norms
        row = p + 2
        if self.points.is_sparse:
            row = -(-self.points.X.nnz // n) * 4
        panels = 4 * tile_rows(n) * row * 8
        own = super().scratch_bytes(width, n_threads, pack=pack)
        return own + n_threads * panels + packed + norms

    def cross_bytes(self, width: int, n_threads: int, *, pack: bool) -> int:
        """Return what a product of a few new points with all samples allocates."""
        packed = self._packed_bytes if pack and self._packed_bytes <= CROSS_PACKED_BYTES else 0
        panels = self.shape[0] * (width + 2) * 8 + self.row_bytes(4 * CROSS_COLUMNS) * n_threads
        return super().cross_bytes(width, n_threads, pack=pack) + packed + panels

    def relative_error(self, right: FloatArray, result: Pass, seed: int) -> tuple[float, int]:
        """Compute a few rows of W again in float64, by another formula where there is one."""
        n = self.shape[0]
        chosen = audited_rows(n, seed)
        truth = np.zeros((len(chosen), right.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for columns in data_blocks(self.points.X):
                T = self.kernel.of(self.points.exact_rows(chosen, columns))
                if self.root_weights is not None:
                    T *= self.root_weights[chosen, None] * self.root_weights[None, columns]
                truth += T @ right[columns].astype(np.float64)
        size = float(np.linalg.norm(truth))
        error = float(np.linalg.norm(result.W[chosen] - truth))
        return (error / size if size > 0 else 0.0), len(chosen) * n

    def rounding(self, seed: int = 0, *, fine: bool = False) -> tuple[float, int]:
        """Return ε by the formula of the tiles, or twice what a few thousand entries show."""
        n, points = self.shape[0], self.points
        chosen = audited_rows(n, seed)
        new = points.X[chosen]
        ours = self if not fine else self.landmarks(audited_rows(n, seed + 1))
        cross = ours.against(new)
        measured, spent = 0.0, 0
        diagonal, rows = self.diagonal_of(new), slice(0, len(chosen))
        starts = np.linspace(0, cross.shape[1] - 1, _AUDITED_BLOCKS).astype(int)
        for start in np.unique(starts):
            columns = slice(int(start), min(int(start) + AUDITED_ROWS, cross.shape[1]))
            out = np.empty((len(chosen), columns.stop - columns.start), cross.dtype)
            theirs = np.arange(columns.start, columns.stop)
            with np.errstate(over="ignore", invalid="ignore"):
                T = cross.tile(rows, columns, out)
                truth = self.kernel.of(points.exact_block(chosen, ours.points, theirs))
                other = self.diagonal_of(ours.points.X[theirs])
                measured = max(measured, largest_deviation(T, truth, diagonal, other))
            spent += 2 * T.size
        formula = entry_rounding(
            self.kernel,
            ours.dtype,
            points.n_features,
            # Landmarks are centred by themselves: twice as far from there, at the most.
            4 * points.largest_norm if fine else points.largest_norm,
            _largest_sum(points.X) if points.X.dtype.itemsize > ours.dtype.itemsize else 0.0,
        )
        return max(formula, 2 * measured), spent

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples, sparse or not as those are."""
        if sparse.issparse(X) and not self.points.is_sparse:
            X = X.toarray()
        elif self.points.is_sparse:
            X = sparse.csr_matrix(X)
        new = self._prepare(X)
        return CrossKernel(
            lambda rows, columns, out: self._block(new, rows, columns, out),
            (X.shape[0], self.shape[0]),
            self.dtype,
            (lambda right, crew: self._native_product(new, right, crew)) if self._native else None,
        )

    def _native_product(self, new: Points, right: FloatArray, crew: Crew) -> FloatArray:
        """Return k(x, X) @ right for new points, by native tiles."""
        argument = Argument.of(self.kernel, self.dtype)
        left = Side(new, argument, pack=False, block=CROSS_ROWS)
        pack = self.packs and 0 < self._packed_bytes <= CROSS_PACKED_BYTES
        samples = Side(self.points, argument, pack=pack, block=CROSS_COLUMNS)
        omega = Panels(
            right.__getitem__,
            len(right),
            right.shape[1],
            self.dtype,
            whole=True,
            block=CROSS_COLUMNS,
        )
        tiles = self._native_tiles(left, samples, omega)
        return cross_product(tiles, new.n_samples, crew=crew)

    def landmarks(self, indices: FloatArray) -> DataOperator:
        """Return the kernel between any points and these samples alone, in float64."""
        return self.landmarks_at(self.points.X[indices])

    def landmarks_at(self, X: Any) -> DataOperator:
        """Return the kernel between any points and these, which need not be samples."""
        return DataOperator(X, self.kernel, dtype=np.float64)

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) for new rows."""
        if self.kernel.statistic is Statistic.DOT:
            return self.kernel.diagonal(self._prepare(X).squared_norms())
        return self.kernel.diagonal(np.zeros(X.shape[0]))


def _largest_sum(X: Any) -> float:
    """Return the largest ‖x‖₁ of the rows."""
    return max(float(abs(rows_of(X, rows)).sum(axis=1).max()) for rows in data_blocks(X))
