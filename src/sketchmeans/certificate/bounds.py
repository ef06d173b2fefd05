"""Bounds on the objective of labels and of the best clustering: one function a theorem.

With P = CᵀC for an indicator matrix C, the objective is L(C) = tr K − ⟨K, P⟩. Let K̂ = FFᵀ ≼ K be
an approximation with error E = K − K̂ ≽ 0. P is a projection that holds u; P − uuᵀ is one of rank
at most K − 1. Everything below follows from that; docs/certificate.md has the proofs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import gram, row_blocks
from sketchmeans.certificate.moments import Moments, unit_vector
from sketchmeans.certificate.objective import memberships
from sketchmeans.certificate.spectrum import leading_sum_bound
from sketchmeans.lowrank import LowRank


def approximate_objective(F: FloatArray, labels: FloatArray, weights: FloatArray | None) -> float:
    """L̂(C) = tr JK̂J − ⟨JK̂J, CᵀC⟩ for K̂ = FFᵀ, in the coordinates of D^½ K D^½."""
    n_clusters = int(labels.max(initial=0)) + 1
    heavy = np.ones(len(F)) if weights is None else weights
    sizes = np.bincount(labels, heavy, n_clusters)
    u = unit_vector(len(F), np.sqrt(heavy))
    along = gram(F, u[:, None])[:, 0]
    sums = np.zeros((n_clusters, F.shape[1]))
    total = 0.0
    for rows in row_blocks(len(F)):
        block = F[rows] - np.outer(u[rows], along)
        sums += memberships(labels[rows], np.sqrt(heavy[rows]), n_clusters).T @ block
        total += float(np.square(block).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(sizes > 0, np.square(sums).sum(axis=1) / sizes, 0.0)
    return total - float(within.sum())


def bracket(
    F: FloatArray, labels: FloatArray, weights: FloatArray | None, known: Moments
) -> tuple[float, float]:
    """L̂ ≤ L(labels) ≤ L̂ + tr(JEJ), for labels of any origin (the bracket theorem)."""
    value = approximate_objective(F, labels, weights)
    return max(value - known.slack - known.error, 0.0), value + known.residual + known.error


def optimum_lower_bound(known: Moments, n_clusters: int) -> float:
    """L(C*) ≥ tr JKJ − S_max (the moment theorem); without moments, Σ_{i ≥ K} λ_i(JK̂J).

    tr JKJ − S_max does not fall when the trace grows: the lower end of its interval is safe.
    """
    k = n_clusters - 1
    theta, t = known.theta, known.trace_lower
    trace_form = float(theta[k:].sum())
    if not np.isfinite(known.squares):
        return max(trace_form - known.error, 0.0)
    most = leading_sum_bound(theta, k, t, known.squares, known.count)
    return max(t - most - known.error, trace_form - known.error, 0.0)


def gap_bound(low_rank: LowRank, known: Moments, n_clusters: int, dtype: Any, u: Any) -> float:
    """L(Ĉ) − L(C*) ≤ Σ_{i < K} λ_i(JE_rJ), for Ĉ optimal on the embedding (sharpened theorem).

    E_r is the error of the embedding, E_s that of all columns: the sum is bounded by the moments
    of JE_rJ, and by those of JE_sJ with the leading eigenvalues of what was truncated. For the
    early form, whose error is not positive semidefinite, the difference to the late one is added.

    Parameters
    ----------
    dtype : dtype
        In which the embedding is stored: Ĉ is optimal on that.
    u : array of shape (n,)
        The unit vector that J takes away.
    """
    k, r = n_clusters - 1, low_rank.rank
    if k == 0:
        return 0.0
    all_columns = _leading_error(known, known.centred, k)
    stored = 2 * float(np.finfo(dtype).eps) * float(low_rank.leading.sum())
    if low_rank.early is not None:
        change = signed_leading(low_rank.factor, low_rank.early, u, k)
        return all_columns + change + stored + known.slack
    cut = np.linalg.eigvalsh(known.centred[r:, r:])[::-1][:k]
    by_parts = all_columns + float(np.maximum(cut, 0.0).sum())
    return min(_leading_error(known, known.centred[:r, :r], k), by_parts) + stored


def _leading_error(known: Moments, M: FloatArray, k: int) -> float:
    """Bound the sum of the k leading eigenvalues of J(K − K̂)J from above, for M = YᵀJY, K̂ = YYᵀ.

    With trace t and squared Frobenius norm at most q over m eigenvalues, the sum is at most t, and
    at most (kt + √(k(m − k)(mq − t²)))/m. The second rises up to t = √(kq) and falls beyond, so it
    is taken at the least favourable trace of the interval, not at its upper end.
    """
    m, sigma = known.count, known.slack
    held = float(np.trace(M))
    low = max(known.trace_lower - held, 0.0)
    high = max(known.trace_upper - held, 0.0) + sigma
    if not np.isfinite(known.squares) or k >= m:
        return high + sigma
    q = max(known.squares - float(np.square(M).sum()), 0.0) + 2 * sigma * known.size
    if low**2 > m * q:  # the moments contradict each other; the trace form holds all the same
        return high + sigma
    t = min(max(np.sqrt(k * q), low), high)
    if t**2 <= k * q:
        return float(t) + sigma
    spare = max(m * q - t**2, 0.0)
    return float(k * t + np.sqrt(k * (m - k) * spare)) / m + sigma


def signed_leading(F: FloatArray, Y: FloatArray, u: FloatArray, k: int) -> float:
    """Σ of the k largest positive and k largest negative eigenvalues of J(FFᵀ − YYᵀ)J, absolute."""
    width = F.shape[1] + Y.shape[1]
    signs = np.repeat([1.0, -1.0], [F.shape[1], Y.shape[1]])
    along = np.concatenate([gram(A, u[:, None])[:, 0] for A in (F, Y)])
    R = np.zeros((0, width))
    for rows in row_blocks(len(F)):  # a QR decomposition, a block of rows at a time
        block = np.concatenate([F[rows], Y[rows]], axis=1) - np.outer(u[rows], along)
        R = linalg.qr(np.concatenate([R, block]), mode="r", check_finite=False)[0][:width]
    values = np.linalg.eigvalsh((R * signs) @ R.T)
    return float(np.maximum(values[::-1][:k], 0).sum() + np.maximum(-values[:k], 0).sum())
