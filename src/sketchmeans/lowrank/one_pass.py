"""The paper's Algorithm 1: a low-rank approximation from one pass over K, and from more."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import apply_in_place, gram, multiply_rows, row_blocks
from sketchmeans.engine import Pass
from sketchmeans.engine.passes import Progress
from sketchmeans.lowrank.core import CUT, EPS, Core, noise_level
from sketchmeans.lowrank.result import LowRank, warn_indefinite
from sketchmeans.operators import KernelOperator
from sketchmeans.sketches import Sketch

Truncation = Literal["late", "early"]
Basis = Literal["svd", "qr"]


def one_pass(
    operator: KernelOperator,
    sketch: Sketch,
    *,
    rank: int,
    truncation: Truncation = "late",
    basis: Basis = "svd",
    n_passes: int = 1,
    n_threads: int = 1,
    progress: Callable[[int], Progress | None] | None = None,
    pack: bool = True,
) -> LowRank:
    """Approximate K by Y Yᵀ of the given rank from a random sketch W = KΩ (Algorithm 1).

    Passes over K: n_passes. Kernel entries: n(n + 1)/2 a pass (half a tile a row more on the
    diagonal), and 32n in float64 to measure the error of W. Memory: n × width numbers for one
    pass, twice that for more (one and a half times with float32 tiles).

    Parameters
    ----------
    operator : KernelOperator
        K.
    sketch : Sketch
        Ω; its width is the paper's r' = r + l.
    rank : int
        r, the columns of the embedding.
    truncation : {"late", "early"}
        "late" cuts to ``rank`` after the eigendecomposition. "early" is Algorithm 1 as printed: Q
        has ``rank`` columns before B is solved for; cheaper by nothing and less accurate.
    basis : {"svd", "qr"}
        Step 3 of the early form: leading left singular vectors of W, or QR of its first columns.
    n_passes : int
        Each further pass sketches with an orthonormal basis of the last W in place of Ω.
    n_threads : int
        Does not change the result.
    progress : callable, optional
        Called with the index of a pass; returns that pass's progress callback.
    pack : bool
        See ``KernelOperator.multiply``.
    """
    right: Sketch | FloatArray = sketch
    passes = entries = audit_entries = 0
    pass_seconds = 0.0
    while True:
        report = progress(passes) if progress is not None else None
        start = time.perf_counter()
        result = operator.multiply(right, n_threads=n_threads, progress=report, pack=pack)
        pass_seconds += time.perf_counter() - start
        Omega = right.matrix if isinstance(right, Sketch) else right
        with OneBlasThread():
            error, checked = operator.relative_error(Omega, result, sketch.seed)
        eta = noise_level(operator.dtype, max(error, result.audit))
        passes += 1
        entries += result.entries
        audit_entries += checked
        if passes == n_passes or not result.W.any():  # K = 0 has nothing to improve
            break
        sketch.release()
        del Omega, right  # before their successor is made
        with OneBlasThread():
            right = _orthonormalise(result.W, eta).astype(operator.dtype, copy=False)
        del result  # before the next pass allocates its own
    rounding, checked = operator.rounding(sketch.seed)
    return recover(
        result,
        Omega,
        rank=rank,
        truncation=truncation,
        basis=basis,
        eta=eta,
        rounding=rounding,
        diagonal=operator.diagonal() if operator.cheap_diagonal else result.diagonal,
        passes=passes,
        entries=entries,
        audit_entries=audit_entries + checked,
        pass_seconds=pass_seconds,
        scale=operator.root_weights,
        is_psd=operator.is_psd,
    )


def recover(
    result: Pass,
    Omega: FloatArray,
    *,
    rank: int,
    truncation: Truncation = "late",
    basis: Basis = "svd",
    eta: float,
    rounding: float,
    diagonal: FloatArray,
    passes: int = 1,
    entries: int = 0,
    audit_entries: int = 0,
    pass_seconds: float = 0.0,
    scale: FloatArray | None = None,
    is_psd: bool | None = None,
) -> LowRank:
    """Recover K ≈ FFᵀ from W = KΩ and Ω alone; ``result.W`` is overwritten.

    The late form is K̂ = W(ΩᵀW)⁺Wᵀ, which equals Algorithm 1 with all columns kept and, for
    K ≽ 0, satisfies 0 ≼ K̂ ≼ K. If the core ΩᵀW shows negative eigenvalues beyond the noise, or K̂
    exceeds K on the diagonal, K is not positive semidefinite, the late form may explode, and the
    early form is taken instead.

    Runs on one BLAS thread, on fixed blocks of rows: the same bits for any number of threads.
    Memory: the dual coefficients, n × rank, beside W and Ω; the early form as much again.
    """
    W = result.W
    with OneBlasThread():
        core = Core(gram(Omega, Omega), gram(Omega, W), eta, is_psd)
        early = None
        if core.negative_mass == 0:
            T = to_embedding = core.late_map(W, diagonal)
        if core.negative_mass > 0:
            warn_indefinite(core.negative_mass, 'by the form truncation="early"')
            T = to_embedding = _early(W, Omega, rank, basis, eta)
        elif truncation == "early":
            to_embedding = _early(W, Omega, rank, basis, core.eta)
            early = multiply_rows(W, to_embedding)
        eigenvalues = apply_in_place(W, T)
        to_embedding = to_embedding[:, :rank]
        dual = multiply_rows(Omega, to_embedding)
        if scale is not None:
            dual *= scale[:, None]
    return LowRank(
        factor=W[:, : len(eigenvalues)],
        eigenvalues=eigenvalues,
        rank=to_embedding.shape[1],
        dual=dual,
        trace=float(diagonal.sum()),
        row_sums=result.row_sums,
        sum_of_squares=result.sum_of_squares,
        eta=core.eta,
        rounding=core.rounding(rounding, diagonal),
        passes=passes,
        entries=entries,
        audit_entries=audit_entries,
        pass_seconds=pass_seconds,
        early=early,
        negative_mass=core.negative_mass,
    )


def _early(W: FloatArray, Omega: FloatArray, rank: int, basis: Basis, eta: float) -> FloatArray:
    """Return T with Y = WT for Algorithm 1 as printed, steps 3 to 6."""
    if basis == "qr":
        _, R = np.linalg.qr(W[:, :rank])
        sizes = np.abs(R.diagonal())
        keep = np.flatnonzero(sizes > max(EPS * len(W), eta) * sizes.max(initial=0.0))
        if not len(keep):
            return np.zeros((W.shape[1], 0))
        to_basis = np.zeros((W.shape[1], len(keep)))  # Q = W · to_basis
        _, R = np.linalg.qr(W[:, keep])
        to_basis[keep] = linalg.solve_triangular(R, np.eye(len(keep)))
    else:
        to_basis = _leading_basis(W, rank, eta)
    QW = to_basis.T @ gram(W, W)
    QO = to_basis.T @ gram(W, Omega)
    # NOTE: step 4 as a least-squares problem: QᵀΩ has more columns than rows.
    B = linalg.lstsq(QO.T, QW.T)[0].T if QO.size else np.zeros((0, 0))
    values, V = np.linalg.eigh((B + B.T) / 2)
    keep = values > EPS * np.abs(values).max(initial=0.0)
    order = np.flatnonzero(keep)[::-1]
    return to_basis @ (V[:, order] * np.sqrt(values[order]))


def _leading_basis(W: FloatArray, rank: int, eta: float) -> FloatArray:
    """Return M with Q = WM orthonormal, Q the leading left singular vectors of W."""
    values, V = np.linalg.eigh(gram(W, W))
    values, V = values[::-1], V[:, ::-1]
    keep = np.arange(len(values)) < rank
    keep &= values > max(len(values) * CUT * EPS, eta**2) * values[0]
    M = V[:, keep] / np.sqrt(values[keep])
    # The Gram matrix has squared the condition number: a second round restores orthogonality.
    values, V = np.linalg.eigh(M.T @ gram(W, W) @ M)
    return M @ (V / np.sqrt(values))[:, ::-1]


def _orthonormalise(W: FloatArray, eta: float) -> FloatArray:
    """Orthonormalise the columns of W in place by two rounds of Gram and eigh; drop the null ones.

    NOTE: as accurate as QR for this purpose, needs no second n × width array, and survives a
    constant kernel (test_more_passes_survive_rank_deficiency).
    """
    for _ in range(2):
        values, V = np.linalg.eigh(gram(W, W))
        keep = values > max(len(values) * CUT * EPS, eta**2) * values.max(initial=0.0)
        M = V[:, keep] / np.sqrt(values[keep])
        for rows in row_blocks(len(W)):
            W[rows, : M.shape[1]] = W[rows] @ M
        W = W[:, : M.shape[1]]
    return W
