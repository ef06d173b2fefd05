"""The data of the timing benchmarks: blobs under noise, made a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.kernels import Gaussian
from sketchmeans.points import row_blocks


def noisy_blobs(n: int, p: int, dtype: Any, *, n_blobs: int = 8, noise: float = 0.2) -> np.ndarray:
    """Draw n points of p features: blobs of unit spread, and a share of uniform noise.

    Memory: the result and one block of rows, so that making it leaves no peak behind.
    """
    random = np.random.default_rng(0)
    centers = random.uniform(-2, 2, (n_blobs, p))
    X = np.empty((n, p), dtype)
    for rows in row_blocks(n):
        count = rows.stop - rows.start
        X[rows] = centers[random.integers(n_blobs, size=count)]
        X[rows] += random.standard_normal((count, p))
        stray = random.random(count) < noise
        X[rows][stray] = random.uniform(-4, 4, (int(stray.sum()), p))
    return X


def median_rbf(X: np.ndarray, factor: float = 1.0) -> Gaussian:
    """Return the RBF kernel of γ = factor / median squared distance."""
    return Gaussian(resolve_gamma(f"{factor}*median", Gaussian, X, 0))
