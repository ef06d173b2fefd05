"""The kernel of a few rows of the data: the same code on a small problem, to be timed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    KernelOperator,
    NeighborOperator,
    PrecomputedOperator,
    SparseOperator,
)


def sample_rows(operator: KernelOperator, count: int, seed: int = 0) -> Any:
    """Return so many rows to try the kernel on: some of the data, again and again if need be."""
    data = operator.data
    rows = data.some(count, seed)
    if rows.shape[0] >= count or rows.shape[0] == data.shape[0]:
        return rows
    more = np.arange(count) % rows.shape[0]
    return rows[more]


def sample_operator(operator: KernelOperator, count: int, seed: int = 0) -> KernelOperator:
    """Return the kernel of so many samples, without weights; of fewer where there are no more."""
    count = min(count, operator.shape[0])
    if isinstance(operator, SparseOperator):
        few = sparse.csr_matrix(operator.K[:count, :count])
        return SparseOperator(few, dtype=operator.dtype)
    if isinstance(operator, PrecomputedOperator):
        rows = np.random.default_rng(seed).normal(size=(count, 8))
        return PrecomputedOperator(
            (rows @ rows.T / 8).astype(operator.K.dtype), dtype=operator.dtype
        )
    rows = sample_rows(operator, count, seed)
    if isinstance(operator, NeighborOperator):
        return NeighborOperator(rows, operator.options, seed=seed)
    if isinstance(operator, CallableOperator):
        return CallableOperator(
            rows, operator.function, params=operator.params, dtype=operator.dtype
        )
    if isinstance(operator, FeatureMapOperator):
        return FeatureMapOperator(rows, operator.kernel)
    assert isinstance(operator, DataOperator)
    return DataOperator(rows, operator.kernel, dtype=operator.dtype)
