"""The best approximation of its rank: leading eigenvectors of K."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Pass
from sketchmeans.lowrank.core import CUT, judge, noise_level
from sketchmeans.lowrank.result import LowRank, warn_indefinite
from sketchmeans.operators import FeatureMapOperator, KernelOperator

DENSE_LIMIT = 3000
"""Samples up to which K is formed as a matrix: 72 MB in float64."""


def forms_matrix(n: int, rank: int) -> bool:
    """Whether K is formed as a matrix: for few samples, or where half of its columns are asked."""
    return n <= DENSE_LIMIT or rank > n // 2


def exact(operator: KernelOperator, *, rank: int, seed: int = 0, n_threads: int = 1) -> LowRank:
    """Approximate K by its leading eigenvectors, the best approximation of this rank.

    Up to ``DENSE_LIMIT`` samples, or for more than n / 2 columns, K is formed and decomposed: n²
    entries and the diagonal. A feature map needs only its Gram matrix. Otherwise Lanczos iterations
    run on the operator, one pass over K each: some tens where the eigenvalues asked for stand out
    of rounding, hundreds where K has fewer. Memory: n × 3·rank
    numbers and a few tiles, or a few times n² where K is formed.
    """
    n = operator.shape[0]
    rank = min(rank, n)
    diagonal = operator.diagonal()
    if isinstance(operator, FeatureMapOperator) and operator.monomials.count < n:
        return _from_features(operator, rank, diagonal, seed, n_threads)
    if forms_matrix(n, rank):
        K = operator.columns(np.arange(n), n_threads=n_threads)
        K = (K + K.T) / 2
        with OneBlasThread():
            values, vectors = linalg.eigh(K, subset_by_index=[n - rank, n - 1])
            smallest = linalg.eigh(K, subset_by_index=[0, 0], eigvals_only=True)[0]
        entries, passes = n * n, 1
        rounding, checked = operator.rounding(seed, fine=True)
        eta = noise_level(np.dtype(np.float64), rounding)
        u = np.ones(n) if operator.root_weights is None else operator.root_weights
        row_sums, squares = K @ u, float(np.square(K).sum())
    else:
        counter = _Counter(operator, n_threads)
        start = np.random.default_rng(seed).standard_normal(n)
        result = operator.multiply(start[:, None], n_threads=n_threads)
        values, vectors, smallest = np.zeros(0), np.zeros((n, 0)), 0.0
        if result.W.any():  # K = 0 has no direction to begin with
            values, vectors = eigsh(
                LinearOperator((n, n), counter, dtype=np.float64), k=rank, which="LA", v0=start
            )
        entries, passes = counter.entries + result.entries, counter.passes + 1
        row_sums, squares = result.row_sums, result.sum_of_squares
        eta, rounding, checked = _measured(operator, start[:, None], result, seed)
    largest = float(np.abs(values).max(initial=0.0))
    worst = float(max(-smallest, 0.0))
    known = eta
    eta, indefinite = judge(worst, largest, known, operator.is_psd)
    negative = 0.0
    if indefinite:
        negative = worst / (largest + worst)
        warn_indefinite(negative, "by its leading eigenvectors")
    elif eta > known and (trace := float(diagonal.sum())) > 0:
        rounding = max(rounding, n * worst / trace)  # as ``Core.rounding``
    order = np.argsort(values)[::-1]
    order = order[values[order] > CUT * eta * largest]
    values, vectors = values[order], vectors[:, order]
    return LowRank(
        factor=vectors * np.sqrt(values),
        eigenvalues=values,
        rank=len(values),
        dual=_dual(operator, vectors / np.sqrt(values)),
        trace=float(diagonal.sum()),
        row_sums=row_sums,
        sum_of_squares=squares,
        eta=eta,
        rounding=rounding,
        passes=passes,
        entries=entries + operator.diagonal_entries,
        audit_entries=checked,
        pass_seconds=0.0,
        negative_mass=negative,
    )


class _Counter:
    """K @ v for Lanczos, with the passes counted."""

    def __init__(self, operator: KernelOperator, n_threads: int) -> None:
        self.operator, self.n_threads = operator, n_threads
        self.passes = self.entries = 0

    def __call__(self, v: FloatArray) -> FloatArray:
        result = self.operator.multiply(v.reshape(-1, 1), n_threads=self.n_threads)
        self.passes += 1
        self.entries += result.entries
        return result.W[:, 0]


def _dual(operator: KernelOperator, A: FloatArray) -> FloatArray:
    return A if operator.root_weights is None else A * operator.root_weights[:, None]


def _measured(
    operator: KernelOperator, right: FloatArray, result: Pass, seed: int
) -> tuple[float, float, int]:
    """Return η of a pass and ε of its entries, both measured, and the entries that it took."""
    error, checked = operator.relative_error(right, result, seed)
    rounding, more = operator.rounding(seed)
    return noise_level(operator.dtype, max(error, result.audit)), rounding, checked + more


def _from_features(
    operator: FeatureMapOperator, rank: int, diagonal: FloatArray, seed: int, n_threads: int
) -> LowRank:
    """Decompose ΦΦᵀ through ΦᵀΦ: linear in n."""
    n = operator.shape[0]
    u = np.ones(n) if operator.root_weights is None else operator.root_weights
    result = operator.multiply(u[:, None], n_threads=n_threads)
    eta, rounding, checked = _measured(operator, u[:, None], result, seed)
    with OneBlasThread():
        squared = np.zeros((operator.monomials.count,) * 2)
        for rows in row_blocks(n, 1024):
            block = operator.features(rows)
            squared += block.T @ block
        values, V = np.linalg.eigh(squared)
        values, V = values[::-1][:rank], V[:, ::-1][:, :rank]
        keep = values > CUT * eta * values.max(initial=0.0)
        values, V = values[keep], V[:, keep]
        factor = np.empty((n, len(values)))
        for rows in row_blocks(n, 1024):
            factor[rows] = operator.features(rows) @ V
    return LowRank(
        factor=factor,
        eigenvalues=values,
        rank=len(values),
        dual=_dual(operator, factor / values),
        trace=float(diagonal.sum()),
        row_sums=result.row_sums,
        sum_of_squares=result.sum_of_squares,
        eta=eta,
        rounding=rounding,
        passes=1,
        entries=n,
        audit_entries=checked,
        pass_seconds=0.0,
    )
