"""What ``method="auto"`` takes, and the other options that wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sketchmeans.estimators.many_rows import SOME
from sketchmeans.estimators.sizing import auto_landmarks, auto_rank
from sketchmeans.lowrank import METHODS
from sketchmeans.operators import (
    FeatureOperator,
    KernelOperator,
    NeighborOperator,
    PrecomputedOperator,
    SparseOperator,
)
from sketchmeans.text import setting

REFINEMENTS = 5
"""What n_refine="auto" is with landmarks, or with neighbours: see docs/defaults.md."""
STARTS, MOST_STARTS, START_COST = 10, 30, 6e7
"""n_init="auto" is the first; with landmarks it is as often as n · K · (K + 10) goes into the cost,
up to the second. After refinement in landmark space, what separates a fit from the best known is
mostly the start that K-means took: ``python -m benchmarks.landmark_quality --choices``."""


@dataclass(frozen=True)
class Decision:
    """How a fit goes about it."""

    method: str
    why: str
    n_passes: int
    n_refine: int
    n_init: int
    walks: bool = False
    """Whether K-means starts from walks of several lengths; of each, ``n_init`` times."""


def hinted_method(estimator: Any) -> str | None:
    """Return the method that options of an estimator with method="auto" belong to, if any.

    Refuse two that belong to different ones.
    """
    found: dict[str, str] = {}
    for name, method in (
        ("n_passes", "one-pass"),
        ("oversampling", "one-pass"),
        ("n_landmarks", "nystrom"),
    ):
        value = getattr(estimator, name)
        if value != "auto":
            found[method] = setting(name, value)
    for method in ("one-pass", "nystrom"):
        if estimator.sketch in METHODS[method].sketches:
            found[method] = setting("sketch", estimator.sketch)
    if len(found) > 1:
        raise ValueError(
            f'{found["one-pass"]} belongs to method="one-pass" and {found["nystrom"]} to '
            'method="nystrom": no method reads both. Leave one of them out.'
        )
    return next(iter(found), None)


def decide(estimator: Any, operator: KernelOperator | None) -> Decision:
    """Return what a fit of this estimator to this kernel does; None stands for a stream."""
    method, why = estimator.method, "as asked"
    if method == "auto":
        method, why = _chosen(estimator, operator)
    passes = estimator.n_passes
    if passes == "auto":
        passes = 2 if estimator.method == "auto" and operator is not None else 1
    refine, starts = getattr(estimator, "n_refine", 0), getattr(estimator, "n_init", 1)
    landmarks = METHODS[method].landmarks or isinstance(operator, NeighborOperator)
    if refine == "auto":
        refine = REFINEMENTS if landmarks else 0
    # NOTE: labels of a walk are none of the embedding, so that predict needs those refined.
    walks = isinstance(operator, NeighborOperator) and estimator.rank == "auto" and refine > 0
    if starts == "auto":
        starts = STARTS
        if landmarks and operator is not None and not walks:
            n, k = min(operator.shape[0], SOME), estimator._n_clusters
            cheap = int(START_COST / (n * k * (k + 10)))
            starts = min(max(cheap, STARTS), MOST_STARTS)
    return Decision(method, why, int(passes), int(refine), int(starts), walks)


def _chosen(estimator: Any, operator: KernelOperator | None) -> tuple[str, str]:
    """Return the method, and a reason in words."""
    if operator is None:
        return "one-pass", "a stream is met once"
    if isinstance(operator, NeighborOperator):
        return "exact", "the features of this kernel are sparse, and its eigenvectors linear in n"
    if hint := hinted_method(estimator):
        return hint, "an option that belongs to it was given"
    if isinstance(operator, SparseOperator):
        return (
            "exact",
            "clusters of a graph are in its eigenvectors, and passes cost what it stores",
        )
    if isinstance(operator, PrecomputedOperator):
        return "one-pass", "each entry of a given matrix is read once a pass"
    if isinstance(operator, FeatureOperator):
        return "one-pass", "the kernel has a finite feature map"
    if operator.is_psd is False:
        return "one-pass", "the kernel is not positive semidefinite"
    n, clusters = operator.shape[0], estimator._n_clusters
    if prefers_landmarks(n, operator.n_features, clusters):
        return "nystrom", "it is linear in n, and cheaper than two passes for so many samples"
    return "one-pass", "two passes are cheaper than landmarks for so few samples"


def prefers_landmarks(n: int, n_features: int, n_clusters: int | None) -> bool:
    """Whether landmarks and their refinements take less time than two passes over K.

    Both sides count what a sample costs in multiply-adds of a pass: products and entries of two
    passes; the Gram matrix, the streams, and what does not grow with n, spread over the samples.
    ``python -m benchmarks.method_switch`` measures both ways and the rule.
    """
    rank = auto_rank(n_clusters, n)
    m = auto_landmarks(n_clusters, rank, n)
    passes = n * (n_features + 20 + 4 * rank)
    streams = m * (3 * m + (3 + REFINEMENTS) * (n_features + 40)) + 4e9 / n
    return passes > streams


def refuse_elsewhere(estimator: Any, decision: Decision, operator: KernelOperator) -> None:
    """Refuse what needs the samples, or whole columns of K, in one place."""
    for name, value, unfit, instead in (
        ("method", decision.method, ("exact",), '"one-pass" or "nystrom"'),
        ("sketch", estimator.sketch, ("leverage", "column-norm"), '"auto"'),
    ):
        if value in unfit and not isinstance(operator, NeighborOperator):
            raise ValueError(
                f"{setting(name, value)} is not offered on a cluster: it needs whole columns of "
                f"the kernel in one place. Choose {instead}, or fit on one machine."
            )
