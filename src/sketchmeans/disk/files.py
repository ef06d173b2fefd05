"""``Rows`` in files: the threads of this process run the tasks, and one more reads ahead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.blocks import row_blocks, stacked
from sketchmeans.disk.ahead import Ahead, InOrder
from sketchmeans.disk.passes import let_all_meet
from sketchmeans.disk.scratch import read_only, scratch_array
from sketchmeans.disk.sources import ArraySource, Source
from sketchmeans.engine import Crew
from sketchmeans.operators.streams import Blockwise, Elsewhere
from sketchmeans.rows import Kept, Part, Ran, Rows, Tournament, TreeSum

Progress = Callable[[int, int], None]

AHEAD = 2
"""Blocks that are read, or wait to be summed up, beside those that threads work on."""


@dataclass
class Desk:
    """Where work on rows in files is done: shared by all rows of a fit."""

    n_threads: int = 1
    folder: Path | None = None
    """Where scratch files lie; with other temporary files if left out."""

    @property
    def in_flight(self) -> int:
        """Blocks that are in memory at the most."""
        return self.n_threads + AHEAD


class FileRows(Rows):
    """Rows of a matrix in a file, read in blocks, in order, once a stream.

    Memory: a few blocks. What stays of all rows goes to a scratch file.

    Parameters
    ----------
    source : Source
    desk : Desk
    """

    spills = True

    def __init__(self, source: Source, desk: Desk) -> None:
        self.source, self.desk = source, desk
        self.shape, self.dtype = source.shape, np.dtype(source.dtype)
        self.names, self.scratch_bytes = source.names, source.scratch_bytes

    @property
    def span(self) -> int:
        """Rows that are read at once where nothing else says how many."""
        return min(self.source.block_rows, max(self.shape[0], 1))

    def __getitem__(self, few: Any) -> Any:
        """Fetch a few rows; of all rows and some columns, return what reads those."""
        if isinstance(few, tuple):
            rows, columns = few
            assert rows == slice(None)
            return FileRows(ArraySource(self.source.mapped, columns), self.desk)
        if isinstance(few, slice):
            start, stop, step = few.indices(self.shape[0])
            if step == 1:
                return self.source.read(start, max(start, stop))
            few = np.arange(start, stop, step)
        return self.source.take(np.asarray(few))

    def put(self, few: Any, values: Any) -> None:
        """Write some rows in place, of an array in a scratch file."""
        self.source.mapped[few] = values

    def whole(self) -> Any:
        """Return all rows as an array: a memory map, of the file itself or of a scratch file."""
        if (mapped := self.source.mapped) is not None:
            return read_only(mapped)
        array = scratch_array(self.desk.folder, self.shape, self.dtype)
        for rows in row_blocks(self.shape[0], self.span):
            array[rows] = self.source.read(rows.start, rows.stop)
        return read_only(array)

    def map(
        self, work: Callable[..., Any], *given: Any, size: int | None = None, name: str = "map"
    ) -> list[Any]:
        """Return what ``work`` makes of every span, in their order; see ``Rows``."""
        del name
        found: list[Any] = []
        spans = row_blocks(self.shape[0], size or self.span)
        self._each(work, given, spans, lambda _, value: found.append(value))
        return found

    def run(
        self,
        work: Callable[..., Part],
        *given: Any,
        size: int,
        stay: bool = False,
        name: str = "stream",
        progress: Progress | None = None,
    ) -> Ran:
        """Do ``work`` with every span of rows; see ``Rows``.

        Where it is done a block at a time, blocks are what is read, and threads share those of a
        span: the sum of a span is that of its blocks, in their order.
        """
        del name
        task, plan = taken_apart(work)
        block = size if plan is None else plan.size
        spans = row_blocks(self.shape[0], size)
        cuts = [
            slice(span.start + part.start, span.start + part.stop)
            for span in spans
            for part in row_blocks(span.stop - span.start, block)
        ]
        ends = {span.stop: span for span in spans}
        finish = None if plan is None else plan.finish
        joined = Joined(self.shape[0], self.desk if stay else None)
        total, waiting = TreeSum(), Waiting()

        def take(index: int, part: Part) -> None:
            rows = cuts[index]
            if finish is None:
                joined.put(rows, part.kept)
                part = Part((), part.summand)
            waiting.add(part)
            if rows.stop not in ends:
                return
            found = waiting.flush()
            if finish is not None:
                found = finish(found)
                joined.put(ends[rows.stop], found.kept)
            if found.summand is not None:
                total.add(found.summand)

        self._each(task, given, cuts, take, progress)
        arrays = joined.arrays
        if stay:
            arrays = tuple(FileRows(ArraySource(one), self.desk) for one in arrays)
        return Ran(arrays, total.total())

    def tournament(
        self,
        task: Callable[..., Any],
        *given: Any,
        size: int,
        stay: bool = False,
        progress: Progress | None = None,
    ) -> Tournament:
        """Let every two strips of rows meet; see ``Rows`` and ``let_all_meet``.

        W is summed in memory, and stays there.
        """
        del stay
        return let_all_meet(
            self.source.read,
            task,
            given,
            row_blocks(self.shape[0], size),
            n_threads=self.desk.n_threads,
            progress=progress,
        )

    @property
    def n_threads(self) -> int:
        """Threads that work."""
        return self.desk.n_threads

    def of_groups(
        self,
        work: Callable[..., Any],
        groups: Sequence[Any],
        given: Sequence[tuple[Any, ...]],
        *,
        seconds: float | None = None,
        name: str = "groups",
    ) -> Iterator[tuple[int, Any]]:
        """Yield what ``work`` makes of groups of rows, as they are done; see ``Rows``."""
        del name
        end = None if seconds is None else time.perf_counter() + seconds
        found: dict[int, Any] = {}

        def compute(index: int) -> None:
            found[index] = work(self.source.take(np.asarray(groups[index])), *given[index])

        with Crew(self.desk.n_threads) as crew:
            for some in row_blocks(len(groups), self.desk.n_threads):
                if end is not None and time.perf_counter() > end:
                    return
                crew.each(compute, range(some.start, some.stop))
                for index in range(some.start, some.stop):
                    yield index, found.pop(index)

    def _each(
        self,
        work: Callable[..., Any],
        given: Sequence[Any],
        cuts: Sequence[slice],
        take: Callable[[int, Any], None],
        progress: Progress | None = None,
    ) -> None:
        """Do ``work`` with blocks of rows on threads; hand on what it gives, in their order."""

        def read(rows: slice) -> tuple[Any, ...]:
            more = (part_of(one, rows) for one in given)
            return self.source.read(rows.start, rows.stop), *more

        def taken(index: int, value: Any) -> None:
            take(index, value)
            blocks.done()

        def compute(block: tuple[int, tuple[Any, ...]]) -> None:
            index, parts = block
            ordered.put(index, work(*parts))

        report = None if progress is None else lambda done: progress(done, len(cuts))
        ordered = InOrder(taken)
        with (
            Crew(self.desk.n_threads) as crew,
            Ahead(read, cuts, self.desk.in_flight, crew) as blocks,
        ):
            crew.each(compute, blocks, report)


def taken_apart(work: Callable[..., Part]) -> tuple[Callable[..., Part], Blockwise | None]:
    """Return the work on a block, and how blocks make up a span; None where a span is one."""
    if isinstance(work, Elsewhere) and isinstance(work.work, Blockwise):
        return Elsewhere(work.operator, work.work.work, work.weighted), work.work
    return work, None


def part_of(one: Any, rows: slice) -> Any:
    """Return rows of what goes with a matrix: an array, other rows, or what makes them."""
    if isinstance(one, FileRows):
        return one.source.read(rows.start, rows.stop)
    return one.rows(rows.start, rows.stop) if hasattr(one, "rows") else one[rows]


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
            self.arrays = tuple(self._new((self._n, *one.shape[1:]), one.dtype) for one in kept)
        for whole, one in zip(self.arrays, kept, strict=True):
            whole[rows] = one

    def _new(self, shape: tuple[int, ...], dtype: Any) -> Any:
        if self._desk is None:
            return np.empty(shape, dtype)
        return scratch_array(self._desk.folder, shape, dtype)
