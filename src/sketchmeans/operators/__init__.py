"""Lazy kernel matrices K: tiles, diagonals, columns and products, never the whole.

``base`` is the one abstraction, ``KernelOperator``; each way to have a kernel is one final class:
``data`` (rows and a kernel of ours, by ``tiles``), ``features`` (K = ΦΦᵀ with a narrow Φ),
``callables`` (a function that the caller wrote) and ``precomputed`` (a matrix or a memory map).
``cross`` is the kernel between new points and the samples.

Operators know nothing of methods. May import: kernels, engine.
"""

from sketchmeans.operators.base import KernelOperator, NewPoints
from sketchmeans.operators.callables import CallableOperator
from sketchmeans.operators.data import DataOperator, PointsOperator
from sketchmeans.operators.features import FeatureMapOperator
from sketchmeans.operators.precomputed import GivenRows, PrecomputedOperator

__all__ = [
    "CallableOperator",
    "DataOperator",
    "FeatureMapOperator",
    "GivenRows",
    "KernelOperator",
    "NewPoints",
    "PointsOperator",
    "PrecomputedOperator",
]
