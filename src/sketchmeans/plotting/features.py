"""FeaturesDisplay: samples in two of their own features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import dense
from sketchmeans.checks import check_count
from sketchmeans.plotting.axes import Display, axes_for
from sketchmeans.plotting.given import Columns, columns_of, unpiped
from sketchmeans.plotting.scattering import (
    drawn_rows,
    in_strips,
    legend_beside,
    name_strips,
    scatter_clusters,
    sizes_of,
    title_of,
)
from sketchmeans.plotting.telling import alike, best_pair, telling_features

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection

CANDIDATES = 12
"""Features from which the pair is chosen: those in which clusters differ most."""


class FeaturesDisplay(Display):
    """Samples in two of their own features, coloured by cluster.

    Where the ranges of the two are alike, within a factor of two or so, one unit is as long up as
    across: two moons look like two moons. A single feature is drawn as a strip per cluster, the
    points shaken a little from side to side.

    Parameters
    ----------
    values : array of shape (n_shown, 2) or (n_shown, 1)
        What to draw; NaN where a value is missing.
    labels : array of shape (n_shown,), optional
        Their clusters.
    feature_names : sequence of str
        Names of the columns.
    sizes : array of shape (n_clusters,), optional
        Samples in each cluster, also those that are not drawn; counted from ``labels`` if left
        out.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.
    scatters_ : list of PathCollection
        One per cluster that has points.
    legend_ : Legend or None

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.plotting import FeaturesDisplay
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> model = KernelKMeans(2, random_state=0).fit(X)
    >>> FeaturesDisplay.from_estimator(model, X, feature_names=["x", "y"]).ax_.get_xlabel()
    'x'
    """

    def __init__(
        self,
        values: FloatArray,
        labels: IntArray | None = None,
        *,
        feature_names: Sequence[Any],
        sizes: IntArray | None = None,
    ) -> None:
        self.values = values
        self.labels = labels
        self.feature_names = feature_names
        self.sizes = sizes

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw the training samples of a fitted estimator in the clusters that it found.

        Parameters
        ----------
        estimator : KernelKMeans or FullKernelKMeans
            Or a Pipeline with one of them at its end: values are drawn as they were before it.
        X : array, CSR matrix or frame of shape (n_samples, n_features)
            The training samples. For others, see ``from_predictions``.
        **options
            As for ``from_predictions``.
        """
        check_is_fitted(estimator)
        model, _ = unpiped(estimator)
        if not hasattr(model, "labels_"):
            raise ValueError(
                f"{type(model).__name__} has no clusters to colour. Fit KernelKMeans or "
                "FullKernelKMeans."
            )
        if isinstance(model.kernel, str) and model.kernel == "precomputed":
            raise ValueError(
                "a model of a precomputed kernel has no features. Give the data that the kernel "
                "is of: FeaturesDisplay.from_predictions(X, model.labels_)."
            )
        return cls.from_predictions(X, model.labels_, **options)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: Any,
        *,
        features: Sequence[Any] | str = "auto",
        feature_names: Sequence[Any] | None = None,
        max_points: int = 20_000,
        random_state: int = 0,
        ax: Any = None,
        **scatter: Any,
    ) -> Self:
        """Draw samples in clusters that are known.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_samples, n_features)
            Columns of text are left out.
        labels : array of shape (n_samples,)
            The cluster of each.
        features : pair, or "auto"
            Two columns, by number from 0 or by name. "auto" takes the pair in whose plane
            neighbours share a cluster most often.
        feature_names : sequence, optional
            Names of the columns of X; "feature 0" and so on, or those of a frame, if left out.
        max_points : int
            Of more samples, so many are drawn at random; the title says so.
        random_state : int
            Seed of that choice.
        ax : matplotlib Axes, optional
        **scatter
            Passed on to matplotlib's ``scatter``.
        """
        check_count("max_points", max_points)
        table, labels = columns_of(X, feature_names), np.asarray(labels)
        n = table.X.shape[0]
        if n != len(labels):
            raise ValueError(
                f"X has {n} rows, but there are {len(labels)} labels. Give one of each sample, in "
                "their order; of new points, from_predictions(X, model.predict(X))."
            )
        rows = drawn_rows(n, max_points, random_state)
        chosen = _chosen(table, labels, rows, features, random_state)
        return cls(
            dense(table.X[rows][:, chosen]).astype(np.float64),
            labels[rows],
            feature_names=[str(table.names[column]) for column in chosen],
            sizes=sizes_of(labels, n),
        ).plot(ax, **scatter)

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
        ax = axes_for(ax, (7.0, 5.0))
        values = np.asarray(self.values)
        groups = np.zeros(len(values), int) if self.labels is None else np.asarray(self.labels)
        sizes = sizes_of(groups, len(values)) if self.sizes is None else np.asarray(self.sizes)
        # A name may hold a dollar sign, which is no formula.
        ax.set_xlabel(self.feature_names[0], parse_math=False)
        if values.shape[1] == 1:
            places = in_strips(values[:, 0], groups)
            name_strips(ax, self.labels, sizes)
        else:
            places = values
            ax.set_ylabel(self.feature_names[1], parse_math=False)
            if alike(*np.nanmax(values, axis=0) - np.nanmin(values, axis=0)):
                ax.set_aspect("equal", adjustable="datalim")
        self.scatters_: list[PathCollection] = scatter_clusters(ax, places, groups, sizes, scatter)
        ax.set_title(title_of(self.labels, len(values), sizes))
        listed = legend and self.labels is not None
        self.legend_ = legend_beside(ax, len(self.scatters_)) if listed else None
        return self._finish(ax)


def _chosen(
    table: Columns, labels: IntArray, rows: IntArray, features: Sequence[Any] | str, seed: int
) -> list[int]:
    """Return the columns to draw, by number."""
    names = table.names[: table.n_numeric]
    if not names:
        raise ValueError("X has no column of numbers to draw.")
    if isinstance(features, str) and features == "auto":
        X = table.X[:, : table.n_numeric]
        return best_pair(X, labels, rows, telling_features(X, labels, rows, CANDIDATES), seed)
    found = []
    for feature in features:
        if feature in names:
            found.append(names.index(feature))
        elif isinstance(feature, int | np.integer) and 0 <= feature < len(names):
            found.append(int(feature))
    if len(found) != 2 or len(features) != 2:
        listed = ", ".join(repr(str(name)) for name in names[:CANDIDATES])
        raise ValueError(
            f'features={features!r} must be "auto" or two columns of numbers, by name or from 0 '
            f"to {len(names) - 1}. Names: {listed}{', …' if len(names) > CANDIDATES else ''}."
        )
    return found
