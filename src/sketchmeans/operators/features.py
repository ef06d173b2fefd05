"""Finite feature maps: K̂ = FFᵀ with rows F(x) that are made a block at a time costs O(n).

A map may be the kernel itself, as the monomials of a polynomial one, or an approximation of any
kernel from below, as the features of landmarks. What stands here does not know which: one Gram
matrix and one product, both streamed over fixed blocks of rows.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import row_blocks, rows_of
from sketchmeans.engine import ALONE, Crew, Pass, Run
from sketchmeans.operators.base import THREAD_BYTES, KernelOperator, Right, matrix_of
from sketchmeans.operators.streams import Blockwise, Work, span_rows, stream_elsewhere, stream_here
from sketchmeans.rows import Part, Ran, Rows
from sketchmeans.tall import without_last


class FeatureMap(ABC):
    """F(x) of any row x, as F = BT: rows of B are made from x, T is a small matrix.

    ``T`` is None where F is B itself.
    """

    count: int
    """Columns of F."""
    T: FloatArray | None = None
    entries: int = 0
    """Kernel entries that a row of B takes."""
    rows_at_once: int = 1024
    """Rows of a block; fixed by the sizes of the data, for it decides the bits."""

    @abstractmethod
    def block(self, X: Any) -> FloatArray:
        """Return B of a block of rows."""

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what makes B @ right in float64 of a block of rows, for a narrow ``right``."""
        return lambda X: self.block(X).astype(np.float64, copy=False) @ right

    def expanded(self, coefficients: FloatArray) -> FloatArray:
        """Return T @ coefficients: what B is multiplied by in place of F."""
        return coefficients if self.T is None else self.T @ coefficients

    def projected(self, sums: FloatArray) -> FloatArray:
        """Return FᵀR from BᵀR."""
        return sums if self.T is None else self.T.T @ sums

    @property
    def width(self) -> int:
        """Columns of B."""
        return self.count if self.T is None else len(self.T)


@dataclass(frozen=True)
class Gram:
    """What one stream over F gives; u is the unit vector of ones, or of the roots of the weights.

    F has its weights in it: rows are scaled by their roots.
    """

    squared: FloatArray
    """FᵀF."""
    centred: FloatArray
    """FᵀJF with J = I − uuᵀ."""
    along: FloatArray
    """Fᵀu."""
    lengths: FloatArray
    """‖F_i‖² of every row."""

    def leading(self, count: int) -> Gram:
        """Return the same of the first columns of F."""
        few = slice(0, count)
        return Gram(self.squared[few, few], self.centred[few, few], self.along[few], self.lengths)

    def rotated(self, V: FloatArray) -> Gram:
        """Return the same of FV."""
        squared, centred = (V.T @ M @ V for M in (self.squared, self.centred))
        return Gram(squared, centred, self.along @ V, self.lengths)


