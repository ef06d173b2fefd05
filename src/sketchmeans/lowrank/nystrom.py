"""Nyström approximations: K̂ = C A⁺ Cᵀ from m columns of K, or from m points near the data."""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.engine import ALONE, Run
from sketchmeans.lowrank.core import CUT, EPS, Core, noise_level
from sketchmeans.lowrank.landmarks import SAMPLERS, Draw, Landmarks, kmeans_landmarks
from sketchmeans.lowrank.request import Truncation
from sketchmeans.lowrank.result import Cost, Facts, LowRank, Whole, warn_indefinite
from sketchmeans.operators import KernelOperator, LandmarkFeatures, LandmarkOperator
from sketchmeans.operators.base import audited_rows
from sketchmeans.operators.features import Gram

SAMPLINGS = (*SAMPLERS, "kmeans")

HELD = 1 << 22
"""Numbers of C up to which it is held in memory whatever the rank: 32 MB in float64."""


def holds_columns(n: int, columns: int, rank: int) -> bool:
    """Whether C is made once and held: where it is small, or no wider than twice the embedding."""
    return columns <= 2 * rank or n * columns <= HELD


def auto_sampling(operator: KernelOperator, columns: int) -> str:
    """Return what sketch="auto" is: "kmeans" for points, "uniform" where there are none.

    Centers are dense. Of wide sparse rows they would take more than the data themselves.
    """
    if operator.data is None or not hasattr(operator, "points"):
        return "uniform"
    stored = getattr(operator.data, "nnz", None)
    if stored is not None and columns * operator.n_features > max(stored, HELD):
        return "uniform"
    return "kmeans"


def nystrom(
    operator: KernelOperator,
    *,
    columns: int,
    rank: int,
    seed: int,
    sampling: str = "auto",
    truncation: Truncation = "late",
    tolerance: float = 0.0,
    run: Run = ALONE,
) -> LowRank:
    """Approximate K from ``columns`` landmarks, the paper's m; C = κ(samples, landmarks).

    Kernel entries: 2nm for two streams over C, m² for the landmarks' own kernel A, and the
    diagonal; nm where C is held in memory (``holds_columns``), and without A where the landmarks
    are samples. Sampling by column norm makes one pass over K more, n(n + 1)/2 and half a tile
    per row; ridge leverage scores take nm for all samples, half of that for half of them, and so
    on, 2nm at the most. Memory: n × rank numbers in float64, a few of m × m, and a block of C per
    thread; n × m where C is held, and for leverage scores.

    Parameters
    ----------
    operator : KernelOperator
    columns : int
        Landmarks.
    rank : int
        Columns of the embedding.
    seed : int
        Fixes the landmarks.
    sampling : {"auto", "uniform", "diagonal", "column-norm", "leverage", "kmeans"}
        How the landmarks are found; see ``lowrank.landmarks``.
    truncation : {"late", "early"}
        "late" cuts K̂ to ``rank`` after it is formed. "early" takes the pseudo-inverse of rank
        ``rank`` of the small matrix, as the paper's baseline does, and is less accurate.
    tolerance : float
        With more than 0, the embedding has the least rank that leaves at most this share of the
        trace, or ``rank`` if K̂ leaves more.
    run : Run
        Does not change the result.
    """
    columns = min(columns, operator.shape[0])
    diagonal = operator.diagonal()
    cost = Cost(entries=operator.diagonal_entries)
    sampling = auto_sampling(operator, columns) if sampling == "auto" else sampling
    if sampling == "kmeans":
        landmarks = kmeans_landmarks(operator, columns, seed)
    else:
        draw = Draw(operator, diagonal, columns, np.random.default_rng(seed), run)
        indices, spent = SAMPLERS[sampling](draw)
        landmarks = Landmarks(indices)
        cost += spent
    return from_landmarks(
        operator,
        landmarks,
        rank=rank,
        seed=seed,
        truncation=truncation,
        tolerance=tolerance,
        diagonal=diagonal,
        cost=cost,
        run=run,
    )


