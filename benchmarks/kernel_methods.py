"""Who is compared on the sets of ``benchmarks.kernel_sets``, and one of them measured on one set.

Everyone is told the number of clusters and nothing else: ours by the name of their kernel, the
rivals as scikit-learn has them. HDBSCAN finds the number by itself; what it calls noise is one
more cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import (
    HDBSCAN,
    AgglomerativeClustering,
    Birch,
    KMeans,
    MiniBatchKMeans,
    SpectralClustering,
)
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture

from benchmarks.kernel_sets import SETS, DataSet, scored
from benchmarks.processes import forget_peak, peak_bytes
from sketchmeans import KernelKMeans

Cell = dict[str, Any]
"""One fit: nmi, ari, seconds and, of the first in its process, the peak; or why it failed."""


@dataclass(frozen=True)
class Method:
    """One way to cluster."""

    make: Callable[[int, int], Any]
    """From the number of clusters and a seed to a model."""
    cosine: dict[str, Any] | None = None
    """Parameters to set where only the directions of rows count."""
    ours: bool = False
    dense: bool = False
    """Whether sparse rows are made dense for it, before the clock runs."""
    told: bool = True
    """Whether it is told the number of clusters; who is not stays outside all means."""
    directions: bool = False
    """Whether it is run only where nothing but the directions of rows counts."""

    def suits(self, data: DataSet) -> bool:
        """Whether the method is run on this set."""
        return data.cosine or not self.directions


def _kernel(name: str, **options: Any) -> Method:
    def make(k: int, seed: int) -> KernelKMeans:
        return KernelKMeans(k, kernel=name, random_state=seed)

    return Method(make, ours=True, **options)


OURS = {
    "neighbors": _kernel("neighbors", cosine={"kernel_params": {"metric": "cosine"}}),
    "rbf": _kernel("rbf"),
    "laplacian": _kernel("laplacian"),
    "polynomial": _kernel("polynomial"),
    "linear": _kernel("linear"),
    "cosine": _kernel("cosine", directions=True),
}
RIVALS = {
    "KMeans": Method(lambda k, seed: KMeans(k, random_state=seed)),
    "MiniBatchKMeans": Method(lambda k, seed: MiniBatchKMeans(k, random_state=seed)),
    "SpectralClustering": Method(
        lambda k, seed: SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)
    ),
    "GaussianMixture": Method(lambda k, seed: GaussianMixture(k, random_state=seed), dense=True),
    "Birch": Method(lambda k, _: Birch(n_clusters=k)),
    "Ward": Method(lambda k, _: AgglomerativeClustering(k), dense=True),
    "HDBSCAN": Method(lambda k, _: HDBSCAN(copy=True), dense=True, told=False),
}
METHODS = OURS | RIVALS


def known(kernel: str) -> bool:
    """Whether KernelKMeans has this kernel; one that is there and fails is measured as failing."""
    try:
        KernelKMeans(2, kernel=kernel).fit(np.eye(20))
    except Exception as error:
        return f"kernel={kernel!r} is not known" not in str(error)
    return True


def fits(data: str, method: str, seeds: list[int]) -> list[Cell]:
    """Return a cell a seed, and in the first one the peak of memory above the data.

    To be called in a process of its own (``benchmarks.processes``), so that the peak is its own. A
    fit of a few points comes first, because that of the first seed should not pay for libraries.
    """
    chosen, source = METHODS[method], SETS[data]
    _labels(chosen, np.random.default_rng(0).standard_normal((100, 3)), 2, 0)
    return [_fit(chosen, source, seed, first=seed == seeds[0]) for seed in seeds]


def _fit(method: Method, source: DataSet, seed: int, *, first: bool) -> Cell:
    X, y, k = source(seed)
    if method.dense and sparse.issparse(X):
        X = X.toarray()
    held = forget_peak() if first else 0
    start = time.perf_counter()
    try:
        labels = _labels(method, X, k, seed, cosine=source.cosine)
    except Exception as error:  # whatever it is, the table says so
        reason = " ".join(str(error).split()) or "no message"
        return {"failed": f"{type(error).__name__}: {reason}"}
    seconds = time.perf_counter() - start
    peak = {"peak": peak_bytes() - held} if first else {}
    rows = scored(y)
    return {
        "nmi": float(normalized_mutual_info_score(y[rows], labels[rows])),
        "ari": float(adjusted_rand_score(y[rows], labels[rows])),
        "found": len(np.unique(labels)),
        "seconds": seconds,
        **peak,
    }


def _labels(method: Method, X: Any, k: int, seed: int, *, cosine: bool = False) -> np.ndarray:
    model = method.make(k, seed)
    if cosine and method.cosine:
        model.set_params(**method.cosine)
    return model.fit_predict(X)
