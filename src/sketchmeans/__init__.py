"""Kernel K-means from one pass over a kernel matrix that is never stored.

>>> from sketchmeans import KernelKMeans
>>> from sklearn.datasets import load_iris
>>> KernelKMeans(n_clusters=3, random_state=0).fit(load_iris().data).labels_.shape
(150,)

The public names are imported when they are first used: ``import sketchmeans`` alone is light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sketchmeans._version import __version__

if TYPE_CHECKING:
    from sketchmeans.advice import choose, compare
    from sketchmeans.certificate import certify
    from sketchmeans.estimators import FullKernelKMeans, KernelEmbedding, KernelKMeans
    from sketchmeans.lowrank import ColumnStream
    from sketchmeans.models import load, save

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
    "save",
]

_HOMES = {
    "ColumnStream": "sketchmeans.lowrank",
    "FullKernelKMeans": "sketchmeans.estimators",
    "KernelEmbedding": "sketchmeans.estimators",
    "KernelKMeans": "sketchmeans.estimators",
    "certify": "sketchmeans.certificate",
    "choose": "sketchmeans.advice",
    "compare": "sketchmeans.advice",
    "load": "sketchmeans.models",
    "save": "sketchmeans.models",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
