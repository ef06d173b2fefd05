"""The bracket theorem: the objective of labels of any origin lies between two numbers.

With P = CᵀC for an indicator matrix C, the objective is L(C) = tr K − ⟨K, P⟩, and K̂ ≼ K gives
L̂(C) ≤ L(C) ≤ L̂(C) + tr(J(K − K̂)J); docs/certificate.md has the proof.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import masses
from sketchmeans.certificate.moments import Moments, centred, unit_vector
from sketchmeans.certificate.objective import memberships
from sketchmeans.operators.features import Gram
from sketchmeans.rows import Part
from sketchmeans.tall import gram, over


def approximate_objective(F: Any, labels: IntArray, weights: FloatArray | None) -> float:
    """L̂(C) = tr JK̂J − ⟨JK̂J, CᵀC⟩ for K̂ = FFᵀ, in the coordinates of D^½ K D^½."""
    n_clusters = int(labels.max(initial=0)) + 1
    weights = masses(weights, len(F))
    sizes = np.bincount(labels, weights, n_clusters)
    u = unit_vector(len(F), np.sqrt(weights))
    along = gram(F, u[:, None])[:, 0]
    work = partial(_cluster_block, along=along, n_clusters=n_clusters)
    sums = over(F, work, labels, np.sqrt(weights), u, name="certify").total
    sums, total = sums[:-1], float(sums[-1].sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(sizes > 0, np.square(sums).sum(axis=1) / sizes, 0.0)
    return total - float(within.sum())


def _cluster_block(
    F: FloatArray,
    labels: IntArray,
    root: FloatArray,
    u: FloatArray,
    *,
    along: FloatArray,
    n_clusters: int,
) -> Part:
    """Return the sums of rows of JF over the clusters and, below them, of their squares."""
    block = centred(F, u, along)
    sums = memberships(labels, root, n_clusters).T @ block
    return Part((), np.concatenate([sums, np.square(block).sum(axis=0)[None]]))


def streamed_objective(known: Gram, sums: FloatArray, sizes: FloatArray) -> float:
    """L̂(C) from FᵀJF and the sums of the rows of F over the clusters, where F is not stored.

    Parameters
    ----------
    known : Gram
        Of F, with the weights in it.
    sums : array of shape (columns, n_clusters)
        Fᵀ times the memberships, roots of the weights.
    sizes : array of shape (n_clusters,)
        Summed weights.
    """
    across = sums - np.outer(known.along, sizes / np.sqrt(sizes.sum()))
    squares = np.square(across).sum(axis=0)
    within = np.divide(squares, sizes, out=np.zeros_like(squares), where=sizes > 0)
    return float(np.trace(known.centred)) - float(within.sum())


def bracket(value: float, known: Moments) -> tuple[float, float]:
    """L̂ ≤ L(labels) ≤ L̂ + tr(JEJ), for labels of any origin (the bracket theorem)."""
    return max(value - known.slack - known.error, 0.0), value + known.residual + known.error
