"""What every recovery shares: the noise of a sketch, its core, and what a negative number says.

A kernel that is positive semidefinite has no negative eigenvalue, no negative entry on the
diagonal, and nothing negative on the diagonal of K − K̂. Where one is seen it is either rounding
or a kernel that is not positive semidefinite; ``judge`` alone says which.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.engine.passes import Pass
from sketchmeans.engine.run import Run
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators.base import KernelOperator, Right, matrix_of
from sketchmeans.rows import Part, Rows
from sketchmeans.tall import over

EPS = float(np.finfo(np.float64).eps)
CUT = 10.0
"""Core eigenvalues below CUT·η·λ_max are noise; a negative one beyond that is not."""
NOISE = 1e-4
"""… unless it is smaller than this part of the largest: then η was too small for this K."""


def noise_level(dtype: np.dtype, measured: float) -> float:
    """Return η, the relative error of W: as measured, but not below what rounding makes."""
    return max(4 * float(np.finfo(dtype).eps), measured, 256 * EPS)


def judge(worst: float, size: float, eta: float, is_psd: bool | None) -> tuple[float, bool]:
    """Say what a value of −worst means where K ≽ 0 would give none below zero.

    Parameters
    ----------
    worst : float
        How far below zero the value lies.
    size : float
        The largest value of its kind.
    eta : float
        Relative error of what it was computed from.
    is_psd : bool or None
        Whether K is known to be positive semidefinite.

    Returns
    -------
    eta : float
        Larger where the value shows that K was rounded more coarsely than η knew: a matrix printed
        with six digits, float32 entries in a float64 array.
    indefinite : bool
        Whether K is not positive semidefinite.
    """
    if worst <= CUT * eta * size:
        return eta, False
    if is_psd or worst < NOISE * size:
        return worst / size, False
    return eta, True


def judge_residual(
    worst: float, diagonal: FloatArray, size: float, eta: float, is_psd: bool | None
) -> tuple[float, bool]:
    """Say what a value of −worst in K − K̂ means, for K̂ with λ₁ = size; see ``judge``.

    K̂ is known to ηλ₁, which grows with the number of samples. A negative value beyond that is
    large or small beside the entries of K, and those are as large as its diagonal.
    """
    entry = float(np.abs(diagonal).max(initial=0.0))
    if entry == 0:  # K ≽ 0 with such a diagonal is 0
        return eta, worst > 0 and not is_psd
    eta_found, indefinite = judge(worst, entry, eta * max(size / entry, 1.0), is_psd)
    return max(eta, eta_found * entry / max(size, entry)), indefinite


def measured_pass(
    operator: KernelOperator, right: Right, seed: int, run: Run
) -> tuple[Pass, float, Cost]:
    """Return KΩ, its relative error η as measured, and what both cost."""
    start = time.perf_counter()
    result = operator.multiply(right, run)
    seconds = time.perf_counter() - start
    with OneBlasThread():
        whole = right if isinstance(operator.data, Rows) else matrix_of(right)
        error, checked = operator.relative_error(whole, result, seed)
    return result, noise_level(operator.dtype, error), Cost(1, result.entries, checked, seconds)


class Core:
    """ΩᵀKΩ in coordinates in which Ω is orthonormal, and its eigendecomposition.

    Parameters
    ----------
    squared : array of shape (width, width) or None
        ΩᵀΩ; None where Ω is orthonormal.
    sketched : array of shape (width, width)
        ΩᵀW.
    eta : float
        Relative error of W.
    is_psd : bool or None
        Whether K is known to be positive semidefinite.
    """

    def __init__(
        self,
        squared: FloatArray | None,
        sketched: FloatArray,
        eta: float,
        is_psd: bool | None = None,
    ) -> None:
        self.is_psd = is_psd
        if squared is None:
            core = sketched
        else:
            # NOTE: the paper takes Ω as it comes; dividing out its Gram matrix makes the cut-off
            # below independent of Ω's scale, and a rank-deficient Ω harmless.
            values, vectors = np.linalg.eigh(squared)
            keep = values > len(values) * EPS * values[-1]
            self.whiten = vectors[:, keep] / np.sqrt(values[keep])
            core = self.whiten.T @ sketched @ self.whiten
        self.values, self.vectors = np.linalg.eigh((core + core.T) / 2)
        self.size = float(np.abs(self.values).max(initial=0.0))
        worst = float(-self.values.min(initial=0.0))
        self.eta, indefinite = judge(worst, self.size, eta, is_psd)
        self.coarseness = worst if self.eta > eta else 0.0
        """How far a value below zero showed K to be rounded, where η had not known."""
        self.negative_mass = 0.0
        """Share of what was seen that is negative; above 0, K is not positive semidefinite."""
        if indefinite:
            negative = self.values[self.values < -CUT * eta * self.size]
            self.negative_mass = float(-negative.sum() / np.abs(self.values).sum())

    def late_map(self, W: Any, diagonal: FloatArray) -> FloatArray:
        """Return T with F = WT, K̂ = FFᵀ = W(ΩᵀW)⁺Wᵀ, and F's columns orthogonal.

        K̂ ≼ K makes ‖F_i‖² ≤ K_ii. What exceeds it is judged as the core's eigenvalues are: the
        landmarks' block of an indefinite K may be positive semidefinite by chance.

        NOTE: the paper solves with QᵀΩ, which a constant kernel makes singular; a pseudo-inverse
        cut at the noise of W survives it (test_recovery_stays_finite).
        """
        keep = self.values > CUT * self.eta * self.size
        T = self.whiten @ (self.vectors[:, keep] / np.sqrt(self.values[keep]))
        (beyond,), squared = over(W, partial(_beyond, T=T), diagonal, name="recover")
        values, rotation = np.linalg.eigh(squared)
        self.judge_excess(beyond, diagonal, float(values[-1]) if len(values) else 0.0)
        return T @ rotation[:, ::-1]

    def judge_excess(self, beyond: FloatArray, diagonal: FloatArray, size: float) -> None:
        """Judge ‖F_i‖² − K_ii, which K̂ ≼ K keeps below zero; λ₁(K̂) is its size."""
        beyond = np.maximum(beyond, 0.0)
        excess = float(beyond.sum())
        if size <= 0 or excess == 0:
            return
        _, indefinite = judge_residual(float(beyond.max()), diagonal, size, self.eta, self.is_psd)
        if indefinite:
            self.negative_mass = excess / (excess + float(np.abs(diagonal).sum()))
        else:
            self.eta = max(self.eta, excess / size)

    def rounding(self, known: float, diagonal: FloatArray) -> float:
        """Return ε of the entries: as known, or what the eigenvalues below zero have shown."""
        trace = float(diagonal.sum())
        return max(known, len(diagonal) * self.coarseness / trace) if trace > 0 else known


def _beyond(W: FloatArray, diagonal: FloatArray, *, T: FloatArray) -> Part:
    """Return ‖F_i‖² − K_ii of rows F = WT, and FᵀF."""
    F = W @ T
    return Part((np.vecdot(F, F) - diagonal,), F.T @ F)
