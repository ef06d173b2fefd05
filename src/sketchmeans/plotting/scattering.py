"""Points coloured by cluster on matplotlib's axes: what the Displays of samples share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.centers import subsample
from sketchmeans.plotting.palette import CLUSTER_COLOURS, DISTINCT, MARKS, colour_and_mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.legend import Legend

_LETTERS = dict(zip(MARKS, ("o", "s", "^", "D", "P", "X", "*", "v"), strict=True))
LEGEND_ROWS = 16
"""Entries of the legend in a column."""


def drawn_rows(n: int, max_points: int, seed: int) -> IntArray:
    """Return the rows to draw: all, or a seeded choice of them."""
    return subsample(np.arange(n), max_points, seed)


def sizes_of(labels: IntArray | None, n: int, n_clusters: int = 0) -> IntArray:
    """Return the number of samples in each cluster; all in one where there are no clusters."""
    return np.array([n]) if labels is None else np.bincount(labels, minlength=n_clusters)


def in_strips(values: FloatArray, groups: IntArray) -> FloatArray:
    """Return the places of one column of values: a strip for each cluster, shaken a little."""
    shake = np.random.default_rng(0).uniform(-0.3, 0.3, len(values))
    return np.column_stack([values, groups + shake])


def scatter_clusters(
    ax: Axes, places: FloatArray, groups: IntArray, sizes: IntArray, given: dict[str, Any]
) -> list[PathCollection]:
    """Draw points, each cluster in its colour and mark, and return what was drawn."""
    n = len(places)
    area = float(np.clip(36 * (100 / max(n, 1)) ** 0.45, 3, 36))
    style: dict[str, Any] = {
        "s": area,
        "linewidths": 0.3 if area > 6 else 0.15,
        "edgecolors": "0.2",
    } | given
    style.setdefault("rasterized", n > 5000)  # a vector file of them would be huge
    drawn = []
    for cluster in np.unique(groups):
        colour, mark = colour_and_mark(int(cluster))
        look: dict[str, Any] = {"color": CLUSTER_COLOURS[colour], "marker": _LETTERS[MARKS[mark]]}
        label = f"{cluster}  ({sizes[cluster]:,})"
        drawn.append(ax.scatter(*places[groups == cluster].T, **look | style, label=label))
    return drawn


def legend_beside(ax: Axes, count: int) -> Legend | None:
    """List the clusters beside the axes; none where their looks repeat."""
    if count > DISTINCT:
        return None
    legend = ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        ncols=-(-count // LEGEND_ROWS),
        title="cluster (samples)",
        alignment="left",
        handletextpad=0.2,
        columnspacing=1.0,
    )
    handles: list[Any] = legend.legend_handles
    for handle in handles:
        handle.set_sizes([36.0])
    return legend


def name_strips(ax: Axes, labels: IntArray | None, sizes: IntArray) -> None:
    """Name the vertical axis where strips are drawn."""
    if labels is None:
        ax.set_yticks([])
        return
    ax.set_ylabel("cluster")
    ax.set_yticks(range(0, len(sizes), -(-len(sizes) // 20)))


def title_of(labels: IntArray | None, drawn: int, sizes: IntArray) -> str:
    """Return how many samples and clusters there are, and how many are drawn."""
    total, k = int(np.sum(sizes)), len(sizes)
    title = f"{total:,} samples"
    if labels is not None:
        title += f" in {k} cluster{'s' if k > 1 else ''}"
    if drawn < total:
        title += f"; {drawn:,} of them drawn"
    return title + ("; colours and marks repeat" if k > DISTINCT else "")
