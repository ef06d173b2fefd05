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

if TYPE_CHECKING:
    from sketchmeans.certificate import certify
    from sketchmeans.cluster import KernelKMeans
    from sketchmeans.comparison import compare
    from sketchmeans.embedding import KernelEmbedding
    from sketchmeans.full import FullKernelKMeans
    from sketchmeans.models import load, save
    from sketchmeans.selection import choose
    from sketchmeans.streams import ColumnStream

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
__version__ = "0.1.0"

_HOMES = {
    "ColumnStream": "sketchmeans.streams",
    "FullKernelKMeans": "sketchmeans.full",
    "KernelEmbedding": "sketchmeans.embedding",
    "KernelKMeans": "sketchmeans.cluster",
    "certify": "sketchmeans.certificate",
    "choose": "sketchmeans.selection",
    "compare": "sketchmeans.comparison",
    "load": "sketchmeans.models",
    "save": "sketchmeans.models",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
