"""A certificate with its proof: an objective from above, the best possible from below."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sketchmeans._arrays import IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import masses
from sketchmeans.certificate.above import objective_above
from sketchmeans.certificate.blockwise import (
    BLOCK_SIZE,
    LARGEST,
    ONE_BLOCK,
    Blockwise,
    Bound,
    lower_bound,
    of_one_part,
    size_for,
)
from sketchmeans.certificate.certifying import Wanted, certificate_for, nothing_known
from sketchmeans.certificate.objective import cluster_sums
from sketchmeans.certificate.parts import Part
from sketchmeans.certificate.proving import Effort
from sketchmeans.certificate.result import USELESS, Certificate
from sketchmeans.certificate.sampling import DRAWN_SIZE, drawn_bound
from sketchmeans.certificate.spectral import EPS, objective_of
from sketchmeans.engine import Run
from sketchmeans.operators import (
    FeatureOperator,
    GivenOperator,
    KernelOperator,
    NeighborOperator,
    SparseOperator,
)
from sketchmeans.rows import Rows

LEAST = 64 * EPS
"""Rounding of entries that are sums of few positive numbers."""
PAIRS = 2.5e10
"""Kernel entries of a pass up to which the objective is computed from all pairs: some 20 s."""
PACE = 8e8
"""Kernel entries that a core does in a second, at the least."""
NOTHING_LEFT = 1e-9
"""An objective below this part of the trace is called 0."""
SMALL_BLOCKS = BLOCK_SIZE // 2
"""Where time leaves no larger blocks than these, blocks are drawn instead, if that is allowed."""


@dataclass(frozen=True)
class Proving:
    """What is to be proved, and what it may cost."""

    n_clusters: int
    effort: str
    """A level that is reached, "free" to "triangles"."""
    seconds: float | None = None
    began: float | None = None
    """When the seconds began, by ``time.perf_counter``; now, if left out."""
    block_size: int | None = None
    largest_block: int = LARGEST
    """Blocks do not grow beyond this while time allows."""
    failure_probability: float | None = None
    seed: int = 0
    keep_fractional: bool = False
    """Whether the bound is to hold the fractional clusterings of blocks."""
    report: Callable[[int, int, float], None] | None = None

    def is_one_block(self, n: int) -> bool:
        """Whether all samples are bounded as one block."""
        size = self.block_size or ONE_BLOCK
        return self.effort != "free" and n <= size


def proven_certificate(
    operator: KernelOperator,
    labels: IntArray,
    asked: Proving,
    run: Run,
    known: Certificate | None = None,
) -> tuple[Certificate, Bound | None]:
    """Say how far labels can be from the best possible, as well as the effort allows.

    ``known`` is what is known of their objective, where that is so. Returns also the bound on the
    best possible, where one was looked for: it holds for any other labels as well.
    Passes over K: one where its n²/2 entries are fewer than ``PAIRS``, else n × landmarks; and
    n × b entries for blocks of b samples. Up to ``ONE_BLOCK`` samples, n² in all.
    """
    start = time.perf_counter() if asked.began is None else asked.began
    # Overflow is looked for by the passes themselves, which can say where it is.
    with OneBlasThread(), np.errstate(over="ignore", invalid="ignore"):
        rounding = _rounding(operator)
        if known is None:
            known = objective_known(operator, labels, asked, run)
        cut = cut_of(operator, labels)
        if asked.n_clusters == 1:
            return _told(_of_one_cluster(known), cut), None
        if asked.effort == "free":
            return _told(known, cut), None
        refused = _no_blocks(operator, asked, len(labels))
        if refused is not None:
            return _told(replace(known, reason=refused), cut), None
        left = None if asked.seconds is None else asked.seconds - (time.perf_counter() - start)
        data = operator.data
        ask = Blockwise(
            operator=operator,
            labels=labels,
            effort=Effort(asked.n_clusters, asked.effort),
            rounding=rounding,
            seed=asked.seed,
            n_threads=data.n_threads if isinstance(data, Rows) else run.n_threads,
            keep_fractional=asked.keep_fractional,
            report=asked.report,
            checkpoint=run.checkpoint,
        )
        bound = find_bound(ask, asked, left)
        if bound.interrupted and asked.seconds is None:
            raise KeyboardInterrupt  # nobody asked for as much as there is time for
        return with_bound(known, bound, cut), bound


def _of_one_cluster(known: Certificate) -> Certificate:
    """Return the certificate of the only labels that there are: their objective is the least."""
    if known.objective_upper is None or known.objective_lower is None:
        return known
    least, most = known.objective_lower, known.objective_upper
    relative = most / least - 1 if least > 0 else 0.0
    return replace(known, optimum_lower=least, relative_gap=relative, reason=None)


def objective_known(
    operator: KernelOperator, labels: IntArray, asked: Proving, run: Run
) -> Certificate:
    """Return what is known of the objective of labels, and nothing of the best possible yet."""
    rounding = _rounding(operator)
    if asked.is_one_block(len(labels)):
        return _by_one_block(operator, labels, asked, rounding)
    return _from_above(operator, labels, asked, rounding, run)


def _rounding(operator: KernelOperator) -> float:
    """Return ε of entries in float64."""
    return LEAST if isinstance(operator, NeighborOperator) else operator.rounding(fine=True)[0]


def find_bound(ask: Blockwise, asked: Proving, seconds: float | None) -> Bound:
    """Bound the best possible by all blocks, or by some that are drawn where time is short."""
    n, delta = len(ask.labels), asked.failure_probability
    if seconds is None:
        return lower_bound(ask, asked.block_size, None)
    seconds = max(seconds, 0.01)
    fitting = size_for(n, seconds, ask.n_threads)
    if delta is None or asked.block_size or asked.is_one_block(n) or fitting >= SMALL_BLOCKS:
        return lower_bound(ask, asked.block_size, seconds, asked.largest_block)
    return drawn_bound(ask, min(DRAWN_SIZE, n), seconds, delta / 2)


def _by_one_block(
    operator: KernelOperator, labels: IntArray, asked: Proving, rounding: float
) -> Certificate:
    """Return the objective of labels, from a matrix of all pairs; the best is not known yet."""
    found = of_one_part(operator, labels, rounding, _objective_of_part)
    least = 0.0 if found.is_psd else -np.inf
    return Certificate(
        n_clusters=asked.n_clusters,
        trace_kernel=found.trace,
        trace_error=found.trace,
        objective=max(found.objective, least),
        objective_lower=max(found.objective - found.slack, least),
        objective_upper=found.objective + found.slack,
        optimum_lower=least,
        objective_from="all pairs",
    )


class _Measured(NamedTuple):
    """The objective of labels of a block."""

    objective: float
    slack: float
    trace: float
    is_psd: bool


def _objective_of_part(part: Part) -> _Measured:
    block = part.block()
    return _Measured(*objective_of(block, part.labels), block.trace, block.is_psd)


def _from_above(
    operator: KernelOperator, labels: IntArray, asked: Proving, rounding: float, run: Run
) -> Certificate:
    """Return what one pass, or a stream over landmarks, tells of the labels."""
    n = len(labels)
    pairs = n * n / 2
    slow = asked.seconds is not None and pairs > 0.3 * asked.seconds * PACE * run.n_threads
    is_cheap = isinstance(operator, FeatureOperator | GivenOperator)
    by_landmarks = operator.is_psd is True and operator.data is not None and not is_cheap
    if by_landmarks and (pairs > PAIRS or slow) and asked.effort != "free":
        upper, trace = objective_above(operator, labels, rounding, run, seed=asked.seed)
        return Certificate(
            n_clusters=asked.n_clusters,
            trace_kernel=trace,
            trace_error=trace,
            objective_lower=0.0,
            objective_upper=upper,
            optimum_lower=0.0,
            objective_from="landmarks",
        )
    delta = asked.failure_probability
    wanted = Wanted(
        asked.n_clusters,
        exact=True,
        failure_probability=None if delta is None else delta / 2,
        seed=asked.seed,
    )
    nothing = nothing_known(operator, operator.rounding()[0])
    known = certificate_for(operator, labels, nothing, wanted, run)
    best = known.optimum_lower_probabilistic
    if best is not None and known.objective_upper is not None and best > 0:
        gap = known.objective_upper / best - 1
        known = replace(known, relative_gap_probabilistic=gap, failure_probability=delta)
    return replace(known, objective_from="all pairs")


def _no_blocks(operator: KernelOperator, asked: Proving, n: int) -> str | None:
    """Say why samples may not be cut into blocks; None if they may, or need not be."""
    if asked.is_one_block(n):
        return None
    if cut_scale(operator) is not None:
        return (
            "The objective of a graph is mostly its trace, and what blocks lose of it is more than "
            f"the cut: only up to {ONE_BLOCK:,} samples, as one block, there is a better bound."
        )
    if operator.is_psd is True:
        return None
    return (
        "Bounds of blocks add up for positive semidefinite kernels alone, and this one is not "
        f"known to be. Up to {ONE_BLOCK:,} samples, or with block_size={n}, all are one block, "
        "which needs no such thing."
    )


def cut_scale(operator: KernelOperator) -> float | None:
    """Return what turns L − tr K + k into the normalized cut of a graph; None if K is no graph.

    The degrees of DKD must be one: then it is the cut of that graph. Where the graph could be of
    ``graphs.normalized``, which puts half of every degree on the diagonal, that of the graph
    without it is meant: twice as much.
    """
    if isinstance(operator, NeighborOperator):
        return 1.0 if has_degrees_of_one(operator) else None
    if not isinstance(operator, SparseOperator) or operator.weights is None:
        return None
    d, K = operator.weights, operator.K
    full = d > 0
    ones = (K @ d)[full]
    if not np.allclose(ones, 1.0, rtol=0, atol=1e-9) or (K.nnz and K.data.min() < 0):
        return None
    loops = K.diagonal()[full] * d[full]
    return 2.0 if (loops >= 0.5 - 1e-9).all() else 1.0


class Cut(NamedTuple):
    """What turns an objective into a normalized cut, L − tr K + k, times ``scale``."""

    scale: float
    clusters: int
    """k, the clusters that have members with weight."""


def cut_of(operator: KernelOperator, labels: IntArray) -> Cut | None:
    """Return how labels cut a graph; None if K is none."""
    scale, weights = cut_scale(operator), operator.weights
    if scale is None:
        return None
    return Cut(scale, len(np.unique(labels if weights is None else labels[weights > 0])))


def has_degrees_of_one(operator: NeighborOperator) -> bool:
    """Whether Kd = 1: the samples and weights are those that the anchors were counted with."""
    plain, d = operator.unweighted(), masses(operator.weights, operator.shape[0])
    held = cluster_sums(plain, np.zeros(len(d), np.intp), d)
    degrees = plain.product(held)
    if isinstance(degrees, Rows):
        degrees = degrees[:]
    return bool(np.allclose(degrees, 1.0, rtol=0, atol=1e-9))


def with_bound(known: Certificate, bound: Bound, cut: Cut | None = None) -> Certificate:
    """Return a certificate with a bound on the best possible, if that is more than it knew.

    Parameters
    ----------
    known : Certificate
    bound : Bound
    cut : Cut, optional
        Where K is a graph.
    """
    upper = known.objective_upper
    if bound.interrupted:
        known = replace(known, interrupted=True)
    if upper is None or bound.n_blocks == 0:
        return known
    if bound.value > upper:
        return Certificate(
            n_clusters=known.n_clusters,
            trace_kernel=known.trace_kernel,
            trace_error=known.trace_error,
            objective=known.objective,
            reason=(
                f"The bounds contradict each other: labels of at most {upper:.6g} were found, "
                f"where {bound.value:.6g} is the least. So the entries of this kernel are not "
                "what they are said to be."
            ),
        )
    if bound.failure_probability is not None:
        return _with_drawn(known, upper, bound, bound.failure_probability)
    if known.optimum_lower is not None and bound.value < known.optimum_lower:
        return _told(known, cut)
    best = bound.value
    relative = upper / best - 1 if best > 0 else (0.0 if upper <= best else np.inf)
    reason = None if relative <= USELESS else "The blocks are too few or too small for one."
    if best <= 0 and upper <= NOTHING_LEFT * known.trace_kernel:
        reason = "The objective of these labels is 0 to rounding: no others can be better by more."
    return _told(
        replace(
            known,
            optimum_lower=best,
            objective_lower=max(known.objective_lower or best, best),
            relative_gap=float(relative) if np.isfinite(relative) else None,
            level=bound.level,
            n_blocks=bound.n_blocks,
            block_size=bound.block_size,
            assumes_psd=False,
            reason=reason,
        ),
        cut,
    )


def _with_drawn(known: Certificate, upper: float, bound: Bound, delta: float) -> Certificate:
    """Return a certificate with a bound from drawn blocks, which fails with probability ``delta``.

    Probes of the pass may fail as often.
    """
    before = known.optimum_lower_probabilistic or known.optimum_lower or 0.0
    best = max(bound.value, before)
    gap = upper / best - 1 if best > 0 else None
    return replace(
        known,
        optimum_lower_probabilistic=best,
        relative_gap_probabilistic=gap,
        failure_probability=2 * delta,
        n_blocks=bound.n_blocks,
        block_size=bound.block_size,
        reason=(
            f"Time was too short for all blocks: {bound.n_blocks:,} of {bound.block_size:,} "
            "samples were drawn instead."
        ),
    )


def _told(known: Certificate, cut: Cut | None) -> Certificate:
    """Tell a graph's certificate in terms of its normalized cut."""
    if cut is None or known.objective_upper is None or known.optimum_lower is None:
        return known
    # Bounds for as many clusters as were allowed hold for those that have members.
    scale, shift = cut.scale, cut.clusters - known.trace_kernel
    objective = known.objective_upper if known.objective is None else known.objective
    return replace(
        known,
        n_clusters=cut.clusters,
        normalized_cut=max(scale * (objective + shift), 0.0),
        normalized_cut_lower=max(
            scale * (known.optimum_lower + shift), known.normalized_cut_lower or 0.0
        ),
        relative_gap=None,
        reason=(
            "The objective of this kernel is mostly its trace, so that a gap relative to it would "
            "look small for any labels: the normalized cut says more."
        ),
    )
