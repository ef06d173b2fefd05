"""Anchors that see rows by the shape of the data around them, for ``benchmarks.neighbors placing``.

Tried, and no better than plain distances: see docs/defaults.md.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.spatial.distance import cdist

from sketchmeans.operators import NeighborOperator
from sketchmeans.operators.anchors import Anchors, Frame

SHRUNK, AROUND = 0.5, 10
"""How much of a covariance is a ball; and a row is around so many of its nearest anchors."""


def shapes(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return for each anchor the matrix that makes the rows around it a ball of the same volume."""
    m, p = points.shape
    near = np.argsort(cdist(rows, points), axis=1, kind="stable")[:, :AROUND]
    found = np.empty((m, p, p))
    for anchor, point in enumerate(points):
        away = rows[(near == anchor).any(axis=1)] - point
        scatter = away.T @ away
        ball = np.trace(scatter) / p or 1.0
        values, axes = np.linalg.eigh((1 - SHRUNK) * scatter / ball + SHRUNK * np.eye(p))
        scale = 1 / np.sqrt(values)
        found[anchor] = axes * (scale / np.exp(np.log(scale).mean())) @ axes.T
    return found


def shaped() -> AbstractContextManager[Any]:
    """Measure nearness to anchors by shapes; for dense rows that are few."""
    find, only = NeighborOperator._find_graphs, Anchors.only

    def with_shapes(operator: NeighborOperator, frame: Frame) -> Any:
        graphs, distances = find(operator, frame)
        for one in graphs:
            one.shapes = shapes(frame.rows(operator.data), one.points)  # type: ignore[attr-defined]
        return graphs, distances

    def some(anchors: Any, kept: np.ndarray) -> Any:
        fewer: Any = only(anchors, kept)
        fewer.shapes = anchors.shapes[kept]
        return fewer

    plain = Anchors.nearest

    def nearest(anchors: Any, rows: np.ndarray) -> np.ndarray:
        if not hasattr(anchors, "shapes"):  # rows that anchors are placed by
            return plain(anchors, rows)
        pairs = zip(anchors.points, anchors.shapes, strict=True)
        squares = [np.square((rows - point) @ shape).sum(axis=1) for point, shape in pairs]
        order = np.argsort(np.column_stack(squares), axis=1, kind="stable")
        return np.sort(order[:, : anchors.n_neighbors], axis=1).astype(np.int32)

    stack = ExitStack()
    stack.enter_context(patch.object(NeighborOperator, "_find_graphs", with_shapes))
    stack.enter_context(patch.object(Anchors, "only", some))
    stack.enter_context(patch.object(Anchors, "nearest", nearest))
    return stack