class FeatureOperator(KernelOperator):
    """K̂ = FFᵀ for a feature map: products take time linear in n.

    Kernel entries of a pass: those of two streams over F, and none for monomials.
    """

    map: FeatureMap
    held: Any = None
    """B of all samples, where it is held in memory: here, or where the samples are."""
    holds = False
    """Whether B is held, of all samples or of those that a stream meets."""

    @property
    def stream_entries(self) -> int:
        """The kernel entries of one stream over all rows."""
        return 0 if self.holds else self.shape[0] * self.map.entries

    @property
    def pass_entries(self) -> int:
        """The kernel entries of a pass: those of two streams."""
        return 2 * self.stream_entries

    @property
    def stream_distances(self) -> int:
        """The distances that one stream over all rows takes."""
        return 0

    def block(self, rows: slice) -> FloatArray:
        """Return rows of B, which know nothing of weights."""
        return self.held[rows] if self.holds else self.map.block(self.samples(rows))

    def features(self, rows: slice) -> FloatArray:
        """Return rows of F in float64, scaled by the roots of the weights."""
        F = self.block(rows)
        if self.map.T is not None:
            F = F @ self.map.T.astype(F.dtype, copy=False)
        F = F.astype(np.float64, copy=self.holds and self.map.T is None)
        if self.root_weights is not None:
            F *= self.root_weights[rows, None]
        return F

    def on(self, rows: Any, root_weights: FloatArray | None = None) -> Self:
        """Return the same features of other rows, with their weights; of None, of no rows yet.

        Where features are held, of rows of those.
        """
        other = copy.copy(self)
        other.root_weights = root_weights
        n = 0 if rows is None else rows.shape[0]
        other.shape = (n, n)
        other.held = rows if self.holds else None
        other.take_rows(None if self.holds else rows)
        return other

    @abstractmethod
    def take_rows(self, X: Any) -> None:
        """Put these rows, or None, in the place of the samples."""

    def hold(self, run: Run = ALONE) -> None:
        """Make B once, n × width numbers, in place of once a stream."""
        self.held = self.stream(self.blockwise(_made_block), run, stay=True, name="columns").kept[0]
        self.holds = True

    def _blocks(self) -> list[slice]:
        return row_blocks(self.shape[0], self.map.rows_at_once)

    def blockwise(self, work: Callable[..., Part]) -> Blockwise:
        """Return what does this with every block of rows of the map's own size."""
        return Blockwise(work, self.map.rows_at_once)

    def span_rows(self) -> int:
        """Return the rows of a span: whole blocks."""
        return span_rows(self.shape[0], self.map.rows_at_once)

    def stream(
        self,
        work: Work,
        run: Run = ALONE,
        *given: Any,
        stay: bool = False,
        sums: bool = False,
        name: str = "stream",
        crew: Crew | None = None,
    ) -> Ran:
        """Do ``work`` with every span of rows: the same bits on any threads, here or elsewhere.

        Parameters
        ----------
        work : Work
        run : Run
        *given : arrays of n rows
            Each span gets the rows that belong to its own.
        stay : bool
            Whether what is kept stays where the rows are; here it always does.
        sums : bool
            Whether there is something to add up: then no more spans run than there are threads.
        name : str
            What people are told that is being done.
        crew : Crew, optional
            Who does it, where there is one already.
        """
        source, size = self.held if self.holds else self.data, self.span_rows()
        if isinstance(source, Rows):
            return stream_elsewhere(
                self, source, work, given, size=size, stay=stay, name=name, run=run
            )
        return stream_here(self, work, given, size=size, sums=sums, name=name, run=run, crew=crew)

    def gram(self, near: FloatArray, run: Run = ALONE) -> Gram:
        """Return FᵀF and FᵀJF from one stream; ``near`` is anything close to Fᵀu.

        NOTE: FᵀF − (Fᵀu)(Fᵀu)ᵀ loses every digit where the kernel is large and nearly constant.
        Rows that lose u·nearᵀ before they are multiplied leave a small correction.
        """
        u = self.carried / np.linalg.norm(self.carried)
        work = self.blockwise(partial(_gram_block, near=near))
        (lengths,), total = self.stream(work, run, u, sums=True, name="gram")
        shifted, off = total[:, :-1], total[:, -1]
        across = np.outer(off, near)
        squared = shifted + across + across.T + np.outer(near, near)
        return Gram(squared, shifted - np.outer(off, off), near + off, lengths)

    def product(self, coefficients: FloatArray, run: Run = ALONE) -> Any:
        """Return F @ coefficients, n × width in float64, from one stream."""
        work = self.blockwise(_Product(self.map, self.map.expanded(coefficients)))
        return self.stream(work, run, stay=True, name="embed").kept[0]

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        """Return K̂Ω = F(FᵀΩ) and what else one pass gives, in O(n · features · width).

        Streams: 2. Memory: n × (width + 1) numbers, the Gram matrix of the features, and a block
        of F per thread.
        """
        Omega = right if isinstance(self.data, Rows) else matrix_of(right)
        work = self.blockwise(_project_block)
        (diagonal,), total = self.stream(  # Fᵀ[Ω, u, F]
            work, run.part(0, 2), Omega, self.carried, sums=True, name="project", crew=crew
        )
        width = total.shape[1] - len(total) - 1
        work = self.blockwise(partial(product_block, coefficients=total[:, : width + 1]))
        stay = not isinstance(right, np.ndarray)
        (W,), _ = self.stream(work, run.part(1, 2), name="expand", stay=stay, crew=crew)
        gram = total[:, width + 1 :]
        sum_of_squares = float(np.vdot(gram, gram))
        if not np.isfinite(sum_of_squares):
            raise ValueError(
                "the kernel overflows on these data: ‖K‖_F² is not finite. Scale the data, or "
                "lower gamma or degree."
            )
        return Pass(*without_last(W), sum_of_squares, diagonal, self.pass_entries)

    def _new_product(self, X: Any) -> Callable[[Array, Crew, Run], FloatArray]:
        """Return what multiplies κ̂(x, X) of new rows: F(x)(Fᵀ·right)."""

        def product(right: Array, crew: Crew, run: Run) -> FloatArray:
            plain = self.unweighted()
            out = np.empty((X.shape[0], right.shape[1]))

            def expand(rows: slice) -> None:
                out[rows] = multiply(rows_of(X, rows))

            work = plain.blockwise(_sums_block)
            total = plain.stream(work, Run(), right, sums=True, name="project", crew=crew).total
            multiply = self.map.multiplier(self.map.expanded(total))
            blocks = row_blocks(X.shape[0], self.map.rows_at_once)
            crew.each(expand, blocks, lambda done: run.report(done, len(blocks)))
            return out

        return product

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        count = self.map.count
        total = count * (width + 1 + count)
        block = self.map.rows_at_once * (3 * count + self.map.width + width + 1)
        threads = run.n_threads
        own = 8 * (total * (1 + threads) + block * threads + 3 * self.shape[0])
        return own + threads * THREAD_BYTES