def from_landmarks(
    operator: KernelOperator,
    landmarks: Landmarks,
    *,
    rank: int,
    seed: int,
    truncation: Truncation = "late",
    tolerance: float = 0.0,
    diagonal: FloatArray,
    cost: Cost,
    run: Run = ALONE,
) -> LowRank:
    """Recover K ≈ C A⁺ Cᵀ from the Gram matrix of its features F = CT, TTᵀ = A⁺.

    FᵀF gives the eigenvectors V, a second stream over C the embedding C·(TV). The parameters are
    those of ``nystrom``; ``cost`` is what was spent before.
    """
    with OneBlasThread():
        features, A, spent = _columns(operator, landmarks, 0 if tolerance > 0 else rank, run)
        dtype = features.map.landmarks.dtype
        rounding, checked = operator.rounding(seed, fine=dtype == np.float64)
        core = Core(None, A, noise_level(dtype, rounding), operator.is_psd)
        by_rank = truncation == "early" or core.negative_mass > 0
        features = features.with_root(_pseudo_root(core, rank if by_rank else None))
        near = (A @ features.map.T).mean(axis=0) * float(np.linalg.norm(operator.carried))
        gram = features.gram(near, run.part(0, 2))
        spent += Cost(entries=features.stream_entries)
        error, more = _measured_error(features, landmarks, seed)
        checked += more
        if not _lies_below(core, gram, diagonal, error):  # K is not positive semidefinite
            gram, features = gram.leading(rank), features.with_root(features.map.T[:, :rank])
        values, V = np.linalg.eigh(gram.squared)
        values, V = np.maximum(values[::-1], 0.0), V[:, ::-1]
        if tolerance > 0:
            enough = (1 - tolerance - 10 * core.eta) * float(diagonal.sum())
            rank = min(rank, int((np.cumsum(values) < enough).sum()) + 1)
        features = features.with_root(features.map.T @ V)
        dual = features.map.T[:, :rank]
        factor = features.product(np.eye(len(values), dual.shape[1]), run.part(1, 2))
        spent += Cost(entries=features.stream_entries, audit_entries=checked)
    if core.negative_mass > 0:
        warn_indefinite(core.negative_mass, "from the positive part of the landmarks' kernel")
    return LowRank(
        factor=factor,
        eigenvalues=values,
        rank=dual.shape[1],
        dual=dual,
        facts=Facts(float(diagonal.sum()), core.rounding(rounding, diagonal)),
        eta=core.eta,
        cost=cost + spent,
        new_points=features.map.landmarks,
        negative_mass=core.negative_mass,
        whole=Whole(features, gram.rotated(V)),
    )


def _lies_below(core: Core, gram: Gram, diagonal: FloatArray, error: float) -> bool:
    """Whether K̂ ≼ K can be, by its diagonal; what was known before, or was seen, is in the core.

    F is off by ``error``, which is spread over its columns: sums over the eigenvalues of K̂, and
    single ones, are off by that times the trace, and times its root.
    """
    if core.negative_mass > 0:
        return True  # it has been judged, and cut
    largest = float(np.linalg.eigvalsh(gram.squared)[-1]) if len(gram.squared) else 0.0
    if largest > 0:
        share = float(np.trace(gram.squared)) / largest
        core.eta = max(core.eta, error * max(share / len(gram.squared), np.sqrt(share) / 8))
    core.judge_excess(gram.lengths - diagonal, diagonal, largest)
    return core.negative_mass == 0


def _columns(
    operator: KernelOperator, landmarks: Landmarks, rank: int, run: Run
) -> tuple[LandmarkOperator, FloatArray, Cost]:
    """Return the operator of C, held or not and without a T, with A and what both cost so far."""
    n, m = operator.shape[0], len(landmarks)
    kernel = landmarks.kernel(operator, fine=False)
    rows = operator.rows_at_once(m)
    features = LandmarkOperator(operator, LandmarkFeatures(kernel, np.empty((m, 0)), rows))
    entries = 0
    if holds_columns(n, m, rank):
        entries += features.stream_entries
        features.hold(run)
    if features.held is not None and landmarks.indices is not None and kernel.dtype == np.float64:
        return features, features.held[landmarks.indices], Cost(entries=entries)
    A = landmarks.square(operator)
    return features, A, Cost(entries=entries + A.size)


def _pseudo_root(core: Core, rank: int | None) -> FloatArray:
    """Return T with TTᵀ = A⁺, its columns in falling order of A's eigenvalues.

    Values below the noise are cut; with a rank, so are all but the leading ones.
    """
    least = CUT * core.eta if rank is None else max(CUT * core.eta, len(core.values) * EPS)
    kept = np.flatnonzero(core.values > least * core.size)[::-1][:rank]
    return core.vectors[:, kept] / np.sqrt(core.values[kept])


def _measured_error(
    features: LandmarkOperator, landmarks: Landmarks, seed: int
) -> tuple[float, int]:
    """Return the relative error of F on a few rows against float64, and the entries it took.

    Float64 itself is the finest there is: what its entries are known to is in their rounding.
    """
    kernel, T = features.map.landmarks, features.map.T
    if kernel.dtype == np.float64:
        return 0.0, 0
    X = features.data[audited_rows(features.shape[0], seed)]
    truth = landmarks.kernel(features.operator, fine=True).against(X).dense() @ T
    found = kernel.against(X).values() @ T.astype(kernel.dtype)
    size = float(np.linalg.norm(truth))
    error = float(np.linalg.norm(found - truth)) / size if size > 0 else 0.0
    return error, 2 * len(truth) * len(T)
