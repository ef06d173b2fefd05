"""How large the data and their kernel are, and what float64 cannot hold: said before any pass.

A kernel sees data through one statistic. Where the data are so small or so large that the
statistic underflows or overflows, or that the kernel is the same for all pairs, nothing is left to
cluster, and the error names the number and the way out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import data_blocks, first_distinct, mapped, sums_of_squares
from sketchmeans.kernels.definitions import Kernel, Statistic
from sketchmeans.kernels.points import Points, robust_center
from sketchmeans.rows import Rows, is_sparse

STATISTICS = (1e-290, 1e300)
"""Where the largest statistic of the data must lie, so that neither it nor one over it is lost."""

ENTRIES = (1e-140, 1e140)
"""Where the largest weighted K_ii must lie: passes and certificates sum squares of entries."""

SAME = 4 * float(np.finfo(np.float64).eps)
"""Kernel values that differ by no more than this part of them differ by rounding alone."""

SAMPLE = 200
"""Rows that are looked at first: where their kernel varies, no more are."""


def largest_statistic(X: Any, kernel: type[Kernel] | Kernel) -> float:
    """Return the largest ‖x‖² or, where the kernel is of distances, the largest one to a center.

    In float64, block by block; infinite where that overflows. Kernels of unit rows see 1.
    """
    if kernel.unit_rows:
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        centred = kernel.statistic is not Statistic.DOT and not is_sparse(X)
        center = robust_center(X) if centred else None
        manhattan = kernel.statistic is Statistic.MANHATTAN
        look = partial(_largest_of, center=center, manhattan=manhattan)
        return max(mapped(X, look, data_blocks(X)), default=0.0)


def _largest_of(block: Any, *, center: FloatArray | None, manhattan: bool) -> float:
    """Return the largest statistic of some rows."""
    block = block.astype(np.float64, copy=False)
    if center is not None:
        block = block - center
    sizes = np.asarray(abs(block).sum(axis=1)) if manhattan else sums_of_squares(block)
    return float(np.nan_to_num(sizes, nan=np.inf, posinf=np.inf).max(initial=0.0))


def largest_size(X: Any) -> float:
    """Return the largest |x| of all numbers."""
    if isinstance(X, Rows):
        return max(X.map(largest_size, name="look"), default=0.0)
    return float(max(X.max(), -X.min())) if X.shape[0] else 0.0


def check_statistic(X: Any, kernel: type[Kernel]) -> float:
    """Return the largest statistic; refuse data so small or so large that it is lost."""
    largest = largest_statistic(X, kernel)
    low, high = STATISTICS
    if largest > high or (largest < low and _differ(X)):
        value = largest_size(X)
        what = kernel.statistic.value
        fate = "overflows" if largest > high else "vanishes"
        raise ValueError(
            f"X holds values up to {value:g} in size, and its largest {what} {fate}: "
            f"{largest:g} is outside {low:g} to {high:g}. Rescale X, such as X / {value:g}."
        )
    return largest


def check_entries(X: Any, kernel: Kernel, weights: FloatArray | None, statistic: float) -> None:
    """Refuse a kernel whose entries float64 cannot square, or cannot tell from each other.

    Parameters
    ----------
    X : array or CSR matrix
    kernel : Kernel
    weights : array of shape (n_samples,) or None
    statistic : float
        The largest of the data.
    """
    largest = largest_entry(kernel, statistic)
    weight = 1.0 if weights is None else float(weights.max())
    check_weighted(largest, weight, f"the {kernel.name} kernel", "rescale X")
    if kernel.unit_rows:
        return  # rows of one direction are equal to this kernel, whatever their size
    value = constant_value(X, kernel)
    if value is not None and _differ(X):
        raise ValueError(
            f"the {kernel.name} kernel is {value:g} for all pairs of samples, although they "
            f"differ: to {_options(kernel)} their largest {kernel.statistic.value}, "
            f"{statistic:g}, is {_verdict(kernel, statistic)}. Rescale or centre X, or change the "
            "kernel's options."
        )


def check_weighted(largest: float, weight: float, what: str, way_out: str) -> None:
    """Refuse a largest diagonal entry, times the largest weight, that float64 cannot square."""
    low, high = ENTRIES
    if largest != 0 and not low <= abs(largest) * weight <= high:
        times = "" if weight == 1 else f", times the largest sample_weight, {weight:g},"
        rest = "" if weight == 1 else "; or rescale sample_weight: labels do not depend on that"
        raise ValueError(
            f"the largest diagonal entry of {what}, {largest:g}{times} is outside {low:g} to "
            f"{high:g}, and float64 cannot square it: {way_out}{rest}."
        )


def largest_entry(kernel: Kernel, statistic: float) -> float:
    """Return the largest K_ii of data with this largest statistic; infinite where it overflows."""
    seen = statistic if kernel.statistic is Statistic.DOT else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(kernel.diagonal(np.array([seen]))[0])
    return largest if np.isfinite(largest) else np.inf


def sample_kernel(X: Any, kernel: Kernel) -> FloatArray:
    """Return the kernel of up to SAMPLE rows of X, in float64 and with care.

    Of wide data fewer rows are taken, about a million numbers.
    """
    n, p = X.shape
    rows = SAMPLE if is_sparse(X) else min(SAMPLE, max(20, (1 << 20) // p))
    chosen = np.linspace(0, n - 1, min(n, rows)).astype(int)
    return _careful(X[chosen], kernel, np.arange(len(chosen)))


def constant_value(X: Any, kernel: Kernel) -> float | None:
    """Return the value that the kernel has for all pairs of rows; None where it varies.

    A sample tells for nearly all data. Where its rows are alike, all rows are compared with the
    first: what is as near to it as it is to itself is the same point in feature space.
    """
    K = sample_kernel(X, kernel)
    value = float(K[0, 0])
    if not _same(K, value):
        return None
    same = partial(_are_like, first=X[:1], kernel=kernel, value=value)
    if isinstance(X, Rows):
        return value if all(X.map(same, name="look")) else None
    return value if all(same(X[rows]) for rows in data_blocks(X)) else None


def _are_like(block: Any, *, first: Any, kernel: Kernel, value: float) -> bool:
    """Whether the kernel of rows with the first one, and with themselves, is this value."""
    with np.errstate(over="ignore", invalid="ignore"):
        points = Points(block, kernel.statistic, unit_rows=False, dtype=np.float64)
        own = kernel.diagonal(points.squared_norms())
    if not _same(own, value):
        return False
    pair = sparse.vstack([first, block]) if sparse.issparse(block) else np.vstack([first, block])
    return _same(_careful(pair, kernel, np.array([0])), value)


def _careful(rows: Any, kernel: Kernel, indices: IntArray) -> FloatArray:
    """Return the kernel of some of these rows with all of them; distances from differences."""
    rows = sparse.csr_matrix(rows) if sparse.issparse(rows) else rows
    with np.errstate(over="ignore", invalid="ignore"):
        points = Points(rows, kernel.statistic, unit_rows=kernel.unit_rows, dtype=np.float64)
        return kernel.of(points.exact_rows(indices, slice(0, rows.shape[0])))


def _same(values: FloatArray, value: float) -> bool:
    return bool((np.abs(values - value) <= SAME * abs(value)).all())


def _differ(X: Any) -> bool:
    return len(first_distinct(X, 2)) > 1


def _options(kernel: Kernel) -> str:
    """Return the options of a kernel as they were given, for a message."""
    listed = ", ".join(f"{name}={getattr(kernel, name):g}" for name in kernel.options())
    return listed or "rounding"


def _verdict(kernel: Kernel, statistic: float) -> str:
    return "nothing" if abs(kernel.scale) * statistic < 1 else "too much"
