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
from sketchmeans.blocks import dense, row_blocks, rows_of, stacked, sums_of_squares
from sketchmeans.certificate.spectral import CentredBlock, centred_block
from sketchmeans.kernels import Kernel
from sketchmeans.kernels.rounding import indefinite_rounding
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    KernelOperator,
    NeighborOperator,
)

WRITTEN = 1e-4
"""What two halves of a matrix that was printed with few digits may differ by, of its largest."""


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
        K, more = self._matrix(), 0.0
        if isinstance(self.kernel, Kernel):
            squares = sums_of_squares(self.rows.astype(np.float64))
            more = indefinite_rounding(self.kernel, self.rows.shape[1], float(squares.max()))
        return centred_block(K, self.weights, self.rounding, is_psd=self.is_psd, absolute=more)

    def _matrix(self) -> FloatArray:
        if self.kernel is None:
            K = np.array(self.rows, np.float64)
            refuse_asymmetric(K)
            return K
        if isinstance(self.kernel, str):
            return dense(self.rows @ self.rows.T).astype(np.float64)
        everything = np.arange(self.rows.shape[0])
        if callable(self.kernel):
            given = CallableOperator(self.rows, self.kernel, params=self.params)
            return given.square(everything)
        return DataOperator(self.rows, self.kernel, dtype=np.float64).square(everything)


def refuse_asymmetric(K: FloatArray) -> None:
    """Refuse a given matrix of which two halves differ by more than the digits it was written with.

    Samples have other numbers here than in all of K: the values are named, not the places.
    """
    off = np.abs(K - K.T)
    if off.max(initial=0.0) > WRITTEN * np.abs(K).max(initial=0.0):
        row, column = np.unravel_index(off.argmax(), off.shape)
        raise ValueError(
            f"the precomputed kernel is not symmetric: of two samples it holds {K[row, column]:g} "
            f"and {K[column, row]:g}. Use (K + K.T) / 2 if they are meant to be equal."
        )


@dataclass(frozen=True)
class Recipe:
    """What makes a block of rows, but for the rows: it can be sent to where these are."""

    kernel: Any
    params: dict[str, Any] | None
    map: Any
    """What makes features of rows, where these are not features themselves."""
    is_linear: bool
    rounding: float
    is_psd: bool

    def part(self, rows: Any, labels: IntArray, weights: FloatArray | None) -> Part:
        """Return the block of these rows."""
        if self.map is not None:
            blocks = row_blocks(rows.shape[0], self.map.rows_at_once)
            rows = stacked([self.map.block(rows_of(rows, few)) for few in blocks])
        if self.is_linear and not sparse.issparse(rows):
            rows = centred_rows(rows, weights)
        return Part(rows, self.kernel, self.params, labels, weights, self.rounding, self.is_psd)


def recipe_of(operator: KernelOperator, rounding: float) -> tuple[Recipe, Any]:
    """Return what makes blocks of an operator, and the rows that it takes; None for a matrix."""
    kernel: Any = None
    params, map, rows, is_linear = None, None, operator.data, False
    if isinstance(operator, NeighborOperator):
        kernel, map = "features", None if operator.holds else operator.map
        rows = operator.held if operator.holds else operator.data
    elif isinstance(operator, CallableOperator):
        kernel, params = operator.function, operator.params
    elif isinstance(operator, DataOperator | FeatureMapOperator):
        kernel, is_linear = operator.kernel, operator.kernel.name == "linear"
    else:
        rows = None
    return Recipe(kernel, params, map, is_linear, rounding, operator.is_psd is True), rows


def members_of(
    operator: KernelOperator, indices: IntArray, labels: IntArray
) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return the samples of a block that have weight, with their labels and their weights."""
    weights = operator.weights
    if weights is not None:
        indices = indices[weights[indices] > 0]
        weights = weights[indices]
    return indices, labels[indices], weights


def part_of(operator: KernelOperator, indices: IntArray, labels: IntArray, rounding: float) -> Part:
    """Return the block of these samples of an operator; those of weight zero are left out."""
    recipe, source = recipe_of(operator, rounding)
    indices, few, weights = members_of(operator, indices, labels)
    rows = operator.unweighted().square(indices) if source is None else source[indices]
    return recipe.part(rows, few, weights)


def centred_rows(rows: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return rows in float64 with their mean taken away; linear objectives do not change.

    NOTE: without it, samples far from the origin leave no digits for a bound; nor would a light
    sample far out with a mean that counts it like the others.
    """
    rows = rows.astype(np.float64)
    return rows - np.average(rows, axis=0, weights=weights)
