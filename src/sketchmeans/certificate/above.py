"""The landmark theorem: the objective of labels from above, without all pairs of samples.

For any coefficients α, L ≤ tr K − Σ_c (2 s_cᵀα_c − d_c α_cᵀAα_c): the centroids Σ_j α_jc φ(z_j) at
landmarks z are no better than the clusters' own. A is the landmarks' kernel, s_c the sum over the
cluster of the samples' kernel with them. With α_c = A⁺s_c/d_c this is tr K − ⟨K̂, P⟩. Means of
clusters are smooth even where samples are not, so that a thousand landmarks are enough.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import masses, row_blocks, rows_of
from sketchmeans.certificate.objective import memberships
from sketchmeans.certificate.spectral import EPS
from sketchmeans.engine import Crew, Run
from sketchmeans.lowrank.landmarks import kmeans_landmarks
from sketchmeans.operators import KernelOperator

SPANS = 64
"""Runs of blocks that are summed by themselves: fixed, for they decide the bits."""
LANDMARKS = 1000
"""Landmarks: 0.04 to 0.18 % above the objective (n = 20,000 to 100,000)."""


def objective_above(
    operator: KernelOperator,
    labels: IntArray,
    rounding: float,
    run: Run,
    *,
    seed: int = 0,
    count: int = LANDMARKS,
) -> tuple[float, float]:
    """Return an upper bound on the objective of labels, and tr K; K ≽ 0 over rows of data.

    Kernel entries: n × landmarks, and those of the landmarks. Memory: blocks of rows.
    """
    n, n_clusters = operator.shape[0], int(labels.max(initial=0)) + 1
    plain, weights = operator.unweighted(), operator.weights
    landmarks = kmeans_landmarks(operator, min(count, n), seed)
    kernel = landmarks.kernel(plain, fine=True)
    A = landmarks.square(plain)
    blocks = row_blocks(n, operator.rows_at_once(len(landmarks)))
    width = len(landmarks) * n_clusters
    spans = np.array_split(np.arange(len(blocks)), SPANS)

    def work(span: int) -> None:
        for index in spans[span]:
            rows = blocks[index]
            cross = kernel.against(rows_of(operator.data, rows))
            everything = slice(0, cross.shape[0]), slice(0, len(landmarks))
            C = cross.tile(*everything, np.empty(cross.shape))
            few = np.ones(cross.shape[0]) if weights is None else weights[rows]
            sums[span] += (C.T @ memberships(labels[rows], few, n_clusters)).ravel()

    stage_of = run.checkpoint.stage("landmark-sums", n, len(landmarks), n_clusters)
    with Crew(run.n_threads) as crew, stage_of as stage:
        sums = np.zeros((SPANS, width)) if stage.state is None else stage.state["sums"]
        report = partial(run.report, total=SPANS)
        stage.each(crew, work, SPANS, lambda _: {"sums": sums}, report)
    d = masses(weights, n)
    diagonal = plain.diagonal()
    sizes = np.bincount(labels, d, n_clusters).astype(np.float64)
    roots = d * np.sqrt(np.maximum(diagonal, 0))
    reach = np.bincount(labels, roots, n_clusters).astype(np.float64)
    trace = float(d @ diagonal)
    gained = _gained(
        A, sums.sum(axis=0).reshape(len(landmarks), -1), sizes, reach, max(rounding, len(A) * EPS)
    )
    return trace * (1 + rounding) - gained, trace


def _gained(
    A: FloatArray, S: FloatArray, sizes: FloatArray, reach: FloatArray, rounding: float
) -> float:
    """Return Σ_c (2 s_cᵀα_c − d_c α_cᵀAα_c) less what rounding can have added to it.

    ``reach`` is Σ d_i √K_ii of the clusters: what entries can be off by, over ε.
    """
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    kept = values > max(10 * rounding, 1e-10) * values[-1]
    full = sizes > 0
    S, sizes, reach = S[:, full], sizes[full], reach[full]
    V = vectors[:, kept]
    alpha = V @ ((V.T @ S) / values[kept, None]) / sizes
    gained = 2 * (S * alpha).sum(axis=0) - sizes * (alpha * (A @ alpha)).sum(axis=0)
    size = np.sqrt(np.maximum(A.diagonal(), 0)) @ np.abs(alpha)
    slack = rounding * (2 * size * reach + sizes * size**2)
    return float((gained - 2 * slack).sum())
