"""EmbeddingDisplay: samples in two columns of the embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.checks import check_count
from sketchmeans.estimators.fitted import embedding_of
from sketchmeans.plotting.axes import Display, axes_for
from sketchmeans.plotting.palette import (
    COLOURS,
    DISTINCT,
    MARKS,
    best_axes,
    colour_and_mark,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_LETTERS = dict(zip(MARKS, ("o", "s", "^", "D", "P", "X", "*", "v"), strict=True))
LEGEND_ROWS = 16
"""Entries of the legend in a column."""


class EmbeddingDisplay(Display):
    """Samples in two columns of the embedding, coloured by cluster.

    Up to 8 clusters have a colour each; beyond that every 8 take the next mark, too. An embedding
    of one column, or of one that is not constant, is drawn as a strip per cluster, the points
    shaken a little from side to side.

    Parameters
    ----------
    embedding : array of shape (n_shown, rank)
        Rows to draw.
    labels : array of shape (n_shown,), optional
        Their clusters.
    sizes : array of shape (n_clusters,), optional
        Samples in each cluster, also those that are not drawn; counted from ``labels`` if left
        out.
    axes : pair of int or "auto"
        Columns to draw, from 0; "auto" takes those in which clusters differ most.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.
    scatters_ : list of PathCollection
        One per cluster that has points.
    legend_ : Legend or None

    Examples
    --------
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.datasets import make_rings
    >>> from sketchmeans.plotting import EmbeddingDisplay
    >>> model = KernelKMeans(2, random_state=0).fit(make_rings(300, random_state=0)[0])
    >>> len(EmbeddingDisplay.from_estimator(model, axes=(0, 1)).scatters_)
    2
    """

    def __init__(
        self,
        embedding: FloatArray,
        labels: IntArray | None = None,
        *,
        sizes: IntArray | None = None,
        axes: Sequence[int] | str = "auto",
    ) -> None:
        self.embedding = embedding
        self.labels = labels
        self.sizes = sizes
        self.axes = axes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        axes: Sequence[int] | str = "auto",
        max_points: int = 20_000,
        random_state: int = 0,
        ax: Any = None,
        **scatter: Any,
    ) -> Self:
        """Draw the embedding of a fitted estimator.

        Parameters
        ----------
        estimator : KernelKMeans, KernelEmbedding or FullKernelKMeans
        X : array or CSR matrix, optional
            Points to embed and assign, n kernel entries each; the training samples, which are
            embedded already, if left out. ``FullKernelKMeans`` needs its training samples here,
            and embeds them by one pass.
        axes : pair of int or "auto"
        max_points : int
            Of more samples, so many are drawn at random; the title says so.
        random_state : int
            Seed of that choice.
        ax : matplotlib Axes, optional
        **scatter
            Passed on to matplotlib's ``scatter``.
        """
        check_count("max_points", max_points)
        check_is_fitted(estimator)
        if X is None or not hasattr(estimator, "embedding_"):
            source = embedding_of(estimator, X, random_state=random_state)
            Y, labels = source.embedding, source.labels
        else:
            Y = estimator.transform(X)
            labels = estimator.predict(X) if hasattr(estimator, "predict") else None
        if axes == "auto" and len(found := best_axes(Y, labels, 2)) == 2:
            axes = found  # by all rows, also those that are not drawn
        if labels is None:
            sizes = np.array([len(Y)])
        else:
            sizes = np.bincount(labels, minlength=estimator.n_clusters)
        if len(Y) > max_points:
            random = np.random.default_rng(random_state)
            rows = np.sort(random.choice(len(Y), max_points, replace=False))
            Y, labels = Y[rows], labels if labels is None else labels[rows]
        return cls(Y, labels, sizes=sizes, axes=axes).plot(ax, **scatter)

    def plot(self, ax: Any = None, *, legend: bool = True, **scatter: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if left out.
        legend : bool
            Whether to list the clusters beside the axes; more than 64 are never listed, because
            colours and marks repeat.
        **scatter
            Passed on to matplotlib's ``scatter``.
        """
        first, second = self._columns()
        ax = axes_for(ax, (7.0, 5.0))
        Y = np.asarray(self.embedding)
        groups = np.zeros(len(Y), int) if self.labels is None else np.asarray(self.labels)
        sizes = np.bincount(groups) if self.sizes is None else np.asarray(self.sizes)
        if second is None:
            shake = np.random.default_rng(0).uniform(-0.3, 0.3, len(Y))
            places = np.column_stack([Y[:, first], groups + shake])
        else:
            places = Y[:, [first, second]]
        area = float(np.clip(36 * (100 / max(len(Y), 1)) ** 0.45, 3, 36))
        style = {"s": area, "linewidths": 0.3 if area > 6 else 0.15, "edgecolors": "0.2"} | scatter
        style.setdefault("rasterized", len(Y) > 5000)  # a vector file of them would be huge
        self.scatters_: list[PathCollection] = []
        for cluster in np.unique(groups):
            colour, mark = colour_and_mark(int(cluster))
            inside = groups == cluster
            self.scatters_.append(
                ax.scatter(
                    *places[inside].T,
                    **{"color": COLOURS[colour], "marker": _LETTERS[MARKS[mark]]} | style,
                    label=f"{cluster}  ({sizes[cluster]:,})",
                )
            )
        self._label(ax, first, second, len(Y), sizes)
        self.legend_ = None
        if legend and self.labels is not None and len(self.scatters_) <= DISTINCT:
            self.legend_ = ax.legend(
                loc="upper left",
                bbox_to_anchor=(1.01, 1.0),
                borderaxespad=0.0,
                frameon=False,
                ncols=-(-len(self.scatters_) // LEGEND_ROWS),
                title="cluster (samples)",
                alignment="left",
                handletextpad=0.2,
                columnspacing=1.0,
            )
            for handle in self.legend_.legend_handles:
                if handle is not None:
                    handle.set_sizes([36.0])
        return self._finish(ax)

    def _columns(self) -> tuple[int, int | None]:
        """Return the two columns to draw; the second is None where there is but one."""
        rank = self.embedding.shape[1]
        if rank == 1:
            return 0, None
        if isinstance(self.axes, str):
            if self.axes != "auto":
                raise ValueError(f'axes={self.axes!r} is not known: give two columns, or "auto".')
            first, *more = best_axes(np.asarray(self.embedding), self.labels, 2)
            return first, more[0] if more else None
        if len(self.axes) != 2 or not all(0 <= axis < rank for axis in self.axes):
            raise ValueError(
                f"axes={tuple(self.axes)} must be two columns of the embedding, each from 0 to "
                f"{rank - 1}."
            )
        return int(self.axes[0]), int(self.axes[1])

    def _label(self, ax: Axes, first: int, second: int | None, drawn: int, sizes: IntArray) -> None:
        """Write title and axes."""
        ax.set_xlabel(f"embedding, column {first}")
        if second is not None:
            ax.set_ylabel(f"embedding, column {second}")
            ax.set_aspect("equal", adjustable="datalim")  # distances are what K-means sees
        elif self.labels is None:
            ax.set_yticks([])
        else:
            ax.set_ylabel("cluster")
            step = -(-len(sizes) // 20)
            ax.set_yticks(range(0, len(sizes), step))
        total = int(np.sum(sizes))
        title = f"{total:,} samples"
        if self.labels is not None:
            k = len(sizes)
            title += f" in {k} cluster{'s' if k > 1 else ''}"
        if drawn < total:
            title += f"; {drawn:,} of them drawn"
        if len(sizes) > DISTINCT:
            title += "; colours and marks repeat"
        ax.set_title(title)
