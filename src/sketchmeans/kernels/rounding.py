"""How far computed kernel entries are from the kernel: the one notion of rounding in bounds.

ε is such that every entry obeys |K_ij as computed − κ(x_i, x_j)| ≤ ε·√(K_ii K_jj). By the
inequality of Cauchy and Schwarz, traces and sums over clusters are then off by at most ε·tr K, and
so is every eigenvalue: docs/certificate.md has the proofs.
"""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.kernels.definitions import Kernel, Polynomial, Statistic

LEAST = 64 * float(np.finfo(np.float64).eps)
"""Below this, sums in float64 round more than entries do."""

SHOWING = {4: 1e-5, 8: 1e-9}
"""Rounding errors of a kernel's exponent above this, by bytes per number, are not left to dot
products: float32 could keep to no less, and float64 comes near it only for far outliers."""


def entry_rounding(
    kernel: Kernel, dtype: np.dtype, n_features: int, largest_norm: float, narrowed: float
) -> float:
    """Return ε of tiles in ``dtype``, from the formula that they are computed by.

    Sixteen units for the map and for sums within a tile; a dot product of p terms adds about √p.
    Squared distances from dot products are off by units of the largest ‖x‖², and the exponent by
    γ times that, up to where tiles come from differences instead.

    Parameters
    ----------
    kernel : Kernel
    dtype : dtype
        Of the tiles.
    n_features : int
        Terms of a dot product.
    largest_norm : float
        The largest ‖x‖² that squared distances are made from.
    narrowed : float
        The largest ‖x‖₁ of rows that were rounded to ``dtype``; 0 where they were exact.
    """
    unit = float(np.finfo(dtype).eps)
    units = 16 + float(np.sqrt(n_features))
    if kernel.statistic is Statistic.SQUARED_DISTANCE:
        units += min(
            4 * abs(kernel.scale) * largest_norm, 4 * SHOWING[np.dtype(dtype).itemsize] / unit
        )
    if kernel.statistic is Statistic.MANHATTAN:
        units += 2 * abs(kernel.scale) * narrowed
    if isinstance(kernel, Polynomial):
        units *= kernel.degree
    return max(unit * units, LEAST)


def indefinite_rounding(kernel: Kernel, n_features: int, largest_square: float) -> float:
    """Return what entries in float64 may be off by where γ⟨x, y⟩ + coef0 cancels; 0 if K ≽ 0.

    The argument is off by units of its terms, however small their sum; the entry by as much as the
    map makes of that. For K ≽ 0 no term exceeds √(K_ii K_jj), and ε has it.

    Parameters
    ----------
    kernel : Kernel
    n_features : int
        Terms of a dot product.
    largest_square : float
        The largest ‖x‖².
    """
    if kernel.is_psd or kernel.statistic is not Statistic.DOT:
        return 0.0
    largest = abs(kernel.scale) * largest_square + abs(kernel.shift)
    degree = kernel.degree if isinstance(kernel, Polynomial) else 1
    with np.errstate(over="ignore"):
        steepest = degree * np.float64(largest) ** (degree - 1)  # tanh rises by one at the most
    return float(np.finfo(np.float64).eps * (16 + n_features) * largest * steepest)


def largest_deviation(
    computed: FloatArray, truth: FloatArray, ours: FloatArray, theirs: FloatArray
) -> float:
    """Return the largest |computed − truth| over √(K_ii K_jj), for diagonals of both sides."""
    size = np.sqrt(np.maximum(ours, 0.0))[:, None] * np.sqrt(np.maximum(theirs, 0.0))
    off = np.abs(computed.astype(np.float64) - truth)
    return float(np.divide(off, size, out=np.zeros_like(off), where=size > 0).max(initial=0.0))
