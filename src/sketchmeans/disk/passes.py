"""A pass over K of rows in a file: strips of rows meet, two at a time, as in a tournament.

The order of the sums is that of a pass in memory (``engine.passes``), so that both have the same
bits. Every strip is read once a round, ahead of its meeting; a round takes as many kernel entries
as there are rows, times those of a strip, which takes longer than to read them. Between two pairs
W, and how many have met, is all that there is to save.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sketchmeans.checkpoints import NOTHING, Checkpoint, Portion, Stage
from sketchmeans.disk.ahead import Ahead, InOrder
from sketchmeans.engine import Crew, tournament
from sketchmeans.rows import Tournament


def let_all_meet(
    read: Callable[[int, int], Any],
    task: Callable[..., Any],
    given: Sequence[Any],
    spans: list[slice],
    *,
    n_threads: int,
    checkpoint: Checkpoint = NOTHING,
    progress: Callable[[int, int], None] | None = None,
) -> Tournament:
    """Let every two strips meet; see ``Rows.tournament``. Memory: W, Ω and a few strips."""
    given = [one.matrix if hasattr(one, "matrix") else one for one in given]
    sums = Sums(spans)
    total = len(sums.pairs)

    def strip(index: int) -> tuple[Any, ...]:
        rows = spans[index]
        return read(rows.start, rows.stop), *(one[rows] for one in given)

    def read_pair(number: int) -> tuple[Any, Any]:
        ours, theirs = sums.pairs[number]
        return strip(ours), None if ours == theirs else strip(theirs)

    def meet_some(stage: Stage, crew: Crew) -> None:
        """Let pairs meet until it is time to save, or all have met."""

        def taken(_: int, outcome: Any) -> None:
            sums.take(outcome)
            blocks.done()

        def compute(block: tuple[int, Any]) -> None:
            index, (ours, theirs) = block
            ordered.put(index, task(ours, theirs))

        before, ordered = sums.done, InOrder(taken)
        some = Portion(before, total, lambda: sums.may_be_saved(stage))
        report = None if progress is None else lambda done: progress(before + done, total)
        with Ahead(read_pair, some, n_threads + 2, crew) as blocks:
            crew.each(compute, blocks, report)

    widths = (one.shape[1] for one in given if len(one.shape) > 1)
    sizes = (spans[-1].stop, len(spans), *widths)
    with Crew(n_threads) as crew, checkpoint.stage("meet", *sizes) as stage:
        if stage.state is not None:
            sums.restore(stage.state)
        while sums.done < total:
            meet_some(stage, crew)
            if sums.done < total:
                stage.save(sums.state)
        stage.finish(sums.state)
    return Tournament(sums.W, float(sums.squares.sum()), sums.diagonal)


class Sums:
    """What pairs of strips have given so far, added up in the order in which they meet."""

    def __init__(self, spans: list[slice]) -> None:
        self._spans = spans
        self.pairs = [pair for met in tournament(len(spans)) for pair in met]
        self.squares, self.diagonal = np.zeros(len(self.pairs)), np.empty(spans[-1].stop)
        self.W: Any = None
        self.done = 0

    def may_be_saved(self, stage: Stage) -> bool:
        """Whether it is time to save, and saving would not take too much of it."""
        return self.W is not None and stage.is_due() and stage.has_time(self.W.nbytes)

    def take(self, outcome: Any) -> None:
        """Take what the next pair has given."""
        (ours, theirs), (met, own) = self.pairs[self.done], outcome
        if self.W is None:
            self.W = np.zeros((len(self.diagonal), met.ours.shape[1]))
        self.W[self._spans[ours]] += met.ours
        if met.theirs is not None:
            self.W[self._spans[theirs]] += met.theirs
        self.squares[self.done] = met.squares
        if own is not None:
            self.diagonal[self._spans[ours]] = own
        self.done += 1

    def state(self) -> dict[str, Any]:
        """Return where it stands."""
        arrays = {"W": self.W, "diagonal": self.diagonal, "squares": self.squares}
        return {**arrays, "done": self.done}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` says."""
        self.W, self.diagonal, self.squares = state["W"], state["diagonal"], state["squares"]
        self.done = state["done"]
