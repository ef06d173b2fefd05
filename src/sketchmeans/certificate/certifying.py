"""How a certificate is made: from labels, an approximation, and a pass where one is asked for.

It is held against itself when it is made: bounds that contradict each other are not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.certificate.bracket import approximate_objective, bracket, streamed_objective
from sketchmeans.certificate.gap import gap_bound
from sketchmeans.certificate.moments import Moments, moments, unit_vector
from sketchmeans.certificate.objective import cluster_sums, exact_objective, memberships
from sketchmeans.certificate.optimum import optimum_lower_bound
from sketchmeans.certificate.probable import PROBES, norm_bound, probable_gap, probable_optimum
from sketchmeans.certificate.result import USELESS, Certificate
from sketchmeans.engine import ALONE, Run
from sketchmeans.lowrank import Facts, LowRank
from sketchmeans.lowrank.core import noise_level
from sketchmeans.lowrank.residual import examine_residual
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import KernelOperator
from sketchmeans.tall import fetched, gram, multiply_rows


@dataclass(frozen=True)
class Wanted:
    """What a certificate is to say."""

    n_clusters: int | None = None
    """Clusters that the best possible clustering may have; the number of labels if left out."""
    exact: bool = False
    """Whether to compute the objective of the labels exactly: one pass."""
    failure_probability: float | None = None
    """To compute the bounds that hold except with this probability: one pass, the same one."""
    objective_at_most: float = np.inf
    """An upper bound on the objective that is known otherwise, as after refinement."""
    embedding_dtype: Any = np.float64
    """In which the embedding was stored that was clustered, for ``gap_bound``."""
    seed: int = 0
    """Of the pass."""
    sums: FloatArray | None = None
    """Fᵀ times the memberships of the labels, where K̂ = FFᵀ is streamed and that is known."""

    @property
    def probes(self) -> int:
        """Gaussian columns that the pass carries."""
        return 0 if self.failure_probability is None else PROBES


def certificate_for(
    operator: KernelOperator | None,
    labels: Any,
    approximation: LowRank,
    wanted: Wanted,
    run: Run = ALONE,
) -> Certificate:
    """Say how far labels can be from the best possible; they may come from anywhere.

    Passes over K: none, or one if ``exact`` or ``failure_probability`` asks for it.

    Parameters
    ----------
    operator : KernelOperator or None
        K, with the weights of the samples; None where K is gone (a stream).
    labels : array of shape (n,)
        Whole numbers from 0.
    approximation : LowRank
        Of this K, by any method.
    wanted : Wanted
    run : Run
        Of the pass.
    """
    labels = np.asarray(labels)
    n = len(approximation.factor)
    if operator is not None and operator.shape[0] != n:
        raise ValueError(
            f"the operator has {operator.shape[0]} samples and the approximation {n}: both must be "
            "of the same kernel."
        )
    n_clusters = _check(labels, n, wanted.n_clusters, wanted.failure_probability)
    numbers, labels = np.unique(labels, return_inverse=True)  # any numbers; clusters are few
    if wanted.sums is not None:
        wanted = replace(wanted, sums=wanted.sums[:, numbers])
    with OneBlasThread():
        later = None
        if wanted.exact or wanted.probes:
            later = _later_pass(operator, labels, approximation, wanted, run)
            approximation = replace(approximation, facts=later.facts)
        is_psd = None if operator is None else operator.is_psd
        plain = Certificate(
            n_clusters=n_clusters,
            trace_kernel=approximation.facts.trace,
            trace_error=approximation.trace_error,
            objective=later.objective if later and wanted.exact else None,
            reason=_no_bound(approximation, is_psd),
        )
        if plain.reason is not None:
            return plain
        root = None if operator is None else operator.root_weights
        bounded = _bounded(plain, labels, approximation, root, wanted, later)
        if bounded.objective_upper is None:
            return bounded
        probability = wanted.failure_probability
        return replace(bounded, assumes_psd=is_psd is None, failure_probability=probability)


def _bounded(
    plain: Certificate,
    labels: IntArray,
    approximation: LowRank,
    root: FloatArray | None,
    wanted: Wanted,
    later: _Later | None,
) -> Certificate:
    """Add every bound to a certificate; none if they contradict each other."""
    known, n_clusters = moments(approximation, root), plain.n_clusters
    lower, upper = bracket(_approximate(labels, approximation, root, wanted), known)
    upper = min(upper, wanted.objective_at_most)
    if later is not None:
        lower = max(lower, later.objective - known.error)
        upper = min(upper, later.objective + known.error)
    best = optimum_lower_bound(known, n_clusters)
    gap = gap_probable = best_probable = None
    if approximation.rank:
        u = unit_vector(len(labels), root)
        gap = gap_bound(approximation, known, n_clusters, wanted.embedding_dtype, u)
    if later is not None and wanted.failure_probability is not None:
        norm = norm_bound(later.size, known, wanted.failure_probability)
        best_probable = max(best, probable_optimum(known, n_clusters, norm))
        if gap is not None:
            gap_probable = min(gap, probable_gap(approximation, known, n_clusters, norm))
    contradiction = _contradiction(lower, upper, best, approximation, known)
    if contradiction is not None:
        return replace(plain, reason=contradiction)
    relative = upper / best - 1 if best > 0 else np.inf
    return replace(
        plain,
        gap_bound=gap,
        objective_lower=max(lower, best),  # no labels are better than the best
        objective_upper=upper,
        optimum_lower=best,
        relative_gap=relative if np.isfinite(relative) else None,
        gap_bound_probabilistic=gap_probable,
        optimum_lower_probabilistic=best_probable,
        reason=_weakness(known) if relative > USELESS else None,
    )


def _approximate(
    labels: IntArray, approximation: LowRank, root: FloatArray | None, wanted: Wanted
) -> float:
    """Return L̂ of the labels: from the factor, or from the sums of one that is streamed."""
    weights = None if root is None else root**2
    whole = approximation.whole
    if whole is None or whole.gram is None:
        return approximate_objective(approximation.factor, labels, weights)
    sums = wanted.sums
    if sums is None:
        sums = cluster_sums(whole.operator, labels, weights)
    return streamed_objective(whole.gram, sums, np.bincount(labels, weights).astype(np.float64))


def _check(
    labels: IntArray, n: int, n_clusters: int | None, failure_probability: float | None
) -> int:
    """Refuse what cannot be certified; return the number of clusters of the best clustering."""
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or (n and labels.min() < 0):
        raise ValueError(
            f"labels must be {n} whole numbers from 0, one per sample; got shape {labels.shape} "
            f"and dtype {labels.dtype}."
        )
    if failure_probability is not None and not (
        isinstance(failure_probability, Real) and 0 < failure_probability < 1
    ):
        raise ValueError(
            f"failure_probability={failure_probability!r} is no probability: give a number between "
            "0 and 1, such as 1e-3, or None for deterministic bounds alone."
        )
    used = len(np.unique(labels))
    if n_clusters is None:
        return used
    if not isinstance(n_clusters, Integral) or isinstance(n_clusters, bool):
        raise TypeError(f"n_clusters={n_clusters!r} must be a whole number or None.")
    if n_clusters < used:
        raise ValueError(
            f"n_clusters={n_clusters} is less than the {used} clusters of the labels: they would "
            "be compared with a best clustering that may have fewer clusters than they have. "
            "Leave n_clusters out, or merge clusters first."
        )
    return int(n_clusters)


def _no_bound(approximation: LowRank, is_psd: bool | None) -> str | None:
    if approximation.negative_mass > 0:
        return (
            f"Negative eigenvalues were seen ({100 * approximation.negative_mass:.2g} % of the "
            "sketched core), and the bounds need a positive semidefinite kernel."
        )
    if is_psd is False:
        return "This kernel is not positive semidefinite in general, and the bounds need that."
    return None


def _contradiction(
    lower: float, upper: float, best: float, approximation: LowRank, known: Moments
) -> str | None:
    """Say which bounds contradict each other; None if none do.

    Each has its room for rounding, so that a positive semidefinite kernel gives no contradiction.
    """
    held = float(approximation.eigenvalues.sum())
    for low, high, what in (
        (0.0, upper, "the objective of the labels is at most {high:.6g}, and none is below 0"),
        (lower, upper, "the objective of the labels is at least {low:.6g} and at most {high:.6g}"),
        (best, upper, "labels of at most {high:.6g} were found, where {low:.6g} is the least"),
        (
            held - known.slack - known.error,
            approximation.facts.trace,
            "an approximation from below has trace {low:.6g}, the kernel {high:.6g}",
        ),
        (
            float(np.trace(known.centred)) - known.slack - known.error,
            known.trace_upper,
            "centred, an approximation from below has trace {low:.6g}, the kernel {high:.6g}",
        ),
    ):
        if not low <= high:
            found = what.format(low=low, high=high)
            return (
                f"The bounds contradict each other: {found}. So this kernel is not positive "
                "semidefinite, which they need, or its entries are not known well enough."
            )
    return None


def _weakness(known: Moments) -> str:
    """Say why there is no useful bound."""
    if np.isfinite(known.squares):
        return (
            "The spectrum of this kernel falls too fast, or the sketch is too narrow, for a bound "
            "from its eigenvalues."
        )
    return (
        "This method meets only some columns of the kernel; sketchmeans.certify(X, model) looks "
        "at more of it."
    )


@dataclass(frozen=True)
class _Later:
    """What a pass over K gives that is made when the approximation is known."""

    objective: float
    """Of the labels, exactly."""
    size: float
    """‖EΨ‖₂ for Gaussian Ψ."""
    facts: Facts
    """That pass has met all of K: landmark methods get their moments here."""


def _later_pass(
    operator: KernelOperator | None,
    labels: IntArray,
    approximation: LowRank,
    wanted: Wanted,
    run: Run,
) -> _Later:
    if operator is None:
        raise ValueError(
            "the exact objective and the probabilistic bound need a pass over the kernel, and a "
            "stream's kernel is gone. Leave exact and failure_probability at their defaults."
        )
    n_clusters = int(labels.max(initial=0)) + 1
    members = memberships(labels, operator.carried, n_clusters)
    Psi = np.random.default_rng([wanted.seed, 1]).standard_normal((len(labels), wanted.probes))
    result = operator.multiply(np.concatenate([members, Psi], axis=1), run)
    trace = float(operator.diagonal_after(result).sum())
    objective = exact_objective(trace, members, result.W[:, :n_clusters])
    rounding = max(approximation.facts.rounding, operator.rounding(wanted.seed)[0])
    facts = Facts(trace, rounding, result.row_sums, result.sum_of_squares)
    size = 0.0
    if wanted.probes:
        probed, F = result.W[:, n_clusters:], approximation.factor
        found = fetched(multiply_rows(F, gram(F, Psi)))
        size = float(np.linalg.norm(probed - found, 2))
        size += approximation.eta * float(np.linalg.norm(probed))
        size += rounding * trace * float(np.sqrt(wanted.probes))
    return _Later(objective, size, facts)


def nothing_known(operator: KernelOperator, rounding: float) -> LowRank:
    """Return the approximation K̂ = 0, from which certificates start."""
    n = operator.shape[0]
    nothing = LowRank(
        factor=np.zeros((n, 0)),
        eigenvalues=np.zeros(0),
        rank=0,
        dual=np.zeros((n, 0)),
        facts=Facts(float(operator.diagonal().sum()), rounding),
        eta=noise_level(operator.dtype, 0.0),
        cost=Cost(),
    )
    return examine_residual(operator, nothing, 0)
