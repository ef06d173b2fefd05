"""The features of the neighbours kernel: of samples, and of new points.

A row of F has the weights of its nearest anchors, over the roots of what these hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import row_blocks, rows_of
from sketchmeans.engine import Crew, Run
from sketchmeans.operators.anchors import MORE, Anchors, Frame
from sketchmeans.operators.cross import CrossKernel
from sketchmeans.operators.features import FeatureMap

_ROWS, _NUMBERS = 4096, 1 << 20
"""Rows of a block, and numbers of it; fixed by the sizes of the data, for they decide the bits."""


def rows_at_once(n_features: int, n_neighbors: int) -> int:
    """Return the rows that are looked at together."""
    return max(64, min(_ROWS, _NUMBERS // (n_features * (n_neighbors + MORE))))


class NeighborFeatures(FeatureMap):
    """F(x) = Λ^{-½} z(x) for each set of anchors, side by side, over the root of their number.

    Parameters
    ----------
    frame : Frame
    graphs : list of Anchors
    held : list of array
        Λ of each: the summed weights z of the samples, all positive.
    """

    def __init__(self, frame: Frame, graphs: list[Anchors], held: list[FloatArray]) -> None:
        self.frame, self.graphs, self.held = frame, graphs, held
        self.count = sum(map(len, graphs))
        self.stored = sum(one.n_neighbors for one in graphs)
        self.rows_at_once = rows_at_once(graphs[0].points.shape[1], graphs[0].n_neighbors)
        each = np.concatenate([np.full(len(one), one.n_neighbors) for one in graphs])
        self.scales = 1 / (each * np.sqrt(np.concatenate(held) * len(graphs)))

    def block(self, X: Any) -> Any:
        """Return F of rows: a CSR matrix with as many numbers in every row."""
        columns = self.neighbors(X)
        return regular_csr(columns, self.scales[columns], self.count)

    def neighbors(self, X: Any) -> IntArray:
        """Return the nearest anchors of rows in every set, counted through."""
        rows = self.frame.rows(X)
        found, before = [], 0
        for anchors in self.graphs:
            found.append(anchors.nearest(rows) + before)
            before += len(anchors)
        return np.hstack(found)


def regular_csr(columns: IntArray, numbers: FloatArray, width: int) -> Any:
    """Return the CSR matrix of rows that have as many numbers each."""
    n, each = columns.shape
    dtype = np.int32 if n * each < 2**31 else np.int64
    pointers = np.arange(0, n * each + 1, each, dtype=dtype)
    indices = columns.astype(dtype, copy=False).ravel()
    return sparse.csr_matrix((numbers.ravel(), indices, pointers), shape=(n, width), copy=False)


def squared_lengths(F: Any) -> FloatArray:
    """Return ‖F_i‖² of rows that have as many numbers each."""
    numbers = F.data.reshape(F.shape[0], -1)
    return np.vecdot(numbers, numbers)


class NeighborPoints:
    """What embeds new points: their features, to which the dual of a fit belongs.

    Parameters
    ----------
    map : NeighborFeatures
    """

    dtype = np.dtype(np.float64)

    def __init__(self, map: NeighborFeatures) -> None:
        self.map = map

    def rows_at_once(self, columns: int) -> int:
        """Return the grid of rows on which the samples were met."""
        del columns
        return self.map.rows_at_once

    def against(self, X: Any) -> CrossKernel:
        """Return F of new points, as a kernel with the anchors; distances: anchors per point."""
        shape = (X.shape[0], self.map.count)

        def product(right: Array, crew: Crew, run: Run) -> FloatArray:
            out = np.empty((shape[0], right.shape[1]))

            def work(rows: slice) -> None:
                out[rows] = self.map.block(rows_of(X, rows)) @ right

            blocks = row_blocks(shape[0], self.map.rows_at_once)
            crew.each(work, blocks, lambda done: run.report(done, len(blocks)))
            return out

        def tile(rows: slice, columns: slice, out: FloatArray) -> FloatArray:
            del out
            return self.map.block(rows_of(X, rows))[:, columns].toarray()

        whole: Callable[[], Any] = lambda: self.map.block(X)  # noqa: E731
        return CrossKernel(tile, shape, self.dtype, product, entries=0, evaluate=whole)

    def multiplier(self, right: FloatArray) -> Callable[[Any], FloatArray]:
        """Return what multiplies the features of new points by this matrix, block after block."""
        return lambda X: self.map.block(X) @ right

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) of new points."""
        blocks = row_blocks(X.shape[0], self.map.rows_at_once)
        return np.concatenate(
            [squared_lengths(self.map.block(rows_of(X, rows))) for rows in blocks]
        )
