"""The fast Walsh–Hadamard transform of the columns of an array.

A butterfly a bit would read the array log₂ N times. Here four bits go at once: the Hadamard matrix
of order 16 is applied as one small matrix product, so the array is read a quarter as often and
the arithmetic runs at the speed of BLAS. The native engine has a transform of its own, in place.
"""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.engine.native import aligned_empty, compiled, engine_name
from sketchmeans.engine.threads import Crew

_RADIX_BITS = 4
_COLUMNS = 64
"""Columns transformed at a time: at N = 2^16 in float64 a block is 32 MB."""

SHARED = 1 << 20
"""Numbers from which threads share a native transform.

To wake a thread takes as long as a third of them (``python -m benchmarks.native_switches``).
"""


def hadamard_matrix(bits: int) -> FloatArray:
    """Return the Hadamard matrix of order 2^bits, H[i, j] = (−1)^popcount(i AND j).

    >>> hadamard_matrix(1)
    array([[ 1.,  1.],
           [ 1., -1.]])
    """
    index = np.arange(1 << bits)
    return 1.0 - 2.0 * (np.bitwise_count(index[:, None] & index[None, :]) & 1)


def _transform_block(block: FloatArray) -> FloatArray:
    """Transform the columns of a C-contiguous block of 2^k rows."""
    n, m = block.shape
    bits = n.bit_length() - 1
    done = 0
    while done < bits:
        step = min(_RADIX_BITS, bits - done)
        small = hadamard_matrix(step).astype(block.dtype)
        # Rows as (high bits, these bits, low bits · columns): one product a value of the high bits.
        view = block.reshape(n >> (done + step), 1 << step, m << done)
        block = np.matmul(small, view).reshape(n, m)
        done += step
    return block


def fwht(columns: FloatArray, *, n_threads: int = 1, overwrite: bool = False) -> FloatArray:
    """Return H @ columns for a ±1 Hadamard matrix H, unnormalised.

    Cost: log₂ N additions per element. Memory: the result, and with NumPy two blocks of 64 columns
    per thread. The result does not depend on the number of threads.

    Parameters
    ----------
    columns : array of shape (N, m), float32 or float64
        N must be a power of two; m is free.
    n_threads : int
        Threads that share the work; the native engine needs one alone for small arrays.
    overwrite : bool
        Allow the native engine to transform ``columns`` in place.
    """
    n, m = columns.shape
    if n & (n - 1) or n == 0:
        raise ValueError(
            f"fwht needs a power of two as the number of rows, not {n}: pad with zero rows to "
            f"{1 << n.bit_length()}."
        )
    if engine_name() == "native":
        return _native_fwht(columns, n_threads, overwrite=overwrite)
    result = np.empty_like(columns, order="C")

    def transform(block: slice) -> None:
        result[:, block] = _transform_block(np.ascontiguousarray(columns[:, block]))

    with Crew(n_threads) as crew:
        crew.each(transform, row_blocks(m, _COLUMNS))
    return result


def _native_fwht(columns: FloatArray, n_threads: int, *, overwrite: bool) -> FloatArray:
    """Transform the columns, in place if that is allowed and they are C-contiguous.

    Threads share the rows, not the columns: first eighths of the rows, each transformed by itself,
    then shares of what combines the eighths. The bits are those of one thread, since the order of
    additions is. NOTE: one call a thread takes one share after another, so that no thread waits for
    the interpreter in between.
    """
    n = len(columns)
    native = compiled()
    in_place = overwrite and columns.flags.c_contiguous
    result = columns if in_place else aligned_empty(columns.shape, columns.dtype)

    def copy(rows: slice) -> None:
        result[rows] = columns[rows]

    if n_threads == 1 or n < 8 or result.size < SHARED:
        if not in_place:
            copy(slice(0, n))
        native.transform(result)
        return result
    progress = np.zeros(2, np.uint32)
    with Crew(n_threads, blas=False) as crew:
        if not in_place:
            crew.each(copy, row_blocks(n, n // 8))
        crew.each(lambda _: native.transform(result, progress), range(n_threads))
    return result
