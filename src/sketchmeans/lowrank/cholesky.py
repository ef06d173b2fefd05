"""Incomplete Cholesky factorisations K ≈ FFᵀ, with greedy and with random pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import rows_for_centers, subsample
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.lowrank.core import CUT, judge, noise_level
from sketchmeans.lowrank.landmarks import Landmarks, weighty
from sketchmeans.lowrank.nystrom import from_landmarks, holds_columns
from sketchmeans.lowrank.result import Cost, Facts, LowRank, Whole, warn_indefinite
from sketchmeans.operators import KernelOperator, LandmarkFeatures, LandmarkOperator
from sketchmeans.tall import orthogonal_columns

_FIRST = 64
"""Columns that F has room for at first where a tolerance says how many there will be."""

BATCH = 32
"""Pivots proposed at once."""


def capacity_for(count: int, columns: int, tolerance: float) -> int:
    """Return the columns that F has room for when it holds ``count`` of ``columns`` at the most.

    All of them, unless a tolerance may stop before: then F doubles when it is full.
    """
    capacity = _FIRST if tolerance > 0 else columns
    while capacity < count:
        capacity *= 2
    return min(capacity, columns)


def streams_columns(n: int, columns: int, rank: int, tolerance: float) -> bool:
    """Whether pivots come from a subsample, and their columns are streamed.

    Not where F is small or no wider than twice the embedding, nor with a tolerance, which asks all
    samples when to stop.
    """
    return tolerance == 0 and not holds_columns(n, columns, rank)


class _Factor:
    """F as it grows by columns, with the diagonal of what is left, K − FFᵀ.

    Of all samples, or of those that ``rows`` names; pivots are counted among them.
    """

    def __init__(
        self,
        operator: KernelOperator,
        columns: int,
        tolerance: float,
        seed: int,
        run: Run,
        rows: IntArray | None = None,
    ) -> None:
        self.operator, self.run = operator, run
        self.columns, self.tolerance = columns, tolerance
        self.rows = np.arange(operator.shape[0]) if rows is None else rows
        self._is_of_all = rows is None
        self.whole_diagonal = operator.diagonal()
        self.diagonal = self.whole_diagonal[self.rows]
        self.trace = float(self.diagonal.sum())
        self.left = np.maximum(self.diagonal, 0.0)
        self.largest = float(self.left.max(initial=0.0))
        self.rounding, self.checked = operator.rounding(seed, fine=True)
        self.eta = noise_level(np.dtype(np.float64), self.rounding)
        self.F = np.zeros((len(self.rows), capacity_for(0, columns, tolerance)))
        self.pivots: list[int] = []
        self.entries = operator.diagonal_entries
        self.negative = 0.0
        """What of the diagonal was seen below zero: evidence that K is indefinite."""
        self._judge(self.diagonal)

    @classmethod
    def begun(
        cls,
        operator: KernelOperator,
        columns: int,
        rank: int,
        tolerance: float,
        seed: int,
        run: Run,
    ) -> _Factor:
        """Return a factor without columns, of all samples or of those that pivots come from."""
        n = operator.shape[0]
        columns, rows = min(columns, n), None
        if streams_columns(n, columns, rank, tolerance):
            rows = subsample(weighty(operator), rows_for_centers(columns), seed)
            columns = min(columns, len(rows))
        return cls(operator, columns, tolerance, seed, run, rows)

    @property
    def sizes(self) -> tuple[int, ...]:
        """What tells one factor from another: samples, columns at the most."""
        return len(self.rows), self.columns

    def state(self) -> dict[str, Any]:
        """Return how far it has grown, for a checkpoint."""
        return {
            "F": self.F[:, : self.count],
            "left": self.left,
            "pivots": np.array(self.pivots, np.int64),
            "numbers": np.array([self.eta, self.rounding, self.negative]),
            "entries": int(self.entries),
        }

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from such a state, if there is one."""
        if state is None:
            return
        self._make_room(len(state["pivots"]))
        self.F[:, : len(state["pivots"])] = state.pop("F")
        self.left, self.pivots = state["left"], state["pivots"].tolist()
        self.eta, self.rounding, self.negative = state["numbers"].tolist()
        self.entries = state["entries"]

    def approximation(self, rank: int, seed: int) -> LowRank:
        """Return K ≈ FFᵀ; if F was that of a subsample, from the columns of its pivots."""
        return self._finish(rank) if self._is_of_all else self._stream(rank, seed)

    @property
    def count(self) -> int:
        return len(self.pivots)

    @property
    def floor(self) -> float:
        """Below this a remaining diagonal entry is rounding."""
        return CUT * self.eta * self.largest

    def _judge(self, diagonal: FloatArray) -> None:
        """Judge what is below zero on a diagonal that K ≽ 0 would keep above."""
        below = np.maximum(-diagonal, 0.0)
        worst = float(below.max(initial=0.0))
        eta, indefinite = judge(worst, self.largest, self.eta, self.operator.is_psd)
        if indefinite:
            self.negative = max(self.negative, float(below.sum()))
        elif eta > self.eta:
            self.eta = eta
            if self.trace > 0:
                self.rounding = max(self.rounding, float(below.sum()) / self.trace)

    def wants_more(self) -> bool:
        """Whether columns are missing, trace is left, and K has not shown to be indefinite."""
        if self.count == self.columns or self.negative > 0:
            return False
        left = float(self.left.sum())
        return left > self.tolerance * self.trace and float(self.left.max()) > self.floor

    def add(self, pivots: list[int]) -> None:
        """Eliminate these samples: n kernel entries each."""
        self._make_room(self.count + len(pivots))
        with OneBlasThread():
            known = self.F[:, : self.count]
            C = self._kernel(np.array(pivots))
            self.entries += C.size
            C -= known @ known[pivots].T
            square = C[pivots]
            lower = np.linalg.cholesky((square + square.T) / 2)
            new = linalg.solve_triangular(lower, C.T, lower=True).T
        self.F[:, self.count : self.count + len(pivots)] = new
        self.pivots += pivots
        self.left -= np.square(new).sum(axis=1)
        self.left[self.pivots] = 0.0
        self._judge(self.left)
        self.left[self.left < self.floor] = 0.0

    def _kernel(self, pivots: IntArray) -> FloatArray:
        if self._is_of_all:
            return self.operator.columns(pivots, self.run)
        return self.operator.rectangle(self.rows, self.rows[pivots], self.run)

    def _make_room(self, count: int) -> None:
        """Let F grow until it has room for so many columns."""
        capacity = capacity_for(count, self.columns, self.tolerance)
        if capacity > self.F.shape[1]:
            F = np.zeros((len(self.F), capacity))
            F[:, : self.count] = self.F[:, : self.count]
            self.F = F

    def _finish(self, rank: int) -> LowRank:
        """Return the approximation, with the map of new points through the pivots."""
        operator, m = self.operator, self.count
        F = self.F[:, :m]
        pivots = np.array(self.pivots, dtype=int)
        with OneBlasThread():
            # F = C L⁻ᵀ with C the columns of the pivots and L = F[pivots], lower triangular.
            # A kernel of zeros has no pivots, and SciPy 1.13 refuses to solve for nothing.
            inverse = linalg.solve_triangular(F[pivots], np.eye(m), lower=True) if m else np.eye(0)
            eigenvalues, rotation = orthogonal_columns(F)
            dual = inverse.T @ rotation
        if operator.root_weights is not None:
            dual = dual * operator.root_weights[pivots, None]
        landmarks = operator.landmarks(pivots)
        features = LandmarkFeatures(landmarks, dual, operator.rows_at_once(m))
        positive = float(np.maximum(self.diagonal, 0.0).sum())
        negative_mass = self.negative / max(self.negative + positive, 1e-300)
        if negative_mass > 0:
            warn_indefinite(negative_mass, "as far as its pivots were positive")
        return LowRank(
            factor=F,
            eigenvalues=eigenvalues,
            rank=min(rank, m),
            dual=dual[:, :rank],
            facts=Facts(self.trace, self.rounding),
            eta=self.eta,
            cost=Cost(entries=self.entries, audit_entries=self.checked),
            new_points=landmarks,
            negative_mass=negative_mass,
            whole=Whole(LandmarkOperator(operator, features)),
        )

    def _stream(self, rank: int, seed: int) -> LowRank:
        """Return the approximation from the columns of the pivots, streamed over all samples."""
        pivots = np.sort(self.rows[self.pivots or [0]])  # K = 0 has none
        return from_landmarks(
            self.operator,
            Landmarks(pivots),
            rank=rank,
            seed=seed,
            diagonal=self.whole_diagonal,
            cost=Cost(entries=self.entries, audit_entries=self.checked),
            run=self.run,
        )


