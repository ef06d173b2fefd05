"""Kernel K-means from one pass over a kernel matrix that is never stored.

>>> from sketchmeans import KernelKMeans
>>> from sklearn.datasets import load_iris
>>> KernelKMeans(n_clusters=3, random_state=0).fit(load_iris().data).labels_.shape
(150,)

The public names are imported when they are first used: ``import sketchmeans`` alone is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sketchmeans._package import __version__, lazy_names

if TYPE_CHECKING:
    from sketchmeans.advice import choose, compare
    from sketchmeans.estimators import FullKernelKMeans, KernelEmbedding, KernelKMeans, certify
    from sketchmeans.lowrank import ColumnStream
    from sketchmeans.models import load, save
    from sketchmeans.planning import plan

__all__ = [
    "ColumnStream",
    "FullKernelKMeans",
    "KernelEmbedding",
    "KernelKMeans",
    "__version__",
    "certify",
    "choose",
    "compare",
    "load",
    "plan",
    "save",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ColumnStream": "lowrank",
        "FullKernelKMeans": "estimators",
        "KernelEmbedding": "estimators",
        "KernelKMeans": "estimators",
        "certify": "estimators",
        "choose": "advice",
        "compare": "advice",
        "load": "models",
        "plan": "planning",
        "save": "models",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
