"""Nyström approximations: K̂ = C A⁺ Cᵀ from m columns of K, or from m points near the data."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import apply_in_place, orthogonal_columns, relative_weights, row_blocks
from sketchmeans.engine import Crew, RightHandSide, symmetric_pass
from sketchmeans.lowrank.core import CUT, EPS, Core, noise_level
from sketchmeans.lowrank.one_pass import Truncation
from sketchmeans.lowrank.result import LowRank, warn_indefinite
from sketchmeans.operators import CallableOperator, DataOperator, KernelOperator, NewPoints

Sampling = Literal["uniform", "diagonal", "column-norm", "leverage", "kmeans"]
SAMPLINGS: tuple[Sampling, ...] = ("uniform", "diagonal", "column-norm", "leverage", "kmeans")

_KMEANS_ITERATIONS = 20


def nystrom(
    operator: KernelOperator,
    *,
    columns: int,
    rank: int,
    seed: int,
    sampling: Sampling = "uniform",
    truncation: Truncation = "late",
    n_threads: int = 1,
) -> LowRank:
    """Approximate K from ``columns`` landmarks.

    Kernel entries: n · columns and the diagonal. Sampling by column norm makes one pass over K
    more, n(n + 1)/2 and half a tile a row; ridge leverage scores take n · columns for all samples,
    half of that for half of them, and so on, 2n · columns at the most; K-means landmarks need
    columns² for their own kernel. Memory: n × columns numbers in float64.

    Parameters
    ----------
    operator : KernelOperator
        K.
    columns : int
        Landmarks, the paper's m.
    rank : int
        Columns of the embedding.
    seed : int
        Fixes the landmarks.
    sampling : {"uniform", "diagonal", "column-norm", "leverage", "kmeans"}
        Uniform without replacement (Williams–Seeger); with probability in proportion to K_ii or to
        the squared norm of a column (Drineas–Mahoney; Kumar et al.); by recursive ridge leverage
        scores (Musco–Musco); centers of K-means on the data (Zhang–Kwok).
    truncation : {"late", "early"}
        "late" cuts K̂ to ``rank`` after it is formed. "early" takes the pseudo-inverse of rank
        ``rank`` of the small block, as the paper's baseline does, and is less accurate.
    n_threads : int
        Does not change the result.
    """
    random = np.random.default_rng(seed)
    n = operator.shape[0]
    columns = min(columns, n)
    diagonal = operator.diagonal()
    entries = operator.diagonal_entries
    passes = 0
    if sampling == "kmeans":
        landmarks, C, A = _kmeans_landmarks(operator, columns, seed, n_threads)
        scale = None
        entries += n * columns + columns * columns
    else:
        if sampling == "uniform":
            indices = np.sort(random.choice(n, columns, replace=False))
        elif sampling == "diagonal":
            indices = _weighted_choice(random, np.maximum(diagonal, 0.0), columns)
        elif sampling == "column-norm":
            squares, spent = _column_norms(operator, diagonal, n_threads)
            indices = _weighted_choice(random, squares, columns)
            entries += spent
            passes += 1
        else:
            indices, spent = _leverage_landmarks(operator, diagonal, columns, random, n_threads)
            entries += spent
        C = operator.columns(indices, n_threads=n_threads)
        entries += n * len(indices)
        A = C[indices]
        landmarks = operator.landmarks(indices)
        scale = None if operator.root_weights is None else operator.root_weights[indices]
    rounding, checked = operator.rounding(seed, fine=True)
    return from_landmarks(
        C,
        A,
        landmarks,
        rank=rank,
        truncation=truncation,
        diagonal=diagonal,
        rounding=rounding,
        scale=scale,
        entries=entries,
        audit_entries=checked,
        passes=passes,
        is_psd=operator.is_psd,
    )


def from_landmarks(
    C: FloatArray,
    A: FloatArray,
    landmarks: NewPoints,
    *,
    rank: int,
    truncation: Truncation,
    diagonal: FloatArray,
    rounding: float,
    scale: FloatArray | None = None,
    entries: int = 0,
    audit_entries: int = 0,
    passes: int = 0,
    inner_rank: int | None = None,
    seed: int = 0,
    is_psd: bool | None = None,
) -> LowRank:
    """Recover K ≈ C A⁺ Cᵀ; C is overwritten.

    Parameters
    ----------
    C : array of shape (n, m)
        Kernel of the samples with the landmarks.
    A : array of shape (m, m)
        Kernel of the landmarks.
    landmarks : NewPoints
        The kernel of any points with the landmarks.
    diagonal : array of shape (n,)
        K_ii.
    rounding : float
        ε of the entries of C and A.
    scale : array of shape (m,), optional
        Roots of the landmarks' weights.
    inner_rank : int, optional
        Decompose A by a randomized method of this rank (Li–Kwok) instead of exactly.
    """
    with OneBlasThread():
        core = Core(np.eye(len(A)), A, noise_level(np.dtype(np.float64), rounding), is_psd)
        by_rank = truncation == "early"
        if inner_rank is not None:
            U, values, _ = randomized_svd((A + A.T) / 2, inner_rank, random_state=seed)
            keep = values > CUT * core.eta * values.max(initial=0.0)
            T = U[:, keep] / np.sqrt(values[keep])
        elif not by_rank and core.negative_mass == 0:
            T = core.late_map(C, diagonal)
        if inner_rank is None and (by_rank or core.negative_mass > 0):
            keep = core.values > max(CUT * core.eta, len(A) * EPS) * core.size
            leading = np.flatnonzero(keep)[::-1][:rank]
            T = core.vectors[:, leading] / np.sqrt(core.values[leading])
        apply_in_place(C, T)
        factor = C[:, : T.shape[1]]
        if core.negative_mass == 0 and (by_rank or inner_rank is not None):
            squares = np.vecdot(factor, factor)
            core.look(squares - diagonal, diagonal, float(squares.sum()))
        if core.negative_mass > 0:
            warn_indefinite(core.negative_mass, "from the positive part of the landmarks' kernel")
        eigenvalues, rotation = orthogonal_columns(factor)
        T = (T @ rotation)[:, :rank]
    return LowRank(
        factor=factor,
        eigenvalues=eigenvalues,
        rank=T.shape[1],
        dual=T if scale is None else T * scale[:, None],
        trace=float(diagonal.sum()),
        row_sums=None,
        sum_of_squares=None,
        eta=core.eta,
        rounding=core.rounding(rounding, diagonal),
        passes=passes,
        entries=entries,
        audit_entries=audit_entries,
        pass_seconds=0.0,
        new_points=landmarks,
        negative_mass=core.negative_mass,
    )


def nystrom_randomized(
    operator: KernelOperator, *, columns: int, rank: int, oversampling: int, seed: int
) -> LowRank:
    """Nyström with a randomized decomposition of the inner block (Li–Kwok–Lu).

    For m so large that an m × m eigendecomposition is too much. Kernel entries: n · columns and
    the diagonal.
    """
    indices = np.sort(np.random.default_rng(seed).choice(operator.shape[0], columns, replace=False))
    C = operator.columns(indices)
    diagonal = operator.diagonal()
    rounding, checked = operator.rounding(seed, fine=True)
    return from_landmarks(
        C,
        C[indices],
        operator.landmarks(indices),
        rank=rank,
        truncation="early",
        diagonal=diagonal,
        rounding=rounding,
        scale=None if operator.root_weights is None else operator.root_weights[indices],
        entries=C.size + operator.diagonal_entries,
        audit_entries=checked,
        inner_rank=min(rank + oversampling, columns),
        seed=seed,
    )


def nystrom_ensemble(
    operator: KernelOperator, *, columns: int, rank: int, experts: int, seed: int
) -> FloatArray:
    """Average of several uniform Nyström approximations (Kumar–Mohri–Talwalkar): its factor.

    Returns F, n × (experts · columns), with K̂ = FFᵀ the mean of the experts' K̂, each cut to
    ``rank`` late. Memory: n × (experts · rank) numbers.
    """
    parts = [
        nystrom(operator, columns=columns, rank=rank, seed=seed + expert).embedding
        for expert in range(experts)
    ]
    F = np.concatenate(parts, axis=1) / np.sqrt(experts)
    eigenvalues, _ = orthogonal_columns(F)
    return F[:, eigenvalues > 0]


def _weighted_choice(random: np.random.Generator, sizes: FloatArray, count: int) -> FloatArray:
    """Draw distinct indices with probability in proportion to sizes, one after the other."""
    possible = np.flatnonzero(sizes > 0)
    if len(possible) < count:
        others = np.setdiff1d(np.arange(len(sizes)), possible)
        return np.sort(np.concatenate([possible, others[: count - len(possible)]]))
    p = sizes / sizes.sum()
    return np.sort(random.choice(len(sizes), count, replace=False, p=p))


def _column_norms(
    operator: KernelOperator, diagonal: FloatArray, n_threads: int
) -> tuple[FloatArray, int]:
    """Compute ‖K e_j‖² of every column: the row sums of a symmetric pass over the squares of K.

    Of K over its largest K_ii, for a pass squares its entries once more. Kernel entries:
    n(n + 1)/2 and half a tile a row. Memory: n numbers and two tiles a thread.
    """

    def squared(rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        np.divide(operator.tile(rows, columns), largest, out=out, dtype=np.float64)
        return np.square(out, out=out)

    largest = float(np.abs(diagonal).max(initial=0.0)) or 1.0
    nothing = np.empty((operator.shape[0], 0))
    with Crew(n_threads) as crew:
        ones = RightHandSide(nothing, None, np.dtype(np.float64))
        result = symmetric_pass(squared, ones, crew=crew)
    return result.row_sums, result.entries


def _leverage_landmarks(
    operator: KernelOperator,
    diagonal: FloatArray,
    count: int,
    random: np.random.Generator,
    n_threads: int,
) -> tuple[FloatArray, int]:
    """Draw landmarks by recursive ridge leverage scores (Musco–Musco 2017).

    The data are halved until few are left; on the way back each level scores its points by the
    landmarks of the level below, with the ridge that makes the scores sum to about count / 2.

    Kernel entries: each level's points with the landmarks of the level below, and no others.
    Memory: n × count numbers.
    """
    n = operator.shape[0]
    order = random.permutation(n)
    sizes = [n]
    while sizes[-1] > 2 * count:
        sizes.append(-(-sizes[-1] // 2))
    chosen = np.arange(min(sizes[-1], count))  # places in ``order``, the same at every level
    entries = 0
    for size in sizes[::-1]:
        level = order[:size]
        C = operator.rectangle(level, order[chosen], n_threads=n_threads)
        entries += C.size
        scores = _ridge_scores(C, C[chosen], diagonal[level], count)
        del C  # before the next level allocates its own
        chosen = _weighted_choice(random, scores, min(count, size))
    return np.sort(order[chosen]), entries


def _ridge_scores(C: FloatArray, A: FloatArray, diagonal: FloatArray, count: int) -> FloatArray:
    """Return ridge leverage scores K_ii − k_iᵀ(A + λI)⁻¹k_i, over λ, estimated from landmarks."""
    with OneBlasThread():
        values, V = np.linalg.eigh((A + A.T) / 2)
        if not values.any():  # landmarks that are zero say nothing of the others
            return np.maximum(diagonal, 0.0)
        tail = np.sort(np.maximum(values, 0))[: max(len(values) - count // 2, 1)]
        ridge = max(float(tail.sum()) / max(count // 2, 1), EPS * float(np.abs(values).max()))
        weights = 1.0 / (np.maximum(values, 0) + ridge)
        held = np.concatenate([np.square(C[rows] @ V) @ weights for rows in row_blocks(len(C))])
    return np.maximum(diagonal - held, 0.0) / ridge


def _kmeans_landmarks(
    operator: KernelOperator, count: int, seed: int, n_threads: int
) -> tuple[NewPoints, FloatArray, FloatArray]:
    """Return centers of K-means on the data, with their kernel (Zhang–Kwok 2010)."""
    if not isinstance(operator, DataOperator | CallableOperator):
        raise ValueError(
            'sketch="kmeans" needs data to put landmarks among, and a precomputed kernel has '
            'none. Choose sketch="uniform", "diagonal", "column-norm" or "leverage".'
        )
    X = operator.points.X if isinstance(operator, DataOperator) else operator.X
    weights = None if operator.root_weights is None else operator.root_weights**2
    near_one, exponent = _near_one(X)
    with OneBlasThread():
        centers = KMeans(count, n_init=1, max_iter=_KMEANS_ITERATIONS, random_state=seed).fit(
            near_one, sample_weight=relative_weights(weights)
        )
    points = np.ldexp(centers.cluster_centers_.astype(np.float64), exponent)
    landmarks = operator.landmarks_at(points)
    C = operator.with_landmarks(landmarks, count, n_threads=n_threads)
    if operator.root_weights is not None:
        C *= operator.root_weights[:, None]
    return landmarks, C, landmarks.against(points).dense()


def _near_one(X: Any) -> tuple[Any, int]:
    """Return X / 2^e, and e: K-means squares numbers that the kernel may not need to square.

    X itself, and 0, unless its largest number is far from one.
    """
    exponent = int(np.frexp(float(max(X.max(), -X.min())))[1])
    if abs(exponent) <= 40:
        return X, 0
    if not sparse.issparse(X):
        return np.ldexp(X, -exponent), exponent
    near = X.copy()
    near.data = np.ldexp(X.data, -exponent)
    return near, exponent
