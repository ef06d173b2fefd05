"""The best approximation of its rank: leading eigenvectors of K."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.engine import ALONE, Run
from sketchmeans.lowrank.core import CUT, judge, measured_pass, noise_level
from sketchmeans.lowrank.eigen import leading_eigenvectors
from sketchmeans.lowrank.filtered import filtered, is_filtered
from sketchmeans.lowrank.result import Cost, Facts, LowRank, warn_indefinite
from sketchmeans.lowrank.sparse_features import from_sparse_features
from sketchmeans.operators import (
    FeatureOperator,
    KernelOperator,
    NeighborOperator,
    NewPoints,
)
from sketchmeans.tall import gram

DENSE_LIMIT = 3000
"""Samples up to which K is formed as a matrix: 72 MB in float64."""


def forms_matrix(n: int, rank: int) -> bool:
    """Whether K is formed as a matrix: for few samples, or where half of its columns are asked."""
    return n <= DENSE_LIMIT or rank > n // 2


def useful_features(operator: KernelOperator) -> FeatureOperator | None:
    """Return the operator where it has a feature map of fewer columns than there are samples."""
    if isinstance(operator, FeatureOperator) and operator.map.count < operator.shape[0]:
        return operator
    return None


def exact(operator: KernelOperator, *, rank: int, seed: int = 0, run: Run = ALONE) -> LowRank:
    """Approximate K by its leading eigenvectors, the best approximation of this rank.

    Up to ``DENSE_LIMIT`` samples, or for more than n / 2 columns, K is formed and decomposed: n²
    entries and the diagonal. A feature map needs only its Gram matrix, a sparse one more of it
    (``sparse_features``), and a sparse kernel a few hundred passes (``filtered``). Otherwise there
    are Lanczos iterations on the operator, one pass over K each: some tens where the eigenvalues
    asked for stand out of rounding, hundreds where K has fewer. Memory: n × 3·rank numbers and a
    few tiles, or a few times n² where K is formed.
    """
    n = operator.shape[0]
    rank = min(rank, n)
    if isinstance(operator, NeighborOperator):
        return from_sparse_features(operator, rank=rank, run=run)
    if is_filtered(operator, rank):
        return filtered(operator, rank=rank, seed=seed, run=run)
    diagonal = operator.diagonal()
    if features := useful_features(operator):
        return _from_features(features, rank, diagonal, seed, run)
    decompose = _dense if forms_matrix(n, rank) else _lanczos
    found = decompose(operator, rank, diagonal, seed, run)
    largest = float(np.abs(found.values).max(initial=0.0))
    worst = float(max(-found.smallest, 0.0))
    eta, indefinite = judge(worst, largest, found.eta, operator.is_psd)
    negative, facts = 0.0, found.facts
    if indefinite:
        negative = worst / (largest + worst)
        warn_indefinite(negative, "by its leading eigenvectors")
    elif eta > found.eta and facts.trace > 0:
        # As ``Core.rounding``.
        facts = replace(facts, rounding=max(facts.rounding, n * worst / facts.trace))
    order = np.argsort(found.values)[::-1]
    order = order[found.values[order] > CUT * eta * largest]
    values, vectors = found.values[order], found.vectors[:, order]
    return LowRank(
        factor=vectors * np.sqrt(values),
        eigenvalues=values,
        rank=len(values),
        dual=_dual(operator, vectors / np.sqrt(values)),
        facts=facts,
        eta=eta,
        cost=found.cost + Cost(entries=operator.diagonal_entries),
        negative_mass=negative,
        new_points=_as_fine(operator) if decompose is _dense else None,
    )


def _as_fine(operator: KernelOperator) -> NewPoints | None:
    """Return the kernel of new points with all samples as K was formed, where its tiles are not.

    NOTE: K in float64 has eigenvectors that float32 does not see: entries that are off by 1e-7
    would be divided by √λ of 1e-6 (test_new_points_of_exact_eigenvectors_are_as_fine_as_these).
    """
    if operator.dtype == np.float64 or operator.data is None:
        return None
    return operator.landmarks_at(operator.data)


@dataclass(frozen=True)
class _Spectrum:
    """Leading eigenvalues of K with their vectors, and the smallest as far as it is known."""

    values: FloatArray
    vectors: FloatArray
    smallest: float
    facts: Facts
    eta: float
    cost: Cost


def _dense(
    operator: KernelOperator, rank: int, diagonal: FloatArray, seed: int, run: Run
) -> _Spectrum:
    """Form K and decompose it."""
    n = operator.shape[0]
    K = operator.columns(np.arange(n), run)
    K = (K + K.T) / 2
    with OneBlasThread():
        values, vectors = leading_eigenvectors(K, rank)
        smallest = linalg.eigh(K, subset_by_index=[0, 0], eigvals_only=True)[0]
    rounding, checked = operator.rounding(seed, fine=True)
    eta = noise_level(np.dtype(np.float64), rounding)
    squares = float(np.square(K).sum())
    facts = Facts(float(diagonal.sum()), rounding, K @ operator.carried, squares)
    return _Spectrum(values, vectors, smallest, facts, eta, Cost(1, n * n, checked))


def _lanczos(
    operator: KernelOperator, rank: int, diagonal: FloatArray, seed: int, run: Run
) -> _Spectrum:
    """Iterate on the operator; the first pass is measured."""
    n = operator.shape[0]
    start = np.random.default_rng(seed).standard_normal(n)
    result, eta, cost = measured_pass(operator, start[:, None], seed, run)
    rounding, checked = operator.rounding(seed)
    cost += Cost(audit_entries=checked)

    def multiply(v: FloatArray) -> FloatArray:
        nonlocal cost
        found = operator.multiply(v.reshape(-1, 1), run)
        cost += Cost(1, found.entries)
        return found.W[:, 0]

    values, vectors = np.zeros(0), np.zeros((n, 0))
    if result.W.any():  # K = 0 has no direction to begin with
        K = LinearOperator((n, n), multiply, dtype=np.float64)
        values, vectors = eigsh(K, k=rank, which="LA", v0=start)
    facts = Facts(float(diagonal.sum()), rounding, result.row_sums, result.sum_of_squares)
    return _Spectrum(values, vectors, 0.0, facts, eta, cost)


def _dual(operator: KernelOperator, A: FloatArray) -> FloatArray:
    return A if operator.root_weights is None else A * operator.root_weights[:, None]


def _from_features(
    operator: FeatureOperator, rank: int, diagonal: FloatArray, seed: int, run: Run
) -> LowRank:
    """Decompose ΦΦᵀ through ΦᵀΦ: linear in n."""
    n = operator.shape[0]
    result, eta, cost = measured_pass(operator, operator.carried[:, None], seed, run)
    rounding, checked = operator.rounding(seed)
    with OneBlasThread():
        squared = operator.gram(np.zeros(operator.map.count), run).squared
        values, V = np.linalg.eigh(squared)
        values, V = values[::-1][:rank], V[:, ::-1][:, :rank]
        keep = values > CUT * eta * values.max(initial=0.0)
        values, V = values[keep], V[:, keep]
        factor = operator.product(V, run)
        # NOTE: the inverse of the factor's own Gram matrix, not of the eigenvalues: V leans towards
        # the first eigenvector by eps, which one over λ of the last would make an error of √λ₁.
        root = np.sqrt(values)
        inverse = np.linalg.inv(gram(factor, factor) / np.outer(root, root)) / np.outer(root, root)
    return LowRank(
        factor=factor,
        eigenvalues=values,
        rank=len(values),
        dual=_dual(operator, factor @ inverse),
        facts=Facts(float(diagonal.sum()), rounding, result.row_sums, result.sum_of_squares),
        eta=eta,
        cost=cost + Cost(entries=n, audit_entries=checked),
    )
