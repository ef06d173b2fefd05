"""Sparse kernel matrices, as graphs have them: a pass costs the entries that are stored.

K is never made dense, not even a strip of it. Each row of W = KΩ is a sum over the stored entries
of one row of K, in their order, so that its bits depend neither on threads nor on blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import BLOCK, SUMMED, csr_rows, row_blocks
from sketchmeans.engine.passes import Pass, refuse_tile
from sketchmeans.engine.run import Run
from sketchmeans.engine.threads import Crew
from sketchmeans.operators.base import THREAD_BYTES, Right, audited_rows, matrix_of
from sketchmeans.operators.precomputed import GivenOperator, refuse_entry

STORED = 1 << 17
"""Stored entries of a block of rows, at most, unless a single row has more."""


class SparseOperator(GivenOperator):
    """A kernel matrix of which only some entries are stored; the others are zero.

    Kernel entries of a pass: those that are stored, each read once. Columns of K, as landmarks and
    pivots need them, are dense and counted as such.

    Parameters
    ----------
    K : CSR matrix of shape (n_samples, n_samples)
        Symmetric, in canonical format: indices sorted, and none twice.
    dtype : dtype
        Of the arithmetic.
    weights : array of shape (n_samples,), optional
        Positive.
    """

    def __init__(
        self, K: Any, *, dtype: Any = np.float64, weights: FloatArray | None = None
    ) -> None:
        super().__init__(K, dtype=dtype, weights=weights)
        self._blocks = stored_blocks(K.indptr)

    @property
    def stored(self) -> int:
        """The entries of K that are stored."""
        return int(self.K.nnz)

    @property
    def pass_entries(self) -> int:
        """The kernel entries that ``multiply`` reads: those that are stored."""
        return self.stored

    @property
    def tile_entries(self) -> int:
        """The same, also where no tiles are made."""
        return self.stored

    def _strip(self, rows: slice) -> Any:
        """Return rows of K, weighted, as a CSR matrix."""
        block = csr_rows(self.K, rows)
        data = block.data
        if self.root_weights is not None:
            both = np.repeat(self.root_weights[rows], np.diff(block.indptr))
            both *= self.root_weights[block.indices]
            data = data * both  # K_ij (r_i r_j), which is as symmetric as K
        data = data.astype(self.dtype, copy=False)
        return sparse.csr_matrix((data, block.indices, block.indptr), block.shape, copy=False)

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        return csr_rows(self.K, rows)[:, columns].toarray().astype(self.dtype, copy=False)

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        """Return K Ω and what else one pass gives, from the stored entries alone.

        Memory: n × width numbers in float64, Ω in the precision of the arithmetic, and per thread
        a block of stored entries.
        """
        n, blocks, u = self.shape[0], self._blocks, self.carried
        given = matrix_of(right)
        Omega = np.ascontiguousarray(given, dtype=self.dtype)
        W, row_sums = np.empty((n, Omega.shape[1])), np.empty(n)
        squares = np.empty(len(blocks))
        # In float64 there is nothing finer to measure by.
        audited = audited_rows(n, 0) if self.dtype == np.float32 else np.zeros(0, int)
        errors, sizes = np.zeros(n), np.zeros(n)

        def compute(index: int) -> None:
            rows = blocks[index]
            strip = self._strip(rows)
            fine = strip.astype(np.float64, copy=False)
            squares[index] = np.vdot(fine.data, fine.data)
            if not np.isfinite(squares[index]):
                refuse_stored(csr_rows(self.K, rows), np.arange(rows.start, rows.stop))
                refuse_tile("a far too large value", rows, slice(0, n))
            row_sums[rows] = fine @ u
            W[rows] = strip @ Omega
            for row in audited[(audited >= rows.start) & (audited < rows.stop)]:
                truth = _row_product(fine, row - rows.start, given)
                errors[row] = np.square(W[row] - truth).sum()
                sizes[row] = np.square(truth).sum()

        crew.each(compute, range(len(blocks)), lambda done: run.report(done, len(blocks)))
        error = float(np.sqrt(errors.sum() / sizes.sum())) if sizes.any() else 0.0
        return Pass(W, row_sums, float(squares.sum()), self.diagonal(), self.stored, error)

    def column_squares(self, scale: float) -> FloatArray:
        """Return ‖K e_j‖² of every column of K / scale, from the stored entries."""
        squares = np.empty(self.shape[0])
        for rows in self._blocks:
            strip = self._strip(rows).astype(np.float64, copy=False)
            strip.data = np.square(strip.data / scale)
            squares[rows] = strip @ np.ones(self.shape[0])
        return squares

    def _rectangle(self, rows: IntArray | None, indices: IntArray, run: Run) -> FloatArray:
        del run
        few = self.K[indices]  # K is symmetric, and rows are what lies together
        refuse_stored(few, indices)
        if rows is not None:
            few = few[:, rows]
        R = np.zeros((few.shape[1], len(indices)))
        R[few.indices, np.repeat(np.arange(len(indices)), np.diff(few.indptr))] = few.data
        return R

    def row_bytes(self, rows: int) -> int:
        """Return what so many rows of K take at the most, with their indices."""
        sizes = np.sort(np.diff(self.K.indptr))[::-1]
        times, rest = divmod(rows, len(sizes))
        return 16 * (times * self.stored + int(sizes[:rest].sum()))

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        n, indptr = self.shape[0], self.K.indptr
        most = max(int(indptr[rows.stop] - indptr[rows.start]) for rows in self._blocks)
        # Of an entry: its number in two precisions, roots of weights, and an index in four bytes.
        own = most * 40 + (min(n, BLOCK) + SUMMED) * (width + 1) * 16 + THREAD_BYTES
        return n * width * self.dtype.itemsize + run.n_threads * own + 6 * n * 8

    def columns_bytes(self, count: int, run: Run) -> int:
        """Return what ``columns`` and ``rectangle`` allocate beside ``count`` columns."""
        del run
        return 3 * self.row_bytes(count) + 2 * self.shape[0] * 8 + THREAD_BYTES

    def cross_bytes(self, width: int, run: Run) -> int:
        """Return what a product of a few new points with all samples allocates."""
        return super().cross_bytes(width, run) + self.row_bytes(2 * 256)


def stored_blocks(indptr: IntArray) -> list[slice]:
    """Cut the rows of a CSR matrix into blocks of about as many stored entries."""
    n, start, blocks = len(indptr) - 1, 0, []
    while start < n:
        full = int(np.searchsorted(indptr, int(indptr[start]) + STORED, side="right")) - 1
        stop = min(max(full, start + 1), start + BLOCK, n)
        blocks.append(slice(start, stop))
        start = stop
    return blocks


def _row_product(rows: Any, row: int, matrix: Array) -> FloatArray:
    """Return one sparse row times a matrix of any dtype, in float64."""
    span = slice(rows.indptr[row], rows.indptr[row + 1])
    data, indices = rows.data[span], rows.indices[span]
    total = np.zeros(matrix.shape[1])
    for part in row_blocks(len(data), SUMMED):
        total += data[part] @ matrix[indices[part]].astype(np.float64, copy=False)
    return total


def refuse_stored(block: Any, names: IntArray) -> None:
    """Raise an error that names the first of these sparse rows of K that is not finite."""
    finite = np.isfinite(block.data)
    if not finite.all():
        first = int(finite.argmin())
        row = int(np.searchsorted(block.indptr, first, side="right")) - 1
        refuse_entry(int(names[row]), float(block.data[first]))


def first_asymmetry(
    K: Any, lengths: FloatArray, tolerance: float
) -> tuple[int, int, float, float] | None:
    """Return i, j, K_ij and K_ji of the first stored entry without its mirror image; None if none.

    Two are the same that differ by no more than tolerance · (‖i‖‖j‖ + |K_ij| + |K_ji|). All entries
    are compared, by a search in the row of their mirror image: no copy of K.

    Parameters
    ----------
    K : CSR matrix
        Finite and in canonical format.
    lengths : array of shape (n,)
        √K_ii.
    tolerance : float
    """
    steps = int(np.diff(K.indptr).max(initial=0)).bit_length()
    for rows in stored_blocks(K.indptr):
        pointers = K.indptr[rows.start : rows.stop + 1]
        span = slice(pointers[0], pointers[-1])
        i, j = np.repeat(np.arange(rows.start, rows.stop), np.diff(pointers)), K.indices[span]
        here, there = K.data[span].astype(np.float64), _stored_at(K, j, i, steps)
        with np.errstate(over="ignore"):
            size = lengths[i] * lengths[j] + np.abs(here) + np.abs(there)
            off = np.abs(here - there) > tolerance * size
        if off.any():
            worst = int(off.argmax())
            return int(i[worst]), int(j[worst]), float(here[worst]), float(there[worst])
    return None


def _stored_at(K: Any, rows: IntArray, columns: IntArray, steps: int) -> FloatArray:
    """Return K[rows, columns] of a canonical CSR matrix, bisecting each row so many times."""
    low, end = K.indptr[rows].astype(np.int64), K.indptr[rows + 1].astype(np.int64)
    high = end.copy()
    last = max(K.nnz - 1, 0)
    for _ in range(steps):
        middle = (low + high) // 2
        left = (low < high) & (K.indices[np.minimum(middle, last)] < columns)
        low, high = np.where(left, middle + 1, low), np.where(left, high, middle)
    place = np.minimum(low, last)
    found = (low < end) & (K.indices[place] == columns)
    return np.where(found, K.data[place], 0).astype(np.float64)
