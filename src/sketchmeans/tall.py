"""Tall matrices, n × a few: products and sums over fixed blocks of rows, wherever the rows are.

Blocks make up spans, and what spans give is added up in the tree of ``sketchmeans.rows``. An array
is gone through here; of ``Rows`` each span is a task where it lies, and the bits are the same. What
stands beside a matrix, as ``given``, may be an array, ``Rows``, or a sketch that makes its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import BLOCK, row_blocks
from sketchmeans.rows import Kept, Part, Ran, Rows, TreeSum

SPAN = 16 * BLOCK
"""Rows of a span; fixed, for it decides the bits."""


@dataclass(frozen=True)
class EachBlock:
    """Work on a span, a block at a time; what blocks give is added in their order."""

    work: Callable[..., Part]
    size: int = BLOCK

    def __call__(self, rows: Any, *given: Any) -> Part:
        """Go through the span."""
        kept: list[Kept] = []
        total: Any = None
        for block in row_blocks(rows.shape[0], self.size):
            found = self.work(*(_alone(one[block]) for one in (rows, *given)))
            kept.append(found.kept)
            if found.summand is not None:
                total = found.summand if total is None else np.add(total, found.summand, out=total)
        return Part(tuple(np.concatenate(one) for one in zip(*kept, strict=True)), total)


def over(
    A: Any, work: Callable[..., Part], *given: Any, stay: bool = False, name: str = "look"
) -> Ran:
    """Return what ``work(block, *given)`` makes of all blocks of a tall matrix, or of a sketch.

    With ``stay``, what is kept of rows that are elsewhere stays there.
    """
    task = EachBlock(work)
    if isinstance(A, Rows):
        return A.run(task, *given, size=SPAN, stay=stay, name=name)
    kept, sums = [], TreeSum()
    for span in row_blocks(height(A), SPAN):
        part = task(*(rows_in(one, span) for one in (A, *given)))
        kept.append(part.kept)
        if part.summand is not None:
            sums.add(part.summand)
    return Ran(tuple(np.concatenate(one) for one in zip(*kept, strict=True)), sums.total())


def height(A: Any) -> int:
    """Return the rows of a matrix, or of a sketch."""
    return A.n if hasattr(A, "rows") else len(A)


def rows_in(A: Any, span: slice) -> Any:
    """Return some rows of an array, or of a sketch, which makes them."""
    return A.rows(span.start, span.stop) if hasattr(A, "rows") else A[span]


def fetched(A: Any) -> Any:
    """Return a tall matrix as an array here."""
    return A[:] if isinstance(A, Rows) else A


def gram(A: Any, B: Any) -> FloatArray:
    """Return AᵀB in float64."""
    if A is B:
        return over(A, _squared, name="gram").total
    if isinstance(B, Rows):
        return over(B, _second_first, A, name="gram").total
    return over(A, _product, B, name="gram").total


def multiply_rows(A: Any, T: FloatArray) -> Any:
    """Return AT in float64, where A is; for an A of any dtype, or a sketch."""
    if isinstance(A, Rows):
        return over(A, partial(_multiplied, T=T), stay=True, name="multiply").kept[0]
    product = np.empty((height(A), T.shape[1]))
    for rows in row_blocks(len(product)):
        product[rows] = _double(_alone(rows_in(A, rows))) @ T
    return product


def applied(W: Any, T: FloatArray) -> tuple[Any, FloatArray]:
    """Return WT, in the first columns of W if it is an array, and the squares of its columns."""
    if isinstance(W, Rows):
        ran = over(W, partial(_with_squares, T=T), stay=True, name="multiply")
        return ran.kept[0], ran.total
    sums = TreeSum()
    for span in row_blocks(len(W), SPAN):
        total = np.zeros(T.shape[1])
        for rows in row_blocks(span.stop - span.start):
            here = slice(span.start + rows.start, span.start + rows.stop)
            (block,), squares = _with_squares(_alone(W[here]), T=T)
            W[here, : T.shape[1]] = block
            total += squares
        sums.add(total)
    return W[:, : T.shape[1]], sums.total()


def orthogonal_columns(F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rotate F in place to orthogonal columns of falling norm; FFᵀ stays as it is.

    Returns
    -------
    eigenvalues : array
        Of FFᵀ: the squared norms of the columns.
    rotation : array
        Z with F_new = F_old Z.
    """
    _, rotation = np.linalg.eigh(gram(F, F))
    rotation = rotation[:, ::-1]
    return applied(F, rotation)[1], rotation


