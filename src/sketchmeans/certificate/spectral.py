"""The spectral theorem of a block: what its eigenvalues allow, for any lift of its kernel.

The projection P of a partition into at most K clusters holds u, the unit vector of the roots of the
weights, and has rank at most K. So ⟨A, P⟩ ≤ uᵀAu + Σ_{i < K} max(λ_i(JAJ), 0) =: f(A) for every
symmetric A, and tr K − f(A) bounds the objective from below wherever ⟨K, P⟩ ≤ ⟨A, P⟩ for all
partitions. A = K is one of these; ``lift`` and ``triangles`` find better ones. Only what is
computed here must be accurate: float64, eigenvalues by LAPACK, and the room that rounding takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray, IntArray

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CentredBlock:
    """JKJ of a few samples in float64, and what was known of K before it was centred."""

    K: FloatArray
    """J D^½ K D^½ J: the objective of any labels is the same with it."""
    u: FloatArray
    """The unit vector of the roots of the weights, all of them positive."""
    trace: float
    """tr K, before."""
    size: float
    """‖K‖_F, before: rounding is relative to that, not to what centring leaves of it."""
    error: float
    """What the rounding of entries can do to a trace and a sum over clusters together."""
    is_psd: bool
    """Whether JKJ ≽ 0 is known; no objective is negative then."""

    def __len__(self) -> int:
        return len(self.u)

    @property
    def spread(self) -> float:
        """Tr JKJ: the objective of one cluster for all."""
        return float(np.trace(self.K))

    def slack(self, size: float, n_clusters: int) -> float:
        """Return what rounding can add to a bound from a matrix of this Frobenius norm."""
        rounded = np.sqrt(n_clusters) * (self.size + size) + self.trace
        return float(len(self) * EPS * rounded + self.error)


def centred_block(
    K: FloatArray,
    weights: FloatArray | None = None,
    rounding: float = 0.0,
    *,
    is_psd: bool = True,
    absolute: float = 0.0,
) -> CentredBlock:
    """Return JKJ of a kernel matrix, which is overwritten.

    Parameters
    ----------
    K : array of shape (b, b)
        Symmetric to rounding, in float64.
    weights : array of shape (b,), optional
        All of them positive.
    rounding : float
        ε of the entries, as in ``kernels.rounding``. Where K may be indefinite, its entries are
        taken to be off by ε times the largest of them.
    is_psd : bool
        Whether K is known to be positive semidefinite.
    absolute : float
        What entries may be off by besides, whatever their size.
    """
    b = len(K)
    K += K.T.copy()
    K /= 2
    u, mass = np.full(b, 1 / np.sqrt(max(b, 1))), float(b)
    largest = 0.0 if is_psd else float(np.abs(K).max(initial=0.0))
    if weights is not None:
        root = np.sqrt(weights)
        K *= root[:, None]
        K *= root
        u, mass = root / np.linalg.norm(root), float(weights.sum())
    trace, size = float(np.trace(K)), float(np.linalg.norm(K))
    # |⟨ΔK, P⟩| ≤ ε tr K by Cauchy and Schwarz; else ‖ΔK‖_F √K, and √K ≤ √b.
    error = 2 * rounding * max(trace, 0.0)
    if not is_psd:
        error = (rounding * largest + absolute) * mass * (1 + np.sqrt(b))
    return CentredBlock(centre(K, u), u, abs(trace), size, float(error), is_psd)


def centre(A: FloatArray, u: FloatArray) -> FloatArray:
    """Turn A into JAJ, in place: A − u(Au)ᵀ − (Au)uᵀ + (uᵀAu)uuᵀ."""
    along = A @ u
    along -= u * ((u @ along) / 2)
    change = np.outer(u, along)
    A -= change
    A -= change.T
    return A


def objective_bound(block: CentredBlock, A: FloatArray, n_clusters: int) -> float:
    """Return tr K − f(A) less its slack: no labels have less, if ⟨K, P⟩ ≤ ⟨A, P⟩ for all of them.

    Never below zero for K ≽ 0, and zero there for no more samples than clusters. A is overwritten.
    """
    b, least = len(block), 0.0 if block.is_psd else -np.inf
    if block.is_psd and b <= n_clusters:
        return 0.0
    # NOTE: LAPACK reads one half of A, uᵀAu both: where they differ by the rounding of float32,
    # the bound was too high by as much (test_no_level_exceeds_the_best_of_all_partitions).
    A += A.T.copy()
    A /= 2
    size = float(np.linalg.norm(A))
    if not np.isfinite(size):
        return least
    along = float(block.u @ A @ block.u)
    leading, count = 0.0, min(n_clusters - 1, b - 1)
    if count:
        centre(A, block.u)
        # NOTE: Ritz values of an iteration lie below the eigenvalues and would not bound anything.
        values = linalg.eigh(
            A,
            eigvals_only=True,
            subset_by_index=[b - count, b - 1],
            driver="evr",
            overwrite_a=True,
            check_finite=False,
        )
        leading = float(np.maximum(values, 0.0).sum())
    return max(block.spread - along - leading - block.slack(size, n_clusters), least)


def objective_of(block: CentredBlock, labels: IntArray) -> tuple[float, float]:
    """Return the objective of labels of the block, and what rounding can have done to it."""
    members = (labels[:, None] == np.unique(labels)) * block.u[:, None]
    sizes = np.square(members).sum(axis=0)
    within = np.einsum("ij,ij->j", members, block.K @ members) / sizes
    return block.spread - float(within.sum()), block.slack(0.0, len(sizes))
