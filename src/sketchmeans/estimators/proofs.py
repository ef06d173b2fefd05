"""Proofs of fits: what they take, and what a fit learns from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import BLOCK, masses, row_blocks
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.above import LANDMARKS
from sketchmeans.certificate.blockwise import (
    BLOCK_SIZE,
    ONE_BLOCK,
    Bound,
    block_bytes,
    size_for,
)
from sketchmeans.certificate.certifying import Wanted, certificate_for
from sketchmeans.certificate.cut import cut_certificate
from sketchmeans.certificate.joining import with_best_of
from sketchmeans.certificate.objective import cluster_sums
from sketchmeans.certificate.proven import (
    Proving,
    cut_of,
    objective_known,
    proven_certificate,
    with_bound,
)
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.checks import check_choice, check_number
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.lloyd import Refined
from sketchmeans.estimators.memory import (
    OVERHEAD,
    Budget,
    Plan,
    choose,
    parse_bytes,
    refining_bytes,
)
from sketchmeans.estimators.rounding import MOST_ROUNDED, rounded
from sketchmeans.lowrank.methods import METHODS, Method
from sketchmeans.lowrank.request import Request
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import DataOperator, FeatureMapOperator, KernelOperator, NeighborOperator
from sketchmeans.operators.streams import span_rows
from sketchmeans.rows import Part, Rows, TreeSum, is_sparse
from sketchmeans.text import called, human, setting


@dataclass(frozen=True)
class Proved:
    """What was proved of the labels of a fit."""

    certificate: Certificate
    bound: Bound | None = None
    """On the best possible: it holds for other labels, too."""
    better: Refined | None = None
    """Labels that the proof led to, if they are better."""


@dataclass(frozen=True)
class Clustered:
    """What some starts of K-means came to."""

    start: Any
    """The best of them, a fitted K-means."""
    steps: Any
    """Of the walk before it."""
    labels: IntArray
    refined: Any
    """What iterations in feature space left behind; None if there were none."""
    certificate: Certificate
    bound: Bound | None
    embedded: Embedded

    n_starts: int | None = None
    """Starts that were made, where a proof could end them."""

    def or_better(self, other: Clustered) -> Clustered:
        """Return the one with the lower objective; the bound on the best possible is kept."""
        bound = self.bound or other.bound
        ours, theirs = self.certificate.objective_upper, other.certificate.objective_upper
        better = theirs is not None and (ours is None or theirs < ours)
        return replace(other if better else self, bound=bound)


def until_proved(
    cluster: Callable[..., Clustered], embedded: Embedded, tolerance: float
) -> Clustered:
    """Make starts until one is proved to be near enough; the best possible is bounded once.

    A look at the labels costs a kernel matrix up to ``ONE_BLOCK`` samples, and there is one after
    each start; beyond it costs a pass, more than a start, and is made after 1, 3, 7, 15 of them.

    Parameters
    ----------
    cluster : callable
        Takes an embedding with the starts that are decided for, and ``before``, what is known.
    embedded : Embedded
    tolerance : float
        The relative gap that is near enough.
    """
    decision, best = embedded.decision, None
    made, count = 0, 1
    while made < decision.n_init:
        count = min(count, decision.n_init - made)
        few = replace(embedded, decision=replace(decision, n_init=count))
        found = cluster(few, before=best)
        made, embedded = made + count, found.embedded
        best = found if best is None else best.or_better(found)
        gap = best.certificate.relative_gap
        if gap is not None and gap <= tolerance:
            break
        if gap is None:
            count = decision.n_init  # no start will show one
        elif len(embedded.embedding) > ONE_BLOCK:
            count *= 2
    assert best is not None
    return replace(best, embedded=replace(embedded, decision=decision), n_starts=made)


def check_proof(estimator: Any) -> None:
    """Refuse a certificate that is not known, and a tolerance that nothing would read."""
    if estimator.certificate is not None:
        check_choice("certificate", estimator.certificate, LEVELS)
    check_number("tol_certified", estimator.tol_certified, least=0.0)
    if estimator.tol_certified and not proves(estimator):
        raise ValueError(
            f"tol_certified={estimator.tol_certified} needs a proof to end early by. Add "
            'certificate="lifted", or leave tol_certified at its default, 0.0.'
        )


def proves(estimator: Any) -> bool:
    """Whether a fit is to prove more than it learns for nothing."""
    return estimator.certificate not in (None, "free")


def refuse_proof(estimator: Any, what: str) -> None:
    """Refuse a proof where the kernel cannot be looked at again."""
    if proves(estimator):
        raise ValueError(
            f"{setting('certificate', estimator.certificate)} needs entries of the kernel, and "
            f'cannot be had of {what}. Set certificate="free".'
        )


def free_certificate(
    estimator: Any, embedded: Embedded, labels: IntArray, at_most: float, sums: FloatArray | None
) -> tuple[Certificate, Cost]:
    """Return what a fit knows of its labels for nothing, and what it cost to know it."""
    operator, low_rank, cost = embedded.operator, embedded.low_rank, Cost()
    if estimator.certificate is None:
        asked_for_none = Certificate(
            n_clusters=estimator.n_clusters,
            trace_kernel=low_rank.facts.trace,
            trace_error=low_rank.trace_error,
            reason="None was asked for: certificate=None.",
        )
        return asked_for_none, cost
    by_neighbors = isinstance(operator, NeighborOperator)
    whole = low_rank.whole
    if sums is None and whole is not None and (whole.gram is not None or by_neighbors):
        features = whole.operator.unweighted()
        sums = cluster_sums(features, labels, embedded.weights, embedded.plan.run)
        cost = Cost(entries=features.stream_entries, distances=features.stream_distances)
    if by_neighbors:
        assert sums is not None
        return cut_certificate(labels, low_rank, sums, embedded.weights), cost
    wanted = Wanted(
        estimator.n_clusters,
        objective_at_most=at_most,
        embedding_dtype=embedded.embedding.dtype,
        sums=sums,
    )
    return certificate_for(operator, labels, low_rank, wanted), cost


def _proving(estimator: Any, n: int) -> Proving:
    """Return what a fit to n samples is to prove."""
    return Proving(
        n_clusters=int(estimator.n_clusters),
        effort=estimator.certificate,
        seed=int(estimator.random_state) if isinstance(estimator.random_state, Integral) else 0,
        keep_fractional=estimator.certificate in ("lifted", "triangles") and n <= MOST_ROUNDED,
    )


def with_proof(estimator: Any, plan: Plan, budget: Budget, method: Method, ask: Request) -> Plan:
    """Return the plan of a fit that proves, too; refuse a limit that the proof could not keep."""
    operator = budget.operator
    needs = method.needs(operator, replace(ask, run=plan.run))
    held = needs.kept + 2 * operator.shape[0] * ask.rank * budget.itemsize + moved_bytes(operator)
    asked = _proving(estimator, operator.shape[0])
    proof = proof_plan(operator, asked, held + budget.copied, budget.limit, plan.run)
    return plan.with_stage("proof", proof.peak)


def proof_of_fit(
    estimator: Any,
    embedded: Embedded,
    labels: IntArray,
    free: Certificate,
    before: Clustered | None,
) -> Proved:
    """Prove what a fit was asked to prove of its labels."""
    operator = embedded.operator
    assert operator is not None
    asked = _proving(estimator, len(labels))
    # What the fit holds while it proves: the embedding, its factor, and the labels.
    arrays = embedded.embedding, embedded.embedding, embedded.low_rank.factor
    held = sum(one.nbytes for one in arrays if not isinstance(one, Rows)) + moved_bytes(operator)
    run = proof_run(operator, asked, held, estimator.memory_limit, embedded.plan.run)
    numbers = np.unique(labels, return_inverse=True)[1].ravel()
    return proved(operator, numbers, asked, run, free, None if before is None else before.bound)


def proved(
    operator: KernelOperator,
    labels: IntArray,
    asked: Proving,
    run: Run,
    free: Certificate,
    bound: Bound | None = None,
) -> Proved:
    """Prove how far the labels of a fit are from the best, and look for better ones.

    Parameters
    ----------
    operator : KernelOperator
    labels : array of shape (n,)
    asked : Proving
    run : Run
    free : Certificate
        What the fit knew.
    bound : Bound, optional
        What is known of the best possible already.
    """
    by_neighbors = isinstance(operator, NeighborOperator)
    met = around_the_mean(operator)
    if bound is not None and not by_neighbors:
        found = with_bound(objective_known(met, labels, asked, run), bound, cut_of(met, labels))
        return Proved(joined(free, found), bound)
    found, bound = proven_certificate(met, labels, asked, run, free if by_neighbors else None)
    better = None
    if bound is not None and not by_neighbors and found.objective is not None:
        better = rounded(operator, bound, asked, run)
        if better is not None and better.inertia < found.objective * (1 - 1e-9):
            cut = cut_of(met, better.labels)
            found = with_bound(objective_known(met, better.labels, asked, run), bound, cut)
        else:
            better = None
    return Proved(joined(free, found, same_labels=better is None), bound, better)


def joined(free: Certificate, found: Certificate, *, same_labels: bool = True) -> Certificate:
    """Return what was proved, with what a fit knows of its labels and its embedding."""
    if found.objective_upper is None:
        return replace(found, trace_error=free.trace_error)
    best = with_best_of(found, free, same_labels=same_labels)
    return replace(best, trace_error=free.trace_error, gap_bound=free.gap_bound)


def _is_moved(operator: KernelOperator) -> bool:
    """Whether a proof sees the rows around their mean."""
    if not isinstance(operator, DataOperator | FeatureMapOperator):
        return False
    return operator.kernel.name == "linear" and not is_sparse(operator.data)


def moved_bytes(operator: KernelOperator) -> int:
    """Return the bytes of rows around their mean, where a proof sees those."""
    moves = _is_moved(operator) and not isinstance(operator.data, Rows)
    return operator.shape[0] * operator.n_features * 8 if moves else 0


def around_the_mean(operator: KernelOperator) -> KernelOperator:
    """Return a linear kernel of rows around their mean, in float64; any other as it is.

    The mean is a sum over a fixed grid: the same bits wherever the rows are.

    NOTE: objectives of a linear kernel do not depend on where the origin is; rounding does.
    """
    if not _is_moved(operator):
        return operator
    assert isinstance(operator, DataOperator | FeatureMapOperator)
    X, weights = operator.data, operator.weights
    size = span_rows(len(X), BLOCK)
    given = () if weights is None else (weights,)
    if isinstance(X, Rows):
        total = X.run(_summed, *given, size=size, name="mean").total
        moved = X.run(_Moved(_mean(total)), size=size, stay=True, name="move").kept[0]
        return type(operator)(moved, operator.kernel, weights=weights)
    sums = TreeSum()
    for rows in row_blocks(len(X), size):
        sums.add(_summed(X[rows], *(one[rows] for one in given)).summand)
    moved = X.astype(np.float64)
    moved -= _mean(sums.total())
    return type(operator)(moved, operator.kernel, weights=weights)


def _summed(rows: FloatArray, weights: FloatArray | None = None) -> Part:
    """Return the weighted sum of rows, and what they weigh."""
    rows, mass = rows.astype(np.float64), masses(weights, len(rows))
    return Part((), np.append(mass @ rows, mass.sum()))


def _mean(total: FloatArray) -> FloatArray:
    return total[:-1] / total[-1]


@dataclass(frozen=True)
class _Moved:
    """Takes a point from rows, where these are."""

    mean: FloatArray

    def __call__(self, rows: FloatArray) -> Part:
        moved = rows.astype(np.float64)
        moved -= self.mean
        return Part((moved,))


def first_size(n: int, asked: Proving, run: Run) -> int:
    """Return the size of the blocks that a proof begins with."""
    if asked.is_one_block(n):
        return n
    if asked.seconds is not None and asked.block_size is None:
        return size_for(n, asked.seconds, run.n_threads)
    return min(asked.block_size or BLOCK_SIZE, n)


def proof_run(
    operator: KernelOperator,
    asked: Proving,
    copied: int,
    memory_limit: Any,
    run: Run,
    *,
    decomposes: bool = False,
) -> Run:
    """Choose the threads that keep the memory limit; refuse what none can keep.

    ``decomposes`` says that the eigenvectors of a graph of neighbours are to be found before.
    """
    limit = parse_bytes(memory_limit)
    return proof_plan(operator, asked, copied, limit, run, decomposes=decomposes).run


def proof_plan(
    operator: KernelOperator,
    asked: Proving,
    copied: int,
    limit: int | None,
    run: Run,
    *,
    decomposes: bool = False,
) -> Plan:
    """Return how a proof keeps a limit; refuse one that it cannot keep. See ``proof_run``."""
    n = operator.shape[0]
    size = first_size(n, asked, run)

    def peak(run: Run, _: int) -> int:
        blocks = 1 if size == n else min(run.n_threads, -(-n // size))
        proving = 0
        if asked.effort != "free":
            rows = operator.columns_bytes(size, ALONE) if operator.data is not None else 0
            proving = blocks * (block_bytes(size, asked.effort) + rows)
        passing = refining_bytes(operator, asked.n_clusters, run) + n * asked.n_clusters * 32
        landmarks = 8 * LANDMARKS * (4 * LANDMARKS + 64 * asked.n_clusters)
        passing = max(passing, landmarks if n > ONE_BLOCK else 0)
        highest = max(proving, 0 if size == n else passing)
        if decomposes:
            rank = min(asked.n_clusters, n)
            needs = METHODS["exact"].needs(operator, Request(rank, rank, 0, run=run))
            highest = max(needs.working, needs.kept + highest)
        return highest + copied + 40 * n + OVERHEAD

    chosen = choose(peak, run.n_threads, 1, limit)
    if chosen is not None:
        return chosen.kept_by(run.checkpoint)
    assert limit is not None
    raise MemoryError(
        f"{called('memory_limit')}={human(limit)} cannot be kept: blocks of {size:,} samples need "
        f"{human(peak(Run(pack=False), 1))} at the least. Raise {called('memory_limit')}, or lower "
        f"{called('block_size')}."
    )
