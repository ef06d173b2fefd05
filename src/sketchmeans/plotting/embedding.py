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
from sketchmeans.plotting.given import unpiped
from sketchmeans.plotting.palette import best_axes
from sketchmeans.plotting.scattering import (
    drawn_rows,
    in_strips,
    legend_beside,
    name_strips,
    scatter_clusters,
    sizes_of,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection


class EmbeddingDisplay(Display):
    """Samples in two columns of the embedding, coloured by cluster.

    Up to 24 clusters have a colour each, and every 8 take the next mark. An embedding of one
    column, or of one that is not constant, is drawn as a strip per cluster, the points
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
            Or a Pipeline with one of them at its end.
        X : array, CSR matrix or frame, optional
            Points to embed and assign, n kernel entries each, as the Pipeline takes them if there
            is one; the training samples, which are embedded already, if left out.
            ``FullKernelKMeans`` needs its training samples here, and embeds them by one pass.
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
        model, X = unpiped(estimator, X)
        if X is None or not hasattr(model, "embedding_"):
            source = embedding_of(model, X, random_state=random_state)
            Y, labels = source.embedding, source.labels
        else:
            Y = np.asarray(model.transform(X))
            labels = model.predict(X) if hasattr(model, "predict") else None
        if axes == "auto" and len(found := best_axes(Y, labels, 2)) == 2:
            axes = found  # by all rows, also those that are not drawn
        sizes = sizes_of(labels, len(Y), getattr(model, "n_clusters", 0))
        rows = drawn_rows(len(Y), max_points, random_state)
        shown = labels if labels is None else labels[rows]
        return cls(Y[rows], shown, sizes=sizes, axes=axes).plot(ax, **scatter)

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
        sizes = sizes_of(groups, len(Y)) if self.sizes is None else np.asarray(self.sizes)
        ax.set_xlabel(f"embedding, column {first}")
        if second is None:
            places = in_strips(Y[:, first], groups)
            name_strips(ax, self.labels, sizes)
        else:
            places = Y[:, [first, second]]
            ax.set_ylabel(f"embedding, column {second}")
            ax.set_aspect("equal", adjustable="datalim")  # distances are what K-means sees
        self.scatters_: list[PathCollection] = scatter_clusters(ax, places, groups, sizes, scatter)
        ax.set_title(title_of(self.labels, len(Y), sizes))
        listed = legend and self.labels is not None
        self.legend_ = legend_beside(ax, len(self.scatters_)) if listed else None
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
