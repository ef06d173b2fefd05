"""Seconds of methods with landmarks: where these are put, streams over their columns, pivots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import centers, rows_for_centers
from sketchmeans.engine import Run
from sketchmeans.estimators.costs import holds_landmark_columns, is_factored, landmark_count
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.landmark_lloyd import refine_by_landmarks
from sketchmeans.lowrank import approximate
from sketchmeans.lowrank.costs import landmark_sampling
from sketchmeans.lowrank.landmarks import SAMPLERS, Draw
from sketchmeans.operators import LandmarkFeatures, LandmarkOperator
from sketchmeans.planning.samples import sample_operator, sample_rows
from sketchmeans.planning.watch import Stopwatch

LARGEST = 750
"""Order up to which a decomposition is timed as it is; beyond, its time grows as the cube."""
PIVOTS, HELD_ROWS = 300, 4000
"""Pivots, and rows of a factor that is held, up to which a Cholesky method is timed as it is."""
DISTANCES = 3e6
"""Distances of an iteration of K-means up to which it is timed as it is."""


def eigen_seconds(order: int, watch: Stopwatch, *, count: int | None = None) -> float:
    """Return what the eigenvectors of a symmetric matrix take on one thread; ``count`` of them."""
    few = min(order, LARGEST)
    A = np.random.default_rng(0).normal(size=(few, few))
    A += A.T

    def decompose() -> None:
        with OneBlasThread():
            if count is None or count >= few:
                np.linalg.eigh(A)
            else:
                linalg.eigh(A, subset_by_index=[few - count, few - 1])

    return watch.time(decompose) * (order / few) ** 3


@dataclass
class LandmarkTimes:
    """What landmarks take on this machine, for one fit."""

    seen: Foreseen
    watch: Stopwatch
    _holding: float = 0.0
    """What it took to make the columns that are held."""

    @property
    def run(self) -> Run:
        """How it is run."""
        return self.seen.plan.run

    @cached_property
    def count(self) -> int:
        """Landmarks."""
        return landmark_count(self.seen)

    def finding(self) -> float:
        """Return what it takes to find the landmarks, or the pivots."""
        operator, ask, n = self.seen.operator, self.seen.ask, self.seen.operator.shape[0]
        if self.seen.decision.method != "nystrom":
            return self._pivoting()
        sampling, m = landmark_sampling(operator, ask)
        if sampling in ("uniform", "diagonal"):
            return 0.0
        if sampling == "kmeans":
            rows = min(n, rows_for_centers(m))
            less = max(1.0, np.sqrt(rows * m / DISTANCES))
            few, count = int(rows / less), max(int(m / less), 2)
            X = sample_rows(operator, few)
            if X.shape[0] <= count:
                return 0.0
            return self.watch.once(lambda: centers(X, None, count, 0)) * (rows * m) / (few * count)
        some = sample_operator(operator, max(4 * m, 2048))
        draw = Draw(
            some, some.diagonal(), min(m, some.shape[0]), np.random.default_rng(0), self.run
        )
        seconds = self.watch.time(lambda: SAMPLERS[sampling](draw))
        if sampling == "column-norm":
            return seconds * operator.tile_entries / some.tile_entries
        return seconds * n / some.shape[0]

    def _pivoting(self) -> float:
        """Return what a Cholesky method takes beside streams: all of it where it holds F."""
        operator, ask, n = self.seen.operator, self.seen.ask, self.seen.operator.shape[0]
        m = self.count
        streams = not is_factored(self.seen)
        rows = min(n, rows_for_centers(m)) if streams else n
        # Where pivots come from some rows a column, rows and columns are cut alike.
        count = max(min(m, PIVOTS), 1)
        few = max(rows * count // m, 1000) if streams else min(rows, HELD_ROWS)
        some = sample_operator(operator, few)
        held = replace(ask, rank=count, width=count, tolerance=0.0, run=self.run)
        name = self.seen.decision.method
        seconds = self.watch.once(lambda: approximate(some, name, held))
        return seconds * (rows * m**1.5) / (some.shape[0] * count**1.5)

    @cached_property
    def _features(self) -> LandmarkOperator:
        """Columns of some samples with as many landmarks as the fit has."""
        operator, m = self.seen.operator, self.count
        block = operator.rows_at_once(m)
        some = sample_operator(operator, 2 * self.run.n_threads * block)
        if operator.data is None:
            kernel = some.landmarks(np.arange(m) % some.shape[0], fine=False)
        else:
            points = sample_rows(operator, m, 1)
            kernel, m = some.landmarks_at(points, fine=False), points.shape[0]
        rank = min(m, operator.rank_at_most)
        T = np.random.default_rng(0).normal(size=(m, rank)) / m
        features = LandmarkOperator(some, LandmarkFeatures(kernel, T, block))
        if holds_landmark_columns(self.seen):
            self._holding = self.watch.once(lambda: features.hold(self.run))
        return features

    @property
    def _times_more(self) -> float:
        """How many times the rows of the data are those that were timed."""
        return self.seen.operator.shape[0] / self._features.shape[0]

    def recovering(self) -> float:
        """Return what the streams over the columns take, and the decompositions between them."""
        features, watch = self._features, self.watch
        m, count, rank = features.map.entries, features.map.count, self.seen.ask.rank
        near, right = np.zeros(count), np.eye(count, min(rank, count))
        with OneBlasThread():
            streams = watch.time(lambda: features.gram(near, self.run))
            streams += watch.time(lambda: features.product(right, self.run))
        streams += self._holding
        # The eigenvectors of the landmarks' kernel and of FᵀF, and eigenvalues of this once more.
        small = eigen_seconds(m, watch) + 1.4 * eigen_seconds(count, watch)
        return streams * self._times_more + small

    def stream(self, n_clusters: int) -> float:
        """Return what a stream takes that assigns labels and sums up over clusters."""
        features = self._features
        labels = (np.arange(features.shape[0]) % n_clusters).astype(np.int32)
        diagonal = np.ones(features.shape[0])

        def iterate() -> None:
            refine_by_landmarks(
                features, labels, n_clusters, n_iter=1, diagonal=diagonal, run=self.run
            )

        with OneBlasThread():
            return self.watch.time(iterate) / 2 * self._times_more
