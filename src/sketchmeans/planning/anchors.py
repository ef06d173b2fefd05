"""Seconds of the neighbours kernel: anchors, the nearest of them, the matrix that is decomposed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import rows_for_centers
from sketchmeans.engine import Run
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.landmark_lloyd import refine_by_landmarks
from sketchmeans.lowrank.sparse_features import SEEN_BEYOND
from sketchmeans.operators import NeighborOperator
from sketchmeans.operators.anchors import Anchors, Frame, find_anchors
from sketchmeans.operators.neighbor_features import NeighborFeatures, regular_csr
from sketchmeans.planning.landmarks import eigen_seconds
from sketchmeans.planning.samples import sample_rows
from sketchmeans.planning.watch import Stopwatch

ROWS, FEW = 16_384, 256
"""Rows whose nearest anchors are looked for; and so few that what they take grows with no rows."""


@dataclass
class AnchorTimes:
    """What the neighbours kernel takes on this machine, for one fit."""

    seen: Foreseen
    watch: Stopwatch
    _placing: float = 0.0

    @property
    def _planned(self) -> NeighborOperator:
        operator = self.seen.operator
        assert isinstance(operator, NeighborOperator)
        return operator

    @property
    def run(self) -> Run:
        """How it is run."""
        return self.seen.plan.run

    @cached_property
    def _anchors(self) -> Anchors:
        """One set of anchors, found as the fit finds them."""
        operator = self._planned
        m = operator.planned_sizes()[0]
        X = sample_rows(operator, min(operator.shape[0], rows_for_centers(m)))
        frame = Frame.of(X, operator.options.metric)
        found: list[Anchors] = []

        def place() -> None:
            with OneBlasThread():
                placed = find_anchors(X, frame, np.arange(X.shape[0]), None, m, 0)
            found.append(Anchors(placed.points, min(operator.options.n_neighbors, m)))

        self._placing = self.watch.once(place)
        return found[0]

    @cached_property
    def _some(self) -> NeighborOperator:
        """Some samples with their kernel."""
        return self._samples(ROWS)

    def _samples(self, count: int) -> NeighborOperator:
        """Return samples with as many sets of anchors as the fit has: one set so many times."""
        operator, anchors = self._planned, self._anchors
        rows = sample_rows(operator, min(operator.shape[0], count))
        some = NeighborOperator(rows, operator.options)
        graphs = [anchors] * operator.options.graphs
        frame = Frame.of(rows, operator.options.metric)
        some.map = NeighborFeatures(frame, graphs, [np.ones(len(anchors))] * len(graphs))
        return some

    @cached_property
    def _search(self) -> float:
        """What it takes to find the nearest anchors of the samples that are timed."""
        some = self._some
        one = np.zeros((some.map.count, 1))
        with OneBlasThread():
            seconds = self.watch.time(lambda: some.product(one, self.run))
        columns = some.anchors_of(slice(0, some.shape[0]))
        if self.run.pack:  # what follows finds them in memory
            some.held = regular_csr(columns, some.map.scales[columns], some.map.count)
            some.holds = True
        return seconds

    @property
    def _times_more(self) -> float:
        return self._planned.shape[0] / self._some.shape[0]

    def decomposing(self) -> float:
        """Return what it takes from the data to the embedding."""
        some, watch = self._some, self.watch
        order = min(self._planned.shape[0], some.map.count)
        placing = self._placing * len(some.map.graphs)
        seconds = self._search
        right = np.zeros((some.map.count, self.seen.ask.rank))
        with OneBlasThread():
            seconds += watch.time(lambda: some.product(right, self.run))
            seconds += watch.time(lambda: some.gram_of_features(self.run))
            # A matrix of the order is made and scaled however few rows there are.
            few = self._samples(FEW)
            made = min(watch.time(lambda: few.gram_of_features(self.run)), seconds)
        eigen = eigen_seconds(order, watch, count=self.seen.ask.rank + SEEN_BEYOND)
        return placing + made + (seconds - made) * self._times_more + eigen

    def stream(self, n_clusters: int) -> float:
        """Return what a stream takes that assigns labels and sums up over clusters."""
        some = self._some
        assert self._search >= 0
        labels = (np.arange(some.shape[0]) % n_clusters).astype(np.int32)
        diagonal = np.ones(some.shape[0])

        def iterate() -> None:
            refine_by_landmarks(some, labels, n_clusters, n_iter=1, diagonal=diagonal, run=self.run)

        with OneBlasThread():
            return self.watch.time(iterate) / 2 * self._times_more
