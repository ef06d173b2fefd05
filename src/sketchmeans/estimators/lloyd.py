"""Lloyd's iterations in feature space: full kernel K-means without the matrix.

With the indicators of the clusters in place of Ω, one pass gives KCᵀ and with it every exact
distance ‖Φ(xᵢ) − μⱼ‖² of the paper's eq. (4), in n × K memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import masses, row_blocks
from sketchmeans.certificate.objective import memberships
from sketchmeans.checkpoints import Stage
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import KernelOperator
from sketchmeans.operators.cross import CrossKernel


@dataclass(frozen=True)
class FeatureCentroids:
    """Means of clusters in feature space, known by their members.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        The cluster of each training sample.
    weights : array of shape (n_samples,) or None
        Weights of the samples.
    sizes : array of shape (n_clusters,)
        Summed weights; an empty cluster is never the nearest.
    squared_norms : array of shape (n_clusters,)
        ‖μⱼ‖².
    """

    labels: IntArray
    weights: FloatArray | None
    sizes: Array
    squared_norms: FloatArray

    def distances(self, sums: FloatArray, diagonal: FloatArray) -> FloatArray:
        """Return ‖Φ(x) − μⱼ‖² from Σ_l w_l κ(x, x_l) over the members of each cluster, eq. (4)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = diagonal[:, None] - 2 * sums / self.sizes + self.squared_norms
        distances[:, self.sizes == 0] = np.inf
        return distances

    @classmethod
    def of(
        cls, labels: IntArray, weights: FloatArray | None, sums: FloatArray, n_clusters: int
    ) -> FeatureCentroids:
        """Return the means of clusters; ``sums`` are K times the memberships of ``labels``."""
        mass = masses(weights, len(labels))
        sizes = np.bincount(labels, mass, n_clusters)
        own = sums[np.arange(len(labels)), labels]
        within = np.bincount(labels, mass * own, n_clusters)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(labels, weights, sizes, np.where(sizes > 0, within / sizes**2, 0.0))

    def assign(
        self, cross: CrossKernel, diagonal: FloatArray, run: Run
    ) -> tuple[IntArray, FloatArray]:
        """Return the nearest centroid of each new point, and its squared distance."""
        members = memberships(self.labels, self.weights, len(self.sizes))
        return self.nearest(cross.multiply(members, run), diagonal)

    def nearest(self, sums: FloatArray, diagonal: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the nearest centroid of each point and its squared distance, block by block."""
        labels, squares = np.empty(len(sums), np.int32), np.empty(len(sums))
        for rows in row_blocks(len(sums)):
            distances = self.distances(sums[rows], diagonal[rows])
            labels[rows] = distances.argmin(axis=1)
            own = distances[np.arange(len(distances)), labels[rows]]
            squares[rows] = np.maximum(own, 0.0)
        return labels, squares


@dataclass(frozen=True)
class Refined:
    """What exact iterations leave behind."""

    labels: IntArray
    centroids: FeatureCentroids
    """Those from which ``labels`` were assigned."""
    inertia: float
    """Weighted sum of squared distances to them: at least the objective of ``labels``."""
    reach: float
    """Σ dᵢ(‖Φ(xᵢ)‖ + r)², r the mean length of the members of its centroid: entries known to
    ε·√(K_ii K_jj) give ``inertia`` to ε times this."""
    objectives: tuple[float, ...]
    """The exact objective of the labels before each iteration; never rises if K ≽ 0."""
    cost: Cost

    def state(self) -> dict[str, Any]:
        """Return it for a checkpoint; see ``restored``."""
        return {
            "ended": True,
            "labels": self.labels,
            "before": self.centroids.labels,
            "sizes": self.centroids.sizes,
            "squared_norms": self.centroids.squared_norms,
            "numbers": np.array([self.inertia, self.reach]),
            "objectives": np.array(self.objectives),
            "cost": self.cost.parts,
        }

    @classmethod
    def restored(cls, state: dict[str, Any], weights: FloatArray | None) -> Refined:
        """Return what ``state`` was of."""
        means = state["before"], weights, state["sizes"], state["squared_norms"]
        inertia, reach = state["numbers"].tolist()
        objectives = tuple(state["objectives"].tolist())
        centroids = FeatureCentroids(*means)
        return cls(state["labels"], centroids, inertia, reach, objectives, Cost(*state["cost"]))


def refine(
    operator: KernelOperator,
    labels: IntArray,
    n_clusters: int,
    *,
    n_iter: int,
    weights: FloatArray | None = None,
    repair: bool = False,
    run: Run = ALONE,
) -> Refined:
    """Run exact Lloyd iterations in feature space, starting from ``labels``.

    Passes over K: one per iteration, fewer if the labels stop changing. Kernel entries: those of
    the passes. Memory: n × (K + 1) numbers in float64 for the sums, a byte or a weight for each
    membership, and what a pass takes.

    Parameters
    ----------
    operator : KernelOperator
        K; its own weights are put aside.
    labels : array of shape (n,)
        Where to start.
    n_clusters : int
    n_iter : int
        At most so many iterations; at least one.
    weights : array of shape (n,), optional
        Of the samples.
    repair : bool
        Give a cluster that lost all members the sample farthest from its centroid.
    run : Run
        Does not change the result.
    """
    with run.checkpoint.stage("refine", len(labels), n_clusters, n_iter) as stage:
        if stage.state is not None and stage.state["ended"]:
            return Refined.restored(stage.state, weights)
        refined = _iterated(
            operator.unweighted(),
            labels,
            n_clusters,
            n_iter=n_iter,
            weights=weights,
            repair=repair,
            run=run,
            stage=stage,
        )
        stage.finish(refined.state)
    return refined


def _iterated(
    plain: KernelOperator,
    labels: IntArray,
    n_clusters: int,
    *,
    n_iter: int,
    weights: FloatArray | None,
    repair: bool,
    run: Run,
    stage: Stage,
) -> Refined:
    """Run the iterations of ``refine``, from where a stage has come to."""
    mass = masses(weights, len(labels))
    diagonal: FloatArray | None = None
    objectives: list[float] = []
    cost = Cost()
    if stage.state is not None:
        labels, diagonal = stage.state["labels"], stage.state["diagonal"]
        objectives, cost = stage.state["objectives"].tolist(), Cost(*stage.state["cost"])
    for index in range(len(objectives), n_iter):
        members = memberships(labels, weights, n_clusters)
        result = plain.multiply(members, run.part(index, n_iter))
        cost += Cost(1, result.entries)
        if diagonal is None:
            diagonal = plain.diagonal_after(result)
        centroids = FeatureCentroids.of(labels, weights, result.W, n_clusters)
        # As ``certificate.exact_objective``, from the means, which are needed anyway.
        objectives.append(float(diagonal @ mass - centroids.sizes @ centroids.squared_norms))
        labels, nearest = centroids.nearest(result.W, diagonal)
        del result, members  # before the next pass allocates its own
        inertia = float(nearest @ mass)
        if repair:
            fill_empty(labels, nearest * mass, n_clusters)
        if np.array_equal(labels, centroids.labels):
            break
        if index + 1 < n_iter:
            so_far = {"ended": False, "labels": labels, "diagonal": diagonal, "cost": cost.parts}
            stage.offer(lambda: so_far | {"objectives": np.array(objectives)})  # noqa: B023
    assert diagonal is not None
    reach = _reach(labels, centroids, np.sqrt(np.maximum(diagonal, 0.0)), mass)
    return Refined(labels, centroids, inertia, reach, tuple(objectives), cost)


def _reach(
    labels: IntArray, centroids: FeatureCentroids, lengths: FloatArray, mass: FloatArray
) -> float:
    """Return ``Refined.reach`` for samples of these lengths ‖Φ(xᵢ)‖."""
    sizes = centroids.sizes
    sums = np.bincount(centroids.labels, mass * lengths, len(sizes))
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    return float(mass @ np.square(lengths + means[labels]))


def fill_empty(labels: IntArray, distances: FloatArray, n_clusters: int) -> None:
    """Move, in place, the farthest samples of clusters with others into clusters with none."""
    sizes = np.bincount(labels, minlength=n_clusters)
    order = iter(np.argsort(-distances, kind="stable"))
    for cluster in np.flatnonzero(sizes == 0):
        for sample in order:
            if sizes[labels[sample]] > 1:
                sizes[labels[sample]] -= 1
                labels[sample] = cluster
                sizes[cluster] = 1
                break
