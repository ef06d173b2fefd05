"""Plain K-means on the rows of an embedding, by scikit-learn; of many rows, by blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.cluster import KMeans

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import masses, relative_weights, row_blocks
from sketchmeans.centers import without_warnings_of_starts
from sketchmeans.certificate.objective import memberships
from sketchmeans.checkpoints import NOTHING, Checkpoint
from sketchmeans.engine import Crew
from sketchmeans.estimators.many_rows import (
    FEW,
    Blocks,
    Lloyd,
    PlacedBlocks,
    RowBlocks,
    draw,
    drawn_rows,
    grid,
    more_seeds,
)
from sketchmeans.operators.cross import refuse_infinite
from sketchmeans.rows import Part, Rows
from sketchmeans.tall import over


@dataclass(frozen=True)
class BestStart:
    """The best of some starts of K-means, by the names that scikit-learn has for it."""

    labels_: IntArray
    cluster_centers_: FloatArray
    n_iter_: int
    inertia_: float


def best_start(
    model: KMeans,
    seeds: Sequence[int],
    Y: FloatArray,
    weights: FloatArray | None,
    *,
    side_by_side: int,
    n_threads: int,
    checkpoint: Checkpoint = NOTHING,
) -> BestStart:
    """Run a start of a K-means per seed, some side by side, each on one thread; return the best.

    Of many rows the starts, twice as many, see some, and the best of them goes on over all;
    ``n_iter_`` counts the iterations on some rows and those on all, each ``max_iter`` at most.
    """
    weights = relative_weights(weights)
    count = drawn_rows(len(Y), model.n_clusters)
    if count is None:
        Y = Y[:] if isinstance(Y, Rows) else Y
        return starts_of(model, seeds, Y, weights, side_by_side, checkpoint)[0]
    drawn = draw(Y, weights, count, model.n_clusters, seeds)
    some = Y[drawn.rows]
    more = more_seeds(seeds)
    starts = starts_of(model, more, some, drawn.hits, side_by_side, checkpoint)[:FEW]
    middle = some.mean(axis=0, dtype=np.float64).astype(Y.dtype)
    del some
    cuts = grid(len(Y), model.n_clusters, Y.shape[1])
    with Crew(n_threads) as crew:
        blocks: Blocks = RowBlocks(Y, weights, cuts, crew)
        if isinstance(Y, Rows):
            blocks = PlacedBlocks(Y, weights, cuts[0].stop)
        lloyd = Lloyd(blocks, middle, model.max_iter, model.tol, checkpoint)
        end, index = lloyd.finish([start.cluster_centers_ for start in starts])
    n_iter = starts[index].n_iter_ + end.n_iter
    return BestStart(np.concatenate(end.labels), end.centers + middle, n_iter, end.inertia)


def starts_of(
    model: KMeans,
    seeds: Sequence[int],
    Y: FloatArray,
    weights: FloatArray | None,
    side_by_side: int,
    checkpoint: Checkpoint = NOTHING,
) -> list[BestStart]:
    """Return what scikit-learn's K-means finds from every seed, the best first."""
    found: dict[int, BestStart] = {}
    options = model.get_params() | {"n_init": 1}

    def start(index: int) -> None:
        one = KMeans(**options | {"random_state": seeds[index]})
        # The first looks at the options for all: that takes a sixth of a start on few rows.
        with config_context(skip_parameter_validation=index > 0):
            one.fit(Y, sample_weight=weights)
        found[index] = BestStart(one.labels_, one.cluster_centers_, one.n_iter_, one.inertia_)

    def state(done: int) -> dict[str, Any]:
        best = [found[index] for index in range(done)]
        centers = [one.cluster_centers_.ravel() for one in best]
        numbers = [[one.n_iter_, one.inertia_] for one in best]
        return {
            "labels": np.array([one.labels_ for one in best]),
            "centers": np.array(centers),
            "numbers": np.array(numbers, np.float64),
        }

    def restore(labels: IntArray, centers: FloatArray, numbers: FloatArray) -> None:
        for index, (n_iter, inertia) in enumerate(numbers.tolist()):
            center = centers[index].reshape(model.n_clusters, -1)
            found[index] = BestStart(labels[index], center, int(n_iter), inertia)

    # NOTE: scikit-learn's K-means sums in the order of its threads, so that its last bits
    # depend on them. The crew gives one thread to a start, and runs starts side by side.
    # Of equal rows every start would warn; the estimators do, once.
    sizes = len(Y), model.n_clusters, len(seeds)
    with without_warnings_of_starts(), checkpoint.stage("k-means", *sizes) as stage:
        if stage.state is not None:
            restore(*(stage.state[name] for name in ("labels", "centers", "numbers")))
        with Crew(side_by_side) as crew:
            stage.each(crew, start, len(seeds), state)
    return [found[index] for index in sorted(found, key=lambda i: (found[i].inertia_, i))]


def inertia(
    Y: FloatArray, centers: FloatArray, labels: IntArray, weights: FloatArray | None
) -> float:
    """Return the weighted sum of squared distances to the centroids, in float64."""
    given = (labels,) if weights is None else (labels, weights)
    with OneBlasThread():
        return float(over(Y, partial(_inertia_of, centers=centers), *given, name="centers").total)


def _inertia_of(
    Y: FloatArray, labels: IntArray, weights: FloatArray | None = None, *, centers: FloatArray
) -> Part:
    squares = np.square(Y - centers[labels].astype(np.float64)).sum(axis=1)
    return Part((), np.array(squares.sum() if weights is None else squares @ weights))


def _sums_of(Y: FloatArray, labels: IntArray, mass: FloatArray, *, n_clusters: int) -> Part:
    return Part((), memberships(labels, mass, n_clusters).T @ Y.astype(np.float64))


def move_centers(
    Y: FloatArray, centers: FloatArray, labels: IntArray, weights: FloatArray | None
) -> None:
    """Put the centers, in place, to the means of their clusters; one that is empty stays."""
    mass = masses(weights, len(labels))
    sizes = np.bincount(labels, mass, len(centers))
    work = partial(_sums_of, n_clusters=len(centers))
    with OneBlasThread():
        sums = over(Y, work, labels, mass, name="centers").total
    full = sizes > 0
    centers[full] = sums[full] / sizes[full, None]


def nearest_centers(Y: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the nearest center of each row and its squared distance; refuse infinite rows."""
    labels, squares = np.empty(len(Y), np.int32), np.empty(len(Y))
    for rows in row_blocks(len(Y)):
        with np.errstate(over="ignore", invalid="ignore"):
            distances = np.square(centers).sum(axis=1) - 2 * Y[rows] @ centers.T
            labels[rows] = distances.argmin(axis=1)
            squares[rows] = np.square(Y[rows] - centers[labels[rows]]).sum(axis=1)
        refuse_infinite(distances, rows.start)
    return labels, squares
