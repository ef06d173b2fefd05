"""The paper's theorem on cases so small that every partition can be tried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.lowrank import recover
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import PrecomputedOperator
from sketchmeans.sketches import GaussianSketch

POINTS = 7
"""Samples of a case: 301 partitions into three clusters."""


@dataclass(frozen=True)
class TheoremCheck:
    """What trying every partition showed of L(Ĉ) − L(C*) ≤ 2‖E‖_*."""

    cases: int
    violations: int
    """Of the theorem."""
    violations_of_ours: int
    """Of L(Ĉ) − L(C*) ≤ ‖E‖_*, half the theorem's bound."""
    largest_share: float
    """The largest (L(Ĉ) − L(C*)) / ‖E‖_* among the random cases."""
    adversarial_share: float
    """The same for a case made to be bad; the paper says that 1/2 can be reached."""


@cache
def partitions(n: int, k: int) -> IntArray:
    """Return CᵀC of every partition of n samples into k clusters, one n × n matrix each."""
    found = []
    for rest in product(range(k), repeat=n - 1):
        labels = np.array((0, *rest))
        firsts = [int(np.argmax(labels == cluster)) for cluster in range(k)]
        if len(set(labels)) == k and firsts == sorted(firsts):  # one name for each partition
            members = np.eye(k)[labels]
            found.append(members @ np.diag(1 / members.sum(axis=0)) @ members.T)
    return np.array(found)


def gap(K: FloatArray, approximation: FloatArray, k: int) -> float:
    """Return L(Ĉ) − L(C*), Ĉ being the best partition for the approximation."""
    projections = partitions(len(K), k)
    kept = np.einsum("cij,ij->c", projections, K)
    chosen = np.einsum("cij,ij->c", projections, approximation).argmax()
    return float(kept.max() - kept[chosen])


def adversarial(n: int, epsilon: float = 1e-3) -> tuple[FloatArray, FloatArray]:
    """Return a kernel and an approximation that loses exactly what tells the clusters apart.

    K = zzᵀ + ε vvᵀ with z = (1, …, 1, −1, …, −1) and v orthogonal to z; K̂ = ε vvᵀ. The best two
    clusters of K are the signs of z, those of K̂ the signs of v, which halve both of them: the gap
    is (1 − ε)n, and ‖E‖_* = n.
    """
    if n % 4:
        raise ValueError(f"n={n} must be a multiple of four, so that v halves both clusters of z.")
    z, v = np.repeat([1.0, -1.0], n // 2), np.tile([1.0, -1.0], n // 2)
    return np.outer(z, z) + epsilon * np.outer(v, v), epsilon * np.outer(v, v)


def check_theorem(*, cases: int, seed: int) -> TheoremCheck:
    """Try every partition of ``cases`` random kernels, approximated early and late."""
    random = np.random.default_rng(seed)
    shares: list[float] = []
    for case in range(cases):
        points = random.normal(size=(POINTS, 2)) * [1.0, 2.0]
        squared = np.square(points[:, None] - points[None]).sum(axis=2)
        K = np.exp(-squared / random.uniform(0.5, 4.0))
        k, rank = int(random.integers(2, 4)), int(random.integers(1, 4))
        truncation = "early" if case % 2 else "late"
        Y = _embedding(K, rank, truncation, int(random.integers(2**31)))
        size = float(np.abs(np.linalg.eigvalsh(K - Y @ Y.T)).sum())
        shares.append(gap(K, Y @ Y.T, k) / size)
    found = np.array(shares)
    K, approximation = adversarial(8)
    bad = gap(K, approximation, 2) / float(np.abs(np.linalg.eigvalsh(K - approximation)).sum())
    rounding = 1e-9
    return TheoremCheck(
        cases,
        int((found > 2 + rounding).sum()),
        int((found > 1 + rounding).sum()),
        float(found.max()),
        bad,
    )


def _embedding(K: FloatArray, rank: int, truncation: str, seed: int) -> FloatArray:
    """Embed by Algorithm 1, with a sketch of rank + 1 columns."""
    operator = PrecomputedOperator(K)
    sketch = GaussianSketch(len(K), rank + 1, seed)
    low_rank = recover(
        operator.multiply(sketch),
        sketch.matrix,
        rank=rank,
        truncation=truncation,  # type: ignore[arg-type]
        eta=1e-13,
        rounding=1e-13,
        cost=Cost(),
    )
    return low_rank.embedding
