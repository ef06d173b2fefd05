"""Operators."""

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
