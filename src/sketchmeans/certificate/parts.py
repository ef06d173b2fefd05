"""Which samples make a block, and what is needed to bound it elsewhere.

The block theorem: for a partition of the samples into blocks, the best objective is at least the
sum of the best objectives of the blocks. Restrict the best centroids to a block: its own are no
worse. Every block is then a problem of its own, of b² kernel entries. This needs JKJ ≽ 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import dense
from sketchmeans.certificate.spectral import CentredBlock, centred_block
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    KernelOperator,
    NeighborOperator,
)


def stratified(labels: IntArray, size: int, seed: int) -> list[IntArray]:
    """Cut the samples into blocks of at most ``size``, in which clusters have their shares.

    Samples are sorted by label, in random order within each, and dealt like cards: the blocks are
    alike, and so lose little by having centroids of their own.
    """
    n = len(labels)
    count = max(-(-n // size), 1)
    shuffled = np.random.default_rng([seed, n]).permutation(n)
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return [np.sort(order[first::count]) for first in range(count)]


@dataclass(frozen=True)
class Part:
    """The samples of a block and their kernel: all that its bound depends on."""

    rows: Any
    """Of the data, or of features; the kernel matrix itself where ``kernel`` is None."""
    kernel: Any
    """A kernel of ours, a callable, "features", or None."""
    params: dict[str, Any] | None
    labels: IntArray
    weights: FloatArray | None
    rounding: float
    is_psd: bool

    def block(self) -> CentredBlock:
        """Compute the kernel matrix, b² entries, and centre it."""
        return centred_block(self._matrix(), self.weights, self.rounding, is_psd=self.is_psd)

    def _matrix(self) -> FloatArray:
        if self.kernel is None:
            return np.array(self.rows, np.float64)
        if isinstance(self.kernel, str):
            return dense(self.rows @ self.rows.T).astype(np.float64)
        everything = np.arange(self.rows.shape[0])
        if callable(self.kernel):
            given = CallableOperator(self.rows, self.kernel, params=self.params)
            return given.square(everything)
        return DataOperator(self.rows, self.kernel, dtype=np.float64).square(everything)


def part_of(operator: KernelOperator, indices: IntArray, labels: IntArray, rounding: float) -> Part:
    """Return the block of these samples of an operator; those of weight zero are left out."""
    weights = operator.weights
    if weights is not None:
        indices = indices[weights[indices] > 0]
        weights = weights[indices]
    known: dict[str, Any] = {
        "labels": labels[indices],
        "weights": weights,
        "rounding": rounding,
        "is_psd": operator.is_psd is True,
    }
    if isinstance(operator, NeighborOperator):
        return Part(operator.few_rows(indices), "features", None, **known)
    if isinstance(operator, CallableOperator):
        return Part(operator.X[indices], operator.function, operator.params, **known)
    if isinstance(operator, DataOperator | FeatureMapOperator):
        rows = operator.data[indices]
        if operator.kernel.name == "linear" and not sparse.issparse(rows):
            rows = centred_rows(rows)
        return Part(rows, operator.kernel, None, **known)
    return Part(operator.unweighted().square(indices), None, None, **known)


def centred_rows(rows: FloatArray) -> FloatArray:
    """Return rows in float64 with their mean taken away; linear objectives do not change.

    NOTE: without it, samples far from the origin leave no digits for a bound.
    """
    rows = rows.astype(np.float64)
    return rows - rows.mean(axis=0)
