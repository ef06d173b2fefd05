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

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import BLOCK, row_blocks, rows_of
from sketchmeans.engine import (
    Crew,
    Pass,
    RightHandSide,
    symmetric_pass,
    tile_rows,
)
from sketchmeans.engine.passes import Progress
from sketchmeans.kernels.rounding import LEAST, largest_deviation
from sketchmeans.operators.cross import CrossKernel, refuse_infinite
from sketchmeans.sketches import Sketch

AUDITED_ROWS = 32
"""Rows of W that are computed again in float64, to measure its relative error η."""


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


def width_of(right: Sketch | FloatArray) -> int:
    """Return the number of columns of Ω."""
    return right.width if isinstance(right, Sketch) else right.shape[1]


def audited_rows(n: int, seed: int) -> FloatArray:
    """Return the rows of W that are computed again to measure its error."""
    random = np.random.default_rng([seed, n])
    return np.sort(random.choice(n, min(n, AUDITED_ROWS), replace=False))
