"""What a report says of a model, as numbers: everything but the words and the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_samples

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.centers import subsample
from sketchmeans.estimators.fitted import FittedEmbedding
from sketchmeans.plotting.given import Columns, as_text
from sketchmeans.plotting.palette import best_axes

EACH = 20
"""Samples of a cluster that are looked at, at the least, where it has them."""
SEEN = 100_000
"""Samples that profiles and typical members are of, at most: of more so many are drawn."""
POINTS = 2000
"""Samples in the pictures."""
SILHOUETTES = 2000
"""Samples that silhouettes are computed of, each against all the others."""
MEMBERS = 5
"""Typical members of a cluster."""
FEATURES = 12
"""Features whose values are shown."""
TEXTS = 4
"""Columns of text that are shown."""
COLUMNS = 6
"""Columns of the embedding to choose from."""
CLUSTERS = 60
"""Clusters, and true labels, in tables. With these seven numbers the file stays below 2 MB whatever
the names are (tests/test_report.py)."""


@dataclass(frozen=True)
class Preparation:
    """What was done to the data before the fit."""

    center: FloatArray | None = None
    scale: FloatArray | None = None
    """Of each column: the data were X · scale + center before they were standardized."""
    n_dropped: int = 0
    """Rows that were left out for a missing value."""
    n_imputed: int = 0
    """Values that were missing and filled in."""


@dataclass(frozen=True)
class Samples:
    """The rows of the data as they were given, and their names; there may be no values."""

    table: Columns | None
    ids: Any
    """None: row numbers from 0."""
    preparation: Preparation

    @property
    def X(self) -> Any:
        """The values, dense or sparse; None where there are none to show."""
        return None if self.table is None else self.table.X

    def id(self, row: int) -> Any:
        """Return the id of a row."""
        return row if self.ids is None else self.ids[row]

    def values(self, rows: IntArray, columns: Sequence[int]) -> FloatArray:
        """Return some columns of some rows, dense, as they were in the data."""
        return self.as_they_were(self.as_given(rows, columns), columns)

    def as_given(self, rows: IntArray, columns: Sequence[int]) -> FloatArray:
        """Return some columns of some rows, dense, as they were given."""
        if self.X is None or not len(columns):
            return np.zeros((len(rows), 0))
        if sparse.issparse(self.X):
            return self.X[rows][:, columns].toarray().astype(np.float64)
        return np.asarray(self.X[np.ix_(rows, np.asarray(columns))], np.float64)

    def as_they_were(self, values: FloatArray, columns: Sequence[int]) -> FloatArray:
        """Return values of some columns, or means of them, as they were in the data."""
        center, scale = self.preparation.center, self.preparation.scale
        if center is None or scale is None or not len(columns):
            return values
        return values * scale[columns] + center[columns]


@dataclass(frozen=True)
class Silhouette:
    """Mean silhouettes of a sample, in the embedding."""

    mean: float
    of_cluster: dict[int, float]
    n_samples: int


@dataclass(frozen=True)
class Agreement:
    """Clusters against true labels."""

    classes: list[str]
    counts: IntArray
    """True label × cluster."""
    nmi: float
    ari: float
    codes: IntArray
    """The index of the true label of each sample."""

    @property
    def listed(self) -> IntArray:
        """The labels that are shown by name: all, or the commonest."""
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        return np.sort(order[:CLUSTERS])


def distances(
    Y: FloatArray, labels: IntArray, centers: FloatArray, among: IntArray | None = None
) -> FloatArray:
    """Return the distance of each row to the centroid of its cluster; infinite of rows not seen."""
    away = np.full(len(Y), np.inf)
    few = row_blocks(len(Y)) if among is None else [among[cut] for cut in row_blocks(len(among))]
    for rows in few:
        away[rows] = np.linalg.norm(Y[rows] - centers[labels[rows]], axis=1)
    return away


def centroids(Y: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """Return the mean row of each cluster; zeros for one that is empty."""
    sums = np.zeros((n_clusters, Y.shape[1]))
    for rows in row_blocks(len(Y)):
        np.add.at(sums, labels[rows], Y[rows].astype(np.float64))
    return sums / np.maximum(np.bincount(labels, minlength=n_clusters), 1)[:, None]


def typical_members(
    away: FloatArray, labels: IntArray, clusters: Sequence[int]
) -> dict[int, IntArray]:
    """Return the rows nearest to the centroid of each cluster, the nearest first."""
    seen = np.flatnonzero(np.isfinite(away))
    order = seen[np.lexsort((away[seen], labels[seen]))]
    starts = np.searchsorted(labels[order], clusters)
    stops = np.searchsorted(labels[order], clusters, side="right")
    return {
        cluster: order[start : min(start + MEMBERS, stop)]
        for cluster, start, stop in zip(clusters, starts, stops, strict=True)
    }


def silhouette(Y: FloatArray, labels: IntArray, random: np.random.Generator) -> Silhouette | None:
    """Return silhouettes of a sample; None where they are not defined."""
    rows = np.arange(len(Y))
    if len(rows) > SILHOUETTES:
        rows = np.sort(random.choice(len(Y), SILHOUETTES, replace=False))
    groups = labels[rows]
    present = np.unique(groups)
    if not 2 <= len(present) < len(rows):
        return None
    values = silhouette_samples(Y[rows].astype(np.float64), groups)
    by_cluster = {int(cluster): float(values[groups == cluster].mean()) for cluster in present}
    return Silhouette(float(values.mean()), by_cluster, len(rows))


def agreement(truth: Any, labels: IntArray, n_clusters: int) -> Agreement:
    """Count true labels by cluster. Labels of any type are compared as text."""
    if getattr(truth, "dtype", np.dtype(object)).kind in "biu":
        values = np.asarray(truth)
    else:
        values = np.array([as_text(value) for value in truth], dtype=object)
    classes, codes = np.unique(values, return_inverse=True)
    # scikit-learn's contingency_matrix has no column for an empty cluster.
    counts = np.zeros((len(classes), n_clusters), np.int64)
    np.add.at(counts, (codes, labels), 1)
    return Agreement(
        [str(name) for name in classes],
        counts,
        float(normalized_mutual_info_score(codes, labels)),
        float(adjusted_rand_score(codes, labels)),
        codes,
    )


def seen_rows(labels: IntArray, n_clusters: int, seed: int) -> IntArray | None:
    """Return the samples that are looked at; None where they are all.

    ``SEEN`` are drawn by the seed, and of clusters that have few in there, their first ones are
    added.
    """
    if len(labels) <= SEEN:
        return None
    chosen = subsample(np.arange(len(labels)), SEEN, seed)
    few = np.flatnonzero(np.bincount(labels[chosen], minlength=n_clusters) < EACH)
    more = [np.flatnonzero(labels == cluster)[:EACH] for cluster in few[:CLUSTERS]]
    return np.unique(np.concatenate([chosen, *more]))


def drawn_rows(
    n: int, typical: dict[int, IntArray], random: np.random.Generator
) -> tuple[IntArray, bool]:
    """Return the samples to draw and whether that is a choice: then typical members are in it."""
    if n <= POINTS:
        return np.arange(n), False
    chosen = random.choice(n, POINTS, replace=False)
    return np.unique(np.concatenate([chosen, *typical.values()])), True


def columns_to_draw(fitted: FittedEmbedding) -> tuple[list[int], list[int]]:
    """Return the columns of the embedding to choose from, and the two to begin with, or one."""
    best = best_axes(fitted.embedding, fitted.labels, COLUMNS)
    return sorted(best), best[:2]
