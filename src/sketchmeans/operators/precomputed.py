"""Kernel matrices that exist, as an array, a memory map or rows that the caller has.

Sparse ones stand in ``graphs``; what both share, and the rows of new points, stand here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import SUMMED, dense, multiply_columns, row_blocks, rows_of
from sketchmeans.engine.passes import Pass, strip_pass, strip_rows
from sketchmeans.engine.run import Run
from sketchmeans.engine.threads import Crew
from sketchmeans.operators.base import (
    THREAD_BYTES,
    KernelOperator,
    Right,
    audited_rows,
    rows_at_once,
)
from sketchmeans.operators.cross import CrossKernel, Product
from sketchmeans.rows import Rows
from sketchmeans.text import called


class GivenOperator(KernelOperator):
    """A kernel matrix that exists.

    Parameters
    ----------
    K : array, memmap or CSR matrix of shape (n_samples, n_samples)
    dtype : dtype
        Of the arithmetic.
    weights : array of shape (n_samples,), optional
        Positive.
    """

    def __init__(
        self, K: Any, *, dtype: Any = np.float64, weights: FloatArray | None = None
    ) -> None:
        super().__init__(K.shape[0], dtype, weights)
        self.K = K
        self._known_diagonal: FloatArray | None = None

    def _diagonal(self) -> FloatArray:
        if self._known_diagonal is None:
            self._known_diagonal = np.asarray(self.K.diagonal(), dtype=np.float64)
        return self._known_diagonal

    def _unit(self, fine: bool) -> float:
        # K was rounded when it was written: it is positive semidefinite to so many digits.
        given = 4 * float(np.finfo(self.K.dtype).eps) if self.K.dtype.kind == "f" else 0.0
        return max(super()._unit(fine), given)

    def against(self, K: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples: K is its rows."""
        return self.for_new_points().against(K)

    def diagonal_of(self, K: Any) -> FloatArray:
        """Return κ(x, x) for the samples themselves; rows of new points do not hold it."""
        return self.for_new_points().diagonal_of(K)

    def for_new_points(self) -> GivenRows:
        """Return what new points need: not K."""
        return GivenRows(self.dtype, self._diagonal())

    def samples(self, rows: slice) -> Any:
        """Return samples as ``against`` takes them: rows of K."""
        return rows_of(self.K, rows)

    def landmarks(self, indices: IntArray, *, fine: bool = True) -> GivenRows:
        """Return the kernel between any points and these samples: columns of given rows."""
        del fine
        return GivenRows(np.float64, self._diagonal(), chosen=indices)

    def landmarks_at(self, X: Any, *, fine: bool = True) -> GivenRows:
        """Refuse: there is no kernel of points that are not samples."""
        raise ValueError("a precomputed kernel has no points beside its samples.")


class PrecomputedOperator(GivenOperator):
    """A kernel matrix that exists as an array or a memory map.

    A pass reads it once, whole rows at a time and in order.

    Parameters
    ----------
    K : array or memmap of shape (n_samples, n_samples)
    dtype : dtype
        Of the arithmetic.
    weights : array of shape (n_samples,), optional
        Positive.
    """

    def __init__(
        self, K: Any, *, dtype: Any = np.float64, weights: FloatArray | None = None
    ) -> None:
        # A matrix in Fortran order is read by columns: K is symmetric, and so they are contiguous.
        by_columns = isinstance(K, np.ndarray) and K.flags.f_contiguous
        super().__init__(K.T if by_columns else K, dtype=dtype, weights=weights)

    @property
    def pass_entries(self) -> int:
        """The kernel entries that ``multiply`` reads: all."""
        return self.shape[0] ** 2

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        # A copy: it is written to, and what is mapped is read by this.
        np.copyto(out, rows_of(self.K, rows)[:, columns], casting="unsafe")
        return out

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        """Return K Ω and what else one pass gives, reading K once and in order."""
        n = self.shape[0]
        assert not isinstance(right, Rows)  # K is here
        own = threading.local()

        def read(rows: slice) -> FloatArray:
            # A buffer a thread: fresh memory for every strip takes longer than what is read to it.
            if not hasattr(own, "strip"):
                own.strip = np.empty((strip_rows(n), n), self.dtype)
            return self.tile(rows, slice(0, n), own.strip[: rows.stop - rows.start])

        def product(strip: FloatArray) -> FloatArray:
            if isinstance(right, np.ndarray):
                return multiply_columns(strip.T, right)
            return right.apply(strip.T)

        return strip_pass(
            read,
            product,
            n,
            right.shape[1] if isinstance(right, np.ndarray) else right.width,
            carried=self.root_weights,
            audited=audited_rows(n, 0),
            crew=crew,
            run=run,
        )

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        n = self.shape[0]
        # The strip, a temporary of its size, and for the fast transform two padded copies.
        strips = strip_rows(n) * n * self.dtype.itemsize * 6
        return run.n_threads * (strips + THREAD_BYTES) + 5 * n * 8

    def columns_bytes(self, count: int, run: Run) -> int:
        """Return what ``columns`` and ``rectangle`` allocate beside ``count`` columns."""
        del run
        return self.shape[0] * count * (max(self.K.dtype.itemsize, 8) + 1) + THREAD_BYTES

    def _rectangle(self, rows: IntArray | None, indices: IntArray, run: Run) -> FloatArray:
        del run
        # K is symmetric, and rows are what lies together.
        block = np.asarray(self.K[indices] if rows is None else self.K[np.ix_(indices, rows)])
        refuse_entries(block, indices)
        return np.ascontiguousarray(block.T, dtype=np.float64)


