"""Finite feature maps: kernels that are K = ΦΦᵀ with a narrow Φ cost O(n), not O(n²).

A polynomial kernel of degree d on p features has at most C(p + d, d) monomials. Where they are few
beside n, KΩ = Φ(ΦᵀΩ) gives the same W up to rounding without a single kernel entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import dense_rows, row_blocks
from sketchmeans.engine import Crew, Pass
from sketchmeans.engine.passes import Progress
from sketchmeans.kernels import Kernel, Polynomial, n_monomials
from sketchmeans.kernels.points import Prepared
from sketchmeans.operators.base import THREAD_BYTES
from sketchmeans.operators.cross import CrossKernel, refuse_infinite
from sketchmeans.operators.data import DataOperator
from sketchmeans.sketches import Sketch

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
        self.steps: list[tuple[FloatArray, FloatArray]] = []
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


class FeatureMapOperator(DataOperator):
    """K = ΦΦᵀ for a linear or polynomial kernel with few monomials; float64 throughout.

    Tiles and new points are computed from the kernel, as in ``DataOperator``; products go through
    Φ. Kernel entries of a pass: 0.
    """

    @property
    def engine(self) -> str:
        """What computes the products."""
        return "feature map"

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

    def features(self, rows: slice) -> FloatArray:
        """Return rows of Φ, scaled by the roots of the weights."""
        block = self.monomials(dense_rows(self.points.X, rows))
        if self.root_weights is not None:
            block *= self.root_weights[rows, None]
        return block

    def multiply(
        self,
        right: Sketch | FloatArray,
        *,
        n_threads: int = 1,
        progress: Progress | None = None,
        pack: bool = True,
    ) -> Pass:
        """Return K Ω = Φ(ΦᵀΩ) and what else one pass gives, in O(n · features · width).

        Passes over the data: 2. Kernel entries: 0. Memory: n × (width + 1) numbers, the Gram
        matrix of the features, and a block of Φ a thread.
        """
        del pack
        n = self.shape[0]
        matrix = right.matrix if isinstance(right, Sketch) else right
        width, count = matrix.shape[1], self.monomials.count
        u = np.ones(n) if self.root_weights is None else self.root_weights
        blocks = row_blocks(n, _ROWS)
        total = np.zeros((count, width + 1 + count))  # Φᵀ[Ω, u, Φ]
        W, diagonal = np.empty((n, width + 1)), np.empty(n)

        def project(rows: slice) -> FloatArray:
            block = self.features(rows)
            diagonal[rows] = np.vecdot(block, block)
            sides = np.concatenate([matrix[rows], u[rows, None], block], axis=1)
            return block.T @ sides

        def expand(rows: slice) -> None:
            W[rows] = self.features(rows) @ total[:, : width + 1]

        with Crew(n_threads) as crew:
            # Partial sums are added in the order of the blocks, a few blocks at a time: the same
            # bits for any number of threads.
            group = max(1, n_threads)
            for first in range(0, len(blocks), group):
                for part in _gather(crew, project, blocks[first : first + group]):
                    total += part
                _report(progress, first + group, 2 * len(blocks))
            for first in range(0, len(blocks), 16 * group):
                crew.each(expand, blocks[first : first + 16 * group])
                _report(progress, len(blocks) + first + 16 * group, 2 * len(blocks))
        gram = total[:, width + 1 :]
        sum_of_squares = float(np.vdot(gram, gram))
        if not np.isfinite(sum_of_squares):
            raise ValueError(
                f"the {self.kernel.name} kernel overflows on these data: ‖K‖_F² is not finite. "
                "Scale the data, or lower gamma or degree."
            )
        return Pass(W[:, :width], W[:, width].copy(), sum_of_squares, diagonal, 0)

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples, multiplied through Φ."""
        return _FeatureCross(self, X, super().against(X))

    def relative_error(self, right: FloatArray, result: Pass, seed: int) -> tuple[float, int]:
        """Return 0: the products are in float64, below the least error that is assumed anyway."""
        del right, result, seed
        return 0.0, 0

    def scratch_bytes(self, width: int, n_threads: int, *, pack: bool) -> int:
        """Return what ``multiply`` allocates beside W and Ω."""
        count = self.monomials.count
        total = count * (width + 1 + count)
        block = _ROWS * (4 * count + width + 1)
        own = 8 * (total * (1 + n_threads) + block * n_threads + 3 * self.shape[0])
        return own + n_threads * THREAD_BYTES


class _FeatureCross(CrossKernel):
    """Φ(x)(Φᵀ·right) for new points x: linear in both numbers of points."""

    def __init__(self, operator: FeatureMapOperator, X: Any, plain: CrossKernel) -> None:
        super().__init__(plain.tile, plain.shape, plain.dtype)
        self._operator, self._X = operator, X

    @property
    def entries(self) -> int:
        """The kernel entries that ``multiply`` takes: none."""
        return 0

    def multiply(self, right: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Return k(x, X) @ right for every new point x; kernel entries: 0."""
        operator = self._operator
        monomials = operator.monomials
        total = np.zeros((monomials.count, right.shape[1]))
        product = np.empty((self.shape[0], right.shape[1]))

        def project(rows: slice) -> FloatArray:
            return monomials(dense_rows(operator.points.X, rows)).T @ right[rows]

        def expand(rows: slice) -> None:
            product[rows] = monomials(dense_rows(self._X, rows)) @ total

        blocks = row_blocks(self.shape[1], _ROWS)
        with Crew(n_threads) as crew:
            for first in range(0, len(blocks), max(1, n_threads)):
                for part in _gather(crew, project, blocks[first : first + max(1, n_threads)]):
                    total += part
            crew.each(expand, row_blocks(self.shape[0], _ROWS))
        refuse_infinite(product)
        return product


def _gather(
    crew: Crew, work: Callable[[slice], FloatArray], tasks: list[slice]
) -> list[FloatArray]:
    """Return the results of ``work`` in the order of the tasks."""
    results: dict[int, FloatArray] = {}

    def run(index: int) -> None:
        results[index] = work(tasks[index])

    crew.each(run, range(len(tasks)))
    return [results[index] for index in range(len(tasks))]


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(min(done, total), total)
