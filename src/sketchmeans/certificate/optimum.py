"""The moment theorem: no clustering is better than what the moments of the centred kernel allow.

P − uuᵀ is a projection of rank at most K − 1 for every clustering, so L(C*) ≥ tr JKJ − S for any S
that bounds the sum of the K − 1 leading eigenvalues of JKJ. Let a positive semidefinite matrix of
order m have trace t and squared Frobenius norm at most f², and let its eigenvalues be at least
θ₁ ≥ θ₂ ≥ … . Its spectrum is then a point of a small convex problem, and the largest sum of k
coordinates over that problem is such an S. No randomness is involved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.certificate.moments import Moments


def optimum_lower_bound(known: Moments, n_clusters: int) -> float:
    """L(C*) ≥ tr JKJ − S_max (the moment theorem); without moments, Σ_{i ≥ K} λ_i(JK̂J).

    tr JKJ − S_max does not fall when the trace grows: the lower end of its interval is safe. Of the
    eigenvalues of JK̂J each may be off, or all of them together: K + N ≽ K̂ with tr N at most the
    slack raises no sum of eigenvalues beyond K by more than that.
    """
    k = n_clusters - 1
    values, t = known.eigenvalues, known.trace_lower
    theta = np.maximum(values - known.drop, 0.0)
    trace_form = max(float(theta[k:].sum()), float(values[k:].sum()) - known.slack)
    if not np.isfinite(known.squares):
        return max(trace_form - known.error, 0.0)
    most = leading_sum_bound(theta, k, t, known.squares, known.count)
    return max(t - most - known.error, trace_form - known.error, 0.0)


def _water_fill(floor: FloatArray, zeros: int, total: float) -> float:
    """Return the least Σx² with Σx = total and x ≥ (floor, 0, …, 0), floors falling.

    The minimum raises the lowest values to one common level, as water fills a vessel. A total
    below Σ floor cannot be reached and gives infinity.
    """
    spare = total - float(floor.sum())
    if spare < -1e-12 * max(abs(total), float(floor.sum())):
        return np.inf
    if not len(floor) and not zeros:
        return 0.0
    rising = floor[::-1]  # lowest first; below them lie the zeros
    filled, count, index = 0.0, zeros, 0  # ``count`` floors under the water sum to ``filled``
    # With the water at the next floor, how much lies above the floors that it covers?
    while index < len(rising) and not (count and rising[index] * count - filled >= spare):
        filled += float(rising[index])
        count, index = count + 1, index + 1
    height, dry = (filled + max(spare, 0.0)) / count, rising[index:]
    return float(count * height**2 + dry @ dry)


def leading_sum_bound(theta: FloatArray, k: int, t: float, f2: float, m: int) -> float:
    """Bound the sum of the k leading eigenvalues from above (the moment theorem).

    Parameters
    ----------
    theta : array, falling
        Lower bounds on the leading eigenvalues; may be empty.
    k : int
        How many eigenvalues are summed.
    t : float
        The trace.
    f2 : float
        An upper bound on the squared Frobenius norm.
    m : int
        How many eigenvalues there are.

    Returns
    -------
    float
        S_max = max Σ_{i ≤ k} x_i over x_i ≥ θ_i ≥ 0, Σx = t, Σx² ≤ f². Never above the trace
        bound t − Σ_{i > k} θ_i.

    >>> bound = leading_sum_bound(np.array([3.0]), 1, 4.0, 10.0, 2)  # spectrum (3, 1): exact
    >>> round(bound, 6)
    3.0
    """
    if k <= 0:
        return 0.0
    if k >= m:
        return t
    theta = np.maximum(theta[:m], 0.0)
    head = np.zeros(k)
    head[: min(k, len(theta))] = theta[:k]
    tail = theta[k:]
    rest = m - k - len(tail)

    def squares(leading: float) -> float:
        return _water_fill(head, 0, leading) + _water_fill(tail, rest, t - leading)

    low, high = float(head.sum()), t - float(tail.sum())
    if high <= low:
        return max(high, low)
    if squares(high) <= f2:
        return high
    return _last_below(squares, low, high, f2)


def _last_below(squares: Callable[[float], float], low: float, high: float, f2: float) -> float:
    """Return the last point at which a convex function is at most f², from above.

    Start from its minimiser, found by ternary search; from there it rises to the right. Halving
    ends on the safe side of the point, where scipy.optimize.brentq may end on either.
    """
    left, right = low, high
    for _ in range(80):  # (2/3)^80 is below rounding
        one, two = left + (right - left) / 3, right - (right - left) / 3
        if squares(one) <= squares(two):
            right = two
        else:
            left = one
    left, right = (left + right) / 2, high
    least = squares(left)
    if least > f2 * (1 + 1e-9):  # the constraints contradict; the trace bound holds all the same
        return high
    f2 = max(f2, least)  # a single point may be feasible, and rounding must not miss it
    for _ in range(60):
        middle = (left + right) / 2
        if squares(middle) <= f2:
            left = middle
        else:
            right = middle
    return right
