"""An examination of what an approximation leaves of a kernel that nobody vouches for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sketchmeans.lowrank.core import judge_residual
from sketchmeans.lowrank.result import Cost, LowRank
from sketchmeans.operators import KernelOperator
from sketchmeans.operators.base import audited_rows


def examine_residual(operator: KernelOperator, low_rank: LowRank, seed: int) -> LowRank:
    """Judge a small square of K − K̂, which K ≽ 0 makes positive semidefinite.

    Only for kernels that may be anything: precomputed ones and callables. The landmarks' kernel and
    the diagonal of an indefinite K can look well by chance, or all be zero; a square of what is
    left shows more of them. Kernel entries: 32².
    """
    if operator.is_psd is not None or low_rank.negative_mass > 0:
        return low_rank
    rows = audited_rows(operator.shape[0], seed)
    square = operator.square(rows)
    F = low_rank.factor[rows]
    values = np.linalg.eigvalsh((square + square.T) / 2 - F @ F.T)
    worst = float(-values.min(initial=0.0))
    size = float(low_rank.eigenvalues.max(initial=0.0))
    eta, indefinite = judge_residual(worst, square.diagonal(), size, low_rank.eta, None)
    mass = float(-values[values < 0].sum() / np.abs(values).sum()) if indefinite else 0.0
    cost = low_rank.cost + Cost(audit_entries=square.size)
    return replace(low_rank, eta=eta, negative_mass=mass, cost=cost)
