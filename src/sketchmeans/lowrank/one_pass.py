"""The paper's Algorithm 1: a low-rank approximation from one pass over K, and from more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.engine import ALONE, Pass, Run
from sketchmeans.lowrank.core import EPS, Core, measured_pass
from sketchmeans.lowrank.request import Truncation
from sketchmeans.lowrank.result import Cost, Facts, LowRank, warn_indefinite
from sketchmeans.operators import KernelOperator
from sketchmeans.operators.base import Right, matrix_of
from sketchmeans.rows import Rows
from sketchmeans.sketches import Sketch
from sketchmeans.tall import any_of, applied, as_type, fetched, gram, multiply_rows, triangle


def one_pass(
    operator: KernelOperator,
    sketch: Sketch,
    *,
    rank: int,
    truncation: Truncation = "late",
    n_passes: int = 1,
    run: Run = ALONE,
) -> LowRank:
    """Approximate K by Y Yᵀ of the given rank from a random sketch W = KΩ (Algorithm 1).

    Passes over K: n_passes. Kernel entries: n(n + 1)/2 per pass (half a tile per row more on the
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
    n_passes : int
        Each further pass sketches with an orthonormal basis of the last W in place of Ω.
    run : Run
        Does not change the result.
    """
    right: Right = sketch
    cost = Cost()
    while True:
        here = run.part(cost.passes, n_passes)
        result, eta, spent = measured_pass(operator, right, sketch.seed, here)
        cost += spent
        if cost.passes == n_passes or not any_of(result.W):  # K = 0 has nothing to improve
            break
        sketch.release()
        del right  # before its successor is made
        with OneBlasThread():
            right = as_type(orthonormalise(result.W, eta), operator.dtype)
        del result  # before the next pass allocates its own
    rounding, checked = operator.rounding(sketch.seed)
    return recover(
        replace(result, diagonal=operator.diagonal_after(result)),
        right if isinstance(result.W, Rows) else matrix_of(right),
        rank=rank,
        truncation=truncation,
        eta=eta,
        rounding=rounding,
        cost=cost + Cost(audit_entries=checked),
        root_weights=operator.root_weights,
        is_psd=operator.is_psd,
    )


def recover(
    result: Pass,
    Omega: Any,
    *,
    rank: int,
    truncation: Truncation = "late",
    eta: float,
    rounding: float,
    cost: Cost,
    root_weights: FloatArray | None = None,
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
    W, diagonal = result.W, result.diagonal
    with OneBlasThread():
        core = Core(gram(Omega, Omega), gram(Omega, W), eta, is_psd)
        early = None
        if core.negative_mass == 0:
            T = to_embedding = core.late_map(W, diagonal)
        if core.negative_mass > 0:
            warn_indefinite(core.negative_mass, 'by the form truncation="early"')
            T = to_embedding = _early(W, Omega, rank, eta)
        elif truncation == "early":
            to_embedding = _early(W, Omega, rank, core.eta)
            early = multiply_rows(W, to_embedding)
        factor, eigenvalues = applied(W, T)
        to_embedding = to_embedding[:, :rank]
        dual = fetched(multiply_rows(Omega, to_embedding))
        if root_weights is not None:
            dual *= root_weights[:, None]
    rounding = core.rounding(rounding, diagonal)
    return LowRank(
        factor=factor,
        eigenvalues=eigenvalues,
        rank=to_embedding.shape[1],
        dual=dual,
        facts=Facts(float(diagonal.sum()), rounding, result.row_sums, result.sum_of_squares),
        eta=core.eta,
        cost=cost,
        early=early,
        negative_mass=core.negative_mass,
    )


def _early(W: Any, Omega: Any, rank: int, eta: float) -> FloatArray:
    """Return T with Y = WT for Algorithm 1 as printed, steps 3 to 6.

    Step 3 takes the leading left singular vectors of W.
    """
    # NOTE: a Gram matrix of W would have squared its condition number, and Q would be far from
    # orthogonal (test_eigenvalues_of_the_early_form_are_those_of_its_embedding).
    sizes, Vt = (found[:rank] for found in _singular(W, eta))
    to_basis = Vt.T / sizes
    QW = sizes[:, None] * Vt
    QO = gram(multiply_rows(W, to_basis), Omega)
    # NOTE: step 4 as a least-squares problem: QᵀΩ has more columns than rows.
    B = linalg.lstsq(QO.T, QW.T)[0].T if QO.size else np.zeros((0, 0))
    values, V = np.linalg.eigh((B + B.T) / 2)
    keep = values > EPS * np.abs(values).max(initial=0.0)
    order = np.flatnonzero(keep)[::-1]
    return to_basis @ (V[:, order] * np.sqrt(values[order]))


def _singular(W: Any, eta: float) -> tuple[FloatArray, FloatArray]:
    """Return the singular values of W that are not noise, falling, and its right vectors."""
    _, sizes, Vt = np.linalg.svd(triangle(W))
    keep = sizes > max(len(sizes) * EPS, eta) * sizes.max(initial=0.0)
    return sizes[keep], Vt[: len(sizes)][keep]


def orthonormalise(W: Any, eta: float) -> Any:
    """Orthonormalise the columns of W, in place where it is here; drop those that are noise.

    NOTE: needs no second n × width array, and survives a constant kernel
    (test_more_passes_survive_rank_deficiency). The Gram matrix of W has squared its condition
    number and would lose directions of a nearly constant kernel, so the first of the two rounds
    takes singular values from a QR decomposition by blocks.
    """
    sizes, Vt = _singular(W, eta)
    W, _ = applied(W, Vt.T / sizes)
    values, V = np.linalg.eigh(gram(W, W))
    return applied(W, V / np.sqrt(values))[0]
