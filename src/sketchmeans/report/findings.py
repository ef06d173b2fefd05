"""What was found, as the sections of a report ask for it: each part is computed once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import sketchmeans.report.content as content
from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.guidance import guidance
from sketchmeans.advice.plain import PlainKMeans, plain_kmeans
from sketchmeans.estimators.fitted import FittedEmbedding, embedding_of
from sketchmeans.plotting.given import Categories
from sketchmeans.plotting.telling import best_pair, telling_features
from sketchmeans.report.html import short
from sketchmeans.report.pipelines import Steps
from sketchmeans.report.profiles import Profiles, profiles


@dataclass(frozen=True)
class Findings:
    """A fitted model, its samples, and what is shown of them, computed once."""

    model: Any
    samples: content.Samples
    fitted_to: Any
    """What the model was fitted to: X, or the kernel matrix; None if it is not at hand."""
    truth: Any
    command: str | Sequence[str] | None
    source: str | None
    seed: int
    steps: Steps
    """What a Pipeline did before the model."""

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
    def seen(self) -> IntArray | None:
        """The samples that profiles and typical members are of; None where they are all."""
        return content.seen_rows(self.labels, self.model.n_clusters, self.seed)

    @cached_property
    def away(self) -> FloatArray:
        """The distance of each sample to its centroid, in the embedding; infinite if not seen."""
        centers = getattr(self.model, "cluster_centers_", None)
        Y = self.embedded.embedding
        if centers is None:
            centers = content.centroids(Y, self.labels, self.model.n_clusters)
        return content.distances(Y, self.labels, centers, self.seen)

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
        X, (rows, _) = self.samples.X, self.drawn
        return [] if X is None else telling_features(X, self.labels, rows, content.FEATURES)

    @cached_property
    def feature_names(self) -> list[str]:
        """Their names."""
        table = self.samples.table
        return [] if table is None else [short(table.names[feature]) for feature in self.features]

    @cached_property
    def indicators(self) -> list[int]:
        """Which of them, by their place among the shown, stand for a value of text."""
        table = self.samples.table
        first = 0 if table is None else table.n_numeric
        return [place for place, feature in enumerate(self.features) if feature >= first]

    @cached_property
    def texts(self) -> list[Categories]:
        """The columns of text that are shown."""
        return [] if self.samples.table is None else self.samples.table.texts[: content.TEXTS]

    @cached_property
    def drawn_values(self) -> FloatArray:
        """Values of the shown features of the samples in the picture, as they were."""
        return self.samples.values(self.drawn[0], self.features)

    @cached_property
    def pair(self) -> list[int]:
        """The features, by their place among the shown, in which the samples are drawn first."""
        rows = self.drawn[0]
        numbers = [place for place in range(len(self.features)) if place not in self.indicators]
        among = numbers if len(numbers) > 1 else list(range(len(self.features)))
        return best_pair(
            self.drawn_values, self.labels[rows], np.arange(len(rows)), among, self.seed
        )

    @cached_property
    def profiles(self) -> Profiles:
        """What is high and low in each cluster, of the shown features."""
        k = self.model.n_clusters
        return profiles(self.samples, self.labels, k, self.features, self.seen)

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

    @cached_property
    def plain(self) -> PlainKMeans | None:
        """What K-means without a kernel finds; None where there are no rows to ask."""
        if self.fitted_to is None:
            return None
        with warnings.catch_warnings():
            # A frame and its values are the same rows here.
            warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")
            return plain_kmeans(self.model, self.fitted_to, random_state=self.seed)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What to do next; nothing where the data are not at hand."""
        if self.fitted_to is None:
            return ()
        return guidance(
            self.model,
            self.fitted_to,
            feature_names=self.steps.names,
            standardized=self.samples.preparation.scale is not None or self.steps.rescale,
            command=self.command,
            plain=self.plain,
        )

    def random(self, stream: int) -> np.random.Generator:
        """Return a generator of its own for each choice."""
        return np.random.default_rng([self.seed, stream])

    def row_id(self, row: int) -> str:
        """Return the id of a sample as it is shown."""
        return short(self.samples.id(int(row)))
