"""The precision of the tiles: float32 where it was asked for, or follows the data and is safe."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.kernels import Gaussian, Kernel, Statistic
from sketchmeans.operators import robust_center
from sketchmeans.points import Points, data_blocks

SAFE_EXPONENT = 100.0
"""float32 tiles are used while γ·max‖x − mean‖² stays below: the exponent loses digits beyond."""

SAFE_SIZE = (1e-15, 1e15)
"""… and while the largest K_ii lies between these, so that its square is a float32 too."""

SAFE_SHARE = 1e-3
"""… and while a kernel keeps more than this share of its trace when it is centred."""


def tile_dtype(X: Any, kernel: Kernel, precision: str) -> Any:
    """Turn ``precision`` into the dtype of the tiles for these data and this kernel."""
    if precision == "float64" or (precision == "auto" and X.dtype == np.float64):
        return np.float64
    squared_norm, spread = _sizes(X, kernel)
    with np.errstate(over="ignore"):
        largest = float(kernel.diagonal(np.array([squared_norm]))[0])
    fits = SAFE_SIZE[0] < abs(largest) < SAFE_SIZE[1]
    if precision == "float32":
        if not fits:
            raise ValueError(
                f'precision="float32" cannot hold this kernel: its largest diagonal entry '
                f"is {largest:g}, outside {SAFE_SIZE[0]:g} to {SAFE_SIZE[1]:g}. Use "
                'precision="float64", or scale the data.'
            )
        return np.float32
    exponent = kernel.gamma * spread if isinstance(kernel, Gaussian) else 0.0
    safe = fits and exponent <= SAFE_EXPONENT and centred_share(X, kernel) > SAFE_SHARE
    return np.float32 if safe else np.float64


def centred_share(X: Any, kernel: Kernel) -> float:
    """Return tr(JKJ)/tr K on up to 200 rows: what is left of K when its mean is taken away.

    Clusters are in that part. A kernel that is nearly constant hides it below float32's digits.
    """
    n = X.shape[0]
    sample = X[np.linspace(0, n - 1, min(n, 200)).astype(int)].astype(np.float64)
    rows = slice(0, sample.shape[0])
    points = Points(sample, kernel.statistic, unit_rows=kernel.unit_rows, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel.of(points.block(rows, points, rows))
        trace = float(np.trace(K))
        share = 1 - float(K.mean()) * len(K) / trace if trace > 0 else 1.0
    return share if np.isfinite(share) else 1.0


def _sizes(X: Any, kernel: Kernel) -> tuple[float, float]:
    """Return the largest ‖x‖² that the kernel's diagonal sees, and the largest ‖x − mean‖²."""
    if sparse.issparse(X):
        largest = float(X.multiply(X).sum(axis=1).max())
        return (1.0 if kernel.unit_rows else largest), largest
    distances = kernel.statistic is Statistic.SQUARED_DISTANCE
    center = robust_center(X) if distances else 0.0
    largest = max(
        float(np.square(X[rows] - center, dtype=np.float64).sum(axis=1).max())
        for rows in data_blocks(X)
    )
    return (1.0 if kernel.unit_rows else largest), (largest if distances else 0.0)
