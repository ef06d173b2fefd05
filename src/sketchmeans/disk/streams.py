"""A stream over rows in a file: what it has made of them so far, which a checkpoint may save.

Rows are cut into blocks, and blocks make up spans. Between two spans all that a stream holds is
what it has kept of the rows before, in memory or in scratch files, and a few sums: its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.blocks import row_blocks, stacked
from sketchmeans.checkpoints import NOTHING, Checkpoint, Portion, Stage, first_rows
from sketchmeans.disk.scratch import scratch_array
from sketchmeans.operators.streams import Blockwise, Elsewhere
from sketchmeans.rows import Kept, Part, TreeSum

AHEAD = 2
"""Blocks that are read, or wait to be summed up, beside those that threads work on."""


@dataclass
class Desk:
    """Where work on rows in files is done: shared by all rows of a fit."""

    n_threads: int = 1
    folder: Path | None = None
    """Where scratch files lie; with other temporary files if left out."""
    checkpoint: Checkpoint = NOTHING
    """Where streams and passes save what they have done, from when a fit knows that it is its."""

    @property
    def in_flight(self) -> int:
        """Blocks that are in memory at the most."""
        return self.n_threads + AHEAD


class Stream:
    """What is made of all rows, block after block, in their order.

    Parameters
    ----------
    n : int
        Rows.
    work : callable
        See ``Rows.run``.
    size : int
        Rows of a span.
    desk : Desk, optional
        Where the scratch files are for what is kept; it is kept in memory if left out.
    """

    def __init__(self, n: int, work: Callable[..., Part], size: int, desk: Desk | None) -> None:
        self.task, plan = taken_apart(work)
        self.block = size if plan is None else plan.size
        self._finish = None if plan is None else plan.finish
        spans = row_blocks(n, size)
        self.cuts = [
            slice(span.start + part.start, span.start + part.stop)
            for span in spans
            for part in row_blocks(span.stop - span.start, self.block)
        ]
        self._ends = {span.stop: span for span in spans}
        self._joined, self.total, self._waiting = Joined(n, desk), TreeSum(), Waiting()
        self.done = 0
        """Blocks that have been taken."""
        self._begun = False
        """Whether a span is complete: before that nobody knows how much is kept of a row."""

    def begin(self, state: dict[str, Any] | None) -> None:
        """Go on where ``state`` says; from the beginning if it is None."""
        if state is not None:
            self.done, self._begun = state["done"], True
            self._joined.restore(state)
            self.total = TreeSum.restored(state)

    def state(self) -> dict[str, Any]:
        """Return where it stands between two spans."""
        rows = self.cuts[self.done - 1].stop if self.done else 0
        return {**self._joined.state(rows), **self.total.state(), "done": self.done}

    def until_due(self, stage: Stage) -> Portion:
        """Return the numbers of the next blocks, which end with a span when it is time to save."""

        def is_due() -> bool:
            rows = self.cuts[portion.next].start
            if not self._begun or rows not in self._ends:
                return False
            return stage.is_due() and stage.has_time(rows * self._joined.row_bytes)

        portion = Portion(self.done, len(self.cuts), is_due)
        return portion

    def take(self, part: Part) -> None:
        """Take what was made of the next block."""
        rows, finish = self.cuts[self.done], self._finish
        self.done += 1
        if finish is None:
            self._joined.put(rows, part.kept)
            part = Part((), part.summand)
        self._waiting.add(part)
        if rows.stop not in self._ends:
            return
        found = self._waiting.flush()
        if finish is not None:
            found = finish(found)
            self._joined.put(self._ends[rows.stop], found.kept)
        if found.summand is not None:
            self.total.add(found.summand)
        self._begun = True

    @property
    def kept(self) -> Kept:
        """Arrays of all rows."""
        return self._joined.arrays

    def new(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array where what is kept lies."""
        return self._joined.new(shape, dtype)


def taken_apart(work: Callable[..., Part]) -> tuple[Callable[..., Part], Blockwise | None]:
    """Return the work on a block, and how blocks make up a span; None where a span is one."""
    if isinstance(work, Elsewhere) and isinstance(work.work, Blockwise):
        return Elsewhere(work.operator, work.work.work, work.weighted), work.work
    return work, None


class Waiting:
    """Blocks of a span, added up in their order until the span is complete."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._total: Any = None

    def add(self, part: Part) -> None:
        """Take the next block."""
        if part.kept:
            self._kept.append(part.kept)
        if part.summand is not None:
            first = self._total is None
            self._total = part.summand if first else np.add(self._total, part.summand, self._total)

    def flush(self) -> Part:
        """Return the span, and begin the next."""
        kept: Iterable[Any] = zip(*self._kept, strict=True)
        part = Part(tuple(stacked(one) for one in kept), self._total)
        self.__init__()  # type: ignore[misc]
        return part


class Joined:
    """Arrays of all rows, filled by blocks: in memory, or in scratch files.

    Parameters
    ----------
    n : int
    desk : Desk, optional
        Where the scratch files are; in memory if left out.
    """

    def __init__(self, n: int, desk: Desk | None) -> None:
        self._n, self._desk = n, desk
        self.arrays: Kept = ()

    def put(self, rows: slice, kept: Kept) -> None:
        """Put what was kept of some rows where it belongs."""
        if not self.arrays:
            self.arrays = tuple(self.new((self._n, *one.shape[1:]), one.dtype) for one in kept)
        for whole, one in zip(self.arrays, kept, strict=True):
            whole[rows] = one

    @property
    def row_bytes(self) -> int:
        """Bytes that are kept of a row."""
        return sum(one.nbytes for one in self.arrays) // max(self._n, 1)

    def state(self, rows: int) -> dict[str, Any]:
        """Return the first rows: their bytes, whatever type they have."""
        kinds = [[one.dtype.str, *one.shape[1:]] for one in self.arrays]
        bytes_of = (one.reshape(self._n, -1).view(np.uint8) for one in self.arrays)
        known = {f"kept{index}": one for index, one in enumerate(bytes_of)}
        return {"kinds": kinds, **first_rows(known, rows)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the first rows from where they were saved."""
        arrays = []
        for index, (dtype, *shape) in enumerate(state["kinds"]):
            arrays.append(state[f"kept{index}"].view(dtype).reshape(self._n, *shape))
        self.arrays = tuple(arrays)

    def new(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array where these lie."""
        if self._desk is None:
            return np.empty(shape, dtype)
        return scratch_array(self._desk.folder, shape, dtype)
