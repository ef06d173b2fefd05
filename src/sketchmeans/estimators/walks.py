"""Starts of K-means from walks of several lengths on the graph of the neighbours kernel.

Kᵗ is the kernel of t steps of a random walk on the graph K, and U Λ^{t/2} its embedding. An endless
walk leaves the leading eigenvectors alone. They show the clusters where the next eigenvalue is far
from one; where clusters are long, or touch, it is not, and what runs along a cluster is mixed with
what tells clusters apart. A walk that is cut short sees both; one too short sees pieces alone.
No length is best for all data, so some are tried, and the objective itself decides, after the
iterations in feature space that follow every start. ``python -m benchmarks.neighbors walks``
compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import masses, relative_weights
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.kmeans import BestStart, best_start, starts_of
from sketchmeans.estimators.landmark_lloyd import LandmarkCentroids, nearest_labels
from sketchmeans.estimators.many_rows import draw, walked_rows
from sketchmeans.lowrank import Cost
from sketchmeans.operators import NeighborOperator

LENGTHS = (0.25, 0.5, 1.0, 2.0)
"""Lengths of the walks, in those after which the first eigenvector beyond the clusters has faded to
1/e; the endless one is tried before them. See docs/defaults.md."""
APART = 1e-6
"""What an eigenvalue lacks of one, at the least, where the length of a walk is taken from it: that
of samples that share no neighbour with the others lacks nothing."""


@dataclass(frozen=True)
class Walked:
    """Where the best walk led."""

    start: BestStart
    """Labels of all samples; its inertia is that of K-means after this walk."""
    steps: float | None
    """The length of the walk; None for the endless one, which is the embedding."""
    cost: Cost


def cluster_rows(estimator: Any, embedded: Embedded, n_clusters: int) -> Walked:
    """Cluster the embedding as a fit of this estimator does before it refines: with K-means.

    From walks where it decided for them; else on the rows of the embedding.
    """
    model = KMeans(n_clusters, max_iter=estimator.max_iter, tol=estimator.tol)
    seeds = embedded.random_state.randint(2**31 - 1, size=embedded.decision.n_init)
    if embedded.decision.walks:
        return walk(model, seeds, embedded)
    found = best_start(
        model,
        seeds,
        embedded.embedding,
        embedded.weights,
        side_by_side=embedded.plan.n_starts,
        n_threads=embedded.plan.run.n_threads,
        checkpoint=embedded.plan.run.checkpoint,
    )
    return Walked(found, None, Cost())


def walk(model: KMeans, seeds: Any, embedded: Embedded) -> Walked:
    """Run the starts of K-means after every walk, refine the best of each; return the best of all.

    Distances: none where the walks see all samples and F is held; else rows × anchors for those
    that they see, and n × anchors for the labels of the others.

    Parameters
    ----------
    model : KMeans
    seeds : sequence of int
        One for each start after a walk.
    embedded : Embedded
        Of the neighbours kernel.
    """
    operator, whole = embedded.operator, embedded.low_rank.whole
    assert isinstance(operator, NeighborOperator)
    assert whole is not None
    assert whole.dual is not None
    n, n_clusters = operator.shape[0], model.n_clusters
    rows, mass = _drawn(embedded, walked_rows(n, n_clusters), n_clusters, seeds)
    F = operator.few_rows(rows)
    cost = Cost(distances=operator.distances_of(len(rows)))
    best: _Tried | None = None
    with OneBlasThread():
        Y = F @ whole.dual
        for steps, scale in _walks(embedded.low_rank.eigenvalues[: Y.shape[1]], n_clusters):
            some = np.ascontiguousarray(Y[:, : len(scale)] * scale)
            start = starts_of(
                model, seeds, some, mass, embedded.plan.n_starts, embedded.plan.run.checkpoint
            )[0]
            tried = _refined(F, masses(mass, len(rows)), start, embedded.decision.n_refine, steps)
            if best is None or tried.within > best.within * (1 + n * np.finfo(float).eps):
                best = tried
    assert best is not None
    labels = best.labels
    if len(rows) < n:
        centroids = LandmarkCentroids.of(operator.unweighted(), best.sums, best.sizes)
        diagonal = operator.unweighted().diagonal()
        labels = nearest_labels(operator, centroids, diagonal, embedded.plan.run)
        cost += Cost(distances=operator.unweighted().stream_distances)
    centers = np.zeros((n_clusters, embedded.embedding.shape[1]), embedded.embedding.dtype)
    found = BestStart(labels, centers, best.start.n_iter_, best.start.inertia_)
    return Walked(found, best.steps, cost)


def _drawn(
    embedded: Embedded, count: int, n_clusters: int, seeds: Any
) -> tuple[IntArray, FloatArray | None]:
    """Return the samples that the walks see, and how much each counts; None for all alike."""
    n, weights = len(embedded.embedding), relative_weights(embedded.weights)
    if count == n:
        return np.arange(n), weights
    return draw(embedded.embedding, weights, count, n_clusters, seeds)


def _walks(values: FloatArray, n_clusters: int) -> list[tuple[float | None, FloatArray]]:
    """Return the length of each walk, and what the columns of Y = U Λ^½ are multiplied by."""
    walks: list[tuple[float | None, FloatArray]] = [(None, np.ones(min(n_clusters, len(values))))]
    known = np.log(values[values > 0])
    if n_clusters == 1 or len(known) <= n_clusters:
        return walks
    fades = max(-known[n_clusters], APART)
    for length in LENGTHS:
        steps = length / fades
        walks.append((steps, np.exp(known * (steps - 1) / 2)))
    return walks


@dataclass(frozen=True)
class _Tried:
    """A start after a walk, refined."""

    start: BestStart
    steps: float | None
    labels: IntArray
    sums: FloatArray
    sizes: FloatArray

    @property
    def within(self) -> float:
        """⟨K, P⟩: the larger, the lower the objective."""
        full = self.sizes > 0
        return float((np.square(self.sums[:, full]).sum(axis=0) / self.sizes[full]).sum())


def _refined(
    F: Any, mass: FloatArray, start: BestStart, n_iter: int, steps: float | None
) -> _Tried:
    """Run Lloyd iterations on the rows of F from the labels of a start."""
    labels, n_clusters = start.labels_, len(start.cluster_centers_)
    for _ in range(n_iter):
        sums, sizes = _sums(F, mass, labels, n_clusters)
        means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
        distances = np.square(means).sum(axis=0) - 2 * (F @ means)
        distances[:, sizes == 0] = np.inf
        before, labels = labels, distances.argmin(axis=1).astype(np.int32)
        if np.array_equal(before, labels):
            break
    return _Tried(start, steps, labels, *_sums(F, mass, labels, n_clusters))


def _sums(
    F: Any, mass: FloatArray, labels: IntArray, n_clusters: int
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted sums of the rows of F over clusters, and what these weigh."""
    rows = np.arange(len(labels) + 1, dtype=np.int32)
    members = sparse.csr_array((mass, labels, rows), shape=(len(labels), n_clusters))
    return (F.T @ members).toarray(), np.bincount(labels, mass, n_clusters).astype(np.float64)
