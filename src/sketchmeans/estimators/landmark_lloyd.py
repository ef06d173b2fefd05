"""Lloyd's iterations in the feature space of landmarks: linear in n.

With K̂ = FFᵀ from m landmarks, the centroid of a cluster is Σ αⱼ φ(zⱼ), and one stream over the
kernel of samples and landmarks gives all distances, the new labels, and the sums over the new
clusters. What falls is tr K − ⟨K̂, P⟩, an upper bound of the exact objective: K̂ ≼ K.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import masses, row_blocks, rows_of
from sketchmeans.certificate.objective import cluster_sums, memberships
from sketchmeans.checkpoints import Stage
from sketchmeans.engine import ALONE, Crew, Run
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import FeatureOperator, NewPoints
from sketchmeans.rows import Part


@dataclass(frozen=True)
class LandmarkCentroids:
    """Means of clusters in the feature space of landmarks.

    Parameters
    ----------
    coefficients : array of shape (m, n_clusters)
        α: the inner product of φ(x) with a mean is κ(x, landmarks) α.
    sizes : array of shape (n_clusters,)
        Summed weights; an empty cluster is never the nearest.
    squared_norms : array of shape (n_clusters,)
        Of the means.
    """

    coefficients: FloatArray
    sizes: FloatArray
    squared_norms: FloatArray

    @classmethod
    def of(
        cls, operator: FeatureOperator, sums: FloatArray, sizes: FloatArray
    ) -> LandmarkCentroids:
        """Return the means of clusters whose rows of F sum to these, columns × n_clusters."""
        means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
        return cls(operator.map.expanded(means), sizes, np.square(means).sum(axis=0))

    def nearest(self, inner: FloatArray, diagonal: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the nearest mean of points and its squared distance, from inner products."""
        distances = self.squared_norms - 2 * inner
        distances[:, self.sizes == 0] = np.inf
        labels = distances.argmin(axis=1)
        squares = distances[np.arange(len(labels)), labels] + diagonal
        return labels.astype(np.int32), np.maximum(squares, 0.0)

    def assign(
        self, points: NewPoints, X: Any, diagonal: FloatArray, run: Run
    ) -> tuple[IntArray, FloatArray]:
        """Return the nearest mean of each new point, and its squared distance.

        By the arithmetic of the iterations, so that samples get the labels that they had.
        """
        labels, squares = np.empty(len(diagonal), np.int32), np.empty(len(diagonal))

        def compute(rows: slice) -> None:
            columns = points.against(rows_of(X, rows)).values().astype(np.float64, copy=False)
            inner = columns @ self.coefficients
            labels[rows], squares[rows] = self.nearest(inner, diagonal[rows])

        with Crew(run.n_threads) as crew:
            blocks = row_blocks(len(labels), points.rows_at_once(len(self.coefficients)))
            crew.each(compute, blocks, lambda done: run.report(done, len(blocks)))
        return labels, squares


@dataclass(frozen=True)
class RefinedByLandmarks:
    """What iterations in the feature space of landmarks leave behind."""

    labels: IntArray
    centroids: LandmarkCentroids
    """Those from which ``labels`` were assigned."""
    inertia: float
    """Weighted sum of squared distances to them: at least tr K − ⟨K̂, P⟩ of ``labels``."""
    sums: FloatArray
    """Of the rows of F over the clusters of ``labels``, columns × n_clusters."""
    objectives: tuple[float, ...]
    """tr K − ⟨K̂, P⟩ of the labels before each iteration; never rises."""
    cost: Cost


