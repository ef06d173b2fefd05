"""Lazy kernel matrices: shape, diagonal, tile, and products, but never the whole of K.

``KernelOperator`` is the one abstraction that everything after it works on. Weights d are part of
it: a weighted operator is D^½ K D^½, and the rest of the library need not know.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import BLOCK, row_blocks, rows_of
from sketchmeans.checkpoints import first_rows
from sketchmeans.engine import (
    ALONE,
    Crew,
    NumpyTiles,
    Pass,
    RightHandSide,
    Run,
    tile_rows,
    tournament_pass,
)
from sketchmeans.engine.passes import tournament_entries
from sketchmeans.engine.strips import strip_length
from sketchmeans.kernels.rounding import LEAST, largest_deviation
from sketchmeans.operators.cross import CrossKernel, refuse_infinite
from sketchmeans.rows import Rows, is_sparse

AUDITED_ROWS = 32
"""Rows of W that are computed again in float64, to measure its relative error η."""

THREAD_BYTES = 6_000_000
"""What BLAS and the allocator keep for a thread, beyond its tile."""


class LazyOmega(Protocol):
    """An Ω that need not exist as an array."""

    width: int

    @property
    def matrix(self) -> Array:
        """The whole of Ω."""

    def apply(self, columns: FloatArray) -> FloatArray:
        """Return columnsᵀΩ for whole columns of the kernel."""


Right = LazyOmega | Array | Rows
"""What K is multiplied by; rows are where those of the data are."""


class NewPoints(Protocol):
    """What knows the kernel between new points and the samples."""

    dtype: np.dtype
    """Of its entries."""

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new points and the samples."""

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) for new points."""

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what multiplies the kernel of new points by this matrix, block after block."""

    def rows_at_once(self, columns: int) -> int:
        """Return how many new points are met at once where columns of the kernel are computed."""


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

    cheap_diagonal = True
    """Whether the diagonal takes n entries; if not, a pass that meets it anyway is asked."""
    is_psd: bool | None = None
    """Whether K is positive semidefinite: by construction (True), not (False), unknown (None)."""

    def __init__(self, n: int, dtype: Any, weights: FloatArray | None = None) -> None:
        self.shape = (n, n)
        self.dtype = np.dtype(dtype)
        self.root_weights = None if weights is None else np.sqrt(weights)

    @property
    def engine(self) -> str:
        """What computes the tiles."""
        return "numpy"

    @property
    def data(self) -> Any:
        """The rows that the kernel is of; None where there are none."""
        return None

    @property
    def weights(self) -> FloatArray | None:
        """The weights of the samples; None where there are none."""
        return None if self.root_weights is None else self.root_weights**2

    @property
    def leaves_out(self) -> bool:
        """Whether some samples have weight zero."""
        return self.root_weights is not None and not self.root_weights.all()

    @property
    def carried(self) -> FloatArray:
        """The vector that passes carry beside Ω: ones, or the roots of the weights."""
        return np.ones(self.shape[0]) if self.root_weights is None else self.root_weights

    def unweighted(self) -> Self:
        """Return the same kernel without the weights."""
        plain = copy.copy(self)
        plain.root_weights = None
        return plain

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

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what multiplies the kernel of new points by this matrix, block after block."""
        return lambda X: self.against(X).multiply(right)

    def for_new_points(self) -> NewPoints:
        """Return what ``against`` and ``diagonal_of`` need, and no more."""
        return self

    def samples(self, rows: slice) -> Any:
        """Return samples as ``against`` takes them."""
        return rows_of(self.data, rows)

    def landmarks(self, indices: IntArray, *, fine: bool = True) -> NewPoints:
        """Return the kernel between any points and these samples alone; see ``landmarks_at``."""
        return self.landmarks_at(self.data[indices], fine=fine)

    @abstractmethod
    def landmarks_at(self, X: Any, *, fine: bool = True) -> NewPoints:
        """Return the kernel between any points and these, which need not be samples.

        In float64, unless it may be as coarse as the tiles.
        """

    def _rectangle(self, rows: IntArray | None, indices: IntArray, run: Run) -> FloatArray:
        """Compute K[rows, indices] in float64, unweighted; None stands for all rows."""
        return self.with_landmarks(self.landmarks(indices), len(indices), run, rows=rows)

    def with_landmarks(
        self,
        landmarks: NewPoints,
        count: int,
        run: Run = ALONE,
        *,
        rows: IntArray | None = None,
    ) -> FloatArray:
        """Return the unweighted kernel of samples with ``count`` landmarks, in float64.

        Of all samples, or of ``rows``; the data are prepared a block at a time.
        """
        X, n = self.data, self.shape[0] if rows is None else len(rows)
        blocks = row_blocks(n, self.rows_at_once(count))

        def compute(index: int) -> None:
            part = blocks[index]
            cross = landmarks.against(rows_of(X, part) if rows is None else X[rows[part]])
            everything = slice(0, cross.shape[0]), slice(0, count)
            R[part] = cross.tile(*everything, np.empty(cross.shape))

        def state(done: int) -> dict[str, Any]:
            return first_rows({"R": R}, blocks[done - 1].stop)

        stage_of = run.checkpoint.stage("columns", n, count)
        with Crew(run.n_threads) as crew, stage_of as stage:
            R = np.empty((n, count)) if stage.state is None else stage.state["R"]
            stage.each(crew, compute, len(blocks), state)
        refuse_infinite(R)
        return R

    def rows_at_once(self, columns: int) -> int:
        """Return how many rows of the data are met at once where columns of K are computed."""
        return rows_at_once(columns, self.n_features)

    def rectangle(self, rows: IntArray, indices: IntArray, run: Run = ALONE) -> FloatArray:
        """Return K[rows, indices] in float64: a kernel entry each."""
        return self._weigh(self._rectangle(rows, indices, run), rows, indices)

    def square(self, indices: IntArray) -> FloatArray:
        """Return K[indices, indices] in float64, for a few samples."""
        return self.rectangle(indices, indices)

    def columns(self, indices: IntArray, run: Run = ALONE) -> FloatArray:
        """Return K[:, indices] in float64: n kernel entries per column."""
        indices = np.asarray(indices)
        return self._weigh(self._rectangle(None, indices, run), slice(None), indices)

    def tile(self, rows: slice, columns: slice, out: FloatArray | None = None) -> FloatArray:
        """Return K[rows, columns]; both slices need start and stop."""
        if out is None:
            out = np.empty((rows.stop - rows.start, columns.stop - columns.start), self.dtype)
        return self._weigh(self._tile(rows, columns, out), rows, columns)

    def _weigh(self, T: FloatArray, rows: Any, columns: Any) -> FloatArray:
        """Scale a part of K to one of D^½ K D^½, in place."""
        if self.root_weights is not None:
            T *= self.root_weights[rows, None].astype(T.dtype, copy=False)
            T *= self.root_weights[columns].astype(T.dtype, copy=False)
        return T

    @property
    def n_features(self) -> int:
        """The columns of the data; 0 where there are none."""
        return 0 if self.data is None else int(self.data.shape[1])

    def row_bytes(self, rows: int) -> int:
        """Return what so many rows of the data take in float64, the indices of sparse ones too."""
        if is_sparse(self.data):
            return -(-rows * self.data.nnz // self.shape[0]) * 16
        return rows * self.n_features * 8

    def columns_bytes(self, count: int, run: Run) -> int:
        """Return what ``columns`` and ``rectangle`` allocate beside ``count`` columns."""
        rows = self.rows_at_once(count)
        own = 3 * rows * (count + 2) * 8 + self.row_bytes(4 * rows) + THREAD_BYTES
        return run.n_threads * own + self.row_bytes(2 * count) + self.shape[0] * count

    @property
    def diagonal_entries(self) -> int:
        """The kernel entries that ``diagonal`` takes."""
        return self.shape[0]

    @property
    def tile_entries(self) -> int:
        """The kernel entries of a symmetric pass over NumPy's tiles."""
        n = self.shape[0]
        return tournament_entries(n, tile_rows(n), NumpyTiles.diagonal_entries)

    @property
    def pass_entries(self) -> int:
        """The kernel entries that ``multiply`` takes, or reads."""
        return self.tile_entries

    @property
    def rank_at_most(self) -> int:
        """What the rank of K cannot exceed, as far as the kernel and the sizes tell."""
        return self.shape[0]

    @property
    def columns_dtype(self) -> np.dtype:
        """Of the kernel with landmarks that may be as coarse as the tiles."""
        return np.dtype(np.float64)

    def diagonal(self) -> FloatArray:
        """Return K_ii in float64: ``diagonal_entries`` kernel entries, n where it is cheap."""
        diagonal = self._diagonal()
        return diagonal if self.root_weights is None else diagonal * self.root_weights**2

    def diagonal_after(self, result: Pass) -> FloatArray:
        """Return K_ii after a pass, which has met it where it is not cheap."""
        return self.diagonal() if self.cheap_diagonal else result.diagonal

    def multiply(self, right: Right, run: Run = ALONE) -> Pass:
        """Return K Ω and what else one pass gives.

        Passes over K: 1. Kernel entries: n(n + 1)/2, and at most half a tile per row more.
        Memory: n × (width + 1) numbers in float64, Ω (a byte per number for signs), a tile per
        thread.
        """
        with Crew(run.n_threads) as crew:
            return self._pass(right, crew, run)

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        omega = RightHandSide(matrix_of(right), self.root_weights, self.dtype, pack=run.pack)
        return tournament_pass(NumpyTiles(self.tile, omega), *omega.shape, crew=crew, run=run)

    def __matmul__(self, matrix: Array) -> FloatArray:
        """Return K @ matrix in float64; a vector gives a vector."""
        matrix = np.asarray(matrix)
        if matrix.ndim == 1:
            return self.multiply(matrix[:, None]).W[:, 0]
        return self.multiply(matrix).W

    def relative_error(self, right: Any, result: Pass, seed: int) -> tuple[float, int]:
        """Return the measured relative error of a pass, and the kernel entries that it took."""
        del right, seed
        return result.relative_error, 0

    def rounding(self, seed: int = 0, *, fine: bool = False) -> tuple[float, int]:
        """Return ε of the entries (see ``kernels.rounding``), and the entries that it took.

        Here the entries are the truth, and what they may be off by is seen where K_ij and K_ji
        differ. ``fine`` asks for ε of columns, which are float64 whatever the tiles are.
        """
        chosen = audited_rows(self.shape[0], seed)
        square = self._rectangle(chosen, chosen, ALONE)
        diagonal = square.diagonal()
        asymmetry = largest_deviation(square, square.T, diagonal, diagonal)
        return max(self._unit(fine), LEAST, 2 * asymmetry), square.size

    def _unit(self, fine: bool) -> float:
        """Return a few units in the last place of the entries, and of sums of them in a tile."""
        return 16 * float(np.finfo(np.float64 if fine else self.dtype).eps)

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        rows = tile_rows(self.shape[0])
        tile = rows * rows + 4 * rows * (width + 1)
        own = tile * self.dtype.itemsize + rows * (width + 1) * 8
        own += 2 * strip_length(self.shape[0], rows) * (width + 1) * 8
        packed = self.shape[0] * (width + 1) * self.dtype.itemsize if run.pack else 0
        return run.n_threads * (own + THREAD_BYTES) + packed

    def cross_bytes(self, width: int, run: Run) -> int:
        """Return what a product of a few new points with all samples allocates."""
        right = self.shape[0] * width * 8
        return right + run.n_threads * (2 * 256 * (256 + width) * 8 + THREAD_BYTES)


def rows_at_once(columns: int, n_features: int) -> int:
    """Return the rows of a block of so many columns of K, of data of so many features."""
    return max(64, min(BLOCK, (1 << 20) // max(columns, n_features, 1)))


def matrix_of(right: Right) -> Array:
    """Return Ω as an array."""
    assert not isinstance(right, Rows)
    return right if isinstance(right, np.ndarray) else right.matrix


def audited_rows(n: int, seed: int) -> IntArray:
    """Return the rows of W that are computed again to measure its error."""
    random = np.random.default_rng([seed, n])
    return np.sort(random.choice(n, min(n, AUDITED_ROWS), replace=False))
