"""The precision of the tiles: float32 where it was asked for, or follows the data and is safe."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.kernels import Gaussian, Kernel, Statistic
from sketchmeans.points import data_blocks

SAFE_EXPONENT = 100.0
"""float32 tiles are used while γ·max‖x − mean‖² stays below: the exponent loses digits beyond."""

SAFE_SIZE = (1e-15, 1e15)
"""… and while the largest K_ii lies between these, so that its square is a float32 too."""


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
    return np.float32 if fits and exponent <= SAFE_EXPONENT else np.float64


def _sizes(X: Any, kernel: Kernel) -> tuple[float, float]:
    """Return the largest ‖x‖² that the kernel's diagonal sees, and the largest ‖x − mean‖²."""
    if sparse.issparse(X):
        largest = float(X.multiply(X).sum(axis=1).max())
        return (1.0 if kernel.unit_rows else largest), largest
    distances = kernel.statistic is Statistic.SQUARED_DISTANCE
    center = X.mean(axis=0, dtype=np.float64) if distances else 0.0
    largest = max(
        float(np.square(X[rows] - center, dtype=np.float64).sum(axis=1).max())
        for rows in data_blocks(X)
    )
    return (1.0 if kernel.unit_rows else largest), (largest if distances else 0.0)
