"""A start of its own from a proof: the fractional clustering, rounded.

What bounds a block from below is nearly a clustering of it, made of all its samples at once: rows
whose inner products say how much two samples belong together. K-means on these rows makes labels of
them. Where there are several blocks, the clusters of one of them are centroids for all samples: in
feature space, n × b kernel entries. Where exact iterations from there end lower than what the fit
had, they are taken.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.blockwise import Bound
from sketchmeans.certificate.objective import memberships
from sketchmeans.certificate.proven import Proving
from sketchmeans.engine.run import Run
from sketchmeans.estimators.lloyd import Refined, refine
from sketchmeans.operators import KernelOperator, LandmarkFeatures, LandmarkOperator
from sketchmeans.rows import Rows

STARTS = 5
"""Starts of K-means that round a fractional clustering."""
ITERATIONS, BLOCK_ITERATIONS = 100, 20
"""Exact iterations from there, at most: a pass each."""
MOST_ROUNDED = 20_000
"""Samples up to which passes are made for it."""


def rounded(operator: KernelOperator, bound: Bound, asked: Proving, run: Run) -> Refined | None:
    """Return what exact iterations make of a fractional clustering; None where there is none."""
    n, weights = operator.shape[0], operator.weights
    alone = bound.n_blocks == 1
    if not bound.fractional or (not alone and operator.data is None) or n > MOST_ROUNDED:
        return None
    indices, rows = bound.fractional[0]
    kept = indices if weights is None else indices[weights[indices] > 0]
    few = _labels_of(rows.astype(np.float64), None if weights is None else weights[kept], asked)
    labels: IntArray = np.zeros(n, np.int32)
    if alone:
        labels[kept] = few
    else:
        labels = _nearest(operator, kept, few, asked.n_clusters, run)
    return refine(
        operator,
        labels,
        asked.n_clusters,
        n_iter=ITERATIONS if alone else BLOCK_ITERATIONS,
        weights=weights,
        run=run,
    )


def _labels_of(rows: FloatArray, weights: FloatArray | None, asked: Proving) -> IntArray:
    """Return labels of the samples of a block."""
    if weights is not None:  # Q = D^-½ X D^-½ is one over the weight of a cluster
        rows = rows / np.sqrt(weights[:, None])
    model = KMeans(asked.n_clusters, n_init=STARTS, random_state=asked.seed % 2**32)
    return model.fit(rows, sample_weight=weights).labels_


def _nearest(
    operator: KernelOperator, kept: IntArray, few: IntArray, n_clusters: int, run: Run
) -> IntArray:
    """Return the nearest of the means of a block's clusters, for all samples."""
    plain, weights = operator.unweighted(), operator.weights
    mass = np.ones(len(kept)) if weights is None else weights[kept]
    members = memberships(few, mass, n_clusters).astype(np.float64)
    means = members / np.maximum(members.sum(axis=0), 1e-300)
    kernel = plain.landmarks(kept, fine=True)
    features = LandmarkFeatures(kernel, means, operator.rows_at_once(len(kept)))
    inner = LandmarkOperator(plain, features).product(np.eye(n_clusters), run)
    inner = inner[:] if isinstance(inner, Rows) else inner
    norms = np.einsum("ij,ij->j", means, plain.square(kept) @ means)
    distances = norms - 2 * inner
    distances[:, members.sum(axis=0) == 0] = np.inf
    return distances.argmin(axis=1).astype(np.int32)
