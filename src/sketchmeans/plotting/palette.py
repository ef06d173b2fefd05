"""Colours and marks of clusters, for plots and reports alike; and which axes tell most."""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks

COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#000000",
    "#F0E442",
)
"""Okabe and Ito's eight, yellow last: it is the palest. Any two stay 15 apart (CIE Lab) for
readers who lack one kind of cone; tests/test_plotting.py reckons it."""
MORE_COLOURS = (
    *("#699600", "#693C1E", "#005A69", "#B4A5F0", "#B48778", "#5AE178", "#694BA5", "#4B87FF"),
    *("#C3D278", "#96780F", "#C32D96", "#2DD2D2", "#D278F0", "#F04B69", "#782D4B", "#4B5A1E"),
)
"""For clusters after the first eight: any two of all 24 are 20 apart, and the eight that share a
mark stay 15 apart for readers who lack one kind of cone, by the same test."""
CLUSTER_COLOURS = COLOURS + MORE_COLOURS
"""Colours of clusters, in their order."""
MARKS = ("circle", "square", "triangle", "diamond", "plus", "cross", "star", "wedge")
"""Shapes: every eight clusters take the next one."""
DISTINCT = len(COLOURS) * len(MARKS)
"""Clusters that can be told apart; after that colours and marks repeat."""

CONSTANT = 1e-9
"""A column whose spread is below this part of the widest is a constant, and no axis to draw."""


def colour_and_mark(cluster: int) -> tuple[int, int]:
    """Return the indices of the colour and of the mark of a cluster.

    >>> colour_and_mark(0), colour_and_mark(9), colour_and_mark(25)
    ((0, 0), (9, 1), (1, 3))
    """
    look = cluster % DISTINCT
    return look % len(CLUSTER_COLOURS), look // len(COLOURS)


def spread_of_axes(Y: FloatArray, labels: IntArray | None = None) -> FloatArray:
    """Return how much each column of Y tells: its scatter between clusters, or all of it.

    The first column of an embedding is nearly constant for many kernels, so the leading columns
    are not always those to look at.
    """
    groups = np.zeros(len(Y), int) if labels is None else labels
    sizes = np.bincount(groups)
    sums = np.zeros((len(sizes), Y.shape[1]))
    squares = np.zeros(Y.shape[1])
    middle = Y[:1].astype(np.float64)  # any shift will do; this one keeps the digits
    for rows in row_blocks(len(Y)):
        block = Y[rows] - middle
        np.add.at(sums, groups[rows], block)
        squares += np.square(block).sum(axis=0)
    about = np.square(sums.sum(axis=0)) / len(Y)
    if labels is None:
        return squares - about
    present = sizes > 0
    return (np.square(sums[present]) / sizes[present, None]).sum(axis=0) - about


def best_axes(Y: FloatArray, labels: IntArray | None, count: int) -> list[int]:
    """Return the ``count`` columns of Y that tell most, the best first; fewer if some are constant.

    The first column is, for the neighbours kernel.
    """
    spread, whole = spread_of_axes(Y, labels), spread_of_axes(Y)
    order = np.argsort(-spread, kind="stable")
    telling = order[whole[order] > CONSTANT * whole.max(initial=0.0)]
    return [int(axis) for axis in (telling if len(telling) else order)[:count]]
