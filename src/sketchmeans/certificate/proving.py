"""What is proved of one block: level after level, each valid by itself, the best one counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.lift import Each, Lifting, one_by_one
from sketchmeans.certificate.spectral import CentredBlock, objective_bound, objective_of
from sketchmeans.checkpoints import IDLE, Stage

LEVELS = ("free", "blocks", "lifted", "triangles")
"""What is done for a bound, from the least to the most."""
ROUND = 30
"""Steps between two evaluations."""
GAIN, CUT_GAIN = 1e-3, 1e-2
"""A level ends when a round gains less than this share of what is left to the labels; with cuts,
when three do."""
LIFTED_ROUNDS, CUT_ROUNDS = 14, 16
"""Rounds of a level, at most."""
CUTTING = 0.05
"""Cuts are added once a round gains less than this share of what is left."""
LATE = 1.5
"""Times as long as the longest evaluation so far is kept for the last one."""
FINE = 0.05
"""Below this share of tr JKJ for the objective, float32 would show in the bound: float64 then."""


@dataclass(frozen=True)
class Proof:
    """What is known of the best clustering of a block."""

    bound: float
    """No labels of the block have a lower objective."""
    level: str = "blocks"
    """The level that it came from."""
    steps: int = 0
    """Steps of the lift that were made."""
    fractional: FloatArray | None = None
    """Rows whose inner products are the fractional clustering; see ``Lifting``."""


@dataclass(frozen=True)
class Effort:
    """How far to go for a block. It can be sent elsewhere, but for what it tells and asks."""

    n_clusters: int
    level: str = "triangles"
    seconds: float | None = None
    """Time for the block; None for as long as it gains, and the same bits always."""
    least_gain: float = 1e-7
    """A round that gains less than this share of the objective is one too many."""

    def reaches(self, level: str) -> bool:
        """Whether this level is asked for."""
        return LEVELS.index(self.level) >= LEVELS.index(level)


def prove(
    block: CentredBlock,
    labels: IntArray,
    effort: Effort,
    *,
    each: Each = one_by_one,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[Proof], None] = lambda proof: None,
    stage: Stage = IDLE,
) -> Proof:
    """Bound the objective of all clusterings of a block from below.

    Memory: eight matrices of b × b numbers, and with triangles 100 KB a sample.

    Parameters
    ----------
    block : CentredBlock
    labels : array of shape (b,)
        A clustering of the block: where the bound reaches its objective, nothing is left to do.
    effort : Effort
    each : callable
        Runs strips of rows, side by side if it likes; the bits do not depend on it.
    stopped : callable
        Whether to end with what is known.
    tell : callable
        Called with what is known whenever that is more.
    stage : Stage
        Of a checkpoint, from which it goes on.
    """
    clock, k = _Clock(effort.seconds, stopped), effort.n_clusters
    found = objective_of(block, labels)[0]
    best = Proof(objective_bound(block, block.K.copy(), k))
    tell(best)
    clock.evaluation = clock.spent
    clock.separation = 2 * clock.spent  # for want of a better guess
    if k < 2 or len(block) <= k or not effort.reaches("lifted") or clock.is_over():
        return best
    dtype = np.float64 if found < FINE * block.spread else np.float32
    lifting = Lifting(block, k, each=each, dtype=dtype)
    return best if lifting.is_flat else _lifted(lifting, effort, found, best, clock, tell, stage)


def _lifted(
    lifting: Lifting,
    effort: Effort,
    found: float,
    best: Proof,
    clock: _Clock,
    tell: Callable[[Proof], None],
    stage: Stage,
) -> Proof:
    """Lift the bound, with cuts if they are asked for, while it gains; ``found`` is above it."""
    block, k = lifting.block, effort.n_clusters
    schedule, steps = _Schedule(effort), 0
    if stage.state is not None:
        lifting.restore(stage.state)
        schedule.restore(stage.state["schedule"])
        best, steps = _best_of(stage.state), stage.state["steps"]
        tell(best)
    while True:
        for _ in range(ROUND):
            lifting.step()
            steps += 1
            if clock.is_over():
                break
        began = clock.spent
        A, off = lifting.matrix()
        bound = objective_bound(block, A, k) - off
        clock.evaluation = max(clock.evaluation, clock.spent - began)
        gained = bound - best.bound
        if gained > 0:
            best = Proof(bound, schedule.level, steps, lifting.fractional)
            tell(best)
        schedule.note(gained, found - best.bound, found)
        if schedule.is_over or clock.is_over():
            return best
        if schedule.level == "triangles":
            if clock.is_over(clock.separation):
                return best
            began = clock.spent
            schedule.note_cuts(lifting.add_cuts())
            clock.separation = clock.spent - began
        so_far = {"schedule": schedule.state(), "steps": steps}
        stage.offer(lambda: so_far | lifting.state() | _state_of(best))  # noqa: B023


def _state_of(best: Proof) -> dict[str, Any]:
    """Return a proof for a checkpoint."""
    rows = {} if best.fractional is None else {"best_rows": best.fractional}
    return {"bound": np.array([best.bound]), "level": best.level, "best_steps": best.steps} | rows


def _best_of(state: dict[str, Any]) -> Proof:
    """Return the proof of such a state."""
    rows = state.get("best_rows")
    return Proof(float(state["bound"][0]), state["level"], state["best_steps"], rows)


class _Clock:
    """When a block must end."""

    def __init__(self, seconds: float | None, stopped: Callable[[], bool]) -> None:
        self._start, self._seconds, self._stopped = time.perf_counter(), seconds, stopped
        self.evaluation = self.separation = 0.0
        """Seconds of the last evaluation in float64, and of the last search for cuts."""

    @property
    def spent(self) -> float:
        return time.perf_counter() - self._start

    def is_over(self, more: float = 0.0) -> bool:
        """Whether no time is left but for one evaluation, and so many seconds more."""
        if self._stopped():
            return True
        if self._seconds is None:
            return False
        return self.spent + LATE * self.evaluation + more > self._seconds


class _Schedule:
    """How long a level goes on, and when the next begins; without clocks, for the bits."""

    def __init__(self, effort: Effort) -> None:
        self._last = "triangles" if effort.reaches("triangles") else "lifted"
        self._least = effort.least_gain
        self.level, self.is_over = "lifted", False
        self._rounds = self._stale = 0

    def state(self) -> list[Any]:
        """Return where it stands, for a checkpoint; see ``restore``."""
        return [self.level, self.is_over, self._rounds, self._stale]

    def restore(self, state: list[Any]) -> None:
        """Go on from such a state."""
        self.level, self.is_over, self._rounds, self._stale = state

    def note(self, gained: float, left: float, found: float) -> None:
        """Take note of a round: what it gained, and what is left to the labels at the most."""
        self._rounds += 1
        least = GAIN if self.level == "lifted" else CUT_GAIN
        is_stale = gained < least * max(left, 0.0) + self._least * abs(found)
        self._stale = self._stale + 1 if is_stale else 0
        if left <= 1e-7 * abs(found):
            self.is_over = True
        elif self.level == "lifted" and self._last == "triangles":
            if self._rounds >= 2 and (gained < CUTTING * left or self._rounds >= LIFTED_ROUNDS):
                self.level, self._rounds, self._stale = "triangles", 0, 0
        elif self.level == "lifted":
            self.is_over = self._stale >= 1 or self._rounds >= LIFTED_ROUNDS
        else:  # the bound wanders, with cuts more than without
            self.is_over = self._stale >= 3 or self._rounds >= CUT_ROUNDS

    def note_cuts(self, count: int) -> None:
        """Take note of a search for cuts."""
        if not count and self._stale:
            self.is_over = True
