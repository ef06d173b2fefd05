"""What is high and what is low in each cluster: means against those of all samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sketchmeans._arrays import BoolArray, FloatArray, IntArray
from sketchmeans.blocks import data_blocks, row_blocks
from sketchmeans.report.content import Samples
from sketchmeans.report.html import figure

STANDS_OUT = 0.5
"""Standard deviations from the mean of all at which a mean is called high or low."""
NAMED = 4
"""Features that are named as high, and as low, in a cluster."""
LEVELS = 4
"""Shades of the heat map on each side of the middle."""
FULL = 2.0
"""Standard deviations that have the strongest shade."""


@dataclass(frozen=True)
class Profiles:
    """Means of features in clusters, and how far they are from those of all samples."""

    means: FloatArray
    """Cluster × feature, as the data were; NaN where a cluster has no value."""
    overall: FloatArray
    """Of all samples."""
    scores: FloatArray
    """Cluster × feature: distance of the mean from that of all, in standard deviations of all."""
    yes_or_no: BoolArray
    """Whether a feature has no other values than 0 and 1: then means are shares."""

    def high(self, cluster: int) -> list[int]:
        """Return the features that stand out above, the furthest first."""
        return self._furthest(-self.scores[cluster])

    def low(self, cluster: int) -> list[int]:
        """Return the features that stand out below, the furthest first."""
        return self._furthest(self.scores[cluster])

    def _furthest(self, scores: FloatArray) -> list[int]:
        order = np.argsort(scores, kind="stable")[:NAMED]
        return [int(feature) for feature in order if scores[feature] <= -STANDS_OUT]

    def level(self, cluster: int, feature: int) -> int:
        """Return the shade of the heat map: 0 is that of the mean of all."""
        share = np.clip(self.scores[cluster, feature] / FULL, -1, 1)
        return int(np.trunc(share * LEVELS + np.copysign(0.5, share)))

    def mean(self, cluster: int | None, feature: int) -> str:
        """Return a mean as it is shown, of a cluster or of all."""
        value = (self.overall if cluster is None else self.means[cluster])[feature]
        share = self.yes_or_no[feature] and value == value
        return f"{value:.0%}" if share else figure(value, 3)


def profiles(
    samples: Samples,
    labels: IntArray,
    n_clusters: int,
    features: Sequence[int],
    seen: IntArray | None = None,
) -> Profiles:
    """Return the profiles of clusters; missing values are left out.

    Two passes over the shown columns, a block of rows at a time: of all samples, or of those that
    are ``seen``, which count by the size of their cluster.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    among = sizes if seen is None else np.bincount(labels[seen], minlength=n_clusters)
    counting = (sizes / np.maximum(among, 1))[:, None]
    shape = (n_clusters, len(features))
    sums, counts, squares = np.zeros(shape), np.zeros(shape), np.zeros(len(features))
    yes_or_no = np.ones(len(features), bool)
    with np.errstate(over="ignore", invalid="ignore"):  # huge numbers: they stand out nowhere
        for rows, block, gaps in _blocks(samples, features, seen):
            known = np.where(gaps, 0.0, block)
            np.add.at(sums, labels[rows], known)
            np.add.at(counts, labels[rows], ~gaps)
            were = samples.as_they_were(block, features)
            near = np.abs(were - np.round(np.clip(were, 0, 1))) < 1e-9
            yes_or_no &= (near | gaps).all(axis=0)
        means = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
        total = (counting * counts).sum(axis=0)
        overall = np.divide(
            (counting * sums).sum(axis=0),
            total,
            out=np.full(len(features), np.nan),
            where=total > 0,
        )
        for rows, block, gaps in _blocks(samples, features, seen):
            away = np.square(np.where(gaps, 0.0, block - overall))
            squares += (counting[labels[rows]] * away).sum(axis=0)
        deviation = np.sqrt(squares / np.maximum(total, 1))
        scores = np.divide(means - overall, deviation, out=np.zeros(shape), where=deviation > 0)
    return Profiles(
        samples.as_they_were(means, features),
        samples.as_they_were(overall, features),
        np.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0),
        yes_or_no,
    )


def _blocks(
    samples: Samples, features: Sequence[int], seen: IntArray | None
) -> Iterator[tuple[IntArray, FloatArray, BoolArray]]:
    """Yield blocks of rows, their values and where these are missing."""
    every = np.arange(samples.X.shape[0]) if seen is None and len(features) else seen
    if every is None or not len(features):
        return
    step = data_blocks(samples.X)[0].stop if samples.X.shape[0] else 1
    for cut in row_blocks(len(every), step):
        block = samples.as_given(every[cut], features)
        yield every[cut], block, np.isnan(block)
