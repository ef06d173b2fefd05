"""The cut theorem: kernel K-means on a kernel whose degrees are all one is the normalized cut.

For K = FFᵀ with K d = 1, the graph DKD has the weights d for its degrees, and labels with k
clusters that have members cut it by Ncut = k − ⟨K, P⟩ = L − tr K + k. P is a projection of rank k,
so ⟨K, P⟩ ≤ Σ_{i ≤ k} λ_i(D^½KD^½), and no clustering with k clusters cuts less than
Σ_{i ≤ k} (1 − λ_i). The spectrum is known exactly, to rounding.
"""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import masses
from sketchmeans.certificate.result import Certificate
from sketchmeans.lowrank import LowRank
from sketchmeans.lowrank.core import EPS


def cut_certificate(
    labels: IntArray,
    approximation: LowRank,
    sums: FloatArray,
    weights: FloatArray | None,
) -> Certificate:
    """Return what is known of labels on a kernel with sparse features.

    Clusters without members are not counted: the bounds are for as many as have some.

    Parameters
    ----------
    labels : array of shape (n,)
    approximation : LowRank
        Its spectrum is that of K.
    sums : array of shape (columns of F, clusters)
        Of the rows of F over the clusters, weighted.
    weights : array of shape (n,), optional
    """
    sizes = np.bincount(labels, masses(weights, len(labels)), sums.shape[1])
    full = sizes > 0
    count = int(full.sum())
    within = float((np.square(sums[:, full]).sum(axis=0) / sizes[full]).sum())
    trace = approximation.facts.trace
    # All numbers are positive, so that n of them are summed up with a relative error of n·eps; an
    # eigenvalue of LAPACK is off by a few eps times the order of the matrix, whose norm is one.
    rounding = 4 * (len(labels) + 16 * len(sums)) * EPS
    known = approximation.eigenvalues
    leading = np.append(known[:count], np.full(max(count - len(known), 0), known[-1]))
    least = float((1 - leading).sum()) - count * rounding
    objective, slack = trace - within, rounding * (trace + count)
    return Certificate(
        n_clusters=count,
        trace_kernel=trace,
        trace_error=approximation.trace_error,
        objective=max(objective, 0.0),
        objective_lower=max(objective - slack, 0.0),
        objective_upper=max(objective, 0.0) + slack,
        optimum_lower=max(trace - float(leading.sum()) - slack, 0.0),
        normalized_cut=max(count - within, 0.0),
        normalized_cut_lower=max(least, 0.0),
        reason=(
            "The objective of this kernel is mostly its trace, so that a gap relative to it would "
            "look small for any labels: the normalized cut says more."
        ),
    )
