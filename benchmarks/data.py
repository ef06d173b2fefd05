"""The data of the benchmarks, made a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.timing import SEED
from sketchmeans.blocks import row_blocks
from sketchmeans.kernels import Gaussian
from sketchmeans.kernels.bandwidth import resolve_gamma


def noisy_blobs(n: int, p: int, dtype: Any, *, n_blobs: int = 8, noise: float = 0.2) -> np.ndarray:
    """Draw n points of p features: blobs of unit spread, and a share of uniform noise.

    Memory: the result and one block of rows, so that making it leaves no peak behind.
    """
    random = np.random.default_rng(SEED)
    centers = random.uniform(-2, 2, (n_blobs, p))
    X = np.empty((n, p), dtype)
    for rows in row_blocks(n):
        count = rows.stop - rows.start
        X[rows] = centers[random.integers(n_blobs, size=count)]
        X[rows] += random.standard_normal((count, p))
        stray = random.random(count) < noise
        X[rows][stray] = random.uniform(-4, 4, (int(stray.sum()), p))
    return X


def cores_and_shells(
    n: int, p: int, dtype: Any, *, n_pairs: int = 4, radius: float = 4.0, spread: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n points of p features in pairs of clusters: a dense core, and a shell around it.

    The two have the same mean, so that K-means without a kernel cannot tell them apart. Returns
    the points and their clusters. Memory: the result and a few blocks of rows.
    """
    random = np.random.default_rng(SEED)
    centers = random.uniform(-2, 2, (n_pairs, p))
    X, y = np.empty((n, p), dtype), random.integers(2 * n_pairs, size=n, dtype=np.int8)
    for rows in row_blocks(n):
        offset = random.standard_normal((rows.stop - rows.start, p))
        shell = y[rows] % 2 == 1
        directions = offset[shell] / np.linalg.norm(offset[shell], axis=1, keepdims=True)
        offset[~shell] *= spread
        offset[shell] = radius * directions + 0.2 * spread * offset[shell]
        X[rows] = centers[y[rows] // 2] + offset
    return X, y


def words(n: int, p: int, *, length: int = 50) -> sparse.csr_matrix:
    """Draw n sparse rows of about ``length`` features out of p, a few of them in most rows."""
    random = np.random.default_rng(SEED)
    rows = np.repeat(np.arange(n), length)
    columns = (p * random.random(n * length) ** 3).astype(np.int32)
    values = 0.1 + random.random(n * length, np.float32)
    X = sparse.csr_matrix((values, (rows, columns)), shape=(n, p))
    X.sum_duplicates()
    return X


def median_rbf(X: Any, factor: float = 1.0) -> Gaussian:
    """Return the RBF kernel of γ = factor / median squared distance."""
    return Gaussian(resolve_gamma(f"{factor}*median", Gaussian, X, SEED))