def refine_by_landmarks(
    operator: FeatureOperator,
    labels: IntArray,
    n_clusters: int,
    *,
    n_iter: int,
    diagonal: FloatArray,
    weights: FloatArray | None = None,
    run: Run = ALONE,
) -> RefinedByLandmarks:
    """Run Lloyd's iterations on K̂ from ``labels``; they end when no label changes.

    Kernel entries: those of a stream for the first means, nm for m landmarks, and of one an
    iteration; none where the columns are held. Memory: two vectors of labels and distances, and a
    block of columns per thread.

    Parameters
    ----------
    operator : FeatureOperator
        K̂; its own weights are put aside.
    labels : array of shape (n,)
        Where to start.
    n_clusters : int
    n_iter : int
        At most so many iterations; at least one.
    diagonal : array of shape (n,)
        K_ii, without weights.
    weights : array of shape (n,), optional
        Of the samples.
    run : Run
        Does not change the result.
    """
    with run.checkpoint.stage("landmark-refine", len(labels), n_clusters, n_iter) as stage:
        plain = operator.unweighted()
        return _iterated(plain, labels, n_clusters, n_iter, diagonal, weights, run, stage)


def _iterated(
    plain: FeatureOperator,
    labels: IntArray,
    n_clusters: int,
    n_iter: int,
    diagonal: FloatArray,
    weights: FloatArray | None,
    run: Run,
    stage: Stage,
) -> RefinedByLandmarks:
    """Run the iterations of ``refine_by_landmarks``, from where a stage has come to."""
    mass = masses(weights, len(labels))
    stream = Cost(entries=plain.stream_entries, distances=plain.stream_distances)
    trace = float(diagonal @ mass)
    if stage.state is None:
        sums = _padded(cluster_sums(plain, labels, weights, run.part(0, n_iter + 1)), n_clusters)
        cost, objectives = stream, list[float]()
    else:
        labels, sums = stage.state["labels"], stage.state["sums"]
        cost, objectives = Cost(*stage.state["cost"]), stage.state["objectives"].tolist()
    for index in range(len(objectives), n_iter):
        sizes = np.bincount(labels, mass, n_clusters).astype(np.float64)
        centroids = LandmarkCentroids.of(plain, sums, sizes)
        objectives.append(trace - float(sizes @ centroids.squared_norms))
        before, part = labels, run.part(index + 1, n_iter + 1)
        labels, squares, sums = _step(plain, centroids, diagonal, weights, part)
        cost += stream
        same, inertia = np.array_equal(before, labels), float(squares @ mass)
        if same:
            break
        if index + 1 < n_iter:
            so_far = {"labels": labels, "sums": sums, "cost": cost.parts}
            stage.offer(lambda: so_far | {"objectives": np.array(objectives)})  # noqa: B023
    return RefinedByLandmarks(labels, centroids, inertia, sums, tuple(objectives), cost)


def nearest_labels(
    operator: FeatureOperator, centroids: LandmarkCentroids, diagonal: FloatArray, run: Run = ALONE
) -> IntArray:
    """Return the nearest of given means for every sample: one stream."""
    return _step(operator.unweighted(), centroids, diagonal, None, run)[0]


def _padded(sums: FloatArray, n_clusters: int) -> FloatArray:
    """Return the sums with columns of zeros for clusters behind the last one that has members."""
    return np.pad(sums, ((0, 0), (0, n_clusters - sums.shape[1])))


def _step(
    operator: FeatureOperator,
    centroids: LandmarkCentroids,
    diagonal: FloatArray,
    weights: FloatArray | None,
    run: Run,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Run one iteration; return labels, squared distances, and the sums over the new clusters."""
    work = operator.blockwise(partial(_step_block, centroids=centroids))
    given = (diagonal,) if weights is None else (diagonal, weights)
    (labels, squares), sums = operator.stream(work, run, *given, sums=True, name="refine")
    return labels, squares, operator.map.projected(sums)


def _step_block(
    part: FeatureOperator,
    rows: slice,
    diagonal: FloatArray,
    weights: FloatArray | None = None,
    *,
    centroids: LandmarkCentroids,
) -> Part:
    """Label a block of rows, and return what its columns add to the sums."""
    columns = part.block(rows).astype(np.float64, copy=False)
    labels, squares = centroids.nearest(columns @ centroids.coefficients, diagonal)
    members = memberships(labels, weights, len(centroids.sizes))
    return Part((labels, squares), columns.T @ members.astype(np.float64))
