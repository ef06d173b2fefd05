"""How far a clustering can be from the best: one function a theorem, and one result.

With P = CᵀC for an indicator matrix C, the objective is L(C) = tr K − ⟨K, P⟩. Let u be the unit
vector of ones (of the roots of the weights), J = I − uuᵀ, and K̂ ≼ K an approximation with error
E = K − K̂ ≽ 0. P is a projection that holds u; P − uuᵀ is one of rank at most K − 1. Everything
below follows from that; docs/certificate.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.stats import chi2

from sketchmeans.engine import Crew, Pass
from sketchmeans.kernels import FloatArray
from sketchmeans.lloyd import memberships
from sketchmeans.lowrank.blocks import gram
from sketchmeans.lowrank.result import LowRank
from sketchmeans.operators import KernelOperator
from sketchmeans.points import row_blocks
from sketchmeans.spectrum_bounds import leading_sum_bound

PROBES = 10
"""Gaussian columns that a pass carries for the probabilistic bound."""
USELESS = 2.0
"""A relative gap above this (200 %) is called no useful bound."""


@dataclass(frozen=True)
class Certificate:
    """What is known of a clustering. A field that is None has its ``reason``."""

    n_clusters: int
    trace_kernel: float
    """tr K: the objective of one cluster a sample is 0, and no objective exceeds it."""
    trace_error: float
    """tr(K − YYᵀ) for the embedding Y that was clustered."""
    gap_bound: float | None = None
    """L(found) − L(best) is at most this, if K-means solved the embedding to optimality."""
    objective_lower: float | None = None
    """L(found) is at least this, whatever K-means did."""
    objective_upper: float | None = None
    """L(found) is at most this, whatever K-means did."""
    objective: float | None = None
    """L(found) exactly, where a pass was made for it."""
    optimum_lower: float | None = None
    """No clustering into ``n_clusters`` has a lower objective."""
    relative_gap: float | None = None
    """objective_upper / optimum_lower − 1: the labels found are at most this far from the best."""
    gap_bound_probabilistic: float | None = None
    """As gap_bound, but wrong with probability ``failure_probability`` at most."""
    optimum_lower_probabilistic: float | None = None
    """As optimum_lower, in the same event."""
    failure_probability: float | None = None
    assumes_psd: bool = False
    """Whether positive semidefiniteness of K was assumed and not known."""
    reason: str | None = None

    def __str__(self) -> str:
        if self.objective_upper is None:
            return f"Certificate for {self.n_clusters} clusters: no bound. {self.reason}"
        lines = [f"Certificate for {self.n_clusters} clusters"]
        if self.objective is not None:
            lines.append(f"  objective of these labels: {self.objective:.6g}, exactly")
        else:
            lines.append(
                f"  objective of these labels: between {self.objective_lower:.6g} and "
                f"{self.objective_upper:.6g}"
            )
        lines.append(f"  best possible objective:   at least {self.optimum_lower:.6g}")
        if self.relative_gap is None or self.relative_gap > USELESS:
            lines.append(f"  no useful bound on the distance to the best. {self.reason}")
        else:
            lines.append(
                f"  so these labels are at most {self.relative_gap:.1%} above the best possible"
            )
        if self.gap_bound is not None:
            lines.append(
                f"  if K-means solved the embedding to optimality: at most {self.gap_bound:.6g} "
                f"above ({self.gap_bound / max(self.trace_kernel, 1e-300):.1%} of the trace)"
            )
        if self.gap_bound_probabilistic is not None:
            lines.append(
                f"  … and at most {self.gap_bound_probabilistic:.6g}, best possible at least "
                f"{self.optimum_lower_probabilistic:.6g}, except with probability "
                f"{self.failure_probability:g}"
            )
        if self.assumes_psd:
            lines.append("  This assumes that the kernel is positive semidefinite.")
        return "\n".join(lines)


@dataclass(frozen=True)
class Moments:
    """What the bounds need to know of K and K̂, with the safety that rounding asks for."""

    count: int
    """n − 1, the eigenvalues of JKJ."""
    trace: float
    """tr JKJ from below; 0 where K u is not known."""
    squares: float
    """‖JKJ‖_F² from above; infinite where it is not known."""
    theta: FloatArray
    """Eigenvalues of JK̂J from below, falling: lower bounds on those of JKJ."""
    residual: float
    """tr(JEJ) from above."""
    slack: float
    """2·s·η·λ₁, the most that rounding takes from tr(K − K̂)."""


def moments(low_rank: LowRank, root_weights: FloatArray | None = None) -> Moments:
    """Collect the moments of the centred kernel from one pass: K u, ‖K‖_F² and the factor."""
    F, eta = low_rank.factor, low_rank.eta
    n, s = F.shape
    u = np.ones(n) if root_weights is None else root_weights
    length = np.linalg.norm(u)
    u = u / length
    largest = float(low_rank.eigenvalues[0]) if s else 0.0
    slack = 2 * max(s, 1) * eta * largest
    with Crew(1):
        along = gram(F, u[:, None])[:, 0]
        theta = np.linalg.eigvalsh(np.diag(low_rank.eigenvalues) - np.outer(along, along))[::-1]
    safe = np.maximum(theta - 16 * eta * largest, 0.0)
    if low_rank.row_sums is None or low_rank.sum_of_squares is None:
        residual = low_rank.trace - float(low_rank.eigenvalues.sum())
        return Moments(n - 1, 0.0, np.inf, safe, max(residual, 0.0) + slack, slack)
    Ku = low_rank.row_sums / length
    uKu = float(u @ Ku)
    trace = low_rank.trace - uKu
    squares = low_rank.sum_of_squares * (1 + 8 * eta) - 2 * float(Ku @ Ku) + uKu**2
    residual = max(trace - float(theta.sum()), 0.0) + slack
    return Moments(n - 1, trace, max(squares, 0.0), safe, residual, slack)


def approximate_objective(F: FloatArray, labels: FloatArray, weights: FloatArray | None) -> float:
    """L̂(C) = tr K̂ − ⟨K̂, CᵀC⟩ for K̂ = FFᵀ, in the coordinates of D^½ K D^½."""
    n_clusters = int(labels.max(initial=0)) + 1
    heavy = np.ones(len(F)) if weights is None else weights
    sizes = np.bincount(labels, heavy, n_clusters)
    sums = np.zeros((n_clusters, F.shape[1]))
    total = 0.0
    for rows in row_blocks(len(F)):
        member = memberships(labels[rows], np.sqrt(heavy[rows]), n_clusters)
        sums += member.T @ F[rows]
        total += float(np.square(F[rows]).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(sizes > 0, np.square(sums).sum(axis=1) / sizes, 0.0)
    return total - float(within.sum())


def bracket(
    low_rank: LowRank, labels: FloatArray, weights: FloatArray | None, known: Moments
) -> tuple[float, float]:
    """L̂ ≤ L(labels) ≤ L̂ + tr(JEJ), for labels of any origin (the bracket theorem)."""
    value = approximate_objective(low_rank.factor, labels, weights)
    return max(value - known.slack, 0.0), value + known.residual


def optimum_lower_bound(known: Moments, n_clusters: int) -> float:
    """L(C*) ≥ tr JKJ − S_max (the moment theorem); without moments, Σ_{i ≥ K} λ_i(JK̂J)."""
    k = n_clusters - 1
    trace_form = float(known.theta[k:].sum())
    if not np.isfinite(known.squares):
        return trace_form
    most = leading_sum_bound(known.theta, k, known.trace, known.squares, known.count)
    return max(known.trace - most - known.slack, trace_form, 0.0)


def gap_bound(low_rank: LowRank, known: Moments, n_clusters: int) -> float:
    """L(Ĉ) − L(C*) ≤ Σ_{i < K} λ_i(JE_rJ), for Ĉ optimal on the embedding (sharpened theorem).

    The sum is at most tr(JE_rJ), and at most what the moments of JE_rJ allow. For the early form,
    whose error is not positive semidefinite, the difference to the late one is added.
    """
    k = n_clusters - 1
    if low_rank.early is not None:
        return known.residual + _signed_leading(low_rank.factor, low_rank.early, k)
    dropped = float(low_rank.eigenvalues[low_rank.rank :].sum())
    trace = known.residual + dropped
    if not np.isfinite(known.squares):
        return trace
    kept = np.square(known.theta[: low_rank.rank]).sum()
    squares = max(known.squares - float(kept), 0.0)
    return min(trace, leading_sum_bound(np.zeros(0), k, trace, squares, known.count))


def _signed_leading(F: FloatArray, Y: FloatArray, k: int) -> float:
    """Σ of the k largest positive and k largest negative eigenvalues of FFᵀ − YYᵀ, absolute."""
    signs = np.repeat([1.0, -1.0], [F.shape[1], Y.shape[1]])
    R = np.zeros((0, len(signs)))
    for rows in row_blocks(len(F)):  # R of [F, Y] from R of the rows above and a block of rows
        both = np.concatenate([F[rows], Y[rows]], axis=1)
        both = np.concatenate([R, both])
        R = linalg.qr(both, mode="r", check_finite=False, overwrite_a=True)[0][: len(signs)]
    values = np.linalg.eigvalsh((R * signs) @ R.T)
    return float(np.maximum(values[::-1][:k], 0).sum() + np.maximum(-values[:k], 0).sum())


def certify(
    operator: KernelOperator | None,
    labels: Any,
    approximation: LowRank,
    *,
    n_clusters: int | None = None,
    exact: bool = False,
    failure_probability: float | None = None,
    objective_at_most: float = np.inf,
    seed: int = 0,
    n_threads: int = 1,
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
    n_clusters : int, optional
        Clusters that the best possible clustering may have; the number of labels if left out.
    exact : bool
        Compute the objective of the labels exactly: one pass.
    failure_probability : float, optional
        Compute the bounds that hold except with this probability: one pass, the same one.
    objective_at_most : float
        An upper bound on the objective that is known otherwise, as after refinement.
    seed, n_threads
        Of the pass.
    """
    with Crew(1):
        return _certify(
            operator,
            np.asarray(labels),
            approximation,
            n_clusters,
            exact,
            failure_probability,
            objective_at_most,
            seed,
            n_threads,
        )


