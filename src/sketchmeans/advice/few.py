"""Rows that are looked at where there are so many that all would take longer than a fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sketchmeans.centers import subsample
from sketchmeans.disk import as_source, is_source
from sketchmeans.lowrank import ColumnStream

COMPARED = 2_000
"""Rows that ``compare`` takes at the most: it passes over the kernel for every method and seed
(``python -m benchmarks.advice_costs``)."""
CHOSEN = 10_000
"""Rows that ``choose`` takes at the most with one kernel: it clusters them into every number of
clusters, and halves of them (``python -m benchmarks.advice_costs``)."""


class Few(NamedTuple):
    """Some of the rows, or all."""

    X: Any
    rows: Any
    """Their numbers; None where they are all."""
    said: str
    """What to tell of it; nothing where they are all."""


def few_of(X: Any, most: int, kernel: Any, seed: int) -> Few:
    """Return at most so many rows, drawn by a seed; all of a kernel matrix or a stream."""
    if isinstance(X, ColumnStream) or (isinstance(kernel, str) and kernel == "precomputed"):
        return Few(X, None, "")
    source = as_source(X) if is_source(X) else None
    found: Any = X if source is None else source
    n = found.shape[0] if hasattr(found, "shape") else len(found)
    if n <= most:
        return Few(X if source is None else source.read(0, n), None, "")
    rows = subsample(np.arange(n), most, seed)
    some = source.take(rows) if source is not None else picked(X, rows)
    return Few(some, rows, f"{most:,} of {n:,} rows, drawn by the seed, stand for all")


def picked(X: Any, rows: Any) -> Any:
    """Return some rows of an array, a matrix, a frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]
