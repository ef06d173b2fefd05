"""The lifting theorem: any matrix without negative entries improves what eigenvalues allow.

The projection P of a partition has no negative entries, so ⟨K, P⟩ ≤ ⟨K + N, P⟩ for every N ≥ 0, and
``spectral`` bounds that by f(K + N). N = 0 is the spectral bound; the least f is the value of the
semidefinite relaxation of Peng and Wei. N is found here by the alternating direction method of
multipliers: the matrices 0 ≼ X ≼ I of trace at most K that hold u are a Fantope, and the nearest
one to a matrix comes from the leading eigenvectors, which change little from step to step.

Nothing here has to be accurate. Float32 and a subspace that is only nearly invariant give some N,
and any N gives a bound: ``Lifting.matrix`` makes it free of negative entries, in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.certificate.spectral import EPS, CentredBlock
from sketchmeans.certificate.triangles import no_cuts, violated, with_new

RELAXED = 1.6
"""Over-relaxation of the method: between 1.5 and 1.8 it converges fastest as a rule."""
STRIP = 256
"""Rows of a matrix that a thread works on at a time: few enough to stay in its cache."""

Each = Callable[[Callable[[slice], Any], list[slice]], None]
"""Calls a function on every strip, side by side or one after the other."""


def one_by_one(work: Callable[[slice], Any], strips: list[slice]) -> None:
    """Call a function on every strip, in order."""
    for strip in strips:
        work(strip)


class Lifting:
    """The state of the method for one block.

    T is all that is kept of it: with S = Σ μ_l G_l of the cuts there are (``triangles``; none at
    the start), U = min(T, S) and Z = T − U, and the lifted kernel is K − ρU.

    Parameters
    ----------
    block : CentredBlock
    n_clusters : int
        At least 2, and fewer than samples.
    each : callable
        Runs strips of rows; the bits do not depend on how.
    dtype : dtype
        Of the steps.
    """

    def __init__(
        self,
        block: CentredBlock,
        n_clusters: int,
        *,
        each: Each = one_by_one,
        dtype: Any = np.float32,
    ) -> None:
        b = len(block)
        self.block, self.rank, self.dtype = block, n_clusters - 1, np.dtype(dtype)
        self._each, self._strips = each, row_blocks(b, STRIP)
        self.width = min(2 * n_clusters + 10, b - 1)
        self.V, top = self._first_subspace()
        self.scale = top
        """ρ: the largest eigenvalue of JKJ."""
        self.is_flat = not top > b * EPS * block.size
        """Whether rounding is all there is: no lift can be found then."""
        if self.is_flat:
            return
        self.u = block.u.astype(self.dtype)
        self.K = (block.K / top).astype(self.dtype)
        self.T = np.outer(self.u, self.u)
        self.cuts = no_cuts(b, self.dtype)
        self.W = self._multiply(self.V, lambda rows: np.abs(self.T[rows]) + self.K[rows])
        self.fractional = self.u[:, None]
        """Rows whose inner products are X: samples that it puts together have rows alike."""

    def _first_subspace(self) -> tuple[FloatArray, float]:
        """Return leading eigenvectors of JKJ, nearly, and the largest eigenvalue."""
        b = len(self.block)
        V = np.random.default_rng(b).standard_normal((b, self.width))
        for _ in range(4):
            V -= np.outer(self.block.u, self.block.u @ V)
            V = linalg.qr(V, mode="economic", overwrite_a=True, check_finite=False)[0]
            W = self.block.K @ V
            V, before = W, V
        values = np.linalg.eigvalsh(before.T @ W)
        V -= np.outer(self.block.u, self.block.u @ V)
        V = linalg.qr(V, mode="economic", overwrite_a=True, check_finite=False)[0]
        return V.astype(self.dtype), float(values[-1])

    def _multiply(self, V: FloatArray, rows_of: Callable[[slice], FloatArray]) -> FloatArray:
        """Return JMV for a matrix that is made a strip at a time."""
        W = np.empty_like(V)

        def work(rows: slice) -> None:
            np.matmul(rows_of(rows), V, out=W[rows])

        self._each(work, self._strips)
        W -= np.outer(self.u, self.u @ W)
        return W

    def _orthonormal(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Q and R with W = QR."""
        Q, R = linalg.qr(W, mode="economic", overwrite_a=True, check_finite=False)
        return np.ascontiguousarray(Q), R

    def _nearest(self) -> tuple[FloatArray, FloatArray]:
        """Return L and R with X = LRᵀ, nearly the point of the Fantope nearest to Z − U + K/ρ.

        NOTE: eigenvectors are taken from the product MV, by its singular vectors, and not from V,
        which would be a step behind: with those the method does not converge.
        """
        Q, R = self._orthonormal(self.W)
        R = R.astype(np.float64)
        squares, left = np.linalg.eigh(R @ R.T)
        turned = (Q.T @ self.V).astype(np.float64) @ R.T
        signs = np.sign(np.einsum("ij,ij->j", left, turned @ left))
        shares = clipped(np.sqrt(np.maximum(squares, 0.0)) * signs, self.rank)
        kept = np.flatnonzero(shares > 0)[::-1]  # the largest first
        self.V = self._widened(Q, len(kept))
        L = np.column_stack([Q @ left[:, kept].astype(self.dtype), self.u])
        shares = np.append(shares[kept], 1.0).astype(self.dtype)
        self.fractional = L * np.sqrt(shares)
        return L, L * shares

    def _widened(self, Q: FloatArray, used: int) -> FloatArray:
        """Return the subspace with more columns, if almost all that it has are used.

        NOTE: cuts make the solution of high rank, 90 of 300 samples; in a subspace that has not
        room for it the method does not converge.
        """
        b, width = Q.shape
        more = min(max(width // 2, 10), b - 1 - width)
        if used + 5 < width or more <= 0:
            return Q
        new = np.random.default_rng([b, width]).standard_normal((b, more)).astype(self.dtype)
        new -= np.outer(self.u, self.u @ new)
        for _ in range(2):
            new -= Q @ (Q.T @ new)
        return np.ascontiguousarray(np.column_stack([Q, self._orthonormal(new)[0]]))

    def step(self) -> None:
        """Make one step of the method: one product with a matrix of a few columns."""
        L, R = self._nearest()
        R *= np.asarray(RELAXED, self.dtype)
        rest = np.asarray(RELAXED - 1, self.dtype)

        def advance(rows: slice) -> FloatArray:
            T, X = self.T[rows], L[rows] @ R.T
            U = self.multipliers(rows)
            X += U
            T -= U
            T *= rest
            np.subtract(X, T, out=T)
            return X

        def summed(rows: slice) -> FloatArray:
            M = self.multipliers(rows)
            M *= -2
            M += self.T[rows]
            M += self.K[rows]
            return M

        def both(rows: slice) -> FloatArray:
            X = advance(rows)
            np.abs(self.T[rows], out=X)  # Z − U, without cuts
            X += self.K[rows]
            return X

        if not len(self.cuts):
            self.W = self._multiply(self.V, both)
            return
        self._each(advance, self._strips)
        self.cuts.ascend(self.T)
        self.W = self._multiply(self.V, summed)

    def add_cuts(self) -> int:
        """Drop the cuts that hold nothing, add those that are violated most; return how many."""

        def rows_of(rows: slice) -> FloatArray:
            return self.T[rows] - self.multipliers(rows)

        found = violated(rows_of, self.block.u, self.cuts, self._each)
        self.cuts = with_new(self.cuts, found, self.block.u)
        return len(found)

    def multipliers(self, rows: slice) -> FloatArray:
        """Return rows of U = min(T, S)."""
        T = self.T[rows]
        U = np.minimum(T, 0)
        if len(self.cuts):
            part = self.cuts.entries(rows)
            places = self.cuts.where[part] - rows.start * len(self.u)
            shift = self.cuts.shift[self.cuts.source[part]]
            U.ravel()[places] = np.minimum(T.ravel()[places], shift)
        return U

    def state(self) -> dict[str, Any]:
        """Return where the method stands, for a checkpoint; see ``restore``."""
        found = {"T": self.T, "V": self.V, "W": self.W, "fractional": self.fractional}
        return found | (self.cuts.state() if len(self.cuts) else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state of the same block."""
        self.T, self.V, self.W = state["T"], state["V"], state["W"]
        self.fractional = state["fractional"]
        if "triples" in state:
            self.cuts = self.cuts.restored(state)

    def matrix(self) -> tuple[FloatArray, float]:
        """Return the lifted kernel in float64, and what its own rounding can do to the bound.

        It is K − ρ min(T, S): at most S, so that what is added to K − ρS is not negative.
        """
        A = np.minimum(self.T, 0).astype(np.float64)
        off = 0.0
        if len(self.cuts):
            shift, off = self.cuts.exact_shift(self.block.u)
            where = self.cuts.where
            A.ravel()[where] = np.minimum(self.T.ravel()[where].astype(np.float64), shift)
        A *= -self.scale
        A += self.block.K
        return A, self.scale * off * float(np.sqrt(self.rank + 1))


def clipped(values: FloatArray, most: int) -> FloatArray:
    """Return max(0, min(1, λ − θ)) for the least θ ≥ 0 with which they sum to ``most`` or less."""
    shares = np.clip(values, 0, 1)
    if shares.sum() <= most:
        return shares
    corners = np.sort(np.concatenate([values, values - 1, [0.0]]))
    corners = corners[corners >= 0]
    sums = np.clip(values - corners[:, None], 0, 1).sum(axis=1)
    last = int(np.flatnonzero(sums > most)[-1])
    low, high = corners[last], corners[last + 1]
    theta = low + (high - low) * (sums[last] - most) / (sums[last] - sums[last + 1])
    return np.clip(values - theta, 0, 1)
