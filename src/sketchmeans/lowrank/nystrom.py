"""Nyström approximations: K̂ = C A⁺ Cᵀ from m columns of K, or from m points near the data."""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import apply_in_place, orthogonal_columns
from sketchmeans.engine import ALONE, Run
from sketchmeans.lowrank.core import CUT, EPS, Core, noise_level
from sketchmeans.lowrank.landmarks import SAMPLERS, Draw, kmeans_landmarks
from sketchmeans.lowrank.request import Truncation
from sketchmeans.lowrank.result import Cost, Facts, LowRank, warn_indefinite
from sketchmeans.operators import KernelOperator, NewPoints

SAMPLINGS = (*SAMPLERS, "kmeans")


def nystrom(
    operator: KernelOperator,
    *,
    columns: int,
    rank: int,
    seed: int,
    sampling: str = "uniform",
    truncation: Truncation = "late",
    run: Run = ALONE,
) -> LowRank:
    """Approximate K from ``columns`` landmarks.

    Kernel entries: n · columns and the diagonal. Sampling by column norm makes one pass over K
    more, n(n + 1)/2 and half a tile per row; ridge leverage scores take n · columns for all
    samples, half of that for half of them, and so on, 2n · columns at the most; K-means landmarks
    need columns² for their own kernel. Memory: n × columns numbers in float64.

    Parameters
    ----------
    operator : KernelOperator
    columns : int
        Landmarks, the paper's m.
    rank : int
        Columns of the embedding.
    seed : int
        Fixes the landmarks.
    sampling : {"uniform", "diagonal", "column-norm", "leverage", "kmeans"}
        How the landmarks are found; see ``lowrank.landmarks``.
    truncation : {"late", "early"}
        "late" cuts K̂ to ``rank`` after it is formed. "early" takes the pseudo-inverse of rank
        ``rank`` of the small matrix, as the paper's baseline does, and is less accurate.
    run : Run
        Does not change the result.
    """
    n = operator.shape[0]
    columns = min(columns, n)
    diagonal = operator.diagonal()
    cost, scale = Cost(entries=operator.diagonal_entries), None
    if sampling == "kmeans":
        landmarks, C, A = kmeans_landmarks(operator, columns, seed, run)
        cost += Cost(entries=A.size)
    else:
        draw = Draw(operator, diagonal, columns, np.random.default_rng(seed), run)
        indices, spent = SAMPLERS[sampling](draw)
        cost += spent
        C = operator.columns(indices, run)
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
        cost=cost + Cost(entries=C.size, audit_entries=checked),
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
    cost: Cost,
    scale: FloatArray | None = None,
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
    """
    with OneBlasThread():
        core = Core(np.eye(len(A)), A, noise_level(np.dtype(np.float64), rounding), is_psd)
        by_rank = truncation == "early"
        if not by_rank and core.negative_mass == 0:
            T = core.late_map(C, diagonal)
        if by_rank or core.negative_mass > 0:
            keep = core.values > max(CUT * core.eta, len(A) * EPS) * core.size
            leading = np.flatnonzero(keep)[::-1][:rank]
            T = core.vectors[:, leading] / np.sqrt(core.values[leading])
        apply_in_place(C, T)
        factor = C[:, : T.shape[1]]
        if core.negative_mass == 0 and by_rank:
            squares = np.vecdot(factor, factor)
            core.judge_excess(squares - diagonal, diagonal, float(squares.sum()))
        if core.negative_mass > 0:
            warn_indefinite(core.negative_mass, "from the positive part of the landmarks' kernel")
        eigenvalues, rotation = orthogonal_columns(factor)
        T = (T @ rotation)[:, :rank]
    return LowRank(
        factor=factor,
        eigenvalues=eigenvalues,
        rank=T.shape[1],
        dual=T if scale is None else T * scale[:, None],
        facts=Facts(float(diagonal.sum()), core.rounding(rounding, diagonal)),
        eta=core.eta,
        cost=cost,
        new_points=landmarks,
        negative_mass=core.negative_mass,
    )
