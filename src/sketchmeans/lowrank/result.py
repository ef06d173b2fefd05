"""The one result type of every low-rank approximation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.operators import FeatureOperator, NewPoints
from sketchmeans.operators.features import Gram
from sketchmeans.tall import gram, leading


class IndefiniteKernelWarning(UserWarning):
    """The kernel matrix has negative eigenvalues: its positive part is approximated."""


def warn_indefinite(negative_mass: float, how: str) -> None:
    """Warn that K has negative eigenvalues, and say how the embedding is found all the same."""
    warnings.warn(
        f"the kernel matrix is not positive semidefinite: {100 * negative_mass:.2g} % of its "
        f"sketched core is negative. The embedding follows its positive part, {how}; bounds on the "
        "objective do not hold.",
        IndefiniteKernelWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class Cost:
    """What was spent on a kernel; costs add up."""

    passes: int = 0
    """Passes over K."""
    entries: int = 0
    """Kernel entries evaluated."""
    audit_entries: int = 0
    """Kernel entries evaluated once more in float64, to measure errors."""
    seconds: float = 0.0
    """Time that the engine took for the passes of a sketch; the rest of the time was recovery."""
    distances: int = 0
    """Distances between samples and anchors."""

    @property
    def parts(self) -> list[Any]:
        """What it is made of, as ``Cost`` takes it."""
        entries = int(self.entries), int(self.audit_entries)
        return [int(self.passes), *entries, float(self.seconds), int(self.distances)]

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.passes + other.passes,
            self.entries + other.entries,
            self.audit_entries + other.audit_entries,
            self.seconds + other.seconds,
            self.distances + other.distances,
        )


@dataclass(frozen=True)
class Facts:
    """What is known of K itself."""

    trace: float
    """tr K, from its diagonal."""
    rounding: float
    """ε: entries of K are known to ε·√(K_ii K_jj); see ``kernels.rounding``."""
    row_sums: FloatArray | None = None
    """K1 (weighted: K√d); None where the method does not meet all of K."""
    sum_of_squares: float | None = None
    """‖K‖_F²; None where the method does not meet all of K."""


@dataclass(frozen=True)
class Whole:
    """K̂ = FFᵀ with all columns of F, where ``LowRank`` stores the leading ones or none."""

    operator: FeatureOperator
    """K̂, streamed: F's columns are those of the factor, in the same order, and more."""
    gram: Gram | None = None
    """FᵀF and FᵀJF; None where the factor holds all columns, and for sparse features, of which the
    operator is K itself."""
    dual: FloatArray | None = None
    """Of sparse features: what F is multiplied by for a column of each eigenvalue that is known,
    those beyond the rank too."""


@dataclass(frozen=True)
class LowRank:
    """K ≈ FFᵀ, with the columns of F in falling order of their squared norms.

    Of the columns all are kept (K̂_s, the sharper approximation, which bounds need), or can be
    streamed again; the first ``rank`` of them are the embedding.
    """

    factor: FloatArray
    """F, n × (numerical rank of the sketch), float64; orthogonal columns. The leading ``rank``
    columns alone where ``whole`` has the Gram matrix of all."""
    eigenvalues: FloatArray
    """Of FFᵀ, falling."""
    rank: int
    """Columns of the embedding."""
    dual: FloatArray
    """A: y(x) = k(x, X) A embeds a new point; one row per sample, or per landmark."""
    facts: Facts
    eta: float
    """Relative error of the sketch W that F came from, measured."""
    cost: Cost
    new_points: NewPoints | None = None
    """The kernel against the landmarks that ``dual`` belongs to; None: against all samples."""
    early: FloatArray | None = None
    """The embedding of the early form, which is not made of columns of ``factor``."""
    negative_mass: float = 0.0
    """Share of the sketched core that is negative; above 0, K is not positive semidefinite."""
    whole: Whole | None = None
    """K̂ by its landmarks; None for methods without."""

    @property
    def embedding(self) -> FloatArray:
        """Y, n × rank: one row per sample, K ≈ YYᵀ."""
        if self.early is not None:
            return self.early
        return leading(self.factor, self.rank)

    @property
    def trace_error(self) -> float:
        """tr(K − YYᵀ); an upper bound on ‖K − YYᵀ‖ in every norm where K ≽ YYᵀ."""
        return self.facts.trace - float(self.leading.sum())

    @property
    def leading(self) -> FloatArray:
        """Eigenvalues of YYᵀ, falling."""
        if self.early is None:
            return self.eigenvalues[: self.rank]
        return np.diag(gram(self.early, self.early))

    @property
    def share_held(self) -> float:
        """The share of the trace of K that all columns of the factor hold."""
        return float(self.eigenvalues.sum()) / self.facts.trace if self.facts.trace else 1.0

    def truncate(self, rank: int) -> LowRank:
        """Return the same approximation with a lower rank; no pass over K."""
        rank = min(rank, self.rank)
        return replace(self, rank=rank, dual=self.dual[:, :rank])

    def rank_for(self, fraction: float) -> int | None:
        """Return the least rank that holds this fraction of the trace; None if none does."""
        trace = self.facts.trace
        if trace < 0:
            raise ValueError(
                f"rank={fraction} asks for a share of the trace, and the trace of this kernel is "
                f"{trace:g}. Give rank as a number."
            )
        if not len(self.eigenvalues):
            return 0  # K = 0
        held = np.cumsum(self.eigenvalues)
        enough = np.flatnonzero(held >= (fraction - 10 * self.eta) * trace)
        return int(enough[0]) + 1 if len(enough) else None
