"""Lazy kernel matrices: shape, diagonal, tile, and products, but never the whole of K.

``KernelOperator`` is the one abstraction that everything after it works on. Weights d are part of
it: a weighted operator is D^½ K D^½, and the rest of the library need not know.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from sketchmeans.cross import CrossKernel, refuse_infinite
from sketchmeans.engine import (
    Crew,
    Pass,
    RightHandSide,
    engine_name,
    native_tile_rows,
    symmetric_pass,
    tile_rows,
    tournament_pass,
)
from sketchmeans.engine.native import Argument, Panels, has_map
from sketchmeans.engine.passes import Progress
from sketchmeans.kernels import FloatArray, Kernel, Statistic
from sketchmeans.points import BLOCK, Points, Prepared, data_blocks, row_blocks, rows_of
from sketchmeans.rounding import LEAST, SHOWING, entry_rounding, largest_deviation
from sketchmeans.sketches import Sketch
from sketchmeans.tiles import (
    CROSS_COLUMNS,
    CROSS_PACKED_BYTES,
    CROSS_ROWS,
    NativeTiles,
    Side,
    by_panels,
    cross_product,
)

AUDITED_ROWS = 32
"""Rows of W that are computed again in float64, to measure its relative error η."""

_AUDITED_BLOCKS = 8
"""Blocks of as many columns, of which entries are computed again to measure their rounding."""

_LARGEST_FOLDED = 1e30
"""A scale is folded into the matrix product of a tile while it leaves ‖x‖² below this."""

THREAD_BYTES = 6_000_000
"""What BLAS and the allocator keep for a thread, beyond its tile."""


class NewPoints(Protocol):
    """What knows the kernel between new points and the samples."""

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new points and the samples."""

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) for new points."""


class KernelOperator(ABC):
    """The kernel matrix of n samples, a block at a time.

    Parameters
    ----------
    n : int
        Samples.
    dtype : dtype
        Of the tiles.
    weights : array of shape (n,), optional
        Positive; K becomes D^½ K D^½.
    """

    @property
    def engine(self) -> str:
        """What computes the tiles."""
        return "numpy"

    cheap_diagonal = True
    """Whether the diagonal takes n entries; if not, a pass that meets it anyway is asked."""
    packs = True
    """Whether passes may prepare copies of Ω and of the data."""
    is_psd: bool | None = None
    """Whether K is positive semidefinite: by construction (True), not (False), unknown (None)."""

    def __init__(self, n: int, dtype: Any, weights: FloatArray | None = None) -> None:
        self.shape = (n, n)
        self.dtype = np.dtype(dtype)
        self.root_weights = None if weights is None else np.sqrt(weights)

    @property
    def data(self) -> Any:
        """The rows that the kernel is of; None where there are none."""
        return None

    def packing(self, pack: bool) -> Self:
        """Return the same operator; unless ``pack``, its passes prepare no copies."""
        if pack == self.packs:
            return self
        other = copy.copy(self)
        other.packs = pack
        return other

    @abstractmethod
    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        """Compute an unweighted tile; ``out`` is scratch space that it may use."""

    @abstractmethod
    def _diagonal(self) -> FloatArray:
        """Compute the unweighted diagonal, in float64."""

    @abstractmethod
    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new points and the samples, unweighted."""

    @abstractmethod
    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) for new points, in float64."""

    def for_new_points(self) -> NewPoints:
        """Return what ``against`` and ``diagonal_of`` need, and no more."""
        return self

    @abstractmethod
    def landmarks(self, indices: FloatArray) -> NewPoints:
        """Return the kernel between any points and these samples alone, in float64."""

    def _rectangle(
        self, rows: FloatArray | None, indices: FloatArray, n_threads: int
    ) -> FloatArray:
        """Compute K[rows, indices] in float64, unweighted; None stands for all rows."""
        return self.with_landmarks(
            self.landmarks(indices), len(indices), rows=rows, n_threads=n_threads
        )

    def with_landmarks(
        self,
        landmarks: NewPoints,
        count: int,
        *,
        rows: FloatArray | None = None,
        n_threads: int = 1,
    ) -> FloatArray:
        """Return the unweighted kernel of samples with ``count`` landmarks, in float64.

        Of all samples, or of ``rows``; the data are prepared a block at a time.
        """
        X = self.data
        R = np.empty((self.shape[0] if rows is None else len(rows), count))

        def compute(part: slice) -> None:
            cross = landmarks.against(rows_of(X, part) if rows is None else X[rows[part]])
            everything = slice(0, cross.shape[0]), slice(0, count)
            R[part] = cross.tile(*everything, np.empty(cross.shape))

        with Crew(n_threads) as crew:
            crew.each(compute, row_blocks(len(R), self.rows_at_once(count)))
        refuse_infinite(R)
        return R

    def rows_at_once(self, columns: int) -> int:
        """Return how many rows of the data are met at once where columns of K are computed."""
        return max(64, min(BLOCK, (1 << 19) // max(columns, self.n_features, 1)))

    def _square(self, indices: FloatArray) -> FloatArray:
        """Compute K[indices, indices] in float64, unweighted."""
        return self._rectangle(indices, indices, 1)

    def rectangle(self, rows: FloatArray, indices: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Return K[rows, indices] in float64: a kernel entry each."""
        R = self._rectangle(rows, indices, n_threads)
        if self.root_weights is not None:
            R *= self.root_weights[rows, None]
            R *= self.root_weights[indices]
        return R

    def block(self, indices: FloatArray) -> FloatArray:
        """Return K[indices, indices] in float64, for a few samples."""
        return self.rectangle(indices, indices)

    def columns(self, indices: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Return K[:, indices] in float64: n kernel entries a column."""
        indices = np.asarray(indices)
        C = self._rectangle(None, indices, n_threads)
        if self.root_weights is not None:
            C *= self.root_weights[:, None]
            C *= self.root_weights[indices]
        return C

    @property
    def n_features(self) -> int:
        """The columns of the data; 0 where there are none."""
        return 0 if self.data is None else int(self.data.shape[1])

    def row_bytes(self, rows: int) -> int:
        """Return what so many rows of the data take in float64, the indices of sparse ones too."""
        if sparse.issparse(self.data):
            return -(-rows * self.data.nnz // self.shape[0]) * 16
        return rows * self.n_features * 8

    def columns_bytes(self, count: int, n_threads: int) -> int:
        """Return what ``columns`` and ``rectangle`` allocate beside ``count`` columns."""
        rows = self.rows_at_once(count)
        own = 3 * rows * (count + 2) * 8 + self.row_bytes(4 * rows)
        return n_threads * (own + THREAD_BYTES) + self.row_bytes(2 * count) + self.shape[0] * count

    def tile(self, rows: slice, columns: slice, out: FloatArray | None = None) -> FloatArray:
        """Return K[rows, columns]; both slices need start and stop."""
        if out is None:
            out = np.empty((rows.stop - rows.start, columns.stop - columns.start), self.dtype)
        T = self._tile(rows, columns, out)
        if self.root_weights is not None:
            T = self._weigh(T, rows, columns)
        return T

    def _weigh(self, T: FloatArray, rows: slice, columns: slice) -> FloatArray:
        """Scale a tile of K to one of D^½ K D^½, in place."""
        assert self.root_weights is not None
        T *= self.root_weights[rows, None].astype(T.dtype)
        T *= self.root_weights[None, columns].astype(T.dtype)
        return T

    @property
    def diagonal_entries(self) -> int:
        """The kernel entries that ``diagonal`` takes."""
        return self.shape[0]

    def diagonal(self) -> FloatArray:
        """Return K_ii in float64: ``diagonal_entries`` kernel entries, n where it is cheap."""
        diagonal = self._diagonal()
        return diagonal if self.root_weights is None else diagonal * self.root_weights**2

    def multiply(
        self,
        right: Sketch | FloatArray,
        *,
        n_threads: int = 1,
        progress: Progress | None = None,
        pack: bool = True,
    ) -> Pass:
        """Return K Ω and what else one pass gives.

        Passes over K: 1. Kernel entries: n(n + 1)/2, and at most half a tile a row more.
        Memory: n × (width + 1) numbers in float64, Ω (a byte a number for signs), a tile a thread.

        Parameters
        ----------
        right : Sketch or array of shape (n, width)
            Ω.
        n_threads : int
            Does not change the result.
        progress : callable, optional
            Called with (tiles done, tiles in all).
        pack : bool
            Allow prepared copies of Ω, and of the data where they take no more than twice W;
            does not change the result.
        """
        matrix = right.matrix if isinstance(right, Sketch) else right
        side = RightHandSide(matrix, self.root_weights, self.dtype, pack=pack and self.packs)
        with Crew(n_threads) as crew:
            return symmetric_pass(self.tile, side, crew=crew, progress=progress)

    def __matmul__(self, matrix: FloatArray) -> FloatArray:
        """Return K @ matrix in float64; a vector gives a vector."""
        matrix = np.asarray(matrix)
        if matrix.ndim == 1:
            return self.multiply(matrix[:, None]).W[:, 0]
        return self.multiply(matrix).W

    def cross_bytes(self, width: int, n_threads: int, *, pack: bool) -> int:
        """Return what a product of a few new points with all samples allocates."""
        del pack
        right = self.shape[0] * width * 8
        return right + n_threads * (2 * 256 * (256 + width) * 8 + THREAD_BYTES)

    def relative_error(self, right: FloatArray, result: Pass, seed: int) -> tuple[float, int]:
        """Return the measured relative error of a pass, and the kernel entries that it took."""
        del right, seed
        return result.audit, 0

    def rounding(self, seed: int = 0, *, fine: bool = False) -> tuple[float, int]:
        """Return ε of the entries (see ``rounding``), and the kernel entries that it took.

        Here the entries are the truth, and what they may be off by is seen where K_ij and K_ji
        differ. ``fine`` asks for ε of columns and blocks, which are float64 whatever the tiles are.
        """
        block = self._square(audited_rows(self.shape[0], seed))
        diagonal = block.diagonal()
        asymmetry = largest_deviation(block, block.T, diagonal, diagonal)
        return max(self._unit(fine), LEAST, 2 * asymmetry), block.size

    def _unit(self, fine: bool) -> float:
        """Return a few units in the last place of the entries, and of sums of them in a tile."""
        return 16 * float(np.finfo(np.float64 if fine else self.dtype).eps)

    def scratch_bytes(self, width: int, n_threads: int, *, pack: bool) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        side = tile_rows(self.shape[0])
        tile = side * side + 4 * side * (width + 1)
        own = tile * self.dtype.itemsize + side * (width + 1) * 8
        packed = self.shape[0] * (width + 1) * self.dtype.itemsize if pack else 0
        return n_threads * (own + THREAD_BYTES) + packed


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


def robust_center(X: FloatArray) -> FloatArray:
    """Return the median of up to 1,000 rows, in float64: an outlier moves the mean, not this.

    Distances do not depend on it; the digits that ‖x‖² + ‖y‖² − 2⟨x, y⟩ keeps do.
    """
    chosen = np.linspace(0, len(X) - 1, min(len(X), 1000)).astype(int)
    return np.median(X[chosen].astype(np.float64), axis=0)


def _largest_sum(X: Any) -> float:
    """Return the largest ‖x‖₁ of the rows."""
    return max(float(abs(rows_of(X, rows)).sum(axis=1).max()) for rows in data_blocks(X))


def width_of(right: Sketch | FloatArray) -> int:
    """Return the number of columns of Ω."""
    return right.width if isinstance(right, Sketch) else right.shape[1]


def audited_rows(n: int, seed: int) -> FloatArray:
    """Return the rows of W that are computed again to measure its error."""
    random = np.random.default_rng([seed, n])
    return np.sort(random.choice(n, min(n, AUDITED_ROWS), replace=False))
