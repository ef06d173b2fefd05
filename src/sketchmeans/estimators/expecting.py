"""What the stages of a fit do, beside each other, known before it starts: for the time left."""

from __future__ import annotations

from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.many_rows import SOME, drawn_rows, starts_on_some, walked_rows
from sketchmeans.lowrank.methods import Method
from sketchmeans.lowrank.request import Request
from sketchmeans.operators import FeatureOperator, KernelOperator, NeighborOperator

ENTRY = 30
"""Multiply-adds that the map of a kernel entry takes as long as, about."""
ITERATIONS = 20
"""Iterations of a start of K-means, about, and multiply-adds of one count so many times over."""
WALKS = 5

Work = dict[str, tuple[float, int]]
"""Multiply-adds of a stage in all, and how often it comes, by its name."""


def expected_work(
    operator: KernelOperator,
    method: Method,
    ask: Request,
    decision: Decision,
    n_clusters: int | None,
) -> Work:
    """Return about what every stage of a fit does; only how they compare with each other counts."""
    n, p = operator.shape[0], max(operator.n_features, 1)
    if isinstance(operator, NeighborOperator):
        anchors = operator.planned_sizes()[1]
        passes, again = 3.0 * n * anchors * p, 0.0
    elif method.landmarks:
        again = float(n * ask.width * (p + ENTRY))
        passes = 2 * again + float(n * ask.width**2)
    else:
        again = _pass(operator, ask.width, p)
        passes = again * decision.n_passes
    work = {"kernel passes": (passes, 1)}
    if n_clusters is None:
        return work
    work["K-means"] = (_starts(n, ask.rank, n_clusters, decision), 1)
    if decision.n_refine:
        work["refine"] = (again * decision.n_refine + n * ask.rank * n_clusters, 1)
    return work


def _pass(operator: KernelOperator, width: int, p: int) -> float:
    n = operator.shape[0]
    if isinstance(operator, FeatureOperator):
        return float(n * operator.map.count * (operator.map.count + 2 * width))
    return n * n / 2 * (p + ENTRY + 2 * width)


def _starts(n: int, rank: int, n_clusters: int, decision: Decision) -> float:
    """Return what the starts of K-means take."""
    one = float(rank * n_clusters * ITERATIONS * ITERATIONS)
    if decision.walks:
        return WALKS * decision.n_init * walked_rows(n, n_clusters) * one
    if drawn_rows(n, n_clusters) is None:
        return decision.n_init * n * one
    return starts_on_some(decision.n_init) * SOME * one + n * one
