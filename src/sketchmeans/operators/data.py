"""The kernel matrix of rows of data, computed on the fly."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import data_blocks, mapped, row_blocks, rows_of
from sketchmeans.engine import (
    Crew,
    NumpyTiles,
    Pass,
    RightHandSide,
    Run,
    engine_name,
    native_tile_rows,
    tile_rows,
    tournament_pass,
)
from sketchmeans.engine.native import Argument, Panels, has_map
from sketchmeans.engine.passes import tournament_entries
from sketchmeans.engine.strips import Tiles, strip_length
from sketchmeans.kernels import Kernel, Statistic
from sketchmeans.kernels.definitions import n_monomials
from sketchmeans.kernels.points import Points, Prepared, robust_center
from sketchmeans.kernels.rounding import entry_rounding, largest_deviation
from sketchmeans.operators.base import (
    AUDITED_ROWS,
    THREAD_BYTES,
    KernelOperator,
    Right,
    audited_rows,
    matrix_of,
)
from sketchmeans.operators.cross import CrossKernel, refuse_infinite
from sketchmeans.operators.strips import Audit, StripTask
from sketchmeans.operators.tiles import (
    CROSS_COLUMNS,
    CROSS_PACKED_BYTES,
    CROSS_ROWS,
    NativeTiles,
    PackedPoints,
    PlainTiles,
    by_panels,
    cross_product,
)
from sketchmeans.rows import Rows, in_order, is_sparse
from sketchmeans.tall import without_last

_AUDITED_BLOCKS = 8
"""Blocks of as many columns, of which entries are computed again to measure their rounding."""


class PointsOperator(KernelOperator):
    """The kernel matrix of the rows of X under a kernel of ours; products are left open.

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
        elif kernel.statistic is Statistic.SQUARED_DISTANCE and not is_sparse(X):
            self._center = robust_center(X)
        self.points = self._prepare(X, prepared)

    @property
    @abstractmethod
    def engine(self) -> str:
        """What computes the products."""

    @property
    def data(self) -> Any:
        """The rows that the kernel is of."""
        return self.points.X

    def _prepare(self, X: Any, prepared: Prepared | None = None) -> Points:
        return Points(
            X,
            self.kernel.statistic,
            unit_rows=self.kernel.unit_rows,
            dtype=self.dtype,
            center=self._center,
            prepared=prepared,
        )

    def prepared(self, X: Any) -> Points:
        """Return new rows, prepared as the samples are, and sparse or not as those are."""
        if sparse.issparse(X) and not self.points.is_sparse:
            X = X.toarray()
        elif self.points.is_sparse:
            X = sparse.csr_matrix(X)
        return self._prepare(X)

    def _tiles(self, ours: Points) -> PlainTiles:
        return PlainTiles(self.kernel, ours, self.points)

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        return self._tiles(self.points)(rows, columns, out)

    def _diagonal(self) -> FloatArray:
        if self.kernel.statistic is Statistic.DOT:
            return self.kernel.diagonal(self.points.squared_norms())
        return self.kernel.diagonal(np.zeros(self.shape[0]))

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) for new rows."""
        if self.kernel.statistic is Statistic.DOT:
            return self.kernel.diagonal(self._prepare(X).squared_norms())
        return self.kernel.diagonal(np.zeros(X.shape[0]))

    def landmarks_at(self, X: Any, *, fine: bool = True) -> DataOperator:
        """Return the kernel between any points and these, which need not be samples."""
        return DataOperator(X, self.kernel, dtype=np.float64 if fine else self.dtype)

    @property
    def rank_at_most(self) -> int:
        """What the rank of K cannot exceed: the features of a finite map."""
        p = self.points.n_features
        cosine = self.kernel.unit_rows and self.kernel.statistic is Statistic.DOT
        features = p if cosine else n_monomials(p, self.kernel)
        return self.shape[0] if features is None else min(features, self.shape[0])

    @property
    def columns_dtype(self) -> np.dtype:
        """Of the kernel with landmarks that may be as coarse as the tiles."""
        return self.dtype

    def rounding(self, seed: int = 0, *, fine: bool = False) -> tuple[float, int]:
        """Return ε by the formula of the tiles, or twice what a few thousand entries show."""
        n, points = self.shape[0], self.points
        chosen = audited_rows(n, seed)
        new = points.X[chosen]
        ours = self.landmarks_at(points.X[audited_rows(n, seed + 1)]) if fine else self
        measured, spent, count = 0.0, 0, ours.shape[0]
        diagonal, rows = self.diagonal_of(new), slice(0, len(chosen))
        prepared = ours.prepared(new)
        for start in np.unique(np.linspace(0, count - 1, _AUDITED_BLOCKS).astype(int)):
            theirs = np.arange(int(start), min(int(start) + AUDITED_ROWS, count))
            few = ours.points.at(theirs)
            out = np.empty((len(chosen), len(theirs)), ours.dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                T = PlainTiles(self.kernel, prepared, few)(rows, slice(0, len(theirs)), out)
                truth = self.kernel.of(points.exact_block(chosen, ours.points, theirs))
                other = self.diagonal_of(few.X)
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

    @property
    def _native(self) -> bool:
        return engine_name() == "native" and has_map(self.kernel)

    @property
    def _packed_bytes(self) -> int:
        """What prepared copies of the data take; 0 where they gain nothing."""
        if not self._native:
            return self.points.packed_bytes
        n, p = self.points.n_samples, self.points.n_features
        return (n + 15) * p * self.dtype.itemsize if by_panels(self.points) else 0

    def cross_bytes(self, width: int, run: Run) -> int:
        """Return what a product of a few new points with all samples allocates.

        NOTE: a feature map takes no panels; what it takes instead, a pass has taken before.
        """
        packed = self._packed_bytes if run.pack and self._packed_bytes <= CROSS_PACKED_BYTES else 0
        panels = self.shape[0] * (width + 2) * 8 + self.row_bytes(4 * CROSS_COLUMNS) * run.n_threads
        return super().cross_bytes(width, run) + packed + panels


class DataOperator(PointsOperator):
    """The kernel matrix of the rows of X, by tiles of the native engine or of NumPy."""

    @property
    def engine(self) -> str:
        """What computes the tiles: "native", or "numpy" where that is missing or was asked for."""
        return "native" if self._native else "numpy"

    def on(self, X: Any, root_weights: FloatArray | None = None) -> DataOperator:
        """Return the same kernel of some of the samples, or of None, of no rows yet.

        Rows are prepared as they are among all samples.
        """
        other = copy.copy(self)
        n = 0 if X is None else X.shape[0]
        other.shape, other.root_weights = (n, n), root_weights
        largest = self.points.largest_norm
        other.points = self._prepare(np.empty((0, self.points.n_features)) if X is None else X)
        other.points.largest_norm = largest
        return other

    @property
    def _tile_rows(self) -> int:
        """Rows of a tile: a function of n and the engine."""
        return native_tile_rows(self.shape[0]) if self._native else tile_rows(self.shape[0])

    @property
    def pass_entries(self) -> int:
        """The kernel entries that ``multiply`` takes."""
        tiles = NativeTiles if self._native else NumpyTiles
        return tournament_entries(self.shape[0], self._tile_rows, tiles.diagonal_entries)

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        if isinstance(self.points.X, Rows):
            return self._pass_elsewhere(self.points.X, right, run)
        matrix = matrix_of(right)
        pack = run.pack and self._worth_packing(matrix.shape[1])
        try:
            tiles = self.tiles(matrix, self._tile_rows, pack=pack, pack_right=run.pack)
            return tournament_pass(tiles, *matrix.shape, crew=crew, run=run)
        finally:
            self.points.unpack()

    def tiles(self, matrix: Array, rows: int, *, pack: bool, pack_right: bool) -> Tiles:
        """Return the tiles of K, which multiply this matrix, with so many rows each.

        The others say whether the data, and the matrix, are packed whole.
        """
        native = self._native
        omega = RightHandSide(matrix, self.root_weights, self.dtype, pack=pack_right and not native)
        if not native:
            if pack:
                self.points.pack(self.kernel.scale if self._tiles(self.points).folds else 1.0)
            return NumpyTiles(self.tile, omega, rows)
        n, width = omega.shape
        panels = Panels(omega.rows, n, width + 1, self.dtype, whole=pack_right, block=rows)
        argument = Argument.of(self.kernel, self.dtype)
        points = PackedPoints(
            self.points, argument, root_weights=self.root_weights, pack=pack, block=rows
        )
        return NativeTiles(self._tiles(self.points), points, points, panels, rows)

    def _pass_elsewhere(self, X: Rows, right: Right, run: Run) -> Pass:
        """Return K Ω from tasks where the rows are: each computes what some strips give."""
        n, rows = self.shape[0], self._tile_rows
        task = StripTask(self.on(None), rows)
        given = (right,) if self.root_weights is None else (right, self.root_weights)
        # W of a sketch stays where its rows are; what an array is multiplied by comes back.
        met = X.tournament(
            task,
            *given,
            size=strip_length(n, rows),
            stay=not isinstance(right, np.ndarray),
            progress=run.progress,
        )
        return Pass(*without_last(met.W), met.squares, met.diagonal, self.pass_entries)

    def _worth_packing(self, width: int) -> bool:
        """Whether prepared copies of the data take no more than twice W."""
        return 0 < self._packed_bytes <= 2 * self.shape[0] * (width + 1) * 8

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples, sparse or not as those are."""
        new = self.prepared(X)
        shape = (new.n_samples, self.shape[0])
        if not self._native:
            return CrossKernel(self._tiles(new), shape, self.dtype)

        def product(right: Array, crew: Crew, run: Run) -> FloatArray:
            tiles = self._native_cross(right, pack=run.pack)(new)
            return cross_product(tiles, new.n_samples, crew=crew, run=run)

        def evaluate() -> FloatArray:
            return self._native_cross(np.empty((self.shape[0], 0)), pack=True)(new).evaluate()

        return CrossKernel(self._tiles(new), shape, self.dtype, product, evaluate=evaluate)

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what multiplies κ(x, X) of new rows by this matrix, block after block.

        What does not depend on the rows is prepared once; one thread works on a block.
        """
        if not self._native:
            return super().multiplier(right)
        tiles_of = self._native_cross(right, pack=True)

        def multiply(X: Any) -> FloatArray:
            new = self.prepared(X)
            out = np.zeros((new.n_samples, right.shape[1]))
            with np.errstate(over="ignore", invalid="ignore"):
                tiles_of(new).multiply(slice(0, new.n_samples), out)
            refuse_infinite(out)
            return out

        return multiply

    def _native_cross(self, right: Array, *, pack: bool) -> Callable[[Points], NativeTiles]:
        """Pack the samples and a matrix; return what makes the tiles of new points with them."""
        argument = Argument.of(self.kernel, self.dtype)
        pack = pack and 0 < self._packed_bytes <= CROSS_PACKED_BYTES
        samples = PackedPoints(self.points, argument, pack=pack, block=CROSS_COLUMNS)
        n, width = right.shape
        panels = Panels(right.__getitem__, n, width, self.dtype, whole=True, block=CROSS_COLUMNS)

        def tiles(new: Points) -> NativeTiles:
            left = PackedPoints(new, argument, pack=False, block=CROSS_ROWS)
            return NativeTiles(self._tiles(new), left, samples, panels)

        return tiles

    def relative_error(self, right: Any, result: Pass, seed: int) -> tuple[float, int]:
        """Compute a few rows of W again in float64, by another formula where there is one."""
        n, X = self.shape[0], self.points.X
        chosen = audited_rows(n, seed)
        audit = Audit(
            self.kernel,
            X[chosen],
            None if self.root_weights is None else self.root_weights[chosen],
            data_blocks(X)[0].stop,
        )
        given = (right,) if self.root_weights is None else (right, self.root_weights)
        size = strip_length(n, self._tile_rows)
        if isinstance(X, Rows):
            parts = X.map(audit, *given, size=size, name="audit")
        else:
            strips = row_blocks(n, size)
            parts = [audit(rows_of(X, rows), *(one[rows] for one in given)) for rows in strips]
        truth = in_order(parts)
        size_of = float(np.linalg.norm(truth))
        error = float(np.linalg.norm(result.W[chosen] - truth))
        return (error / size_of if size_of > 0 else 0.0), len(chosen) * n

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        n, p = self.points.n_samples, self.points.n_features
        packed = self._packed_bytes if run.pack and self._worth_packing(width) else 0
        norms = n * 8
        if self._native:
            own = NativeTiles.scratch_bytes(self.points, width + 1, packed=packed > 0)
            own += 2 * strip_length(n, self._tile_rows) * (width + 1) * 8
            omega = (n + 15) * (width + 1) * self.dtype.itemsize if run.pack else 0
            return run.n_threads * (own + THREAD_BYTES) + omega + packed + norms
        row = p + 2
        if self.points.is_sparse:
            row = -(-self.points.X.nnz // n) * 4
        augmented = 4 * tile_rows(n) * row * 8
        return super().scratch_bytes(width, run) + run.n_threads * augmented + packed + norms


def _largest_sum(X: Any) -> float:
    """Return the largest ‖x‖₁ of the rows."""
    return max(mapped(X, _largest_sum_of, data_blocks(X)))


def _largest_sum_of(block: Any) -> float:
    return float(abs(block).sum(axis=1).max()) if block.shape[0] else 0.0
