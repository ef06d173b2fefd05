"""``Rows`` in files: the threads of this process run the tasks, and one more reads ahead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sketchmeans.blocks import row_blocks
from sketchmeans.checkpoints import Portion
from sketchmeans.disk.ahead import Ahead, InOrder
from sketchmeans.disk.passes import let_all_meet
from sketchmeans.disk.scratch import read_only, scratch_array
from sketchmeans.disk.sources import ArraySource, Source
from sketchmeans.disk.streams import Desk, Stream
from sketchmeans.engine import Crew
from sketchmeans.rows import Part, Ran, Rows, Tournament

Progress = Callable[[int, int], None]


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
        self._each(work, given, spans, found.append)
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
        n = self.shape[0]
        stream = Stream(n, work, size, self.desk if stay else None)
        sizes = (n, size, stream.block, int(stay))
        with self.desk.checkpoint.stage(name, *sizes, new=stream.new) as stage:
            stream.begin(stage.state)
            while stream.done < len(stream.cuts):
                some = stream.until_due(stage)
                self._each(stream.task, given, stream.cuts, stream.take, progress, some)
                if stream.done < len(stream.cuts):
                    stage.save(stream.state)
            stage.finish(stream.state)
        arrays = stream.kept
        if stay:
            arrays = tuple(FileRows(ArraySource(one), self.desk) for one in arrays)
        return Ran(arrays, stream.total.total())

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
            checkpoint=self.desk.checkpoint,
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
        take: Callable[[Any], None],
        progress: Progress | None = None,
        some: Portion | None = None,
    ) -> None:
        """Do ``work`` with blocks of rows on threads; hand on what it gives, in their order.

        With ``some``, with these of them, as long as they go on.
        """
        numbers = range(len(cuts)) if some is None else some
        before = 0 if some is None else some.next

        def read(number: int) -> tuple[Any, ...]:
            rows = cuts[number]
            more = (part_of(one, rows) for one in given)
            return self.source.read(rows.start, rows.stop), *more

        def taken(_: int, value: Any) -> None:
            take(value)
            blocks.done()

        def compute(block: tuple[int, tuple[Any, ...]]) -> None:
            index, parts = block
            ordered.put(index, work(*parts))

        report = None if progress is None else lambda done: progress(before + done, len(cuts))
        ordered = InOrder(taken)
        with (
            Crew(self.desk.n_threads) as crew,
            Ahead(read, numbers, self.desk.in_flight, crew) as blocks,
        ):
            crew.each(compute, blocks, report)


def part_of(one: Any, rows: slice) -> Any:
    """Return rows of what goes with a matrix: an array, other rows, or what makes them."""
    if isinstance(one, FileRows):
        return one.source.read(rows.start, rows.stop)
    return one.rows(rows.start, rows.stop) if hasattr(one, "rows") else one[rows]
