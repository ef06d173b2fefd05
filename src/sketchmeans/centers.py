"""Points that stand for many others: centers of K-means on some of the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import relative_weights

_ITERATIONS = 20
_FEW = 128
"""Centers up to which K-means starts from k-means++: beyond, that takes ten times as long as the
rest, and the centers of random starts serve as well (``python -m benchmarks.landmark_quality
--choices``)."""
_ROWS_PER_CENTER, _LEAST_ROWS = 20, 5000


def rows_for_centers(count: int) -> int:
    """Return the rows of the subsample among which centers are put: as good as all of them."""
    return max(_ROWS_PER_CENTER * count, _LEAST_ROWS)


def subsample(possible: IntArray, count: int, seed: int) -> IntArray:
    """Return so many of the rows that are possible, in order; all of them if there are no more."""
    if len(possible) <= count:
        return possible
    random = np.random.default_rng([seed, len(possible)])
    return np.sort(random.choice(possible, count, replace=False))


def centers(X: Any, weights: FloatArray | None, count: int, seed: int) -> FloatArray:
    """Return centers of K-means of rows, dense and in float64; there are more rows than centers."""
    scaled, exponent = near_one(X)
    model = KMeans(
        count,
        init="k-means++" if count <= _FEW else "random",
        n_init=1,
        max_iter=_ITERATIONS,
        random_state=seed,
    )
    with OneBlasThread(), warnings.catch_warnings():
        # Rows that rounding makes equal leave some centers where others are: no one else's matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scaled, sample_weight=relative_weights(weights))
    return np.ldexp(model.cluster_centers_.astype(np.float64), exponent)


def near_one(X: Any) -> tuple[Any, int]:
    """Return X / 2^e, and e: K-means squares numbers that the kernel may not need to square.

    X itself, and 0, unless its largest number is far from one.
    """
    exponent = int(np.frexp(float(max(X.max(), -X.min())))[1])
    if abs(exponent) <= 40:
        return X, 0
    if not sparse.issparse(X):
        return np.ldexp(X, -exponent), exponent
    near = X.copy()
    near.data = np.ldexp(X.data, -exponent)
    return near, exponent
