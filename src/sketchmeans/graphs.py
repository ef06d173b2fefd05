"""Graphs of one's own: from affinities to the kernel whose K-means is the normalized cut."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_array

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.operators.graphs import first_asymmetry

DEGREES = (1e-100, 1e100)
"""Where the largest degree must lie: degrees are multiplied by each other."""
LIGHT = 1e-20
"""A degree below this part of the largest is none: float64 would not notice it beside that."""


@dataclass(frozen=True)
class NormalizedGraph:
    """A graph as ``KernelKMeans`` takes it; ``kernel, weights = graph`` unpacks it.

    Parameters
    ----------
    kernel : array or CSR matrix of shape (n, n)
        (D⁻¹ + D⁻¹AD⁻¹) / 2, sparse where A is. The row of an isolated vertex is zero.
    weights : array of shape (n,)
        The degrees, Σ_j A_ij; 0 for an isolated vertex.
    n_components : int
        Connected components, those of a single isolated vertex not counted.
    """

    kernel: Any
    weights: FloatArray
    n_components: int

    def __iter__(self) -> Iterator[Any]:
        return iter((self.kernel, self.weights))


def normalized(A: Any) -> NormalizedGraph:
    """Return the kernel and the weights whose kernel K-means is the normalized cut of a graph.

    Let D hold the degrees d_i = Σ_j A_ij, and vol C = Σ_{i∈C} d_i. With K = (D⁻¹ + D⁻¹AD⁻¹) / 2
    and weights d, ``KernelKMeans`` minimises

        L = Σ_i d_i K_ii − Σ_C (Σ_{i,j∈C} d_i K_ij d_j) / vol C.

    The sum over i and j in C is (vol C + Σ_{i,j∈C} A_ij) / 2 = vol C − cut(C) / 2, where cut(C) is
    the sum of A_ij over i in C and j outside. For k clusters, none of them empty,

        L = tr D^½KD^½ − k + Ncut / 2,    Ncut = Σ_C cut(C) / vol C,

    so that the least L is the least normalized cut. D^½KD^½ = (I + D^-½AD^-½) / 2 has eigenvalues
    from 0 to 1: a positive semidefinite kernel, with a certificate.

    What tells clusters of a graph apart are its k leading eigenvectors alone, whose eigenvalues lie
    close together below 1. So take ``rank=k``; ``method="auto"`` is "exact" for a sparse kernel,
    which iterates until it has them. Two passes with a sketch (``n_passes=2``) do not come near.

    Isolated vertices have weight 0 and a kernel of zeros: they change nothing, and get the label
    of the cluster whose mean is nearest to 0. A warning tells how many there are, and of more than
    one connected component. Memory: a few copies of A.

    Parameters
    ----------
    A : array or sparse matrix of shape (n, n)
        Affinities: symmetric, A_ij ≥ 0. A_ii counts in the degree of i, and in no cut.

    Returns
    -------
    NormalizedGraph
        ``kernel``, ``weights`` and ``n_components``; it unpacks into the first two.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.graphs import normalized
    >>> X, y = make_moons(500, noise=0.07, random_state=0)
    >>> A = kneighbors_graph(X, 15)
    >>> K, weights = normalized(A.maximum(A.T))
    >>> model = KernelKMeans(2, kernel="precomputed", rank=2, method="exact", random_state=0)
    >>> labels = model.fit(K, sample_weight=weights).labels_
    >>> bool(max((labels == y).mean(), (labels != y).mean()) > 0.97)
    True
    """
    A = _checked(A)
    degrees = np.asarray(A.sum(axis=1), dtype=np.float64).ravel()
    largest = float(degrees.max())
    if largest == 0:
        raise ValueError("A has no edge: all affinities are zero, and there is nothing to cut.")
    low, high = DEGREES
    if not low <= largest <= high:
        raise ValueError(
            f"the largest degree of A, {largest:g}, is outside {low:g} to {high:g}. Rescale A, "
            "such as A / A.max(): normalized cuts do not depend on its scale."
        )
    weights = np.where(degrees < LIGHT * largest, 0.0, degrees)
    inverse = np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)
    n_components = _tell(A, weights)
    return NormalizedGraph(_kernel(A, inverse), weights, n_components)


def _kernel(A: Any, inverse: FloatArray) -> Any:
    """Return (D⁻¹ + D⁻¹AD⁻¹) / 2 from D⁻¹; A_ij (d_i⁻¹ d_j⁻¹) is as symmetric as A."""
    if not sparse.issparse(A):
        K = A * np.outer(inverse, inverse)
        K[np.diag_indices_from(K)] += inverse
        K /= 2
        return K
    both = np.repeat(inverse, np.diff(A.indptr)) * inverse[A.indices]
    joined = type(A)((A.data * both, A.indices, A.indptr), A.shape)
    diagonal = type(A)(sparse.diags_array(inverse, format="csr"))
    K = joined + diagonal
    K.data /= 2
    return K


def _tell(A: Any, weights: FloatArray) -> int:
    """Return the number of connected components; warn of isolated vertices and of several."""
    isolated = np.flatnonzero(weights == 0)
    if len(isolated):
        warnings.warn(
            f"{len(isolated)} of {len(weights)} vertices are isolated (the first is "
            f"{isolated[0]}): they get weight 0, and their labels mean nothing. Leave them out, or "
            "connect them to their nearest neighbours.",
            UserWarning,
            stacklevel=3,
        )
    labels = connected_components(sparse.csr_matrix(A), directed=False)[1]
    n_components = len(np.unique(labels[weights > 0]))
    if n_components > 1:
        warnings.warn(
            f"the graph falls into {n_components} connected components: the least normalized cut "
            f"into {n_components} clusters is these, and 0. With fewer clusters any union of "
            "components has the cut 0, and which of them are together says nothing. To connect "
            "them, take more neighbours.",
            UserWarning,
            stacklevel=3,
        )
    return n_components


def _checked(A: Any) -> Any:
    """Return affinities in float64 that are square, finite, not negative and exactly symmetric."""
    single = getattr(A, "dtype", None) == np.float32
    A = check_array(A, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    if A.shape[0] != A.shape[1]:
        raise ValueError(
            f"A must be square, not {A.shape[0]} × {A.shape[1]}: the affinity of every vertex with "
            "every vertex. For rows of data make a graph first, such as "
            "sklearn.neighbors.kneighbors_graph(X, 10)."
        )
    if sparse.issparse(A):
        A = A.copy()  # the caller's stays as it is
        A.sum_duplicates()
        A.eliminate_zeros()
    bad = _first_bad(A)
    if bad is not None:
        i, j, value = bad
        if not np.isfinite(value):
            raise ValueError(
                f"A[{i}, {j}] is {value:g}: affinities must be finite. Leave vertex {i} out, or "
                "compute its affinities again."
            )
        raise ValueError(
            f"A[{i}, {j}] = {value:g} is negative, and a normalized cut needs affinities of 0 or "
            "more. Distances become affinities by np.exp(-A / A.mean()), correlations by "
            "(A + 1) / 2 or np.maximum(A, 0)."
        )
    found = _asymmetry(A, 1e-3 if single else 1e-6)
    if found is not None:
        i, j, here, there = found
        larger = "A.maximum(A.T)" if sparse.issparse(A) else "np.maximum(A, A.T)"
        raise ValueError(
            f"A must be symmetric, but A[{i}, {j}] = {here:g} and A[{j}, {i}] = {there:g}. In a "
            "graph of nearest neighbours one of two may be alone in its choice: "
            f"A = {larger} joins them, A = (A + A.T) / 2 does so by half."
        )
    return (A + A.T) / 2  # A itself, unless it was symmetric to rounding alone


def _first_bad(A: Any) -> tuple[int, int, float] | None:
    """Return where the first affinity is that is negative, infinite or NaN, and its value."""
    if sparse.issparse(A):
        good = (A.data >= 0) & (A.data < np.inf)
        if good.all():
            return None
        place = int(good.argmin())
        row = int(np.searchsorted(A.indptr, place, side="right")) - 1
        return row, int(A.indices[place]), float(A.data[place])
    for rows in row_blocks(len(A), 256):
        good = (A[rows] >= 0) & (A[rows] < np.inf)
        if not good.all():
            i, j = np.argwhere(~good)[0]
            return rows.start + int(i), int(j), float(A[rows.start + i, j])
    return None


def _asymmetry(A: Any, tolerance: float) -> tuple[int, int, float, float] | None:
    """Return i, j, A_ij and A_ji of the first pair that differs by more than rounding."""
    if sparse.issparse(A):
        return first_asymmetry(A, np.zeros(A.shape[0]), tolerance)
    for rows in row_blocks(len(A), 256):
        here, there = A[rows], A[:, rows].T
        with np.errstate(over="ignore"):
            off = np.abs(here - there) > tolerance * (here + there)
        if off.any():
            i, j = np.argwhere(off)[0]
            return rows.start + int(i), int(j), float(here[i, j]), float(there[i, j])
    return None
