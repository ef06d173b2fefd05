"""Tasks of a pass over K, as they are sent to where the rows are.

Each is a pure function of a few strips of rows: what strips give to each other, and a few rows of
W once more in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import row_blocks, rows_of, stacked
from sketchmeans.engine.strips import Met, meet
from sketchmeans.kernels import Kernel
from sketchmeans.kernels.points import Points

Strip = tuple[Any, ...]
"""Rows of the data, of Ω and, where samples are weighted, the roots of their weights."""


@dataclass(frozen=True)
class StripTask:
    """What two strips give to each other; see ``engine.strips.meet``."""

    operator: Any
    """A ``DataOperator`` without rows."""
    tile_rows: int

    def __call__(self, ours: Strip, theirs: Strip | None) -> tuple[Met, FloatArray | None]:
        """Return what they give, and the diagonal of K where a strip meets itself."""
        parts = [ours] if theirs is None else [ours, theirs]
        columns = list(zip(*parts, strict=True))
        X = stacked(columns[0])
        Omega = np.concatenate(columns[1])
        root = np.concatenate(columns[2]) if len(columns) > 2 else None
        part = self.operator.on(X, root)
        tiles = part.tiles(Omega, self.tile_rows, pack=True, pack_right=True)
        first, n = ours[0].shape[0], X.shape[0]
        strips = slice(0, first), slice(0 if theirs is None else first, n)
        diagonal = np.empty(n)
        met = meet(tiles, *strips, Omega.shape[1] + 1, diagonal)
        return met, diagonal if theirs is None else None


@dataclass(frozen=True)
class Audit:
    """A few rows of K, in float64 and with care, times the rows of Ω that belong to a strip."""

    kernel: Kernel
    few: Any
    """The rows of the data."""
    few_roots: FloatArray | None
    block: int

    def __call__(self, X: Any, Omega: Array, root: FloatArray | None = None) -> FloatArray:
        """Return the part of W that a strip of the samples gives."""
        ours = self._points(self.few)
        total = np.zeros((self.few.shape[0], Omega.shape[1]))
        indices = np.arange(self.few.shape[0])
        for rows in row_blocks(X.shape[0], self.block):
            theirs = self._points(rows_of(X, rows))
            with np.errstate(over="ignore", invalid="ignore"):
                T = self.kernel.of(ours.exact_block(indices, theirs, np.arange(theirs.n_samples)))
                if root is not None and self.few_roots is not None:
                    T *= self.few_roots[:, None] * root[None, rows]
                total += T @ Omega[rows].astype(np.float64)
        return total

    def _points(self, X: Any) -> Points:
        return Points(X, self.kernel.statistic, unit_rows=self.kernel.unit_rows, dtype=np.float64)
