"""Lazy kernel matrices K: tiles, diagonals, columns and products, never the whole.

``base`` is the one abstraction, ``KernelOperator``; each way to have a kernel is one final class:
``data`` (rows and a kernel of ours, by ``tiles``), ``callables`` (a function that the caller
wrote), ``precomputed`` (a matrix or a memory map) and ``graphs`` (a sparse matrix). ``features`` is
K̂ = FFᵀ by a feature map, streamed; its maps are ``monomials`` (a polynomial kernel itself),
``landmarks`` (any kernel, from below) and ``neighbors`` (sparse ones: the neighbours kernel; with
``anchors`` and ``gram``). ``streams`` and ``strips`` are the plans of a stream and of a pass: the
same here and on a cluster. ``cross`` is the kernel between new points and the samples.

Operators know nothing of methods. May import: kernels, checkpoints, engine.
"""

from sketchmeans.operators.base import KernelOperator, NewPoints
from sketchmeans.operators.callables import CallableOperator
from sketchmeans.operators.data import DataOperator, PointsOperator
from sketchmeans.operators.features import FeatureOperator
from sketchmeans.operators.graphs import SparseOperator
from sketchmeans.operators.landmarks import LandmarkFeatures, LandmarkOperator
from sketchmeans.operators.monomials import FeatureMapOperator
from sketchmeans.operators.neighbor_features import NeighborFeatures, NeighborPoints
from sketchmeans.operators.neighbors import NeighborOperator
from sketchmeans.operators.precomputed import GivenOperator, GivenRows, PrecomputedOperator

__all__ = [
    "CallableOperator",
    "DataOperator",
    "FeatureMapOperator",
    "FeatureOperator",
    "GivenOperator",
    "GivenRows",
    "KernelOperator",
    "LandmarkFeatures",
    "LandmarkOperator",
    "NeighborFeatures",
    "NeighborOperator",
    "NeighborPoints",
    "NewPoints",
    "PointsOperator",
    "PrecomputedOperator",
    "SparseOperator",
]
