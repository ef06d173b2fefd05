"""Polynomial kernels by their monomials: K = ΦΦᵀ with a narrow Φ costs O(n), not O(n²).

A polynomial kernel of degree d on p features has at most C(p + d, d) monomials. Where they are few
beside n, KΩ = Φ(ΦᵀΩ) gives the same W up to rounding without a single kernel entry.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import dense
from sketchmeans.engine.passes import Pass
from sketchmeans.kernels.definitions import Kernel, Polynomial, n_monomials
from sketchmeans.kernels.points import Prepared
from sketchmeans.operators.cross import CrossKernel
from sketchmeans.operators.data import PointsOperator
from sketchmeans.operators.features import FeatureMap, FeatureOperator

MAX_FEATURES = 2048
"""ΦᵀΦ is held in memory: 32 MB at this many."""


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


class Monomials(FeatureMap):
    """The feature map Φ of a linear or polynomial kernel."""

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

    def block(self, X: Any) -> FloatArray:
        """Return Φ(X), an array of shape (rows, count), in float64."""
        X = dense(X).astype(np.float64, copy=False)
        X = X if self.root == 1 else X * self.root
        block = np.ones((len(X), 1))
        parts = [block] if self.lowest == 0 else []
        for k, (parent, variable) in enumerate(self.steps, start=1):
            block = block[:, parent] * X[:, variable]
            if k >= self.lowest:
                parts.append(block)
        return np.concatenate(parts, axis=1) * self.scale


class FeatureMapOperator(FeatureOperator, PointsOperator):
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
        self.map = Monomials(X.shape[1], kernel)

    @property
    def engine(self) -> str:
        """What computes the products."""
        return "feature map"

    def take_rows(self, X: Any) -> None:
        """Put these rows, or None, in the place of the samples."""
        self.points = copy.copy(self.points)
        self.points.X = X

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples; Φ(x)(Φᵀ·right) needs no entries."""
        shape = (X.shape[0], self.shape[0])
        product = self._new_product(X)
        return CrossKernel(self._tiles(self.prepared(X)), shape, self.dtype, product, entries=0)

    def relative_error(self, right: Any, result: Pass, seed: int) -> tuple[float, int]:
        """Return 0: the products are in float64, below the least error that is assumed anyway."""
        del right, result, seed
        return 0.0, 0
