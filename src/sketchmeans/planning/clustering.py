"""Seconds of K-means: a few starts on an embedding of some rows, as the fit would make it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans

from sketchmeans.estimators import KernelKMeans
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.kmeans import starts_of
from sketchmeans.estimators.many_rows import (
    FEW,
    TRIED,
    drawn_rows,
    grid,
    starts_on_some,
    step,
    walked_rows,
)
from sketchmeans.operators import (
    NeighborOperator,
    PrecomputedOperator,
    SparseOperator,
)
from sketchmeans.planning.samples import sample_operator
from sketchmeans.planning.watch import Stopwatch

ROWS, ROWS_OF_WALKS = 4000, 5000
"""Rows that are embedded to be clustered; of walks as many as they see."""
STARTS, QUICK = 6, 0.2
"""Starts that are timed, and the seconds up to which two are timed on more rows."""
MANY = 20_000
"""Rows that K-means is timed on, at the most, where it is quick."""
LONGER, CLEAR = 0.15, 15
"""Iterations of K-means grow as this power of the rows, unless there are so few of them that the
clusters are clear: ``python -m benchmarks.plans --stages``."""


@dataclass
class Clustering:
    """What K-means takes on this machine, for one fit."""

    model: Any
    seen: Foreseen
    watch: Stopwatch
    is_clear: bool = False
    """Whether starts end so soon that the clusters are clear; known once they were timed."""

    @cached_property
    def _small(self) -> KernelKMeans:
        """The model, fitted to some of the rows with few starts."""
        operator = self.seen.operator
        rows = min(operator.shape[0], ROWS_OF_WALKS if self.seen.decision.walks else ROWS)
        some = sample_operator(operator, rows)
        X = some.K if isinstance(some, PrecomputedOperator | SparseOperator) else some.data
        changes: dict[str, Any] = {
            "n_init": self.starts,
            "n_refine": self.seen.decision.n_refine if self.seen.decision.walks else 0,
            "memory_limit": None,
            "verbose": 0,
            "tol_certified": 0.0,
            "random_state": 0,
            "max_iter": self.model.max_iter,
        }
        if self.model.certificate is not None:
            changes["certificate"] = "free"
        if isinstance(operator, NeighborOperator):
            changes["kernel_params"] = {**(self.model.kernel_params or {}), "n_graphs": 1}
        else:
            changes |= {"rank": min(self.seen.ask.rank, X.shape[0] // 4)}
            changes |= {"method": "auto", "n_landmarks": "auto", "sketch": "auto"}
            changes |= {"oversampling": "auto", "truncation": "late", "n_passes": 1}
        if self.seen.data.gamma is not None:
            changes["gamma"] = self.seen.data.gamma
        small: KernelKMeans = clone(self.model).set_params(**changes)
        self.watch.once(lambda: small.fit(X))
        return small

    @property
    def starts(self) -> int:
        """Starts that are timed."""
        return min(self.seen.decision.n_init, max(2, self.seen.plan.n_starts))

    def certifying(self) -> float:
        """Return what the free certificate takes, which reads the embedding once."""
        small = self._small
        seconds: float = small.stats_["seconds"]["certify"]
        return seconds * self.seen.operator.shape[0] / len(small.labels_)

    def seconds(self, stream: float = 0.0) -> float:
        """Return what K-means takes; ``stream`` is what labels of all samples take after walks."""
        seen, small = self.seen, self._small
        n, k = seen.operator.shape[0], self.model.n_clusters
        n_init, rows = seen.decision.n_init, len(small.labels_)
        if seen.decision.walks:
            some = walked_rows(n, k)
            own: float = small.stats_["seconds"]["K-means"]
            return own * n_init / self.starts * some / rows + (stream if some < n else 0.0)
        Y = small.embedding_
        model = KMeans(k, max_iter=self.model.max_iter, tol=self.model.tol)
        drawn = drawn_rows(n, k)
        some, count = (n, n_init) if drawn is None else (drawn, starts_on_some(n_init))
        seconds, found = self._start(model, Y, some)
        iterations = float(np.mean([one.n_iter_ for one in found]))
        self.is_clear = iterations <= CLEAR
        longer = 0.0 if self.is_clear else LONGER
        total = seconds * count * (some / rows) ** longer
        if drawn is not None:
            block = grid(n, k, Y.shape[1])[0].stop
            many = np.resize(Y, (block, Y.shape[1]))
            middle, centers = Y.mean(axis=0), found[0].cluster_centers_
            one = self.watch.time(
                partial(step, many, None, centers=centers - middle, middle=middle)
            )
            times = FEW * TRIED + min(iterations, self.model.max_iter)
            total += one * n / block * times / seen.plan.run.n_threads
        return total

    def _start(self, model: KMeans, Y: Any, rows: int) -> tuple[float, list[KMeans]]:
        """Return the seconds of a start on so many rows, if it iterates as on those of Y."""
        found: list[KMeans] = []

        def start(Y: Any, count: int) -> None:
            found[:] = starts_of(model, range(count), Y, None, self.seen.plan.n_starts)

        count = min(self.seen.decision.n_init, STARTS)
        seconds = self.watch.once(partial(start, Y, count))
        few, many = list(found), min(rows, MANY)
        if seconds > QUICK or many < 2 * len(Y):
            return seconds / count * rows / len(Y), few
        # What a start takes beside its iterations would count too often: some starts on the same
        # rows again and again tell the two apart.
        again = self.watch.once(partial(start, np.resize(Y, (many, Y.shape[1])), self.starts))
        iterations = sum(one.n_iter_ for one in few), sum(one.n_iter_ for one in found)
        parts = np.array([[count, len(Y) * iterations[0]], [self.starts, many * iterations[1]]])
        own, each = np.linalg.solve(parts, [seconds, again]) if np.linalg.det(parts) else (0.0, 0.0)
        if own < 0 or each <= 0:
            own, each = 0.0, again / parts[1, 1]
        return float(own + each * rows * iterations[0] / count), few
