"""One trial: a method on a problem with a seed; and many of them, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import joblib
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.comparing import accuracy, measure
from sketchmeans.blas import OneBlasThread
from sketchmeans.estimators import FullKernelKMeans, KernelKMeans
from sketchmeans.estimators.fitted import kernel_of

Report = Callable[[int, int], None]
"""Called with the trials done and the trials in all."""


def silent(done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Problem:
    """Data, a kernel and a number of clusters."""

    name: str
    draw: Callable[[int], tuple[FloatArray, IntArray]]
    """Makes the data and the true labels from a seed; fixed data do not read it."""
    n_clusters: int
    kernel: Mapping[str, Any]
    """The kernel as options of the estimators."""
    max_iter: int
    """Of a start of K-means; there are ten, as in the paper."""


@dataclass(frozen=True)
class Contender:
    """A method under the name that it has in tables and figures."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of ``KernelKMeans``."""
    kind: Literal["sketched", "full", "plain"] = "sketched"
    """"full" is kernel K-means on all of K, "plain" is K-means without a kernel."""
    by_paper: bool = False
    """Whether the paper shows it."""


@dataclass(frozen=True)
class Outcome:
    """What a trial gave."""

    accuracy: float
    nmi: float
    error: float | None = None
    """‖K − K̂‖_F / ‖K‖_F; None where nothing was approximated."""
    numbers: int | None = None
    """Kept per sample; None for methods that need all of K."""
    kept_bytes: int | None = None
    """What that takes for all samples."""


@dataclass(frozen=True)
class Summary:
    """The mean of some trials and their spread."""

    mean: float
    low: float
    """The tenth percentile."""
    high: float
    """The ninetieth."""
    sd: float
    trials: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """Summarise the values of some trials."""
        found = np.fromiter(values, dtype=np.float64)
        low, high = np.percentile(found, [10, 90])
        return cls(
            float(found.mean()), float(low), float(high), float(found.std()), trials=len(found)
        )


@dataclass(frozen=True)
class Row:
    """A contender of an experiment, over all of its trials."""

    method: str
    by_paper: bool
    numbers: int | None
    kept_bytes: int | None
    accuracy: Summary
    nmi: Summary
    error: Summary | None

    @property
    def mean_error(self) -> float:
        """Of a method that approximates K."""
        assert self.error is not None
        return self.error.mean


def row_of(rows: Iterable[Row], method: str) -> Row:
    """Return the row of a method."""
    return next(row for row in rows if row.method == method)


def run_trial(problem: Problem, contender: Contender, seed: int) -> Outcome:
    """Cluster the data of ``seed`` by the contender, and measure its exact error."""
    X, truth = problem.draw(seed)
    if contender.kind == "plain":
        with OneBlasThread():
            plain = KMeans(
                problem.n_clusters, n_init=10, max_iter=problem.max_iter, random_state=seed
            ).fit(X)
        return _outcome(truth, plain.labels_)
    shared = {**problem.kernel, "max_iter": problem.max_iter, "random_state": seed}
    if contender.kind == "full":
        full = FullKernelKMeans(problem.n_clusters, n_init=10, **shared).fit(X)
        return _outcome(truth, full.labels_)
    model = KernelKMeans(problem.n_clusters, n_init=10, **shared, **contender.options)
    model.fit(X)
    error = measure(kernel_of(model, X), model.embedding_, model.labels_)["kernel error"]
    found = _outcome(truth, model.labels_, error)
    if model.method == "exact":
        return found
    return replace(found, numbers=model.width_, kept_bytes=model.stats_["sketch_bytes"])


def _outcome(truth: IntArray, labels: IntArray, error: float | None = None) -> Outcome:
    nmi = float(normalized_mutual_info_score(truth, labels))
    return Outcome(accuracy(truth, labels), nmi, error)


def run(
    problem: Problem,
    contenders: Iterable[Contender],
    *,
    trials: int,
    seed: int,
    report: Report = silent,
) -> list[Row]:
    """Run every contender ``trials`` times, on all cores, and summarise each.

    The seeds of the trials are those of ``seed`` whatever the number of cores, and the trials of
    all contenders share them: where data are drawn, all see the same draws.
    """
    chosen = list(contenders)
    seeds = np.random.default_rng(seed).integers(2**31 - 1, size=trials)
    tasks = [(contender, int(one)) for contender in chosen for one in seeds]
    run_one = joblib.delayed(run_trial)
    outcomes: list[Outcome] = []
    for outcome in joblib.Parallel(n_jobs=-1, return_as="generator")(
        run_one(problem, contender, one) for contender, one in tasks
    ):
        outcomes.append(outcome)
        report(len(outcomes), len(tasks))
    return [
        _summarise(contender, outcomes[first : first + trials])
        for contender, first in zip(chosen, range(0, len(tasks), trials), strict=True)
    ]


def _summarise(contender: Contender, outcomes: list[Outcome]) -> Row:
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    return Row(
        contender.name,
        contender.by_paper,
        outcomes[0].numbers,
        outcomes[0].kept_bytes,
        Summary.of(outcome.accuracy for outcome in outcomes),
        Summary.of(outcome.nmi for outcome in outcomes),
        Summary.of(errors) if errors else None,
    )
