"""Where a graph is thinnest: the cut with the fewest links that leaves a quarter on either side.

Looked for among the cuts of two smooth functions on the graph, the eigenvectors of its Laplacian
that follow the constant one, from one end of their values to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components

from sketchmeans._arrays import BoolArray, FloatArray, IntArray

LEAST_SHARE = 0.25
"""Of the rows, on either side of a waist."""
FEWEST_ROWS = 8
"""Rows below which there is no waist."""
FUNCTIONS, BLOCK, ITERATIONS = 2, 4, 5
"""Smooth functions whose cuts are looked at; vectors and steps of the iteration that finds them."""
FEW = 120
"""Rows up to which all eigenvectors are computed: that is faster."""
SHIFT = 1e-9
"""Keeps a Laplacian invertible, and is far below what matters of its eigenvalues."""


@dataclass(frozen=True)
class Waist:
    """A cut of a graph in two."""

    links: float
    """Weight of the links that it cuts."""
    ends: float
    """Rows that these links end at, as many as if all ended at alike many: (Σx)² / Σx²."""
    side: BoolArray | None
    """Which rows are on one side; None where there are too few to cut."""


def participation(weights: FloatArray) -> float:
    """Return how many numbers carry the sum of all, (Σx)² / Σx²; 0 where all are zero."""
    total = float(weights.sum())
    return total**2 / float(weights @ weights) if total > 0 else 0.0


def waist(graph: Any) -> Waist:
    """Return the thinnest place of a graph, a symmetric CSR matrix.

    Cost: a Cholesky factor of as many rows as the graph has.
    """
    n = graph.shape[0]
    if n < FEWEST_ROWS:
        return Waist(0.0, 1.0, None)
    count, parts = connected_components(graph, directed=False)
    largest = np.bincount(parts).argmax() if count > 1 else 0
    rows = np.flatnonzero(parts == largest)
    if len(rows) <= (1 - LEAST_SHARE) * n:
        return Waist(0.0, 1.0, parts == largest)
    if count > 1:
        graph = graph[rows][:, rows]
    # What hangs on nothing is on either side; a quarter of all rows is to be on both.
    least = max(min(int(LEAST_SHARE * n), len(rows) // 2), 1)
    links = sparse.triu(graph, 1).tocoo()
    cuts = [_thinnest(links, function, least) for function in smooth_functions(graph).T]
    best = min(cuts, key=lambda cut: cut.links)
    side = np.zeros(n, bool)
    side[rows] = best.side
    return Waist(best.links, best.ends, side)


def _thinnest(links: Any, function: FloatArray, least: int) -> Waist:
    """Return the cut with the fewest links between high and low values of a function."""
    n = len(function)
    place: IntArray = np.empty(n, int)
    place[np.argsort(function, kind="stable")] = np.arange(n)
    ends = np.sort([place[links.row], place[links.col]], axis=0)
    opened, closed = (np.bincount(end, links.data, n) for end in ends)
    crossing = np.cumsum(opened - closed)[least - 1 : n - least]  # behind the first ``least`` rows
    last = least - 1 + int(np.argmin(crossing))
    cut = (ends[0] <= last) & (ends[1] > last)
    weights = sum(np.bincount(end[cut], links.data[cut], n) for end in ends)
    return Waist(float(links.data[cut].sum()), participation(np.asarray(weights)), place > last)


def smooth_functions(graph: Any) -> FloatArray:
    """Return functions on a connected graph that change least along its links, in columns.

    The eigenvectors of D^{-½}(D − A)D^{-½} with the least eigenvalues but the constant one, over
    D^½, by inverse iteration: in long thin graphs these eigenvalues are too close to zero, and to
    each other, for iterations without an inverse.
    """
    n = graph.shape[0]
    roots = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    laplacian = graph.toarray()
    laplacian /= -roots[:, None]
    laplacian /= roots
    laplacian[np.diag_indices(n)] += 1 + SHIFT
    if n <= FEW:
        return np.linalg.eigh(laplacian)[1][:, 1 : 1 + FUNCTIONS] / roots[:, None]
    constant = roots / np.linalg.norm(roots)
    laplacian += np.outer(constant, constant)  # its eigenvalue becomes one, and is not met
    factor = cho_factor(laplacian, overwrite_a=True, check_finite=False)
    vectors = np.random.default_rng(n).normal(size=(n, BLOCK))
    for _ in range(ITERATIONS):
        vectors = np.linalg.qr(cho_solve(factor, vectors, check_finite=False))[0]
    inverse = vectors.T @ cho_solve(factor, vectors, check_finite=False)
    turned = np.linalg.eigh((inverse + inverse.T) / 2)[1][:, : -FUNCTIONS - 1 : -1]
    return (vectors @ turned) / roots[:, None]
