"""The data of the timing benchmarks: blobs under noise, made a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.kernels import Gaussian
from sketchmeans.points import row_blocks


def labelled_blobs(
    n: int, p: int, dtype: Any, *, n_blobs: int = 8, noise: float = 0.2
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n points of p features: blobs of unit spread, and a share of uniform noise.

    Returns the points and their blobs, −1 for noise. Memory: the result and one block of rows, so
    that making it leaves no peak behind.
    """
    random = np.random.default_rng(0)
    centers = random.uniform(-2, 2, (n_blobs, p))
    X, y = np.empty((n, p), dtype), np.empty(n, np.int8)
    for rows in row_blocks(n):
        count = rows.stop - rows.start
        y[rows] = random.integers(n_blobs, size=count)
        X[rows] = centers[y[rows]]
        X[rows] += random.standard_normal((count, p))
        stray = random.random(count) < noise
        X[rows][stray] = random.uniform(-4, 4, (int(stray.sum()), p))
        y[rows][stray] = -1
    return X, y


def noisy_blobs(n: int, p: int, dtype: Any, *, n_blobs: int = 8, noise: float = 0.2) -> np.ndarray:
    """Draw the points of ``labelled_blobs`` alone."""
    return labelled_blobs(n, p, dtype, n_blobs=n_blobs, noise=noise)[0]


def words(n: int, p: int, *, length: int = 50) -> sparse.csr_matrix:
    """Draw n sparse rows of about ``length`` features out of p, a few of them in most rows."""
    random = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), length)
    columns = (p * random.random(n * length) ** 3).astype(np.int32)
    values = 0.1 + random.random(n * length, np.float32)
    X = sparse.csr_matrix((values, (rows, columns)), shape=(n, p))
    X.sum_duplicates()
    return X


def median_rbf(X: Any, factor: float = 1.0) -> Gaussian:
    """Return the RBF kernel of γ = factor / median squared distance."""
    return Gaussian(resolve_gamma(f"{factor}*median", Gaussian, X, 0))
