"""The one result type of every low-rank approximation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sketchmeans.kernels import FloatArray


class IndefiniteKernelWarning(UserWarning):
    """The kernel matrix has negative eigenvalues: its positive part is approximated."""


@dataclass(frozen=True)
class LowRank:
    """K ≈ FFᵀ, with the columns of F in falling order of their squared norms.

    Of the columns all are kept (K̂_s, the sharper approximation, which bounds need); the first
    ``rank`` of them are the embedding.
    """

    factor: FloatArray
    """F, n × (numerical rank of the sketch), float64; orthogonal columns."""
    eigenvalues: FloatArray
    """Of FFᵀ, falling."""
    rank: int
    """Columns of the embedding."""
    dual: FloatArray
    """A, n × rank: Y = KA, so y(x) = k(x, X) A embeds a new point."""
    trace: float
    """tr K, from its diagonal."""
    row_sums: FloatArray
    """K1 (weighted: K√d)."""
    sum_of_squares: float
    """‖K‖_F²."""
    eta: float
    """Relative error of the sketch W that F came from, measured."""
    passes: int
    """Passes over K."""
    entries: int
    """Kernel entries evaluated by the passes."""
    audit_entries: int
    """Kernel entries evaluated once more in float64, to measure eta."""
    pass_seconds: float
    """Time that the engine took for the passes; the rest of the time was recovery."""
    negative_mass: float = 0.0
    """Share of the sketched core that is negative; above 0, K is not positive semidefinite."""

    @property
    def embedding(self) -> FloatArray:
        """Y, n × rank: one row a sample, K ≈ YYᵀ."""
        return self.factor[:, : self.rank]

    @property
    def trace_error(self) -> float:
        """tr(K − YYᵀ); an upper bound on ‖K − YYᵀ‖ in every norm where K ≽ YYᵀ."""
        return self.trace - float(self.eigenvalues[: self.rank].sum())

    @property
    def share_held(self) -> float:
        """The share of the trace of K that all columns of the factor hold."""
        return float(self.eigenvalues.sum()) / self.trace if self.trace else 1.0

    def truncate(self, rank: int) -> LowRank:
        """Return the same approximation with a lower rank; no pass over K."""
        rank = min(rank, self.rank)
        return replace(self, rank=rank, dual=self.dual[:, :rank])

    def rank_for(self, fraction: float) -> int | None:
        """Return the least rank that holds this fraction of the trace; None if none does."""
        held = np.cumsum(self.eigenvalues)
        enough = np.flatnonzero(held >= fraction * self.trace)
        return int(enough[0]) + 1 if len(enough) else None
