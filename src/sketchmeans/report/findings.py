"""What was found, as the sections of a report ask for it: each part is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import sketchmeans.report.content as content
from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.estimators.fitted import FittedEmbedding, embedding_of
from sketchmeans.report.html import short


@dataclass(frozen=True)
class Findings:
    """A fitted model, its samples, and what is shown of them, computed once."""

    model: Any
    samples: content.Samples
    fitted_to: Any
    """What the model was fitted to: X, or the kernel matrix; None if it is not at hand."""
    truth: Any
    command: str | Sequence[str]
    source: str | None
    seed: int

    @property
    def labels(self) -> IntArray:
        """The cluster of each sample."""
        labels: IntArray = self.model.labels_
        return labels

    @cached_property
    def sizes(self) -> IntArray:
        """Samples in each cluster."""
        return np.bincount(self.labels, minlength=self.model.n_clusters)

    @cached_property
    def clusters(self) -> list[int]:
        """The clusters that tables list: all, or the largest."""
        largest = np.argsort(-self.sizes, kind="stable")[: content.CLUSTERS]
        return sorted(int(cluster) for cluster in largest)

    @cached_property
    def embedded(self) -> FittedEmbedding:
        """The embedding and its spectrum."""
        return embedding_of(self.model, self.fitted_to, random_state=self.seed)

    @cached_property
    def away(self) -> FloatArray:
        """The distance of each sample to its centroid, in the embedding."""
        centers = getattr(self.model, "cluster_centers_", None)
        Y = self.embedded.embedding
        if centers is None:
            centers = content.centroids(Y, self.labels, self.model.n_clusters)
        return content.distances(Y, self.labels, centers)

    @cached_property
    def typical(self) -> dict[int, IntArray]:
        """The rows nearest to each centroid."""
        return content.typical_members(self.away, self.labels, self.clusters)

    @cached_property
    def drawn(self) -> tuple[IntArray, bool]:
        """The samples in the picture, and whether they are a choice."""
        return content.drawn_rows(len(self.labels), self.typical, self.random(0))

    @cached_property
    def features(self) -> list[int]:
        """The features whose values are shown."""
        return content.telling_features(self.samples, self.labels, self.drawn[0])

    @cached_property
    def feature_names(self) -> list[str]:
        """Their names."""
        return [short(self.samples.feature_names[feature]) for feature in self.features]

    @cached_property
    def silhouette(self) -> content.Silhouette | None:
        """Silhouettes of a sample, or None."""
        return content.silhouette(self.embedded.embedding, self.labels, self.random(1))

    @cached_property
    def agreement(self) -> content.Agreement | None:
        """Clusters against true labels, if there are any."""
        if self.truth is None:
            return None
        return content.agreement(self.truth, self.labels, self.model.n_clusters)

    def random(self, stream: int) -> np.random.Generator:
        """Return a generator of its own for each choice."""
        return np.random.default_rng([self.seed, stream])

    def row_id(self, row: int) -> str:
        """Return the id of a sample as it is shown."""
        return short(self.samples.id(int(row)))
