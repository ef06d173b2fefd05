"""Rows of data, a block at a time and always in the same order.

Sums run over fixed blocks of rows: the same bits on any machine with the same BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.rows import Rows, is_sparse

BLOCK = 4096
"""Rows handled at a time where a whole array would be too much."""


BLOCK_NUMBERS = 1 << 19
"""Numbers handled at a time."""

SUMMED = 1024
"""Rows of whole columns that are summed at a time; fixed, for it decides the bits."""


def row_blocks(n: int, size: int = BLOCK) -> list[slice]:
    """Cut range(n) into consecutive slices of at most ``size`` rows."""
    # NOTE: scikit-learn's gen_batches refuses n = 0, and checks its arguments longer than it cuts.
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def data_blocks(X: Any) -> list[slice]:
    """Cut the rows of X into slices of at most BLOCK_NUMBERS numbers, stored ones if sparse."""
    n, p = X.shape
    row = -(-X.nnz // max(n, 1)) if is_sparse(X) else p
    return row_blocks(n, max(1, min(BLOCK, BLOCK_NUMBERS // max(row, 1))))


def csr_rows(X: Any, rows: slice) -> Any:
    """Return a block of rows of a CSR matrix, without the search that SciPy's slicing makes."""
    pointers = X.indptr[rows.start : rows.stop + 1]
    span = slice(pointers[0], pointers[-1])
    block = sparse.csr_matrix(
        (X.data[span], X.indices[span], pointers - pointers[0]),
        shape=(rows.stop - rows.start, X.shape[1]),
        copy=False,
    )
    return block


def rows_of(X: Any, rows: slice) -> Any:
    """Return a block of rows without a copy, dense or sparse as X is."""
    return csr_rows(X, rows) if sparse.issparse(X) else X[rows]


def mapped(X: Any, work: Callable[[Any], Any], cuts: Iterable[slice]) -> list[Any]:
    """Return ``work`` of blocks of rows in their order: of these, or where X is elsewhere of any.

    Results must not depend on where rows are cut.
    """
    if isinstance(X, Rows):
        return X.map(work, name=getattr(work, "__name__", "look"))
    return [work(rows_of(X, rows)) for rows in cuts]


def dense(block: Any) -> Array:
    """Return a block, sparse or not, as a dense array."""
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


def stacked(parts: Sequence[Any]) -> Any:
    """Return blocks of rows as one, dense or sparse as they are."""
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.csr_matrix(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


def dense_rows(X: Any, rows: slice) -> FloatArray:
    """Return a block of rows as a dense array."""
    return dense(rows_of(X, rows))


def row_norms(block: Any) -> FloatArray:
    """Return ‖x‖ of the rows of a dense or sparse block of float64, of any size."""
    with np.errstate(over="ignore"):
        norms = np.sqrt(sums_of_squares(block))
    odd = np.flatnonzero(~((norms > 1e-140) & (norms < 1e140)))
    if len(odd):
        # Squares of numbers so small or large are lost: a power of two brings them near one.
        few = block[odd]
        largest = abs(few).max(axis=1)
        largest = largest.toarray().ravel() if sparse.issparse(block) else largest
        exponent = np.frexp(largest)[1]
        if sparse.issparse(block):
            few.data = np.ldexp(few.data, np.repeat(-exponent, np.diff(few.indptr)))
        else:
            few = np.ldexp(few, -exponent[:, None])
        with np.errstate(over="ignore"):
            norms[odd] = np.ldexp(np.sqrt(sums_of_squares(few)), exponent)
    return norms


def sums_of_squares(block: Any) -> FloatArray:
    """Return ‖x‖² of the rows of a block in float64."""
    if sparse.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).ravel()
    return np.vecdot(block, block)


def first_distinct(X: Any, enough: int, among: IntArray | None = None) -> IntArray:
    """Return where distinct rows of X come first, up to ``enough``; looks no further than it must.

    Among all rows, or among some that are given in order.
    """
    places = np.arange(getattr(X, "differing", X.shape[0])) if among is None else among
    first: dict[bytes, int] = {}
    most = max(256, min(1 << 15, BLOCK_NUMBERS // max(X.shape[1], 1)))
    for rows in _growing(len(places), most):
        block = X[places[rows]]
        for row, seen in _values(block):
            first.setdefault(seen, int(places[rows.start + row]))
            if len(first) >= enough:
                return np.array(list(first.values()), np.intp)
    return np.array(list(first.values()), np.intp)


def _values(block: Any) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a block with their values, in their order: of equal ones mostly the first.

    Equal rows are told by their bytes: rows in the thousands are no loop of Python.
    """
    if sparse.issparse(block):
        for row in range(block.shape[0]):
            span = slice(block.indptr[row], block.indptr[row + 1])
            stored = block.data[span] != 0
            values = block.data[span][stored]
            yield row, block.indices[span][stored].tobytes() + values.tobytes()
        return
    plain = np.ascontiguousarray(block + 0.0)  # −0.0 and 0.0 are one value
    if plain.shape[1] == 0:
        yield from ((0, b"") for _ in plain[:1])
        return
    lines = plain.view(np.dtype((np.void, plain.shape[1] * plain.itemsize))).ravel()
    # A row that equals the one before is no new one; where few are left, they need no sort.
    new = np.flatnonzero(np.concatenate([[True], (plain[1:] != plain[:-1]).any(axis=1)]))
    for row in np.sort(new[np.unique(lines[new], return_index=True)[1]]):
        yield int(row), lines[row].tobytes()


def _growing(n: int, most: int) -> Iterator[slice]:
    """Cut range(n) into slices that grow: what is elsewhere is fetched in few of them."""
    start, size = 0, 256
    while start < n:
        yield slice(start, min(start + size, n))
        start, size = start + size, min(2 * size, most)


def masses(weights: FloatArray | None, n: int) -> FloatArray:
    """Return the weights of n samples: ones where there are none."""
    return np.ones(n) if weights is None else weights


def left_out(weights: FloatArray | None) -> IntArray:
    """Return the samples of weight zero."""
    return np.zeros(0, int) if weights is None else np.flatnonzero(weights == 0)


def relative_weights(weights: FloatArray | None) -> FloatArray | None:
    """Return the weights times the power of two that brings the largest between ½ and 1.

    Means do not change, not in a bit; a clusterer that works in float32 can hold these.
    """
    return None if weights is None else np.ldexp(weights, -int(np.frexp(weights.max())[1]))


def multiply_columns(columns: FloatArray, matrix: Array) -> FloatArray:
    """Return columnsᵀ @ matrix, summed in float64 over fixed chunks of rows."""
    product = np.zeros((columns.shape[1], matrix.shape[1]))
    for rows in row_blocks(len(matrix), SUMMED):
        product += columns[rows].T @ matrix[rows].astype(columns.dtype, copy=False)
    return product
