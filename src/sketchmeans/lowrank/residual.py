"""A look at what an approximation leaves of a kernel that nobody vouches for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sketchmeans.lowrank.core import judge_residual
from sketchmeans.lowrank.result import LowRank
from sketchmeans.operators import KernelOperator
from sketchmeans.operators.base import audited_rows


def look_at_residual(operator: KernelOperator, low_rank: LowRank, seed: int) -> LowRank:
    """Judge a small block of K − K̂, which K ≽ 0 makes positive semidefinite.

    Only for kernels that may be anything: precomputed ones and callables. The landmarks' block and
    the diagonal of an indefinite K can look well by chance, or all be zero; a block of what is left
    shows more of them. Kernel entries: 32².
    """
    if operator.is_psd is not None or low_rank.negative_mass > 0:
        return low_rank
    rows = audited_rows(operator.shape[0], seed)
    block = operator.block(rows)
    F = low_rank.factor[rows]
    values = np.linalg.eigvalsh((block + block.T) / 2 - F @ F.T)
    worst = float(-values.min(initial=0.0))
    size = float(low_rank.eigenvalues.max(initial=0.0))
    eta, indefinite = judge_residual(worst, block.diagonal(), size, low_rank.eta, None)
    mass = float(-values[values < 0].sum() / np.abs(values).sum()) if indefinite else 0.0
    return replace(
        low_rank,
        eta=eta,
        negative_mass=mass,
        audit_entries=low_rank.audit_entries + block.size,
    )
