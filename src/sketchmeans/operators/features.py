"""Finite feature maps: K̂ = FFᵀ with rows F(x) that are made a block at a time costs O(n).

A map may be the kernel itself, as the monomials of a polynomial one, or an approximation of any
kernel from below, as the features of landmarks. What stands here does not know which: one Gram
matrix and one product, both streamed over fixed blocks of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import row_blocks, rows_of
from sketchmeans.engine import ALONE, Crew, Pass, Run
from sketchmeans.operators.base import THREAD_BYTES, KernelOperator, Right, matrix_of

SPANS = 64
"""Runs of blocks that are summed by themselves before their sums are added up: fixed, for they
decide the bits, and many, so that threads wait little for each other."""


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
    held: FloatArray | None = None
    """B of all samples, where it is held in memory."""

    @property
    def stream_entries(self) -> int:
        """The kernel entries of one stream over all rows."""
        return 0 if self.held is not None else self.shape[0] * self.map.entries

    @property
    def stream_distances(self) -> int:
        """The distances that one stream over all rows takes."""
        return 0

    def block(self, rows: slice) -> FloatArray:
        """Return rows of B, which know nothing of weights."""
        return self.map.block(self.samples(rows)) if self.held is None else self.held[rows]

    def features(self, rows: slice) -> FloatArray:
        """Return rows of F in float64, scaled by the roots of the weights."""
        F = self.block(rows)
        if self.map.T is not None:
            F = F @ self.map.T.astype(F.dtype, copy=False)
        F = F.astype(np.float64, copy=self.held is not None and self.map.T is None)
        if self.root_weights is not None:
            F *= self.root_weights[rows, None]
        return F

    def hold(self, run: Run = ALONE) -> None:
        """Make B once, n × width numbers, in place of once a stream."""
        blocks = self._blocks()
        first = self.block(blocks[0])
        held = np.empty((self.shape[0], first.shape[1]), first.dtype)
        held[blocks[0]] = first

        def fill(rows: slice) -> None:
            held[rows] = self.map.block(self.samples(rows))

        with Crew(run.n_threads) as crew:
            crew.each(fill, blocks[1:])
        self.held = held

    def _blocks(self) -> list[slice]:
        return row_blocks(self.shape[0], self.map.rows_at_once)

    def summed(
        self, work: Callable[[slice], FloatArray], crew: Crew, progress: Callable[[int], None]
    ) -> FloatArray:
        """Return the sum of ``work`` over all blocks of rows: the same bits on any threads.

        Memory: a result per thread, and the total.
        """
        blocks = self._blocks()
        length = -(-len(blocks) // SPANS)
        found: dict[int, FloatArray] = {}

        def compute(first: int) -> None:
            sums = work(blocks[first])
            for rows in blocks[first + 1 : first + length]:
                sums += work(rows)
            found[first] = sums

        starts = range(0, len(blocks), length)
        total: FloatArray | None = None
        for group in (
            starts[here : here + crew.n_threads] for here in range(0, len(starts), crew.n_threads)
        ):
            crew.each(compute, group)
            for first in group:
                part = found.pop(first)
                total = part if total is None else np.add(total, part, out=total)
            progress(min(group[-1] + length, len(blocks)))
        assert total is not None
        return total

    def gram(self, near: FloatArray, run: Run = ALONE) -> Gram:
        """Return FᵀF and FᵀJF from one stream; ``near`` is anything close to Fᵀu.

        NOTE: FᵀF − (Fᵀu)(Fᵀu)ᵀ loses every digit where the kernel is large and nearly constant.
        Rows that lose u·nearᵀ before they are multiplied leave a small correction.
        """
        u = self.carried / np.linalg.norm(self.carried)
        lengths = np.empty(self.shape[0])

        def work(rows: slice) -> FloatArray:
            F = self.features(rows)
            lengths[rows] = np.vecdot(F, F)
            F -= np.outer(u[rows], near)
            return np.concatenate([F.T @ F, (F.T @ u[rows])[:, None]], axis=1)

        steps = len(self._blocks())
        with Crew(run.n_threads) as crew:
            total = self.summed(work, crew, lambda done: run.report(done, steps))
        shifted, off = total[:, :-1], total[:, -1]
        across = np.outer(off, near)
        squared = shifted + across + across.T + np.outer(near, near)
        return Gram(squared, shifted - np.outer(off, off), near + off, lengths)

    def product(self, coefficients: FloatArray, run: Run = ALONE) -> FloatArray:
        """Return F @ coefficients, n × width in float64, from one stream."""
        right = self.map.expanded(coefficients)
        out = np.empty((self.shape[0], right.shape[1]))
        multiply = self.map.multiplier(right)

        def expand(rows: slice) -> None:
            if self.held is None:
                out[rows] = multiply(self.samples(rows))
            else:
                out[rows] = self.held[rows].astype(np.float64, copy=False) @ right
            if self.root_weights is not None:
                out[rows] *= self.root_weights[rows, None]

        blocks = self._blocks()
        with Crew(run.n_threads) as crew:
            crew.each(expand, blocks, lambda done: run.report(done, len(blocks)))
        return out

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        """Return K̂Ω = F(FᵀΩ) and what else one pass gives, in O(n · features · width).

        Streams: 2. Memory: n × (width + 1) numbers, the Gram matrix of the features, and a block
        of F per thread.
        """
        n = self.shape[0]
        matrix, u = matrix_of(right), self.carried
        width = matrix.shape[1]
        blocks = self._blocks()
        W, diagonal = np.empty((n, width + 1)), np.empty(n)

        def project(rows: slice) -> FloatArray:
            block = self.features(rows)
            diagonal[rows] = np.vecdot(block, block)
            return block.T @ np.concatenate([matrix[rows], u[rows, None], block], axis=1)

        def expand(rows: slice) -> None:
            W[rows] = self.features(rows) @ total[:, : width + 1]

        steps = 2 * len(blocks)
        total = self.summed(project, crew, lambda done: run.report(done, steps))  # Fᵀ[Ω, u, F]
        crew.each(expand, blocks, lambda done: run.report(len(blocks) + done, steps))
        gram = total[:, width + 1 :]
        sum_of_squares = float(np.vdot(gram, gram))
        if not np.isfinite(sum_of_squares):
            raise ValueError(
                "the kernel overflows on these data: ‖K‖_F² is not finite. Scale the data, or "
                "lower gamma or degree."
            )
        row_sums = W[:, width].copy()
        return Pass(W[:, :width], row_sums, sum_of_squares, diagonal, 2 * self.stream_entries)

    def _new_product(self, X: Any) -> Callable[[Array, Crew, Run], FloatArray]:
        """Return what multiplies κ̂(x, X) of new rows: F(x)(Fᵀ·right)."""

        def product(right: Array, crew: Crew, run: Run) -> FloatArray:
            plain = self.unweighted()
            out = np.empty((X.shape[0], right.shape[1]))

            def project(rows: slice) -> FloatArray:
                return plain.features(rows).T @ right[rows]

            def expand(rows: slice) -> None:
                out[rows] = multiply(rows_of(X, rows))

            total = plain.summed(project, crew, lambda done: None)
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
