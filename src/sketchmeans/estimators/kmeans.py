"""Plain K-means on the rows of an embedding, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.cluster import KMeans

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import masses, relative_weights, row_blocks
from sketchmeans.certificate.objective import memberships
from sketchmeans.engine import Crew
from sketchmeans.operators.cross import refuse_infinite


def best_start(
    model: KMeans,
    seeds: Sequence[int],
    Y: FloatArray,
    weights: FloatArray | None,
    *,
    side_by_side: int,
) -> KMeans:
    """Run a start of a K-means per seed, some side by side, each on one thread; return the best."""
    weights = relative_weights(weights)
    found: dict[int, KMeans] = {}

    def start(index: int) -> None:
        one = KMeans(**{**model.get_params(), "n_init": 1, "random_state": seeds[index]})
        found[index] = one.fit(Y, sample_weight=weights)

    # NOTE: scikit-learn's K-means sums in the order of its threads, so that its last bits
    # depend on them. The crew gives one thread to a start, and runs starts side by side.
    with Crew(side_by_side) as crew:
        crew.each(start, range(len(seeds)))
    return found[min(found, key=lambda index: (found[index].inertia_, index))]


def inertia(
    Y: FloatArray, centers: FloatArray, labels: IntArray, weights: FloatArray | None
) -> float:
    """Return the weighted sum of squared distances to the centroids, in float64."""
    total = 0.0
    for rows in row_blocks(len(Y)):
        squares = np.square(Y[rows] - centers[labels[rows]].astype(np.float64)).sum(axis=1)
        with OneBlasThread():
            total += float(squares.sum() if weights is None else squares @ weights[rows])
    return total


def move_centers(
    Y: FloatArray, centers: FloatArray, labels: IntArray, weights: FloatArray | None
) -> None:
    """Put the centers, in place, to the means of their clusters; one that is empty stays."""
    mass = masses(weights, len(labels))
    sizes = np.bincount(labels, mass, len(centers))
    sums = np.zeros(centers.shape)
    for rows in row_blocks(len(mass)):
        member = memberships(labels[rows], mass[rows], len(centers))
        with OneBlasThread():
            sums += member.T @ Y[rows].astype(np.float64)
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