def greedy_cholesky(
    operator: KernelOperator,
    *,
    columns: int,
    rank: int,
    tolerance: float = 0.0,
    run: Run = ALONE,
) -> LowRank:
    """Factorise with the largest remaining diagonal entry as pivot (Fine–Scheinberg).

    Stops when ``columns`` are found or the remaining trace is at most tolerance · tr K. Nothing is
    random. Kernel entries: n per column and the diagonal. Memory: n × columns numbers; with a
    tolerance three times as many as there are pivots, at most.

    Where ``streams_columns``, pivots come from a fixed subsample of s samples, 20 per column and at
    least 5,000, and are the landmarks of ``from_landmarks``: s entries per column more, and its
    memory.
    """
    factor = _Factor.begun(operator, columns, rank, tolerance, 0, run)
    with run.checkpoint.stage("greedy", *factor.sizes) as stage:
        factor.restore(stage.state)
        while factor.wants_more():
            factor.add([int(factor.left.argmax())])
            stage.offer(factor.state)
        stage.finish(factor.state)
    return factor.approximation(rank, 0)


def rp_cholesky(
    operator: KernelOperator,
    *,
    columns: int,
    rank: int,
    seed: int,
    tolerance: float = 0.0,
    batch: int = BATCH,
    run: Run = ALONE,
) -> LowRank:
    """Factorise with random pivots, drawn in proportion to the remaining diagonal.

    The law of the pivots is that of Chen, Epperly, Tropp and Webber's RPCholesky, one at a time;
    for speed they are proposed in batches, and a proposal is accepted with the probability that
    its remaining diagonal entry has kept (Epperly, Tropp, Webber 2024).

    Stops when ``columns`` are found or the remaining trace is at most tolerance · tr K. Kernel
    entries: n per column and the diagonal, and batch² per round. Memory: as ``greedy_cholesky``,
    and three times n × batch numbers; it streams as that does.
    """
    random = np.random.default_rng(seed)
    factor = _Factor.begun(operator, columns, rank, tolerance, seed, run)

    def state() -> dict[str, Any]:
        return factor.state() | {"random": random.bit_generator.state}

    with run.checkpoint.stage("random-pivots", *factor.sizes, batch) as stage:
        if stage.state is not None:
            factor.restore(stage.state)
            random.bit_generator.state = stage.state["random"]
        while factor.wants_more():
            p = factor.left / factor.left.sum()
            proposed = random.choice(len(p), batch, p=p)
            accepted = _accept(factor, proposed, random)[: factor.columns - factor.count]
            if accepted:
                factor.add(accepted)
            stage.offer(state)
        stage.finish(state)
    return factor.approximation(rank, seed)


def _accept(factor: _Factor, proposed: IntArray, random: np.random.Generator) -> list[int]:
    """Go through the proposals in turn: accept i with probability (left now) / (left before).

    What is left now of a proposal comes from its column and not from the running diagonal. Until
    one is accepted the two are the same number but for rounding, and the one from the column
    counts: then every round takes a pivot, or finds that what is left of one is rounding.
    """
    known = factor.F[proposed, : factor.count]
    left = factor.operator.square(factor.rows[proposed]) - known @ known.T
    factor.entries += left.size
    before = factor.left[proposed]
    accepted: list[int] = []
    for i, sample in enumerate(int(index) for index in proposed):
        now = left[i, i]
        if sample in accepted:
            continue
        if not accepted:
            before[i] = now
            if now <= factor.floor:
                factor.left[sample] = 0.0
        if now > factor.floor and random.random() * before[i] < now:
            accepted.append(sample)
            column = left[:, i] / np.sqrt(now)
            left -= np.outer(column, column)
    return accepted
