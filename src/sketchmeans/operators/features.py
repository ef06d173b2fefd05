"""Finite feature maps: kernels that are K = ΦΦᵀ with a narrow Φ cost O(n), not O(n²).

A polynomial kernel of degree d on p features has at most C(p + d, d) monomials. Where they are few
beside n, KΩ = Φ(ΦᵀΩ) gives the same W up to rounding without a single kernel entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import dense_rows, row_blocks
from sketchmeans.engine.passes import Pass
from sketchmeans.engine.run import Run
from sketchmeans.engine.threads import Crew
from sketchmeans.kernels.definitions import Kernel, Polynomial, n_monomials
from sketchmeans.kernels.points import Prepared
from sketchmeans.operators.base import THREAD_BYTES, Right, matrix_of
from sketchmeans.operators.cross import CrossKernel
from sketchmeans.operators.data import PointsOperator

MAX_FEATURES = 2048
"""ΦᵀΦ is held in memory: 32 MB at this many."""

_ROWS = 1024
"""Rows of Φ at a time; fixed, for it decides the bits."""


def prefers_features(n_samples: int, n_features: int, kernel: Kernel) -> bool:
    """Whether the feature map is the cheaper way to a pass.

    Φ(ΦᵀΩ) and ΦᵀΦ take about n·D·(D + 4·width) operations for D features, tiles about
    n²/2·(2p + 4·width + 20). The rule compares the two for a width of some tens, with a margin of
    two: ``python -m benchmarks.feature_switch`` measures it.
    """
    features = n_monomials(n_features, kernel)
    if features is None or features > MAX_FEATURES:
        return False
    return 2 * features * (features + 100) <= n_samples * (n_features + 60)


class Monomials:
    """The feature map Φ of a linear or polynomial kernel, for a block of rows at a time."""

    def __init__(self, n_features: int, kernel: Kernel) -> None:
        if not isinstance(kernel, Polynomial):
            self.degree, self.lowest, gamma, coef0 = 1, 1, 1.0, 0.0
        else:
            self.degree, gamma, coef0 = kernel.degree, kernel.gamma, kernel.coef0
            self.lowest = 0 if coef0 > 0 else self.degree
        # Monomials of degree k are those of degree k − 1 times a variable that is not below
        # their last one; (parent, variable) builds all of them, column by column.
        last = np.array([0])
        self.steps: list[tuple[IntArray, IntArray]] = []
        exponents = np.zeros((1, n_features), dtype=np.int64)
        scales = []
        # √γ belongs to the variables: γ^k alone may overflow where (√γ x)^k does not.
        self.root = math.sqrt(gamma)
        for k in range(self.degree + 1):
            if k:
                parent = np.repeat(np.arange(len(last)), n_features - last)
                variable = np.concatenate([np.arange(low, n_features) for low in last])
                self.steps.append((parent, variable))
                exponents = exponents[parent]
                exponents[np.arange(len(variable)), variable] += 1
                last = variable
            if k >= self.lowest:
                factorials = np.array([math.factorial(e) for e in range(k + 1)], dtype=float)
                multinomial = math.factorial(self.degree) / (
                    math.factorial(self.degree - k) * factorials[exponents].prod(axis=1)
                )
                scales.append(multinomial * coef0 ** (self.degree - k))
        self.scale = np.sqrt(np.concatenate(scales))
        self.count = len(self.scale)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return Φ(X), an array of shape (rows, count), in float64."""
        X = X.astype(np.float64, copy=False)
        X = X if self.root == 1 else X * self.root
        block = np.ones((len(X), 1))
        parts = [block] if self.lowest == 0 else []
        for k, (parent, variable) in enumerate(self.steps, start=1):
            block = block[:, parent] * X[:, variable]
            if k >= self.lowest:
                parts.append(block)
        return np.concatenate(parts, axis=1) * self.scale