def refuse_entries(rows: FloatArray, indices: IntArray) -> None:
    """Raise an error that names the first of these rows of K that is not finite."""
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        refuse_entry(int(indices[bad[0, 0]]), float(rows[tuple(bad[0])]))


def refuse_entry(row: int, value: float) -> NoReturn:
    """Raise the error that says what is not finite in a row of K."""
    raise ValueError(
        f"row {row} of the precomputed kernel holds {value:g}, and a kernel must be finite: NaN "
        "and infinity have no place in it. Leave that sample out, or compute its kernel again."
    )


class GivenRows:
    """Stands for a kernel of which every row is given: precomputed, or streamed.

    Parameters
    ----------
    dtype : dtype
        Of the arithmetic.
    diagonal : array of shape (n,)
        κ(x, x) of the samples.
    chosen : array of int, optional
        The samples that count; all of them if left out.
    """

    def __init__(self, dtype: Any, diagonal: FloatArray, chosen: IntArray | None = None) -> None:
        self.dtype, self.diagonal, self.chosen = np.dtype(dtype), diagonal, chosen

    def against(self, K: Any) -> CrossKernel:
        """Return the kernel between new points and the samples, of which K holds the rows.

        Kernel entries of a product: all of those rows; of sparse ones those that are stored.
        """

        def tile(rows: slice, columns: slice, out: FloatArray) -> FloatArray:
            chosen = columns if self.chosen is None else self.chosen[columns]
            return dense(rows_of(K, rows)[:, chosen]).astype(self.dtype, copy=False)

        shape = (K.shape[0], K.shape[1] if self.chosen is None else len(self.chosen))
        if not sparse.issparse(K):
            return CrossKernel(tile, shape, self.dtype)
        entries = K.nnz if self.chosen is None else None
        return CrossKernel(tile, shape, self.dtype, self._stored_product(K), entries)

    def _stored_product(self, K: Any) -> Product:
        """Return what multiplies sparse rows without making them dense."""

        def product(right: Array, crew: Crew, run: Run) -> FloatArray:
            matrix = np.ascontiguousarray(right, dtype=self.dtype)
            out = np.empty((K.shape[0], matrix.shape[1]))

            def compute(rows: slice) -> None:
                block = rows_of(K, rows).astype(self.dtype, copy=False)
                out[rows] = (block if self.chosen is None else block[:, self.chosen]) @ matrix

            blocks = row_blocks(len(out), SUMMED)
            crew.each(compute, blocks, lambda done: run.report(done, len(blocks)))
            return out

        return product

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what multiplies given rows by this matrix, block after block."""
        return lambda K: self.against(K).multiply(right)

    def rows_at_once(self, columns: int) -> int:
        """Return how many rows are met at once."""
        return rows_at_once(columns, len(self.diagonal))

    def diagonal_of(self, K: Any) -> FloatArray:
        """Return κ(x, x) for the samples themselves; rows of new points do not hold it."""
        n = len(self.diagonal)
        if K.shape != (n, n) or not np.array_equal(K.diagonal(), self.diagonal):
            raise ValueError(
                "distances in feature space need κ(x, x), which rows of a precomputed kernel hold "
                "only for the training samples. Score the training kernel, or score without "
                f"refinement ({called('n_refine')}=0)."
            )
        return self.diagonal