def triangle(A: Any, *given: Any, make: Callable[..., FloatArray] | None = None) -> FloatArray:
    """Return R of a QR decomposition of A, or of what ``make(block, *given)`` makes of its rows."""
    task = _Triangle(make)
    if isinstance(A, Rows):
        return _reduced(A.map(task, *given, size=SPAN, name="triangle"))
    spans = row_blocks(len(A), SPAN)
    return _reduced(task(*(rows_in(one, span) for one in (A, *given))) for span in spans)


def leading(A: Any, count: int) -> Any:
    """Return the first columns of a matrix, where it is."""
    if count == A.shape[1]:
        return A
    if isinstance(A, Rows):
        return A.run(partial(_leading, count=count), size=A.span, stay=True, name="columns").kept[0]
    return A[:, :count]


def without_last(A: Any) -> tuple[Any, FloatArray]:
    """Return all columns of a matrix but the last, where it is, and that one here."""
    if not isinstance(A, Rows):
        return A[:, :-1], A[:, -1].copy()
    most, last = A.run(_split, size=A.span, stay=True, name="columns").kept
    return most, last[:][:, 0]


def as_type(A: Any, dtype: Any) -> Any:
    """Return a matrix with numbers of this type, where it is."""
    if isinstance(A, Rows):
        return A.run(partial(_cast, dtype=dtype), size=A.span, stay=True, name="cast").kept[0]
    return A.astype(dtype, copy=False)


def any_of(A: Any) -> bool:
    """Whether some number of a matrix is not zero."""
    return any(A.map(np.any, name="look")) if isinstance(A, Rows) else bool(A.any())


@dataclass(frozen=True)
class _Triangle:
    """R of a span."""

    make: Callable[..., FloatArray] | None

    def __call__(self, rows: FloatArray, *given: Any) -> FloatArray:
        blocks = row_blocks(len(rows))
        parts = ([_alone(one[block]) for one in (rows, *given)] for block in blocks)
        return _reduced(
            _upper(part[0] if self.make is None else self.make(*part)) for part in parts
        )


def _upper(rows: FloatArray) -> FloatArray:
    """Return R of some rows."""
    return linalg.qr(rows, mode="r", check_finite=False)[0][: rows.shape[1]]


def _reduced(triangles: Iterable[FloatArray]) -> FloatArray:
    """Return R of matrices with these, one after the other."""
    R: FloatArray | None = None
    for one in triangles:
        R = one if R is None else _upper(np.concatenate([R, one]))
    assert R is not None
    return R


def _alone(block: Array) -> Array:
    """Return a block as it would be elsewhere, not between other columns: that can change bits."""
    return np.ascontiguousarray(block)


def _double(block: Array) -> FloatArray:
    return block.astype(np.float64, copy=False)


def _squared(A: Array) -> Part:
    A = _double(A)
    return Part((), A.T @ A)


def _product(A: Array, B: Array) -> Part:
    return Part((), _double(A).T @ _double(B))


def _second_first(B: Array, A: Array) -> Part:
    return _product(A, B)


def _multiplied(A: Array, *, T: FloatArray) -> Part:
    return Part((_double(A) @ T,))


def _with_squares(W: FloatArray, *, T: FloatArray) -> Part:
    block = W @ T
    return Part((block,), np.vecdot(block.T, block.T))


def _leading(A: FloatArray, *, count: int) -> Part:
    return Part((A[:, :count].copy(),))


def _split(A: FloatArray) -> Part:
    return Part((A[:, :-1].copy(), A[:, -1:].copy()))


def _cast(A: FloatArray, *, dtype: Any) -> Part:
    return Part((A.astype(dtype, copy=False),))
