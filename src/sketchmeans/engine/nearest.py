"""Nearest anchors by the compiled module: their layouts, and what the search takes."""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import Array, IntArray
from sketchmeans.blocks import sums_of_squares
from sketchmeans.engine.native import aligned_empty, aligned_zeros, compiled

_STRIP = 64
"""Rows that ``native/nearest.c`` works on at a time, at the most."""


def _whole_panels(count: int) -> int:
    panel = compiled().PANEL_BYTES // 8
    return -(-count // panel) * panel


class PackedAnchors:
    """Dense anchors in the layouts that the search reads: three times their size with norms.

    Parameters
    ----------
    points : array of shape (m, n_features)
    """

    def __init__(self, points: Array) -> None:
        points = np.ascontiguousarray(points, np.float64)
        m, p = points.shape
        panel = compiled().PANEL_BYTES // 8
        self._panels = aligned_empty((_whole_panels(m) // panel, p, panel), np.float64)
        compiled().pack(points, self._panels)
        self._halves = sums_of_squares(points) / 2
        self._points = aligned_zeros((m, _whole_panels(p)), np.float64)
        self._points[:, :p] = points

    def nearest(self, rows: Array, kept: int, looked_at: int) -> IntArray:
        """Return the ``kept`` nearest anchors of rows, rising.

        ``looked_at`` are found by products, and of those the nearest by differences; of equally
        far ones the first.
        """
        rows = np.ascontiguousarray(rows, np.float64)
        out = np.empty((len(rows), kept), np.int32)
        compiled().nearest(rows, self._panels, self._halves, self._points, looked_at, out)
        return out

    @staticmethod
    def scratch_bytes(m: int, p: int) -> int:
        """Return what a search allocates beside its result, at the most."""
        m, p = _whole_panels(m), _whole_panels(p)
        return 8 * (_STRIP * (2 * p + m + m // 8) + 12 * m + 64)
