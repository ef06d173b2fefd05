"""Seconds of K-means: a few starts on an embedding of some rows, as the fit would make it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans

from sketchmeans.centers import without_warnings_of_starts
from sketchmeans.estimators import KernelKMeans
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.kmeans import BestStart, starts_of
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
    CallableOperator,
    NeighborOperator,
    PrecomputedOperator,
    SparseOperator,
)
from sketchmeans.planning.samples import sample_operator, sample_rows
from sketchmeans.planning.watch import Stopwatch

ROWS, ROWS_OF_WALKS = 4000, 5000
"""Rows that the model is fitted to; of walks as many as they see."""
MANY = 20_000
"""Rows that are embedded to be clustered, at the most: as many as the starts of a large fit see."""
STARTS, FEWEST, SPENT = 6, 2, 0.6
"""Starts that are timed at the most and at the least; between them, those that so many seconds
have room for."""
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
        model = KMeans(k, max_iter=self.model.max_iter, tol=self.model.tol)
        drawn = drawn_rows(n, k)
        some, count = (n, n_init) if drawn is None else (drawn, starts_on_some(n_init))
        Y = self._embedded(min(some, MANY))
        seconds, found = self._start(model, Y)
        self.is_clear = float(np.mean([one.n_iter_ for one in found])) <= CLEAR
        longer = 0.0 if self.is_clear else LONGER
        total = seconds * count * (some / len(Y)) ** (1 + longer)
        if drawn is not None:
            total += self._over_all(model, Y, found) * n / seen.plan.run.n_threads
        return total

    def _embedded(self, count: int) -> Any:
        """Return the embedding of so many rows, most of them new to the model that embeds them.

        Of fewer where there are no more, or where somebody's own function would take long.
        """
        small, operator = self._small, self.seen.operator
        given = operator.data is None or isinstance(operator, CallableOperator)
        if given or count <= len(small.labels_):
            return small.embedding_[:count]
        return small.transform(sample_rows(operator, count, 1))

    def _start(self, model: KMeans, Y: Any) -> tuple[float, list[BestStart]]:
        """Return the seconds of a start on these rows, and what some starts found."""
        side_by_side = self.seen.plan.n_starts
        found: list[BestStart] = []

        def start(seeds: range) -> None:
            found.extend(starts_of(model, seeds, Y, None, side_by_side))

        seconds, most = 0.0, min(self.seen.decision.n_init, STARTS)
        while len(found) < most and (len(found) < FEWEST or seconds < SPENT):
            seeds = range(len(found), min(len(found) + max(side_by_side, FEWEST), most))
            seconds += self.watch.once(partial(start, seeds))
        return seconds / len(found), sorted(found, key=lambda one: one.inertia_)

    def _over_all(self, model: KMeans, Y: Any, found: list[BestStart]) -> float:
        """Return what a row takes, on one thread, where the best starts go on over all rows.

        How many iterations that is, starts tell that go on from few rows to those of Y.
        """
        few, k = Y[: len(Y) // 5], model.n_clusters
        rule = {"n_init": 1, "max_iter": model.max_iter, "tol": model.tol}
        iterations = []
        with without_warnings_of_starts():
            for one in found[:FEW]:
                centers = one.cluster_centers_
                for rows in (few, Y):
                    again = KMeans(k, init=centers, **rule)
                    self.watch.once(partial(again.fit, rows))
                    centers = again.cluster_centers_
                iterations.append(again.n_iter_)
        tried, whole = np.minimum(iterations, TRIED).mean(), np.mean(iterations)
        times = FEW * tried + whole - tried
        block = grid(len(Y), k, Y.shape[1])[0].stop
        middle, centers = Y.mean(axis=0), found[0].cluster_centers_
        each = self.watch.time(
            partial(step, Y[:block], None, centers=centers - middle, middle=middle)
        )
        return each / block * times