def _made_block(part: FeatureOperator, rows: slice) -> Part:
    """Make rows of B."""
    return Part((part.map.block(part.samples(rows)),))


def lengths_block(part: FeatureOperator, rows: slice) -> Part:
    """Return ‖F_i‖² of rows."""
    F = part.features(rows)
    return Part((np.vecdot(F, F),))


def _gram_block(part: FeatureOperator, rows: slice, u: FloatArray, *, near: FloatArray) -> Part:
    """Return ‖F_i‖² of rows; and F'ᵀF' and F'ᵀu, where F' is F less u·nearᵀ."""
    F = part.features(rows)
    lengths = np.vecdot(F, F)
    F -= np.outer(u, near)
    return Part((lengths,), np.concatenate([F.T @ F, (F.T @ u)[:, None]], axis=1))


def _project_block(part: FeatureOperator, rows: slice, Omega: Array, carried: FloatArray) -> Part:
    """Return ‖F_i‖² of rows, and Fᵀ[Ω, u, F]."""
    F = part.features(rows)
    right = np.concatenate([Omega, carried[:, None], F], axis=1)
    return Part((np.vecdot(F, F),), F.T @ right)


def product_block(part: FeatureOperator, rows: slice, *, coefficients: FloatArray) -> Part:
    """Return F times coefficients."""
    return Part((part.features(rows) @ coefficients,))


def _sums_block(part: FeatureOperator, rows: slice, right: Array) -> Part:
    """Return Fᵀ times rows of a matrix."""
    return Part((), part.features(rows).T @ right)


class _Product:
    """F times coefficients, by what the map has prepared for them once."""

    def __init__(self, map: FeatureMap, right: FloatArray) -> None:
        self.map, self.right = map, right
        self._multiply = map.multiplier(right)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Product, (self.map, self.right)

    def __call__(self, part: FeatureOperator, rows: slice) -> Part:
        if not part.holds:
            out = self._multiply(part.samples(rows))
        else:
            out = part.held[rows].astype(np.float64, copy=False) @ self.right
        if part.root_weights is not None:
            out *= part.root_weights[rows, None]
        return Part((out,))
