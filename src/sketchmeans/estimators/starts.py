"""Labels from which Lloyd's iterations in feature space start."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from sketchmeans._arrays import IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import left_out, masses, relative_weights, row_blocks
from sketchmeans.engine import Run
from sketchmeans.estimators.embedded import unweighted_rows
from sketchmeans.estimators.lloyd import fill_empty
from sketchmeans.estimators.sizing import auto_rank
from sketchmeans.lowrank import METHODS, Cost, Request, one_pass
from sketchmeans.lowrank.needs import kmeans_bytes
from sketchmeans.operators import KernelOperator
from sketchmeans.sketches import make_sketch

_COLUMNS = 256
"""Samples of weight zero that come in by their columns at a time."""


def start(
    operator: KernelOperator, init: str, n_clusters: int, seed: int, run: Run
) -> tuple[IntArray, Cost]:
    """Return labels to start from, and what they cost: see ``init`` of ``FullKernelKMeans``."""
    if init == "sketch":
        return _from_sketch(operator, n_clusters, seed, run)
    return _from_samples(operator, n_clusters, seed, run, far=init == "k-means++")


def _from_sketch(
    operator: KernelOperator, n_clusters: int, seed: int, run: Run
) -> tuple[IntArray, Cost]:
    """Cluster the embedding of a one-pass sketch."""
    n, weights = operator.shape[0], operator.weights
    rank = auto_rank(n_clusters, n)
    sketch = make_sketch("hadamard", n, min(2 * rank, n), seed)
    low_rank = one_pass(operator, sketch, rank=rank, run=run)
    embedding, dual = unweighted_rows(low_rank, weights, np.float64)
    apart = left_out(weights)
    for block in row_blocks(len(apart), _COLUMNS):
        rows = apart[block]
        embedding[rows] = operator.unweighted().columns(rows, run).T @ dual
    with OneBlasThread():
        model = KMeans(n_clusters, n_init=1, random_state=seed)
        labels = model.fit_predict(embedding, sample_weight=relative_weights(weights))
    return labels.astype(np.int32), low_rank.cost + Cost(entries=n * len(apart))


def _from_samples(
    operator: KernelOperator, n_clusters: int, seed: int, run: Run, *, far: bool
) -> tuple[IntArray, Cost]:
    """Assign all samples to some that are drawn, far from each other or anyhow.

    Distances in feature space are those of K, not of D^½ K D^½; weights count the samples.
    """
    n, plain = operator.shape[0], operator.unweighted()
    random = np.random.default_rng(seed)
    diagonal = plain.diagonal()
    mass = masses(operator.weights, n)
    nearest = np.full(n, np.inf)
    labels = np.zeros(n, np.int32)
    for cluster in range(n_clusters):
        spread = np.where(np.isfinite(nearest), np.maximum(nearest, 0.0), 1.0) * mass
        if not far or not spread.any():
            spread = mass
        center = int(random.choice(n, p=spread / spread.sum()))
        column = plain.columns(np.array([center]), run)[:, 0]
        distances = diagonal - 2 * column + diagonal[center]
        closer = distances < nearest
        labels[closer] = cluster
        nearest = np.where(closer, distances, nearest)
    fill_empty(labels, nearest * mass, n_clusters)
    return labels, Cost(entries=n * n_clusters + operator.diagonal_entries)


def start_bytes(
    operator: KernelOperator, init: str, n_clusters: int, run: Run, *, some_apart: bool
) -> int:
    """Return what ``start`` allocates; ``some_apart`` says whether samples have weight zero."""
    n = operator.shape[0]
    if init != "sketch":
        return operator.columns_bytes(1, run) + n * 120
    rank = auto_rank(n_clusters, n)
    ask = Request(rank=rank, width=min(2 * rank, n), seed=0, run=run)
    needs = METHODS["one-pass"].needs(operator, ask)
    embedding = n * rank * 8
    beside = kmeans_bytes(n, n_clusters, embedding)
    if some_apart:
        beside = max(beside, n * _COLUMNS * 8 + operator.columns_bytes(_COLUMNS, run))
    return max(needs.working, needs.kept + embedding + beside)
