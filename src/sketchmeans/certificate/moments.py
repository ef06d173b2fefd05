"""What bounds need to know of K and K̂: moments of the centred kernel, with room for rounding.

u is the unit vector of ones (of the roots of the weights), J = I − uuᵀ. Everything is stated for
the factor F as it is stored, K̂ = FFᵀ: nothing assumes that its columns are orthogonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.lowrank import LowRank
from sketchmeans.rows import Part
from sketchmeans.tall import gram, over


@dataclass(frozen=True)
class Moments:
    """What is known of JKJ and JK̂J, and how far rounding may have moved it."""

    count: int
    """n − 1, the eigenvalues of JKJ."""
    trace_lower: float
    trace_upper: float
    """Between these lies tr JKJ."""
    squares: float
    """‖JKJ‖_F² from above; infinite where it is not known."""
    centred: FloatArray
    """FᵀJF: its eigenvalues are those of JK̂J."""
    size: float
    """λ₁(K̂)."""
    slack: float
    """σ: K̂ ≼ K holds up to negative eigenvalues of K − K̂ that sum to at most this."""
    drop: float
    """Each eigenvalue of JK̂J exceeds that of JKJ by at most this."""
    error: float
    """2ε·tr K: what rounding of entries can do to a trace and a sum over clusters together."""

    @property
    def eigenvalues(self) -> FloatArray:
        """Of JK̂J, falling."""
        return np.linalg.eigvalsh(self.centred)[::-1]

    @property
    def theta(self) -> FloatArray:
        """Lower bounds on the leading eigenvalues of JKJ, falling."""
        return np.maximum(self.eigenvalues - self.drop, 0.0)

    @property
    def residual(self) -> float:
        """tr(J(K − K̂)J) from above."""
        return max(self.trace_upper - float(np.trace(self.centred)), 0.0) + self.slack


def unit_vector(n: int, root_weights: FloatArray | None) -> FloatArray:
    """Return u."""
    u = np.ones(n) if root_weights is None else root_weights
    return u / np.linalg.norm(u)


def centred_gram(F: Any, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return FᵀJF, from rows that are centred before they are multiplied, and Fᵀu.

    NOTE: FᵀF − (Fᵀu)(Fᵀu)ᵀ loses every digit where the kernel is large and nearly constant
    (test_samples_far_from_the_origin_keep_a_valid_bound).
    """
    along = gram(F, u[:, None])[:, 0]
    return over(F, partial(_centred_block, along=along), u, name="certify").total, along


def centred(F: FloatArray, u: FloatArray, along: FloatArray) -> FloatArray:
    """Return rows of JF."""
    return F - np.outer(u, along)


def _centred_block(F: FloatArray, u: FloatArray, *, along: FloatArray) -> Part:
    block = centred(F, u, along)
    return Part((), block.T @ block)


def moments(low_rank: LowRank, root_weights: FloatArray | None = None) -> Moments:
    """Collect the moments of the centred kernel from one pass: K u, ‖K‖_F² and the factor.

    Where the method did not meet all of K, tr JKJ is only known to lie between tr JK̂J and
    tr K − uᵀK̂u. Runs with BLAS on one thread, if the caller has seen to that.
    """
    eta, facts = low_rank.eta, low_rank.facts
    n = len(low_rank.factor)
    u = unit_vector(n, root_weights)
    if low_rank.whole is not None and low_rank.whole.gram is not None:
        squared, along = low_rank.whole.gram.centred, low_rank.whole.gram.along
    else:
        squared, along = centred_gram(low_rank.factor, u)
    s = len(along)
    size = float(np.linalg.eigvalsh(squared + np.outer(along, along))[-1]) if s else 0.0
    total = max(facts.trace, 0.0)
    spread = facts.rounding * total  # ε·tr K bounds ‖ΔK‖_F and the error of any ⟨K, P⟩
    slack = 2 * s * eta * size + spread
    known: dict[str, Any] = {
        "count": n - 1,
        "centred": squared,
        "size": size,
        "slack": slack,
        "drop": 16 * eta * size + spread,
        "error": 2 * spread,
    }
    if facts.row_sums is None or facts.sum_of_squares is None:
        upper = facts.trace + spread - float(along @ along) + slack
        return Moments(trace_lower=0.0, trace_upper=max(upper, 0.0), squares=np.inf, **known)
    length = float(np.sqrt(n)) if root_weights is None else float(np.linalg.norm(root_weights))
    Ku = facts.row_sums / length
    uKu, norm = float(u @ Ku), float(np.linalg.norm(Ku))
    trace = facts.trace - uKu
    squares = facts.sum_of_squares - 2 * norm**2 + uKu**2
    # Each of the three terms is rounded, and their difference may be far smaller than they are.
    squares += 8 * eta * facts.sum_of_squares
    squares += 2 * spread * (2 * norm + abs(uKu)) + 3 * spread**2
    return Moments(
        trace_lower=max(trace - 2 * spread, 0.0),
        trace_upper=max(trace + 2 * spread, 0.0),
        squares=float(np.sqrt(max(squares, 0.0)) + spread) ** 2,
        **known,
    )
