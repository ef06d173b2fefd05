"""The width parameter γ of a kernel, from the data."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import data_blocks, row_blocks
from sketchmeans.checks import check_number
from sketchmeans.kernels.definitions import Kernel, Statistic
from sketchmeans.kernels.points import Points
from sketchmeans.rows import Rows, is_sparse

SUBSAMPLE = 1000
"""Rows for the median: its relative standard deviation is then 0.5 to 2 %."""
PAIR_ROWS = 64
"""Sparse rows whose distances to all others are looked at together."""


def resolve_gamma(gamma: Any, kernel: type[Kernel], X: Any, seed: int) -> float:
    """Turn ``gamma`` into a number: one already, "median", a multiple "4*median", or "scale"."""
    if not isinstance(gamma, str):
        check_number("gamma", gamma, least=0.0)
        return float(gamma)
    if gamma == "scale":
        variance = _variance(X)
        return _finite(gamma, 1.0, X.shape[1] * variance) if variance > 0 else 1.0
    match = re.fullmatch(r"(?:([0-9.eE+-]+)\s*\*\s*)?median", gamma.strip())
    try:
        factor = float(match[1] or 1.0) if match else -1.0
    except ValueError:
        factor = -1.0
    if not 0 < factor < float("inf"):
        raise ValueError(
            f'gamma={gamma!r} is not understood: give a number, "median", a multiple such as '
            '"4*median", or "scale".'
        )
    return _finite(gamma, factor, median_scale(kernel, X, seed))


def _finite(gamma: str, factor: float, size: float) -> float:
    """Return factor / size; refuse sizes so small that this is no number."""
    value = factor / size
    if not value < float("inf"):
        raise ValueError(
            f"gamma={gamma!r} is {factor:g} over {size:g}, the size of these data to the kernel, "
            "and float64 cannot hold that. Rescale X, or give gamma as a number."
        )
    return value


def median_scale(kernel: type[Kernel], X: Any, seed: int) -> float:
    """Return the median of the kernel's own distance on a seeded subsample.

    Squared Euclidean for rbf, L1 for laplacian, over pairs; ‖x‖² for kernels of the dot product.
    Where more than half of the values are zero, the mean of the others; where all are, 1.
    """
    n = X.shape[0]
    random = np.random.default_rng(seed)
    rows = SUBSAMPLE if is_sparse(X) else min(SUBSAMPLE, max(200, (1 << 20) // X.shape[1]))
    chosen = np.sort(random.choice(n, min(n, rows), replace=False))
    sample = X[chosen].astype(np.float64)
    if kernel.statistic is Statistic.DOT:
        squares = sample.multiply(sample) if sparse.issparse(sample) else sample * sample
        values = np.asarray(squares.sum(axis=1)).ravel()
    else:
        values = _pair_distances(sample, kernel.statistic)
    median = float(np.median(values)) if len(values) else 0.0
    if median > 0:
        return median
    positive = values[values > 0]
    return float(positive.mean()) if len(positive) else 1.0


def _pair_distances(sample: Any, statistic: Statistic) -> FloatArray:
    if not sparse.issparse(sample):
        metric = "cityblock" if statistic is Statistic.MANHATTAN else "sqeuclidean"
        return pdist(sample, metric)
    points = Points(sample, statistic, unit_rows=False, dtype=np.float64)
    # NOTE: all at once, SciPy's product, its dense form and the places of the pairs would take 20
    # bytes for each of them, more than small fits plan (test_gamma_of_sparse_rows_takes_little).
    norms = points.squared_norms()
    blocks = row_blocks(points.n_samples, PAIR_ROWS)
    return np.concatenate([_distances_to_later(points, norms, rows) for rows in blocks])


def _distances_to_later(points: Points, norms: FloatArray, rows: slice) -> FloatArray:
    """Return the distances of some sparse rows to all that come after them."""
    n = points.n_samples
    distances = points.statistics(rows, points, slice(0, n))
    if points.statistic is Statistic.SQUARED_DISTANCE:
        # Duplicates are at distance zero; from dot products they come out as rounding.
        distances[distances < 1e-14 * (norms[rows, None] + norms)] = 0
    return distances[np.arange(n) > np.arange(rows.start, rows.stop)[:, None]]


def _variance(X: Any) -> float:
    """Return the variance of all numbers of X, in blocks: X.var() would copy X."""
    size = X.shape[0] * X.shape[1]
    rows = data_blocks(X)[0].stop
    if is_sparse(X):
        sums = np.sum(_over_blocks(X, _sums, rows), axis=0)
        return float(sums[1] / size - (sums[0] / size) ** 2)
    mean = float(np.sum(_over_blocks(X, _sums, rows), axis=0)[0]) / size
    return float(sum(_over_blocks(X, partial(_squares, mean=mean), rows))) / size


def _over_blocks(X: Any, work: Callable[[Any], Any], rows: int) -> list[Any]:
    """Return what blocks of so many rows give, wherever they are."""
    if isinstance(X, Rows):
        return X.map(work, size=rows, name="look")
    return [work(X[block]) for block in row_blocks(X.shape[0], rows)]


def _sums(block: Any) -> FloatArray:
    """Return the sum of the numbers of a block, and that of their squares."""
    values = block.data if sparse.issparse(block) else block
    squares = np.square(values, dtype=np.float64)
    return np.array([values.sum(dtype=np.float64), squares.sum()])


def _squares(block: Any, *, mean: float) -> float:
    return float(np.square(block - np.float64(mean), dtype=np.float64).sum())
