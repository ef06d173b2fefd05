"""The features of landmarks: K̂ = C A⁺ Cᵀ = FFᵀ with F = C·T, for any kernel and any m.

C, the kernel of the samples with m landmarks, is made a block of rows at a time and never stored:
more landmarks cost time, not memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import rows_of
from sketchmeans.operators.base import KernelOperator, NewPoints
from sketchmeans.operators.cross import CrossKernel
from sketchmeans.operators.features import FeatureMap, FeatureOperator, lengths_block


class LandmarkFeatures(FeatureMap):
    """F(x) = κ(x, landmarks) T, with TTᵀ = A⁺ for the landmarks' own kernel A, or a part of it.

    Parameters
    ----------
    landmarks : NewPoints
        Knows the kernel of any points with the landmarks.
    T : array of shape (m, count)
    rows_at_once : int
        Rows of a block.
    """

    T: FloatArray

    def __init__(self, landmarks: NewPoints, T: FloatArray, rows_at_once: int) -> None:
        self.landmarks, self.T = landmarks, T
        self.rows_at_once = rows_at_once
        self.entries, self.count = T.shape

    def block(self, X: Any) -> FloatArray:
        """Return the kernel of rows with the landmarks."""
        return self.landmarks.against(X).values()

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what makes the kernel of rows with the landmarks, times ``right``, fused."""
        return self.landmarks.multiplier(right)


class _Samples:
    """Rows alone, where nothing else is asked of the kernel that they belong to."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def samples(self, rows: slice) -> Any:
        """Return some of them."""
        return rows_of(self.data, rows)


class LandmarkOperator(FeatureOperator):
    """K̂ = FFᵀ of landmarks, for the samples of another operator; K̂ ≼ K.

    Parameters
    ----------
    operator : KernelOperator
        K.
    map : LandmarkFeatures
    """

    map: LandmarkFeatures

    operator: Any

    def __init__(self, operator: KernelOperator, map: LandmarkFeatures) -> None:
        super().__init__(operator.shape[0], np.float64, operator.weights)
        self.operator, self.map = operator, map
        self.is_psd = True

    def with_root(self, T: FloatArray) -> LandmarkOperator:
        """Return K̂ by the same landmarks with another T; what is held is shared."""
        other = copy.copy(self)
        other.map = LandmarkFeatures(self.map.landmarks, T, self.map.rows_at_once)
        return other

    @property
    def data(self) -> Any:
        """The rows that the kernel is of."""
        return self.operator.data

    def samples(self, rows: slice) -> Any:
        """Return samples as the landmarks' kernel takes them."""
        return self.operator.samples(rows)

    def take_rows(self, X: Any) -> None:
        """Put these rows, or None, in the place of the samples."""
        self.operator = _Samples(X)

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        plain = self.unweighted()
        return np.matmul(plain.features(rows), plain.features(columns).T, out=out)

    def _diagonal(self) -> FloatArray:
        plain = self.unweighted()
        return plain.stream(plain.blockwise(lengths_block), name="diagonal").kept[0]

    def against(self, X: Any) -> CrossKernel:
        """Return K̂ between new points and the samples."""
        shape = (X.shape[0], self.shape[0])

        def tile(rows: slice, columns: slice, out: FloatArray) -> FloatArray:
            F = self.map.block(X[rows]).astype(np.float64, copy=False) @ self.map.T
            return np.matmul(F, self.unweighted().features(columns).T, out=out)

        entries = shape[0] * self.map.entries + self.stream_entries
        return CrossKernel(tile, shape, self.dtype, self._new_product(X), entries)

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ̂(x, x) for new points."""
        F = self.map.block(X).astype(np.float64, copy=False) @ self.map.T
        return np.vecdot(F, F)

    def landmarks_at(self, X: Any, *, fine: bool = True) -> NewPoints:
        """Return the kernel, not K̂, between any points and these."""
        return self.operator.landmarks_at(X, fine=fine)
