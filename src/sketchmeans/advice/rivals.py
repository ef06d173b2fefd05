"""What others would do with the same rows: plain K-means, and scikit-learn's spectral clustering.

Both return labels; what these are worth under a kernel is measured where they are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering

from sketchmeans._arrays import IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import near_one, without_warnings_of_starts
from sketchmeans.engine.run import Run
from sketchmeans.operators import KernelOperator
from sketchmeans.text import called, setting

PLAIN = "plain K-means"
SPECTRAL = "spectral clustering"
_NEVER_NEGATIVE = ("rbf", "gaussian", "laplacian")
_READ = {"n_init": 10, "max_iter": 300, "tol": 1e-4}
"""Options of ours that K-means reads too, and what they are if left out."""


@dataclass(frozen=True)
class Found:
    """Labels, what was kept of a sample beside it, and the kernel entries that were needed."""

    labels: IntArray
    width: int | None
    entries: int


def plain(
    operator: KernelOperator, n_clusters: int, seed: int, options: dict[str, Any], run: Run
) -> Found:
    """Cluster the rows by K-means without a kernel."""
    del run
    rows, _ = near_one(operator.data)
    read = {name: options.get(name, default) for name, default in _READ.items()}
    with OneBlasThread(), without_warnings_of_starts():
        return Found(KMeans(n_clusters, random_state=seed, **read).fit(rows).labels_, None, 0)


def spectral(
    operator: KernelOperator, n_clusters: int, seed: int, options: dict[str, Any], run: Run
) -> Found:
    """Cluster by ``SpectralClustering`` with this kernel as the affinity: n × n numbers."""
    n = operator.shape[0]
    K = operator.columns(np.arange(n), run)
    if (least := float(K.min())) < 0:
        raise ValueError(
            f"{SPECTRAL!r} needs a kernel without negative entries, and this one has {least:.3g}. "
            f"Leave {SPECTRAL!r} out, or choose {setting('kernel', 'rbf')}."
        )
    starts = options.get("n_init", 10)
    model = SpectralClustering(
        n_clusters,
        affinity="precomputed",
        n_init=10 if starts == "auto" else starts,
        random_state=seed,
    )
    with OneBlasThread(), without_warnings_of_starts():
        return Found(model.fit(K).labels_, n, n * n)


RIVALS: dict[str, Callable[..., Found]] = {PLAIN: plain, SPECTRAL: spectral}


def objection(name: str, kernel: Any) -> str | None:
    """Return why a rival makes no sense with a kernel; None where it does."""
    given = isinstance(kernel, str) and kernel == "precomputed"
    if name == PLAIN and given:
        return (
            f"{name!r} needs rows, and {setting('kernel', kernel)} has none. Leave it out of "
            f"{called('variants')}."
        )
    if name == SPECTRAL and isinstance(kernel, str) and not given and kernel not in _NEVER_NEGATIVE:
        return (
            f"{name!r} needs a kernel without negative entries, and {setting('kernel', kernel)} "
            f"can have some. Leave it out of {called('variants')}, or choose one of "
            f"{', '.join(_NEVER_NEGATIVE)}."
        )
    return None
