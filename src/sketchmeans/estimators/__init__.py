"""Estimators."""

from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.embedding import KernelEmbedding
from sketchmeans.estimators.full import FullKernelKMeans

__all__ = ["FullKernelKMeans", "KernelEmbedding", "KernelKMeans"]