def _certify(
    operator: KernelOperator | None,
    labels: FloatArray,
    approximation: LowRank,
    n_clusters: int | None,
    exact: bool,
    failure_probability: float | None,
    objective_at_most: float,
    seed: int,
    n_threads: int,
) -> Certificate:
    """Do what ``certify`` says, with BLAS held to one thread."""
    n = len(approximation.factor)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or (n and labels.min() < 0):
        raise ValueError(
            f"labels must be {n} whole numbers from 0, one a sample; got shape {labels.shape} "
            f"and dtype {labels.dtype}."
        )
    n_clusters = len(np.unique(labels)) if n_clusters is None else n_clusters
    common: dict[str, Any] = {
        "n_clusters": n_clusters,
        "trace_kernel": approximation.trace,
        "trace_error": approximation.trace_error,
    }
    is_psd = None if operator is None else operator.is_psd
    reason = _no_bound(approximation, is_psd)
    if reason is not None:
        objective = None
        if exact:
            _needs_operator(operator)
            objective, _, _ = _later_pass(operator, labels, approximation, 0, seed, n_threads)
        return Certificate(**common, objective=objective, reason=reason)
    root = None if operator is None else operator.root_weights
    weights = None if root is None else root**2
    objective = size = None
    if exact or failure_probability is not None:
        _needs_operator(operator)
        probes = PROBES if failure_probability is not None else 0
        objective, size, result = _later_pass(
            operator, labels, approximation, probes, seed, n_threads
        )
        # That pass has met all of K: landmark methods get their moments here.
        approximation = replace(
            approximation, row_sums=result.row_sums, sum_of_squares=result.sum_of_squares
        )
    known = moments(approximation, root)
    lower, upper = bracket(approximation, labels, weights, known)
    upper = min(upper, objective_at_most)
    if objective is not None:
        slack = 4 * approximation.eta * approximation.trace
        lower, upper = max(objective - slack, 0.0), min(objective + slack, upper)
    best = optimum_lower_bound(known, n_clusters)
    if len(np.unique(labels)) <= n_clusters:
        lower = max(lower, min(best, upper))  # no labels are better than the best
    gap = gap_bound(approximation, known, n_clusters) if approximation.rank else None
    probable_gap = probable_best = None
    if failure_probability is not None and size is not None and gap is not None:
        epsilon = size / np.sqrt(chi2.ppf(failure_probability, PROBES)) + known.slack
        probable_gap, probable_best = _probable(
            approximation, known, n_clusters, epsilon, gap, best
        )
    useful = best > 0 and np.isfinite(upper)
    relative = upper / best - 1 if useful else None
    why = None
    if relative is None or relative > USELESS:
        why = (
            "The spectrum of this kernel falls too fast, or the sketch is too narrow, for a bound "
            "from its eigenvalues."
            if np.isfinite(known.squares)
            else "This method meets only some columns of the kernel; certify with exact=True makes "
            "a pass over all of it."
        )
    return Certificate(
        **common,
        gap_bound=gap,
        objective_lower=lower,
        objective_upper=upper,
        objective=objective if exact else None,
        optimum_lower=best,
        relative_gap=relative,
        gap_bound_probabilistic=probable_gap,
        optimum_lower_probabilistic=probable_best,
        failure_probability=failure_probability,
        assumes_psd=is_psd is None,
        reason=why,
    )


