"""The leading eigenvectors of a sparse kernel, from a block of vectors that is filtered.

A graph has its leading eigenvalues close together, or several times: with one vector at a time,
Lanczos iterations take thousands of passes to tell them apart. A block of vectors, multiplied by a
Chebyshev polynomial of K that is small on the rest of the spectrum, takes hundreds (Zhou, Saad,
Tiago and Chelikowsky 2006), and a sparse pass with a block costs little more than with a vector.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import ALONE, Run
from sketchmeans.lowrank.core import EPS, judge, measured_pass
from sketchmeans.lowrank.one_pass import orthonormalise, recover
from sketchmeans.lowrank.result import Cost, LowRank, warn_indefinite
from sketchmeans.operators import KernelOperator, SparseOperator
from sketchmeans.tall import applied, gram

FEW = 500
"""Samples up to which a sparse K is formed as a matrix, and decomposed."""
BEYOND = 8
"""Columns of the block beyond the rank, at least: the wider the gap, the fewer passes."""
PASSES = 3000
"""At the most; then a warning says that the eigenvectors are not exact."""
AMPLIFIED = 1e10
"""What a polynomial does to the first vector beside the rest of the spectrum, at most."""
STALLED = 4
"""Rounds without progress after which a residual that is small will not become smaller."""
STEPS = 12
"""Lanczos steps that say where the spectrum of K ends."""


def is_filtered(operator: KernelOperator, rank: int) -> bool:
    """Whether eigenvectors are found so: few of many, of a sparse kernel."""
    n = operator.shape[0]
    return isinstance(operator, SparseOperator) and n > FEW and rank <= n // 8


def block_width(rank: int) -> int:
    """Return the columns of the block."""
    return rank + max(rank // 2, BEYOND)


def filtered(operator: KernelOperator, *, rank: int, seed: int = 0, run: Run = ALONE) -> LowRank:
    """Approximate K by its leading eigenvectors.

    Passes over K: tens where the eigenvalues stand apart, hundreds for most graphs, ``PASSES`` at
    the most. Memory: five times n × width numbers, width = rank + max(8, rank / 2), and what a pass
    takes. The result is W(VᵀW)⁺Wᵀ for the block V and W = KV, cut to the rank: it lies between 0
    and K also where V has not converged.
    """
    random = np.random.default_rng(seed)
    V: FloatArray = random.standard_normal((operator.shape[0], block_width(rank)))
    best, rounds = np.inf, 0
    sizes = operator.shape[0], block_width(rank), seed
    with OneBlasThread(), run.checkpoint.stage("filter", *sizes) as stage:
        if stage.state is None:
            ends = _ends(operator, seed, run)
            V, spent = orthonormalise(V, EPS), ends.cost
        else:
            low, high, least, best = stage.state["numbers"].tolist()
            V, spent = stage.state["V"], Cost(*stage.state["spent"])
            ends, rounds = _Ends(low, high, least, spent), stage.state["rounds"]
        while True:
            result, eta, one = measured_pass(operator, V, seed, run)
            spent += one
            values, off = _rotate(V, result.W)
            largest = float(np.abs(values).max(initial=0.0))
            worst = float(off[:rank].max(initial=0.0))
            if worst <= 2 * eta * largest:
                break
            best, rounds = (worst, 0) if worst < best / 2 else (best, rounds + 1)
            if rounds == STALLED and worst < 1e-8 * largest:
                break
            degree = _degree(values, min(ends.high, values[0] + off[0]), ends.low)
            degree = min(degree, PASSES - spent.passes)
            if degree < 2:
                _warn(spent.passes, worst / largest)
                break
            V, one = _filter(operator, V, result.W, degree, values, ends.low, run)
            spent += one
            numbers = np.array([ends.low, ends.high, ends.least, best])
            so_far = {"V": V, "spent": spent.parts, "numbers": numbers, "rounds": rounds}
            stage.offer(lambda: so_far)  # noqa: B023 - called at once
    rounding, checked = operator.rounding(seed)
    found = recover(
        replace(result, diagonal=operator.diagonal()),
        V,
        rank=rank,
        eta=eta,
        rounding=rounding,
        cost=spent + Cost(entries=operator.diagonal_entries, audit_entries=checked),
        root_weights=operator.root_weights,
        is_psd=operator.is_psd,
    )
    # What is beyond the rank has not converged.
    found = replace(found, factor=found.factor[:, :rank], eigenvalues=found.eigenvalues[:rank])
    below = max(-ends.least, 0.0)
    if found.negative_mass == 0 and judge(below, largest, eta, operator.is_psd)[1]:
        found = replace(found, negative_mass=below / (below + largest))
        warn_indefinite(found.negative_mass, "by its leading eigenvectors")
    return found


@dataclass(frozen=True)
class _Ends:
    """Where the spectrum of K ends."""

    low: float
    """Below all eigenvalues, and not above 0."""
    high: float
    """Above all eigenvalues."""
    least: float
    """At least the least eigenvalue: a Ritz value."""
    cost: Cost


def _ends(operator: KernelOperator, seed: int, run: Run) -> _Ends:
    """Bound the spectrum of K by a few Lanczos steps: Ritz values, and the last residual beyond."""
    n = operator.shape[0]
    v = np.random.default_rng([seed, n]).standard_normal(n)
    basis, cost = [v / np.linalg.norm(v)], Cost()
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(STEPS):
        found = operator.multiply(basis[-1][:, None], run)
        cost += Cost(1, found.entries)
        w = found.W[:, 0]
        diagonal.append(float(w @ basis[-1]))
        for u in basis * 2:  # once is not enough to be orthogonal
            w = w - u * (u @ w)
        beside.append(float(np.linalg.norm(w)))
        if beside[-1] <= EPS * max(map(abs, diagonal)):
            break
        basis.append(w / beside[-1])
    T = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    ritz = np.linalg.eigvalsh(T)
    least, most, off = float(ritz[0]), float(ritz[-1]), beside[-1]
    return _Ends(min(least - off, 0.0), most + off, least, cost)


def _rotate(V: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rotate V and W = KV in place to Ritz vectors; return their values, falling, and residuals."""
    H = gram(V, W)
    values, Q = np.linalg.eigh((H + H.T) / 2)
    values, Q = values[::-1], Q[:, ::-1]
    applied(V, Q)
    applied(W, Q)
    squares = np.zeros(len(values))
    for rows in row_blocks(len(V)):
        squares += np.square(W[rows] - V[rows] * values).sum(axis=0)
    return values, np.sqrt(squares)


