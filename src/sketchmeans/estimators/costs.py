"""What a whole fit will spend on a kernel: the method, and everything that follows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sketchmeans.blocks import left_out
from sketchmeans.estimators.foreseen import Foreseen
from sketchmeans.estimators.many_rows import walked_rows
from sketchmeans.lowrank import METHODS, Cost
from sketchmeans.lowrank.costs import Expected, landmark_sampling, planned_anchors
from sketchmeans.lowrank.nystrom import holds_columns
from sketchmeans.operators import (
    FeatureOperator,
    NeighborOperator,
    SparseOperator,
)


def fit_costs(estimator: Any, seen: Foreseen) -> Expected:
    """Return what a fit will spend, with the threads and copies of its plan.

    Exact where the data decide nothing: not how many iterations change labels, how many proposals
    a Cholesky method takes, how many passes a spectrum needs. Rows that are equal, or a kernel that
    is used up, leave less to do.
    """
    operator, ask = seen.operator, replace(seen.ask, run=seen.plan.run)
    total = METHODS[seen.decision.method].costs(operator, ask) + _embedding(seen)
    if estimator._n_clusters is None:
        return total
    rounds = _clustering(estimator, seen)
    total += rounds
    if estimator.tol_certified:  # once more, with the starts that are left, if need be
        total = Expected(total.least, total.most + rounds.most)
    return total


def _embedding(seen: Foreseen) -> Expected:
    """Return what samples of weight zero take, which are embedded as new points."""
    operator, weights = seen.operator, seen.data.weights
    if weights is None:
        return Expected.exactly(Cost())
    if isinstance(operator, NeighborOperator):
        return Expected.exactly(stream_cost(seen))
    apart = left_out(weights)
    if METHODS[seen.decision.method].landmarks:
        return Expected.exactly(Cost(entries=len(apart) * landmark_count(seen)))
    if isinstance(operator, SparseOperator):
        return Expected.exactly(Cost(entries=int(np.diff(operator.K.indptr)[apart].sum())))
    entries = 0 if isinstance(operator, FeatureOperator) else len(apart) * operator.shape[0]
    return Expected.exactly(Cost(entries=entries))


def landmark_count(seen: Foreseen) -> int:
    """Return how many landmarks or pivots there will be."""
    operator, ask = seen.operator, seen.ask
    if seen.decision.method == "nystrom":
        return landmark_sampling(operator, ask)[1]
    return min(ask.width, operator.rank_at_most)


def holds_landmark_columns(seen: Foreseen) -> bool:
    """Whether the kernel of samples and landmarks is held in memory while labels are refined."""
    ask = seen.ask
    rank = 0 if ask.tolerance > 0 else ask.rank
    held = holds_columns(seen.operator.shape[0], landmark_count(seen), rank)
    return held and not is_factored(seen)


def stream_cost(seen: Foreseen) -> Cost:
    """Return what one stream over the features takes: of landmarks, or of anchors."""
    operator = seen.operator
    n = operator.shape[0]
    if isinstance(operator, NeighborOperator):
        m, graphs, _ = planned_anchors(operator)
        return Cost(distances=0 if seen.plan.run.pack else n * m * graphs)
    return Cost(entries=0 if holds_landmark_columns(seen) else n * landmark_count(seen))


def _clustering(estimator: Any, seen: Foreseen) -> Expected:
    """Return what walks, iterations in feature space and the certificate take."""
    operator, decision = seen.operator, seen.decision
    times = decision.n_refine
    by_neighbors = isinstance(operator, NeighborOperator)
    total = Expected.exactly(Cost())
    if decision.walks:
        total += _walks(seen, estimator.n_clusters)
    if not (METHODS[decision.method].landmarks or by_neighbors):
        once = Cost(1, operator.pass_entries)
        if times:
            total += Expected(once, Cost(times, times * once.entries))
        return total
    stream = stream_cost(seen)
    if times:
        diagonal = Cost(entries=operator.diagonal_entries)
        total += Expected(diagonal + _times(stream, 2), diagonal + _times(stream, times + 1))
    elif estimator.certificate is not None and (by_neighbors or not is_factored(seen)):
        total += Expected.exactly(stream)  # sums over the clusters
    return total


def is_factored(seen: Foreseen) -> bool:
    """Whether a Cholesky method holds the factor of all samples, which the certificate reads."""
    ask, n = seen.ask, seen.operator.shape[0]
    if seen.decision.method == "nystrom":
        return False
    return ask.tolerance > 0 or holds_columns(n, min(ask.width, n), ask.rank)


def _times(cost: Cost, count: int) -> Cost:
    return Cost(count * cost.passes, count * cost.entries, distances=count * cost.distances)


def _walks(seen: Foreseen, n_clusters: int) -> Expected:
    """Return what the rows that walks see take, and the labels of the others."""
    operator = seen.operator
    n, stream = operator.shape[0], stream_cost(seen)
    rows = walked_rows(n, n_clusters)
    if rows == n:
        return Expected.exactly(stream)
    # NOTE: a row that is drawn twice is looked at once.
    each = stream.distances // n
    some = Expected(Cost(distances=each * (rows // 2)), Cost(distances=each * rows))
    return some + Expected.exactly(stream)
