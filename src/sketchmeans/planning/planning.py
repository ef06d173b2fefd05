"""plan: what a fit would do and cost, without it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from sketchmeans.blas import OneBlasThread
from sketchmeans.estimators import KernelEmbedding, KernelKMeans
from sketchmeans.estimators.costs import fit_costs, is_factored
from sketchmeans.estimators.foreseen import Foreseen, foresee, looked_at
from sketchmeans.estimators.memory import parse_bytes
from sketchmeans.estimators.outline import Outline
from sketchmeans.lowrank import METHODS
from sketchmeans.lowrank.exact import forms_matrix, useful_features
from sketchmeans.lowrank.filtered import is_filtered
from sketchmeans.operators import NeighborOperator
from sketchmeans.planning.result import Alternative, FitPlan
from sketchmeans.planning.timing import Timing
from sketchmeans.planning.watch import Stopwatch
from sketchmeans.text import called, human, setting

PATIENCE = 1.0
"""Seconds of measurements after which other ways are no longer timed."""
FEWER = 4
"""Landmarks and anchors are offered so many times fewer."""


def plan(
    X: Any,
    model: Any = 8,
    *,
    sample_weight: Any = None,
    measure: bool = True,
    clock: Callable[[], float] = time.perf_counter,
    **parameters: Any,
) -> FitPlan:
    """Say what a fit would do and what it would cost, and fit nothing.

    Method, passes, kernel entries, distances and memory come from the code that decides in a fit,
    and are those of ``stats_`` afterwards. The time is estimated: parts of the fit are run on a few
    rows of X, for about a second, with the fit's own threads; see docs/planning.md for what is
    known exactly, and what is not.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features), or anything with shape, dtype and rows
        As for ``fit``. Of an array in memory the numbers are looked at once, of a memory map or
        another source some thousand rows: nothing is copied.
    model : int, KernelKMeans or KernelEmbedding
        The number of clusters, or an estimator, which is not fitted and stays as it is.
    sample_weight : array of shape (n_samples,), optional
    measure : bool
        Whether to measure this machine; without, there are no times.
    clock : callable
        What measures time, in seconds.
    **parameters
        Of ``KernelKMeans``, where ``model`` is a number.

    Returns
    -------
    FitPlan
        ``print`` it.

    Raises
    ------
    MemoryError
        If ``memory_limit`` cannot be kept; it says what would be, and the cheapest change.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import KernelKMeans, plan
    >>> X = np.random.default_rng(0).normal(size=(3000, 5))
    >>> found = plan(X, 4, kernel="rbf", n_passes=1)
    >>> found.method, found.passes
    ('one-pass', 1)
    >>> plan(X, KernelKMeans(4, kernel="rbf"), measure=False).passes
    2
    """
    estimator = _estimator(model, parameters)
    watch = Stopwatch(clock)
    with warnings.catch_warnings(), OneBlasThread():  # as a fit has it
        warnings.simplefilter("ignore")  # of small fits: the fit itself will warn
        X = looked_at(estimator, X)  # once, for all that follows
        try:
            seen = foresee(estimator, X, sample_weight)
        except MemoryError as error:
            raise _with_way_out(error, estimator, X, sample_weight) from None
        ways = list(_ways(estimator, X, seen, sample_weight))
        seconds: dict[str, float] = {}
        rates: dict[int, float] = {}
        if measure:
            seconds = Timing(estimator, seen, watch, rates).stages()
        alternatives = [
            _alternative(change, other, there, watch, rates, seconds)
            for change, other, there in ways
        ]
    return _stated(estimator, seen, seconds, alternatives, watch.spent)


def _estimator(model: Any, parameters: dict[str, Any]) -> Any:
    """Return the estimator that is asked for."""
    if isinstance(model, KernelKMeans | KernelEmbedding):
        if parameters:
            name = next(iter(parameters))
            raise TypeError(
                f"{name} cannot be given with an estimator, which has its own. Set it there, or "
                "give the number of clusters in the place of the estimator."
            )
        return model
    if hasattr(model, "fit"):
        raise TypeError(
            f"{type(model).__name__} cannot be planned: give a KernelKMeans, a KernelEmbedding, or "
            "a number of clusters."
        )
    return KernelKMeans(model, **parameters)


def _precision(seen: Foreseen) -> np.dtype:
    """Return the precision that a fit states: of K that is formed, or factored, always float64."""
    operator, n = seen.operator, seen.operator.shape[0]
    if METHODS[seen.decision.method].stops_at_tolerance and operator.data is not None:
        return np.dtype(np.float64) if is_factored(seen) else operator.dtype
    formed = (
        seen.decision.method == "exact"
        and operator.data is not None
        and not isinstance(operator, NeighborOperator)
        and useful_features(operator) is None
        and forms_matrix(n, min(seen.ask.rank, n))
    )
    return np.dtype(np.float64) if formed else operator.dtype


def _stated(
    estimator: Any,
    seen: Foreseen,
    seconds: dict[str, float],
    alternatives: list[Alternative],
    spent: float,
) -> FitPlan:
    data, costs = seen.data, fit_costs(estimator, seen)
    operator = data.operator
    anchors = isinstance(operator, NeighborOperator)
    return FitPlan(
        n_samples=data.X.shape[0],
        n_features=data.X.shape[1],
        n_clusters=getattr(estimator, "n_clusters", None),
        kernel=estimator.kernel if isinstance(estimator.kernel, str) else "a callable",
        method=seen.decision.method,
        why=seen.decision.why,
        precision=str(_precision(seen)),
        rank=seen.ask.rank,
        width=operator.planned_sizes()[1] if anchors else seen.ask.width,
        n_refine=seen.decision.n_refine,
        n_init=seen.decision.n_init,
        n_threads=seen.plan.run.n_threads,
        passes=costs.most.passes,
        passes_at_least=costs.least.passes,
        kernel_entries=costs.most.entries,
        kernel_entries_at_least=costs.least.entries,
        distances=costs.most.distances,
        distances_at_least=costs.least.distances,
        memory=seen.plan.peak,
        memory_by_stage=dict(seen.plan.stages),
        memory_limit=parse_bytes(estimator.memory_limit),
        copied=data.copied,
        seconds_by_stage=seconds,
        alternatives=tuple(sorted(alternatives, key=_cheapest)),
        notes=tuple(_notes(estimator, seen)),
        calibration=spent,
    )


def _cheapest(one: Alternative) -> tuple[bool, float, int]:
    return one.seconds is None, one.seconds or 0.0, one.memory


def _notes(estimator: Any, seen: Foreseen) -> Iterator[str]:
    """Say what the figures do not hold."""
    if getattr(estimator, "certificate", None) not in (None, "free"):
        certificate = setting("certificate", estimator.certificate)
        yield f"the time of the proof, {certificate}, is not in the estimate."
    if seen.ask.tolerance > 0:
        yield (
            f"rank={estimator.rank} is a share of the trace: how many columns hold it, only the "
            "fit can tell. A sketch that holds less is made anew, twice as wide."
        )
    if _iterates(seen):
        yield (
            "how many passes eigenvectors take depends on the spectrum: some tens where it falls "
            "fast, hundreds otherwise. The time is that of the former, or of 300 on a graph."
        )


def _iterates(seen: Foreseen) -> bool:
    """Whether eigenvectors come from iterations, one pass each."""
    operator, rank = seen.operator, seen.ask.rank
    if seen.decision.method != "exact" or isinstance(operator, NeighborOperator):
        return False
    formed = useful_features(operator) or forms_matrix(operator.shape[0], rank)
    return is_filtered(operator, rank) or not formed


def _ways(
    estimator: Any, X: Any, seen: Foreseen, sample_weight: Any
) -> Iterator[tuple[dict[str, Any], Any, Foreseen]]:
    """Yield changes that may be cheaper, with the estimator that has them, and what that does."""
    for change in _changes(estimator, seen):
        other = clone(estimator).set_params(**change)
        try:
            there = foresee(other, X, sample_weight)
        except (ValueError, MemoryError):
            continue  # not for this kernel, or not within the limit
        if _iterates(there):
            continue  # never cheaper
        yield {name: value for name, value in change.items() if value != "auto"}, other, there


def _changes(estimator: Any, seen: Foreseen) -> Iterator[dict[str, Any]]:
    """Yield changes of parameters that may make a fit cheaper."""
    method = seen.decision.method
    if estimator.kernel == "neighbors":
        given = estimator.kernel_params or {}
        yield {"kernel_params": {**given, "n_graphs": 1}}
        operator = seen.operator
        assert isinstance(operator, NeighborOperator)
        fewer = max(operator.planned_sizes()[0] // FEWER, operator.options.n_neighbors)
        yield {"kernel_params": {**given, "n_graphs": 1, "n_anchors": fewer}}
        return
    plain = dict.fromkeys(("n_passes", "oversampling", "n_landmarks", "sketch"), "auto")
    for name in METHODS:
        if name != method:
            yield {"method": name, **plain, "truncation": "late"}
    if method == "one-pass" and seen.decision.n_passes > 1:
        yield {"n_passes": 1}
    if METHODS[method].landmarks:
        fewer = max(seen.ask.width // FEWER, seen.ask.rank)
        if fewer < seen.ask.width and not seen.ask.tolerance:
            yield {"n_landmarks": fewer}
    if seen.decision.n_refine:
        yield {"n_refine": 0}


def _alternative(
    change: dict[str, Any],
    other: Any,
    there: Foreseen,
    watch: Stopwatch,
    rates: dict[int, float],
    known: dict[str, float],
) -> Alternative:
    """Return what another way costs; K-means takes as long as it does in the one that is known."""
    costs, seconds = fit_costs(other, there), None
    if known and watch.spent < PATIENCE:
        seconds = Timing(other, there, watch, rates).total(known)
    return Alternative(
        change={name: value for name, value in change.items() if name != "truncation"},
        method=there.decision.method,
        passes=costs.most.passes,
        kernel_entries=costs.most.entries,
        distances=costs.most.distances,
        memory=there.plan.peak,
        seconds=seconds,
    )


def _with_way_out(error: MemoryError, estimator: Any, X: Any, sample_weight: Any) -> MemoryError:
    """Return the refusal of a memory limit with the cheapest change that keeps it."""
    free = clone(estimator).set_params(memory_limit=None)
    unlimited = foresee(free, X, sample_weight)
    kept = []
    for change in _changes(estimator, unlimited):
        other = clone(estimator).set_params(**change)
        try:
            there = foresee(other, X, sample_weight)
        except (ValueError, MemoryError):
            continue
        costs = fit_costs(other, there).most
        kept.append((costs.entries + costs.distances, there.plan.peak, change))
    if not kept:
        most = human(unlimited.plan.peak)
        # A memory map that is large beside a limit is read in blocks, which take memory of their
        # own; without a limit its pages are the system's, and do not count.
        mapped = isinstance(X, Outline) and X.kind.place == "map" and not unlimited.data.X.spills
        beside = ", beside the pages of the file, which do not count," if mapped else ""
        return MemoryError(
            f"{error} No other method keeps it either. With no limit it takes {most}{beside} on "
            f"{unlimited.plan.run.n_threads} threads."
        )
    entries, peak, change = min(kept, key=lambda one: one[:2])
    given = {name: value for name, value in change.items() if value not in ("auto", "late")}
    asked = Alternative(given, "", 0, entries, 0, peak, None).asked_by
    limit = called("memory_limit")
    return MemoryError(f"{error} The cheapest change that keeps {limit}: {asked}, {human(peak)}.")
