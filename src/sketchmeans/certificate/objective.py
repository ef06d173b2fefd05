"""The objective of labels: L = tr K − Σⱼ ⟨cⱼ, K cⱼ⟩ / ‖cⱼ‖² over the columns of memberships."""

from __future__ import annotations

from functools import partial

import numpy as np

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.engine import ALONE, Run
from sketchmeans.operators import FeatureOperator
from sketchmeans.rows import Part


def memberships(labels: IntArray, weights: FloatArray | None, n_clusters: int) -> Array:
    """Return the n × K matrix of memberships: ones as bytes, or these weights."""
    inside = labels[:, None] == np.arange(n_clusters)
    return inside.astype(np.int8) if weights is None else inside * weights[:, None]


def cluster_sums(
    operator: FeatureOperator, labels: IntArray, weights: FloatArray | None, run: Run = ALONE
) -> FloatArray:
    """Return the sums of the rows of F over the clusters, weighted, columns × K: one stream."""
    return operator.map.projected(block_sums(operator, labels, weights, run))


def block_sums(
    operator: FeatureOperator, labels: IntArray, weights: FloatArray | None, run: Run = ALONE
) -> FloatArray:
    """Return the sums of the rows of B over the clusters, F being BT: one stream."""
    work = operator.blockwise(partial(_sums_block, n_clusters=int(labels.max(initial=0)) + 1))
    given = (labels,) if weights is None else (labels, weights)
    return operator.stream(work, run, *given, sums=True, name="cluster-sums").total


def _sums_block(
    part: FeatureOperator,
    rows: slice,
    labels: IntArray,
    weights: FloatArray | None = None,
    *,
    n_clusters: int,
) -> Part:
    """Return the sums of rows of B over the clusters."""
    members = memberships(labels, weights, n_clusters).astype(np.float64)
    return Part((), part.block(rows).astype(np.float64, copy=False).T @ members)


def exact_objective(trace: float, members: Array, sums: FloatArray) -> float:
    """Return L from tr K, memberships (of weighted samples their roots) and K times them.

    An empty cluster counts nothing.
    """
    sizes = np.square(members).sum(axis=0)
    within = np.einsum("ij,ij->j", members, sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        return trace - float(np.where(sizes > 0, within / sizes, 0.0).sum())
