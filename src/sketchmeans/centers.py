"""Points that stand for many others: centers of K-means on some of the rows."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    # Rows that rounding makes equal leave some centers where others are: no one else's matter.
    with OneBlasThread(), without_warnings_of_starts():
        model.fit(scaled, sample_weight=relative_weights(weights))
    return np.ldexp(model.cluster_centers_.astype(np.float64), exponent)


class _Quiet:
    """Who wants no warnings of K-means at the moment, and what puts them back."""

    lock = threading.Lock()
    wanted = 0
    undo = ExitStack()

    @classmethod
    def end(cls) -> None:
        """Begin anew in a forked child: the threads that wanted it stay with the parent."""
        cls.lock, cls.wanted = threading.Lock(), 0
        cls.undo.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Quiet.end)


@contextmanager
def without_warnings_of_starts() -> Iterator[None]:
    """Keep back scikit-learn's warnings of equal rows, one for each start of K-means.

    Filters belong to the process: were each thread to put back what it found, the last one might
    put back another's. The first that comes sets them, and the last that goes puts them back.
    """
    with _Quiet.lock:
        if not _Quiet.wanted:
            _Quiet.undo.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", ConvergenceWarning)
        _Quiet.wanted += 1
    try:
        yield
    finally:
        with _Quiet.lock:
            _Quiet.wanted -= 1
            if not _Quiet.wanted:
                _Quiet.undo.close()


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
