"""Proofs of fits: what they take, and what a fit learns from them.

The fractional clustering of a proof, rounded by K-means, is a start of its own: it knows of all
samples at once. Where exact iterations from it end lower than what the fit had, they are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from sketchmeans._arrays import FloatArray, IntArray
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
from sketchmeans.certificate.objective import cluster_sums
from sketchmeans.certificate.proven import (
    Proving,
    objective_known,
    proven_certificate,
    with_bound,
)
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.checks import check_choice, check_number
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.lloyd import Refined, refine
from sketchmeans.estimators.memory import OVERHEAD, choose, parse_bytes, refining_bytes
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import DataOperator, FeatureMapOperator, KernelOperator, NeighborOperator
from sketchmeans.text import called, human, setting

ROUNDED_STARTS = 5
"""Starts of K-means that round a fractional clustering."""
ROUNDED_ITERATIONS = 100
"""Exact iterations from there, at most."""


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

    def embedded_with(self, decision: Decision) -> Embedded:
        """Return the embedding for the starts that are left of this decision."""
        left = replace(decision, n_init=max(decision.n_init - 1, 1))
        return replace(self.embedded, decision=left)


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
    asked = Proving(
        n_clusters=free.n_clusters,
        effort=estimator.certificate,
        seed=int(estimator.random_state) if isinstance(estimator.random_state, Integral) else 0,
        keep_fractional=estimator.certificate in ("lifted", "triangles"),
    )
    # What the fit holds while it proves: the embedding, its factor, and the labels.
    held = 2 * embedded.embedding.nbytes + embedded.low_rank.factor.nbytes
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
        found = with_bound(objective_known(met, labels, asked, run), bound)
        return Proved(_merged(free, found), bound)
    found, bound = proven_certificate(met, labels, asked, run, free if by_neighbors else None)
    better = None
    if bound is not None and not by_neighbors and found.objective is not None:
        better = _rounded(operator, bound, asked, run)
        if better is not None and better.inertia < found.objective * (1 - 1e-9):
            found = with_bound(objective_known(met, better.labels, asked, run), bound)
        else:
            better = None
    return Proved(_merged(free, found), bound, better)


def _merged(free: Certificate, found: Certificate) -> Certificate:
    """Return what was proved, with what a fit knows of its embedding."""
    return replace(
        found,
        trace_error=free.trace_error,
        gap_bound=free.gap_bound if found.objective_upper is not None else None,
    )


def _rounded(operator: KernelOperator, bound: Bound, asked: Proving, run: Run) -> Refined | None:
    """Return what exact iterations make of the fractional clustering; None if it is of blocks."""
    if bound.n_blocks != 1 or not bound.fractional:
        return None
    ((_, rows),) = bound.fractional
    weights = operator.weights
    kept = np.arange(operator.shape[0]) if weights is None else np.flatnonzero(weights)
    rows = rows.astype(np.float64)
    if weights is not None:  # Q = D^-½ X D^-½ is one over the weight of a cluster
        rows /= np.sqrt(weights[kept, None])
    model = KMeans(asked.n_clusters, n_init=ROUNDED_STARTS, random_state=asked.seed % 2**32)
    labels = np.zeros(operator.shape[0], np.int32)
    labels[kept] = model.fit(rows, sample_weight=None if weights is None else weights[kept]).labels_
    return refine(
        operator,
        labels,
        asked.n_clusters,
        n_iter=ROUNDED_ITERATIONS,
        weights=weights,
        run=run,
    )


def around_the_mean(operator: KernelOperator) -> KernelOperator:
    """Return a linear kernel of rows around their mean, in float64; any other as it is.

    NOTE: objectives of a linear kernel do not depend on where the origin is; rounding does.
    """
    if not isinstance(operator, DataOperator | FeatureMapOperator):
        return operator
    if operator.kernel.name != "linear" or sparse.issparse(operator.data):
        return operator
    rows = operator.data.astype(np.float64)
    rows -= np.average(rows, axis=0, weights=operator.weights)
    return type(operator)(rows, operator.kernel, weights=operator.weights)


def first_size(n: int, asked: Proving, run: Run) -> int:
    """Return the size of the blocks that a proof begins with."""
    if asked.is_one_block(n):
        return n
    if asked.seconds is not None and asked.block_size is None:
        return size_for(n, asked.seconds, run.n_threads)
    return min(asked.block_size or BLOCK_SIZE, n)


def proof_run(
    operator: KernelOperator, asked: Proving, copied: int, memory_limit: Any, run: Run
) -> Run:
    """Choose the threads that keep the memory limit; refuse what none can keep."""
    n, limit = operator.shape[0], parse_bytes(memory_limit)
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
        return max(proving, 0 if size == n else passing) + copied + 40 * n + OVERHEAD

    chosen = choose(peak, run.n_threads, 1, limit)
    if chosen is not None:
        return chosen.kept_by(run.checkpoint).run
    assert limit is not None
    raise MemoryError(
        f"{called('memory_limit')}={human(limit)} cannot be kept: blocks of {size:,} samples need "
        f"{human(peak(Run(pack=False), 1))} at the least. Raise {called('memory_limit')}, or lower "
        f"{called('block_size')}."
    )