def _interval(values: FloatArray, low: float) -> tuple[float, float]:
    """Return middle and half width of what is to be damped: from ``low`` to the last Ritz value."""
    half = max((float(values[-1]) - low) / 2, 1e-8 * float(np.abs(values).max()))
    return low + half, half


def _degree(values: FloatArray, top: float, low: float) -> int:
    """Return the degree that amplifies an eigenvalue ``top`` as much as may be."""
    middle, half = _interval(values, low)
    growth = math.acosh(max((top - middle) / half, 1 + 1e-7))
    return max(2, int(math.log(AMPLIFIED) / growth))


def _filter(
    operator: KernelOperator,
    V: FloatArray,
    W: FloatArray,
    degree: int,
    values: FloatArray,
    low: float,
    run: Run,
) -> tuple[FloatArray, Cost]:
    """Multiply V by a scaled Chebyshev polynomial of K, given W = KV; both are overwritten."""
    middle, half = _interval(values, low)
    first = sigma = half / (float(values[0]) - middle)
    before, here, cost = V, W, Cost()
    _combine(here, V, None, middle, sigma / half, 0.0)
    for _ in range(degree - 1):
        found = operator.multiply(here, run)
        cost += Cost(1, found.entries)
        after = 1 / (2 / first - sigma)
        _combine(found.W, here, before, middle, 2 * after / half, sigma * after)
        before, here, sigma = here, found.W, after
    here /= np.maximum(np.linalg.norm(here, axis=0), np.finfo(np.float64).tiny)
    return orthonormalise(here, EPS), cost


def _combine(
    KX: FloatArray,
    X: FloatArray,
    before: FloatArray | None,
    middle: float,
    scale: float,
    share: float,
) -> None:
    """Overwrite KX with scale · (KX − middle · X) − share · before."""
    for rows in row_blocks(len(X)):
        KX[rows] -= middle * X[rows]
        KX[rows] *= scale
        if before is not None:
            KX[rows] -= share * before[rows]


def _warn(passes: int, residual: float) -> None:
    warnings.warn(
        f"after {passes} passes the leading eigenvectors are known to {residual:.1g} of the "
        "largest eigenvalue: those of this kernel lie too close together. The approximation is not "
        "the best of its rank; bounds hold for it all the same.",
        ConvergenceWarning,
        stacklevel=3,
    )