class FeatureMapOperator(PointsOperator):
    """K = ΦΦᵀ for a linear or polynomial kernel with few monomials; float64 throughout.

    Tiles are computed from the kernel, as in ``DataOperator``; products go through Φ. Kernel
    entries of a pass: 0.
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        *,
        weights: FloatArray | None = None,
        prepared: Prepared | None = None,
    ) -> None:
        super().__init__(X, kernel, dtype=np.float64, weights=weights, prepared=prepared)
        self.monomials = Monomials(X.shape[1], kernel)

    @property
    def engine(self) -> str:
        """What computes the products."""
        return "feature map"

    @property
    def feature_map(self) -> FeatureMapOperator:
        """Φ: the operator itself knows its rows."""
        return self

    @property
    def count(self) -> int:
        """Columns of Φ."""
        return self.monomials.count

    def features(self, rows: slice) -> FloatArray:
        """Return rows of Φ, scaled by the roots of the weights."""
        block = self.monomials(dense_rows(self.points.X, rows))
        if self.root_weights is not None:
            block *= self.root_weights[rows, None]
        return block

    def _pass(self, right: Right, crew: Crew, run: Run) -> Pass:
        """Return K Ω = Φ(ΦᵀΩ) and what else one pass gives, in O(n · features · width).

        Passes over the data: 2. Kernel entries: 0. Memory: n × (width + 1) numbers, the Gram
        matrix of the features, and a block of Φ per thread.
        """
        n = self.shape[0]
        matrix, u = matrix_of(right), self.carried
        width = matrix.shape[1]
        blocks = row_blocks(n, _ROWS)
        W, diagonal = np.empty((n, width + 1)), np.empty(n)

        def project(rows: slice) -> FloatArray:
            block = self.features(rows)
            diagonal[rows] = np.vecdot(block, block)
            return block.T @ np.concatenate([matrix[rows], u[rows, None], block], axis=1)

        def expand(rows: slice) -> None:
            W[rows] = self.features(rows) @ total[:, : width + 1]

        steps = 2 * len(blocks)
        total = _summed(crew, project, blocks, lambda done: run.report(done, steps))  # Φᵀ[Ω, u, Φ]
        crew.each(expand, blocks, lambda done: run.report(len(blocks) + done, steps))
        gram = total[:, width + 1 :]
        sum_of_squares = float(np.vdot(gram, gram))
        if not np.isfinite(sum_of_squares):
            raise ValueError(
                f"the {self.kernel.name} kernel overflows on these data: ‖K‖_F² is not finite. "
                "Scale the data, or lower gamma or degree."
            )
        return Pass(W[:, :width], W[:, width].copy(), sum_of_squares, diagonal, 0)

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples; Φ(x)(Φᵀ·right) needs no entries."""
        shape = (X.shape[0], self.shape[0])

        def product(right: Array, crew: Crew, run: Run) -> FloatArray:
            del run
            out = np.empty((shape[0], right.shape[1]))

            def project(rows: slice) -> FloatArray:
                return self.monomials(dense_rows(self.points.X, rows)).T @ right[rows]

            def expand(rows: slice) -> None:
                out[rows] = self.monomials(dense_rows(X, rows)) @ total

            total = _summed(crew, project, row_blocks(shape[1], _ROWS))
            crew.each(expand, row_blocks(shape[0], _ROWS))
            return out

        return CrossKernel(self._tiles(self._new(X)), shape, self.dtype, product, entries=0)

    def relative_error(self, right: Array, result: Pass, seed: int) -> tuple[float, int]:
        """Return 0: the products are in float64, below the least error that is assumed anyway."""
        del right, result, seed
        return 0.0, 0

    def scratch_bytes(self, width: int, run: Run) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        total = self.count * (width + 1 + self.count)
        block = _ROWS * (4 * self.count + width + 1)
        threads = run.n_threads
        own = 8 * (total * (1 + threads) + block * threads + 3 * self.shape[0])
        return own + threads * THREAD_BYTES


def _summed(
    crew: Crew,
    work: Callable[[slice], FloatArray],
    blocks: list[slice],
    progress: Callable[[int], None] = lambda done: None,
) -> FloatArray:
    """Return the sum of ``work`` over blocks of rows, added in their order, a few at a time.

    The same bits for any number of threads. Memory: a result per thread.
    """
    found: dict[int, FloatArray] = {}

    def compute(rows: slice) -> None:
        found[rows.start] = work(rows)

    total: FloatArray | None = None
    for first in range(0, len(blocks), crew.n_threads):
        group = blocks[first : first + crew.n_threads]
        crew.each(compute, group)
        for rows in group:
            part = found.pop(rows.start)
            total = part if total is None else np.add(total, part, out=total)
        progress(first + len(group))
    assert total is not None
    return total
