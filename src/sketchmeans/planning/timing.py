"""Seconds of every stage of a fit: what was timed on a few rows, times how much more there is.

Everything is timed with the code of the fit, on rows of the data, with the threads of its plan and
beside whatever else the machine does. What is left is how each part grows: passes with the entries
of K, streams with the rows, decompositions with the cube of their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sketchmeans.engine import Run
from sketchmeans.estimators.costs import is_factored
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.sizing import work_of
from sketchmeans.lowrank import METHODS, approximate
from sketchmeans.lowrank.exact import forms_matrix, useful_features
from sketchmeans.lowrank.filtered import block_width, is_filtered
from sketchmeans.operators import NeighborOperator
from sketchmeans.planning.anchors import AnchorTimes
from sketchmeans.planning.clustering import Clustering
from sketchmeans.planning.landmarks import LandmarkTimes, eigen_seconds
from sketchmeans.planning.samples import sample_operator, sample_rows
from sketchmeans.planning.watch import Stopwatch

SHORTEST, LONGEST = 2048, 24_576
"""Samples of the pass that is timed, which grows until it takes long enough."""
LONG_ENOUGH = 0.06
ROWS = 4096
"""Rows of what is linear in them."""
LIKELY, CLEARLY = 0.8, 0.5
"""Share of the iterations that are allowed which are likely made before no label changes; where
clusters are clear, fewer (``python -m benchmarks.plans --stages``)."""
GRAPH_PASSES = 300
"""Passes that the eigenvectors of most graphs take."""


@dataclass
class Timing:
    """The seconds of one fit by stages, each timed when it is first asked for."""

    model: Any
    seen: Foreseen
    watch: Stopwatch
    rates: dict[int, float] = field(default_factory=dict)
    """Seconds of a pass by its width: what other fits to the same kernel know already."""

    @property
    def run(self) -> Run:
        """How it is run."""
        return self.seen.plan.run

    @cached_property
    def _landmarks(self) -> LandmarkTimes:
        return LandmarkTimes(self.seen, self.watch)

    @cached_property
    def _anchors(self) -> AnchorTimes:
        return AnchorTimes(self.seen, self.watch)

    def stages(self, clustering: float | None = None) -> dict[str, float]:
        """Return the seconds of each stage, by the names that ``stats_["seconds"]`` has.

        ``clustering`` is what K-means takes, where that is known.
        """
        method, operator = METHODS[self.seen.decision.method], self.seen.operator
        found = {"prepare": self._preparing()}
        if isinstance(operator, NeighborOperator):
            found["kernel passes"] = self._anchors.decomposing()
        elif method.landmarks:
            found["kernel passes"] = self._by_landmarks()
        elif self.seen.decision.method == "one-pass":
            passes = self.seen.ask.n_passes * self.pass_seconds(self.seen.ask.width)
            found |= {"kernel passes": passes, "recover": self._recovering()}
        else:
            found["kernel passes"] = self._exact()
        if hasattr(self.model, "n_clusters"):
            found |= self._clustering(clustering)
        return found

    def total(self, known: dict[str, float]) -> float:
        """Return the seconds of the whole fit, of which those of K-means are known already."""
        found = self.stages(known.get("K-means"))
        return sum(found.values())

    def pass_seconds(self, width: int) -> float:
        """Return what a pass over the kernel takes with a matrix of so many columns."""
        if width not in self.rates:
            self.rates[width] = self._time_pass(width)
        return self.rates[width]

    def _time_pass(self, width: int) -> float:
        operator, size = self.seen.operator, SHORTEST
        whole = work_of(operator, 1)[0]
        while True:
            some = sample_operator(operator, size)
            right = np.random.default_rng(0).normal(size=(some.shape[0], width))
            right = right.astype(operator.dtype)
            seconds = self.watch.time(partial(some.multiply, right, self.run))
            done = some.shape[0] < size or size >= min(LONGEST, operator.shape[0])
            if done or seconds > LONG_ENOUGH:
                return seconds * whole / work_of(some, 1)[0]
            size = min(LONGEST, int(size * min(4.0, 1.2 * np.sqrt(LONG_ENOUGH / seconds) + 0.5)))

    def _preparing(self) -> float:
        """Return what the checks take: a few looks at every number, and a copy."""
        if self.seen.operator.data is None:
            return 0.01
        rows = sample_rows(self.seen.operator, ROWS)
        values = getattr(rows, "data", rows) if hasattr(rows, "indptr") else rows
        look = self.watch.time(lambda: np.square(values, dtype=np.float64).sum())
        return 0.01 + 3 * look * self.seen.operator.shape[0] / rows.shape[0]

    def _recovering(self) -> float:
        """Return what follows the passes of a sketch."""
        some = sample_operator(self.seen.operator, ROWS)
        rank = min(self.seen.ask.rank, some.shape[0])
        width = min(self.seen.ask.width, some.shape[0])
        ask = replace(self.seen.ask, rank=rank, width=width, tolerance=0.0, run=self.run)
        own = 0.0

        def sketch() -> None:
            nonlocal own
            own = approximate(some, "one-pass", ask).cost.seconds

        rest = max(self.watch.once(sketch) - own, 0.0)
        return rest * self.seen.operator.shape[0] / some.shape[0]

    def _by_landmarks(self) -> float:
        times = self._landmarks
        return times.finding() + (0.0 if is_factored(self.seen) else times.recovering())

    def _exact(self) -> float:
        """Return what eigenvectors of K take; how many passes is a guess where there are passes."""
        operator, rank = self.seen.operator, self.seen.ask.rank
        n = operator.shape[0]
        if is_filtered(operator, rank):
            return GRAPH_PASSES * self.pass_seconds(block_width(rank))
        if features := useful_features(operator):
            some = sample_operator(operator, max(ROWS, 2 * features.map.count))
            ask = replace(self.seen.ask, rank=rank, run=self.run)
            seconds = self.watch.time(lambda: approximate(some, "exact", ask))
            return seconds * n / some.shape[0]
        if forms_matrix(n, rank):
            some = sample_operator(operator, 512)
            seconds = self.watch.time(lambda: some.columns(np.arange(some.shape[0]), self.run))
            eigen = eigen_seconds(n, self.watch, count=rank) + 0.8 * eigen_seconds(
                n, self.watch, count=1
            )
            return seconds * (n / some.shape[0]) ** 2 + eigen
        basis = min(n, max(2 * rank + 1, 20))
        return (1 + 1.5 * basis) * self.pass_seconds(1)

    def _clustering(self, known: float | None) -> dict[str, float]:
        """Return the seconds of K-means and what follows it."""
        k, decision = self.model.n_clusters, self.seen.decision
        by_neighbors = isinstance(self.seen.operator, NeighborOperator)
        times = self._anchors if by_neighbors else self._landmarks
        streams = by_neighbors or METHODS[decision.method].landmarks
        stream = times.stream(k) if streams else self.pass_seconds(k) if decision.n_refine else 0.0
        clustering = Clustering(self.model, self.seen, self.watch)
        found = {"K-means": clustering.seconds(stream) if known is None else known}
        if decision.n_refine:
            likely = CLEARLY if clustering.is_clear else LIKELY
            found["refine"] = likely * (decision.n_refine + streams) * stream
        if self.model.certificate is None:
            return found
        if streams:
            return found | {"certify": 0.01 if decision.n_refine else stream}
        return found | {"certify": clustering.certifying() if known is None else 0.0}
