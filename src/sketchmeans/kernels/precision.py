"""The precision of the tiles: float32 where it was asked for, or follows the data and is safe."""

from __future__ import annotations

from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.kernels.definitions import Gaussian, Kernel
from sketchmeans.kernels.sizes import largest_entry, sample_kernel

SAFE_EXPONENT = 100.0
"""float32 tiles are used while γ·max‖x − mean‖² stays below: the exponent loses digits beyond."""

SAFE_SIZE = (1e-15, 1e15)
"""… and while the largest K_ii lies between these, so that its square is a float32 too."""

SAFE_STATISTIC = (1e-35, 1e35)
"""… and while the statistics that K is made from, and their factor, are float32 numbers."""

SAFE_SHARE = 1e-3
"""… and while a kernel keeps more than this share of its trace when it is centred."""


def tile_dtype(
    X: Any, kernel: Kernel, precision: str, *, statistic: float, weights: FloatArray | None = None
) -> Any:
    """Turn ``precision`` into the dtype of the tiles for these data and this kernel.

    Parameters
    ----------
    X : array or CSR matrix
    kernel : Kernel
    precision : {"auto", "float32", "float64"}
    statistic : float
        The largest of the data, ``sizes.largest_statistic``.
    weights : array of shape (n_samples,), optional
    """
    if precision == "float64" or (precision == "auto" and X.dtype == np.float64):
        return np.float64
    trouble = _trouble(largest_entry(kernel, statistic), weights)
    scale = abs(kernel.scale)
    for name, value in (
        (f"its largest {kernel.statistic.value}", statistic),
        ("its gamma", scale),
        ("its largest argument", scale * statistic),
    ):
        if value != 0 and not SAFE_STATISTIC[0] < value < SAFE_STATISTIC[1]:
            trouble = f"{name} is {value:g}, outside {SAFE_STATISTIC[0]:g} to {SAFE_STATISTIC[1]:g}"
    if precision == "float32":
        _refuse(trouble)
        return np.float32
    exponent = scale * statistic if isinstance(kernel, Gaussian) else 0.0
    safe = trouble is None and exponent <= SAFE_EXPONENT
    return np.float32 if safe and centred_share(X, kernel) > SAFE_SHARE else np.float64


def given_dtype(K: Any, precision: str, *, largest: float, weights: FloatArray | None) -> Any:
    """Turn ``precision`` into the dtype of the arithmetic with a kernel matrix that exists."""
    is_single = K.dtype.kind == "f" and K.dtype.itemsize == 4  # in any order of bytes
    if precision == "float64" or (precision == "auto" and not is_single):
        return np.float64
    trouble = _trouble(largest, weights) if largest else None
    if precision == "float32":
        _refuse(trouble)
        return np.float32
    return np.float32 if trouble is None else np.float64


def _trouble(largest: float, weights: FloatArray | None) -> str | None:
    """Say what float32 cannot hold of a kernel with this largest K_ii; None if it can."""
    low, high = SAFE_SIZE
    if not low < abs(largest) < high:
        return f"its largest diagonal entry is {largest:g}, outside {low:g} to {high:g}"
    weight = 1.0 if weights is None else float(weights.max())
    if not (low < weight < high and low < abs(largest) * weight < high):
        return f"the largest sample_weight is {weight:g}, outside {low:g} to {high:g} times K_ii"
    return None


def _refuse(trouble: str | None) -> None:
    if trouble is not None:
        raise ValueError(
            f'precision="float32" cannot hold this kernel: {trouble}. Use precision="float64", or '
            "scale the data."
        )


def centred_share(X: Any, kernel: Kernel) -> float:
    """Return tr(JKJ)/tr K on up to 200 rows: what is left of K when its mean is taken away.

    Clusters are in that part. A kernel that is nearly constant hides it below float32's digits.
    """
    K = sample_kernel(X, kernel)
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(np.trace(K))
        share = 1 - float(K.mean()) * len(K) / trace if trace > 0 else 1.0
    return share if np.isfinite(share) else 1.0