def _no_bound(approximation: LowRank, is_psd: bool | None) -> str | None:
    if approximation.negative_mass > 0:
        return (
            f"Negative eigenvalues were seen ({approximation.negative_mass:.2%} of the sketched "
            "core), and the bounds need a positive semidefinite kernel."
        )
    if is_psd is False:
        return "This kernel is not positive semidefinite in general, and the bounds need that."
    return None


def _needs_operator(operator: KernelOperator | None) -> None:
    if operator is None:
        raise ValueError(
            "the exact objective and the probabilistic bound need a pass over the kernel, and a "
            "stream's kernel is gone. Leave exact and failure_probability at their defaults."
        )


def _later_pass(
    operator: Any,
    labels: FloatArray,
    approximation: LowRank,
    probes: int,
    seed: int,
    n_threads: int,
) -> tuple[float, float, Pass]:
    """Return the exact objective, ‖EΨ‖₂ for Gaussian Ψ, and the pass that gave them."""
    n_clusters = int(labels.max(initial=0)) + 1
    root = np.ones(len(labels)) if operator.root_weights is None else operator.root_weights
    right = memberships(labels, root, n_clusters)
    Psi = np.random.default_rng([seed, 1]).standard_normal((len(labels), probes))
    result = operator.multiply(np.concatenate([right, Psi], axis=1), n_threads=n_threads)
    sizes = np.square(right).sum(axis=0)
    within = np.einsum("ij,ij->j", right, result.W[:, :n_clusters])
    diagonal = operator.diagonal() if operator.cheap_diagonal else result.diagonal
    trace = float(diagonal.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        objective = trace - float(np.where(sizes > 0, within / sizes, 0.0).sum())
    if not probes:
        return objective, 0.0, result
    with Crew(1):
        Z = result.W[:, n_clusters:] - approximation.factor @ gram(approximation.factor, Psi)
        size = float(np.linalg.norm(Z, 2))
        size += approximation.eta * float(np.linalg.norm(result.W[:, n_clusters:]))
    return objective, size, result


def _probable(
    approximation: LowRank,
    known: Moments,
    n_clusters: int,
    epsilon: float,
    gap: float,
    best: float,
) -> tuple[float, float]:
    """Bounds from ‖E‖₂ ≤ ε, which holds with the stated probability.

    For one Gaussian column ψ, |u₁ᵀψ|·‖E‖₂ ≤ ‖Eψ‖; for b of them ‖EΨ‖₂ ≥ ‖E‖₂·‖g‖ with ‖g‖² a
    chi-squared number of b degrees of freedom. Weyl's inequality does the rest.
    """
    k = n_clusters - 1
    theta = np.zeros(max(k, len(known.theta)))
    theta[: len(known.theta)] = known.theta
    slack = 16 * approximation.eta * float(approximation.eigenvalues[:1].sum())
    leading = float(theta[:k].sum()) + k * (epsilon + slack)
    probable_best = max(best, known.trace - leading - known.slack)
    if approximation.early is not None:
        return gap, probable_best
    dropped = np.zeros(k)
    rest = approximation.eigenvalues[approximation.rank :][:k]
    dropped[: len(rest)] = rest
    return min(gap, float((dropped + epsilon).sum())), probable_best
