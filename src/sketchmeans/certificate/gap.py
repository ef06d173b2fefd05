"""The gap theorem, sharpened: how far the best clustering of an embedding is from the best of all.

With P* and P̂ for the two, L(Ĉ) − L(C*) ≤ ⟨E, P* − P̂⟩ for the error E of the embedding, and both
are projections that hold u, of rank K: only the K − 1 leading eigenvalues of JEJ count.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.certificate.moments import Moments, centred
from sketchmeans.lowrank import LowRank
from sketchmeans.tall import gram, triangle


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
    by_parts = all_columns + truncated(known, r, k)
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


def signed_leading(F: Any, Y: Any, u: FloatArray, k: int) -> float:
    """Σ of the k largest positive and k largest negative eigenvalues of J(FFᵀ − YYᵀ)J, absolute."""
    signs = np.repeat([1.0, -1.0], [F.shape[1], Y.shape[1]])
    along = np.concatenate([gram(A, u[:, None])[:, 0] for A in (F, Y)])
    R = triangle(F, Y, u, make=partial(_both_centred, along=along))
    values = np.linalg.eigvalsh((R * signs) @ R.T)
    return float(np.maximum(values[::-1][:k], 0).sum() + np.maximum(-values[:k], 0).sum())


def _both_centred(F: FloatArray, Y: FloatArray, u: FloatArray, *, along: FloatArray) -> FloatArray:
    return centred(np.concatenate([F, Y], axis=1), u, along)


def truncated(known: Moments, rank: int, k: int) -> float:
    """Sum the k leading eigenvalues of what a truncation to ``rank`` columns took from JK̂J."""
    cut = np.linalg.eigvalsh(known.centred[rank:, rank:])[::-1][:k]
    return float(np.maximum(cut, 0.0).sum())
