"""The normalized cut against all partitions of few samples, over every option of the kernel.

For each drawn problem the certificate's cut must be that of a dense computation, no partition with
as many clusters may cut less than the bound says, degrees must be one, and ``predict`` must give
the labels of the samples: ``python -m soak certificates --check cuts``.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from sketchmeans import KernelKMeans
from sketchmeans.kernels.neighbors import METRICS, NeighborOptions
from sketchmeans.operators import NeighborOperator
from soak.running import Cases, Check

OFFSETS = (0.0, 1.0, 1e3, 1e6)
SCALES = (1.0, 1e-150, 1e150)
TOLERANCE = 1e-9


def textbook_cut(A: np.ndarray, labels: np.ndarray) -> float:
    """Return Σ_c cut(c, the rest) / vol(c) of a graph with affinities A."""
    degrees = A.sum(axis=1)
    return sum(
        float(A[np.ix_(labels == c, labels != c)].sum() / degrees[labels == c].sum())
        for c in np.unique(labels)
    )


def broken(index: int, random: np.random.Generator) -> list[str]:
    """Fit one drawn problem, and return what does not hold."""
    n, k = int(random.integers(3, 8)), int(random.integers(2, 4))
    dtype = (np.float32, np.float64)[index % 2]
    offset = OFFSETS[int(random.integers(len(OFFSETS)))]
    scale = SCALES[int(random.integers(len(SCALES)))] if dtype == np.float64 else 1.0
    X = (scale * (random.normal(size=(n, 2)) + offset)).astype(dtype)
    if random.random() < 0.2:
        X[1] = X[0]
    weights = None if index % 3 else random.uniform(0.1, 3, n) * (random.random(n) < 0.8)
    if weights is not None and (weights > 0).sum() < k:
        weights = None
    params = {
        "n_anchors": int(random.integers(3, 10)),
        "n_neighbors": int(random.integers(1, 4)),
        "n_graphs": int(random.integers(1, 4)),
        "metric": METRICS[int(random.integers(2))],
    }
    data = sparse.csr_matrix(X) if index % 5 == 0 else X
    model = KernelKMeans(k, kernel_params=params, n_refine=index % 4, random_state=index)
    certificate = model.fit(data, sample_weight=weights).certificate_
    seed = int(np.random.RandomState(index).randint(2**31 - 1, size=2)[1])
    operator = NeighborOperator(data, NeighborOptions(**params), weights=weights, seed=seed)
    operator.build()
    d = np.ones(n) if weights is None else weights
    K = operator.unweighted().tile(slice(0, n), slice(0, n))
    counted = d > 0
    A = (d[:, None] * K * d)[np.ix_(counted, counted)]
    labels = np.unique(model.labels_[counted], return_inverse=True)[1]
    used = int(labels.max()) + 1
    cuts = [
        textbook_cut(A, np.array(other))
        for other in itertools.product(range(used), repeat=len(labels))
        if len(set(other)) == used
    ]
    found = {
        "degrees": np.abs(K @ d - 1).max() < TOLERANCE,
        "positive semidefinite": np.linalg.eigvalsh(K)[0] > -TOLERANCE,
        "cut": abs(certificate.normalized_cut - textbook_cut(A, labels)) < TOLERANCE,
        "lower bound": certificate.normalized_cut_lower <= min(cuts) + 1e-12,
        "predict": bool((model.predict(data) == model.labels_).all()),
    }
    return [name for name, holds in found.items() if not holds]


def examined(seed: int, count: int) -> Cases:
    """Examine so many drawn problems."""
    random = np.random.default_rng(seed)
    for index in range(count):
        wrong = broken(index, random)
        yield "", [f"cuts {index} (seed {seed}): {name}" for name in wrong]


CHECKS = {"cuts against all partitions": Check(1_000, examined)}
