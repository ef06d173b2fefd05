"""How far a clustering can be from the best: the certificate, and how it is made.

The theorems are in ``bounds``, what they need to know of the kernel in ``moments``. A certificate
is held against itself when it is made: bounds that contradict each other are not shown.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.stats import chi2

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import gram
from sketchmeans.certificate.bounds import bracket, gap_bound, optimum_lower_bound
from sketchmeans.certificate.moments import Moments, moments, unit_vector
from sketchmeans.certificate.objective import memberships
from sketchmeans.certificate.result import USELESS, Certificate
from sketchmeans.lowrank import LowRank
from sketchmeans.operators import KernelOperator

PROBES = 10
"""Gaussian columns that a pass carries for the probabilistic bound."""


def certify(
    operator: KernelOperator | None,
    labels: Any,
    approximation: LowRank,
    *,
    n_clusters: int | None = None,
    exact: bool = False,
    failure_probability: float | None = None,
    objective_at_most: float = np.inf,
    embedding_dtype: Any = np.float64,
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
    embedding_dtype : dtype
        In which the embedding was stored that was clustered, for ``gap_bound``.
    seed, n_threads
        Of the pass.
    """
    labels = np.asarray(labels)
    n = len(approximation.factor)
    if operator is not None and operator.shape[0] != n:
        raise ValueError(
            f"the operator has {operator.shape[0]} samples and the approximation {n}: both must be "
            "of the same kernel."
        )
    n_clusters = _check(labels, n, n_clusters, failure_probability)
    labels = np.unique(labels, return_inverse=True)[1]  # numbers may be any; clusters are few
    objective, size = None, 0.0
    with OneBlasThread():
        if exact or failure_probability is not None:
            probes = 0 if failure_probability is None else PROBES
            objective, size, approximation = _later_pass(
                operator, labels, approximation, probes, seed, n_threads
            )
        is_psd = None if operator is None else operator.is_psd
        plain = Certificate(
            n_clusters=n_clusters,
            trace_kernel=approximation.trace,
            trace_error=approximation.trace_error,
            objective=objective if exact else None,
            failure_probability=failure_probability,
            assumes_psd=is_psd is None,
            reason=_no_bound(approximation, is_psd),
        )
        if plain.reason is not None:
            return replace(plain, assumes_psd=False, failure_probability=None)
        root = None if operator is None else operator.root_weights
        known = moments(approximation, root)
        lower, upper = bracket(
            approximation.factor, labels, None if root is None else root**2, known
        )
        upper = min(upper, objective_at_most)
        if objective is not None:
            lower, upper = max(lower, objective - known.error), min(upper, objective + known.error)
        best = optimum_lower_bound(known, n_clusters)
        gap = probable_gap = probable_best = None
        if approximation.rank:
            u = unit_vector(len(labels), root)
            gap = gap_bound(approximation, known, n_clusters, embedding_dtype, u)
        if failure_probability is not None:
            norm = size / np.sqrt(chi2.ppf(failure_probability, PROBES)) + known.slack
            probable_best = max(best, _probable_best(known, n_clusters, norm))
            if gap is not None:
                probable_gap = min(gap, _probable_gap(approximation, known, n_clusters, norm))
    contradiction = _contradiction(lower, upper, best, approximation, known)
    if contradiction is not None:
        return replace(plain, assumes_psd=False, failure_probability=None, reason=contradiction)
    relative = upper / best - 1 if best > 0 else np.inf
    return replace(
        plain,
        gap_bound=gap,
        objective_lower=max(lower, best),  # no labels are better than the best
        objective_upper=upper,
        optimum_lower=best,
        relative_gap=relative if np.isfinite(relative) else None,
        gap_bound_probabilistic=probable_gap,
        optimum_lower_probabilistic=probable_best,
        reason=_weakness(known) if relative > USELESS else None,
    )


def _check(
    labels: FloatArray, n: int, n_clusters: int | None, failure_probability: float | None
) -> int:
    """Refuse what cannot be certified; return the number of clusters of the best clustering."""
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or (n and labels.min() < 0):
        raise ValueError(
            f"labels must be {n} whole numbers from 0, one a sample; got shape {labels.shape} "
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
            approximation.trace,
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
        "This method meets only some columns of the kernel; certify with exact=True makes "
        "a pass over all of it."
    )


def _later_pass(
    operator: KernelOperator | None,
    labels: FloatArray,
    approximation: LowRank,
    probes: int,
    seed: int,
    n_threads: int,
) -> tuple[float, float, LowRank]:
    """Return the exact objective, ‖EΨ‖₂ for Gaussian Ψ, and K̂ with the moments of K.

    That pass has met all of K: landmark methods get their moments here.
    """
    if operator is None:
        raise ValueError(
            "the exact objective and the probabilistic bound need a pass over the kernel, and a "
            "stream's kernel is gone. Leave exact and failure_probability at their defaults."
        )
    n_clusters = int(labels.max(initial=0)) + 1
    root = np.ones(len(labels)) if operator.root_weights is None else operator.root_weights
    right = memberships(labels, root, n_clusters)
    Psi = np.random.default_rng([seed, 1]).standard_normal((len(labels), probes))
    result = operator.multiply(np.concatenate([right, Psi], axis=1), n_threads=n_threads)
    sizes = np.square(right).sum(axis=0)
    within = np.einsum("ij,ij->j", right, result.W[:, :n_clusters])
    diagonal = operator.diagonal() if operator.cheap_diagonal else result.diagonal
    with np.errstate(divide="ignore", invalid="ignore"):
        objective = float(diagonal.sum() - np.where(sizes > 0, within / sizes, 0.0).sum())
    approximation = replace(
        approximation,
        trace=float(diagonal.sum()),
        row_sums=result.row_sums,
        sum_of_squares=result.sum_of_squares,
        rounding=max(approximation.rounding, operator.rounding(seed)[0]),
    )
    if not probes:
        return objective, 0.0, approximation
    Z = result.W[:, n_clusters:] - approximation.factor @ gram(approximation.factor, Psi)
    size = float(np.linalg.norm(Z, 2))
    size += approximation.eta * float(np.linalg.norm(result.W[:, n_clusters:]))
    size += approximation.rounding * approximation.trace * float(np.sqrt(probes))
    return objective, size, approximation


def _probable_best(known: Moments, n_clusters: int, norm: float) -> float:
    """Bound L(C*) from below by ‖E‖₂ ≤ norm, which holds with the stated probability.

    For one Gaussian column ψ, |u₁ᵀψ|·‖E‖₂ ≤ ‖Eψ‖; for b of them ‖EΨ‖₂ ≥ ‖E‖₂·‖g‖ with ‖g‖² a
    chi-squared number of b degrees of freedom. Weyl's inequality does the rest.
    """
    k = n_clusters - 1
    leading = float(np.maximum(known.eigenvalues[:k], 0.0).sum()) + k * norm
    return known.trace_lower - leading - known.error


def _probable_gap(approximation: LowRank, known: Moments, n_clusters: int, norm: float) -> float:
    """Bound the gap for an optimal clustering of the embedding by ‖E‖₂ ≤ norm."""
    if approximation.early is not None:
        return np.inf
    k, r = n_clusters - 1, approximation.rank
    cut = np.linalg.eigvalsh(known.centred[r:, r:])[::-1][:k]
    return float(np.maximum(cut, 0.0).sum()) + k * norm + known.slack
