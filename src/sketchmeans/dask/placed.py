"""Rows on the workers of a Dask cluster: plain tasks that the scheduler may run again anywhere.

A matrix is a list of futures, one for each span of its rows. Work is sent to them as tasks; sums
are tasks too, in the tree of ``sketchmeans.rows``. Nothing is scattered and no worker talks to
another but to fetch what a task needs: a worker that is lost costs what it held, and the scheduler
has that made again. Keys are named after what is done, for the dashboard.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Client, Future, as_completed

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import row_blocks, rows_of, stacked
from sketchmeans.dask.clients import is_open
from sketchmeans.dask.meetings import Meetings
from sketchmeans.dask.sending import Made, here, opened, sealed
from sketchmeans.rows import FAN, Part, Ran, Rows, Tournament, in_order

Progress = Callable[[int, int], None]


def apply(work: bytes, rows: Any, *given: Any) -> Any:
    """Run a function on rows that are here, as a thread of ours would."""
    with OneBlasThread(), np.errstate(over="ignore", invalid="ignore"):
        return opened(work)(*map(here, (rows, *given)))


def apply_to_pieces(work: bytes, given: tuple[Any, ...], *pieces: Any) -> Any:
    """Run a function on rows that came in pieces."""
    return apply(work, stacked([here(piece) for piece in pieces]), *given)


def identity(value: Any) -> Any:
    """Return what is given: a task that brings something to the cluster, and can be run again."""
    return value


def cut(pieces: Sequence[tuple[int, int]], *chunks: Any) -> Any:
    """Return pieces of chunks, (start, stop) of each, as one block of rows of its own."""
    parts = [rows_of(chunk, slice(*piece)) for piece, chunk in zip(pieces, chunks, strict=True)]
    whole = len(parts) > 1 or parts[0].shape == chunks[0].shape
    return stacked(parts) if whole else parts[0].copy()


def pick(chunk: Any, rows: IntArray) -> Any:
    """Return some rows of a chunk."""
    return chunk[rows]


def columns_of(array: Any) -> int:
    """Return how many columns an array has."""
    return array.shape[1]


def part_kept(part: Part, index: int) -> Any:
    """Return one of the things that a part keeps."""
    return part.kept[index]


def part_kinds(part: Part) -> tuple[list[tuple[tuple[int, ...], Any, Any]], bool]:
    """Return shape, dtype and stored numbers of what a part keeps, and whether it adds to a sum."""
    kinds = [(one.shape, one.dtype, getattr(one, "nnz", None)) for one in part.kept]
    return kinds, part.summand is not None


def joined(*parts: Part) -> Part:
    """Return consecutive parts as one: what they keep joined, and their summands added."""
    kept = tuple(stacked(one) for one in zip(*(part.kept for part in parts), strict=True))
    return Part(kept, sum_of(*parts))


def sum_of(*parts: Any) -> Any:
    """Return the sum of parts, or of sums of parts, in their order; None where there is none."""
    sums = [part.summand if isinstance(part, Part) else part for part in parts]
    return None if sums[0] is None else in_order(sums)


class DaskRows(Rows):
    """Rows of a matrix on a cluster.

    Parameters
    ----------
    client : Client
    chunks : list of Future
        Blocks of rows, dense or CSR; none is empty.
    sizes : sequence of int
        Their rows.
    width : int
        Columns.
    dtype : dtype
    nnz : int, optional
        Numbers that are stored, of sparse rows.
    """

    def __init__(
        self,
        client: Client,
        chunks: list[Future],
        sizes: Sequence[int],
        width: int,
        dtype: Any,
        nnz: int | None = None,
    ) -> None:
        self.client = client
        self._chunks, self._sizes = chunks, list(sizes)
        self.names: list[str] | None = None
        self.shape, self.dtype, self.nnz = (int(sum(sizes)), width), np.dtype(dtype), nnz

    @property
    def chunks(self) -> tuple[list[Future], list[int]]:
        """The futures as they are placed now, and their rows."""
        return self._chunks, self._sizes

    @property
    def span(self) -> int:
        """Rows of a span as they are placed now."""
        return self._sizes[0]

    def _each(
        self, name: str, function: Callable[..., Any], *columns: Sequence[Any]
    ) -> list[Future]:
        """Submit a task for each row of some columns."""
        token, count = f"sketchmeans-{name}-{uuid.uuid4().hex}", len(columns[0])
        keys = [(token, index) for index in range(count)]
        return self.client.map(function, *columns, key=keys, pure=False)

    def _one(self, name: str, function: Callable[..., Any], *args: Any) -> Future:
        key = (f"sketchmeans-{name}-{uuid.uuid4().hex}", 0)
        return self.client.submit(function, *args, key=key, pure=False)

    def at(self, size: int) -> list[Future]:
        """Place the rows on the grid of spans of this size, and return these."""
        wanted = [rows.stop - rows.start for rows in row_blocks(self.shape[0], size)]
        self._chunks, self._sizes = self.cut_at(wanted), wanted
        return self._chunks

    def cut_at(self, sizes: list[int]) -> list[Future]:
        """Return the rows in blocks of these sizes, some of which may be empty."""
        if self._sizes == sizes:
            return self._chunks
        ends, cuts = np.cumsum([0, *self._sizes]), np.cumsum([0, *sizes]).tolist()
        token = f"sketchmeans-place-{uuid.uuid4().hex}"
        return [
            self._cut(slice(start, stop), ends, (token, index))
            for index, (start, stop) in enumerate(pairwise(cuts))
        ]

    def _cut(self, rows: slice, ends: IntArray, key: tuple[str, int]) -> Future:
        """Submit the task that cuts these rows out of the chunks that have them."""
        first = min(int(np.searchsorted(ends, rows.start, side="right")) - 1, len(ends) - 2)
        last = max(int(np.searchsorted(ends, rows.stop, side="left")), first + 1)
        low, high = (
            np.maximum(ends[first:last], rows.start),
            np.minimum(ends[first + 1 : last + 1], rows.stop),
        )
        pieces = [
            (int(a - start), int(b - start))
            for a, b, start in zip(low, high, ends[first:last], strict=True)
        ]
        return self.client.submit(cut, pieces, *self._chunks[first:last], key=key, pure=False)

    def __getitem__(self, few: Any) -> Any:
        """Fetch a few rows, or all of them, which are then held once."""
        if isinstance(few, slice) and few == slice(None) and self.nnz is None:
            return self._all()
        indices = np.arange(self.shape[0])[few] if isinstance(few, slice) else np.asarray(few)
        if not len(indices):
            return self._one("fetch", pick, self._chunks[0], np.zeros(0, np.intp)).result()
        chunks, wanted, order = self._homes(indices)
        rows = stacked(self.client.gather(self._each("fetch", pick, chunks, wanted)))
        return here(rows[np.argsort(order, kind="stable")])

    def _homes(self, indices: IntArray) -> tuple[list[Future], list[IntArray], IntArray]:
        """Return the chunks that have some rows, which of theirs these are, and in which order."""
        ends = np.cumsum([0, *self._sizes])
        homes = np.searchsorted(ends, indices, side="right") - 1
        touched = [int(home) for home in np.unique(homes)]
        chunks = [self._chunks[home] for home in touched]
        wanted = [indices[homes == home] - ends[home] for home in touched]
        order = np.concatenate([np.flatnonzero(homes == home) for home in touched])
        return chunks, wanted, order

    @property
    def n_threads(self) -> int:
        """Tasks that the workers run side by side."""
        return max(sum(self.client.nthreads().values()), 1)

    def of_groups(
        self,
        work: Callable[..., Any],
        groups: Sequence[Any],
        given: Sequence[tuple[Any, ...]],
        *,
        seconds: float | None = None,
        name: str = "groups",
    ) -> Iterator[tuple[int, Any]]:
        """Yield what ``work`` makes of groups of rows, as they are done; see ``Rows``.

        The rows of a group go from worker to worker, to the task that takes them.
        """
        sent = self._one(f"{name}-plan", identity, sealed(work))
        token, tasks = f"sketchmeans-{name}-{uuid.uuid4().hex}", []
        for index, (group, more) in enumerate(zip(groups, given, strict=True)):
            pieces = self._each(f"{name}-rows", pick, *self._homes(group)[:2])
            key = (token, index)
            # Before other groups are picked, what has been picked is worked on and let go.
            tasks.append(
                self.client.submit(
                    apply_to_pieces, sent, more, *pieces, key=key, pure=False, priority=1
                )
            )
        places = {future.key: index for index, future in enumerate(tasks)}
        try:
            done = as_completed(list(tasks), loop=self.client.loop, timeout=seconds)
            while True:
                try:
                    future = next(done)
                except (StopIteration, TimeoutError):
                    return
                # NOTE: as_completed(with_results=True) hands out an error that cancelled a task as
                # if the task had returned it; this raises it.
                yield places[future.key], future.result()
        finally:
            if is_open(self.client):
                self.client.cancel(tasks)

    def _all(self) -> FloatArray:
        """Fetch all rows, one block after the other."""
        whole = np.empty(self.shape, self.dtype)
        ends = np.cumsum([0, *self._sizes])
        for chunk, start, stop in zip(self._chunks, ends[:-1], ends[1:], strict=True):
            whole[start:stop] = chunk.result()
        return whole

    def _given(self, given: Sequence[Any], spans: Sequence[slice], size: int) -> list[list[Any]]:
        """Return what goes with each span."""
        columns: list[list[Any]] = []
        for one in given:
            if isinstance(one, DaskRows):
                columns.append(list(one.at(size)))
            elif hasattr(one, "rows"):
                maker = copy.copy(one)
                maker.release()
                columns.append([Made(maker, rows.start, rows.stop) for rows in spans])
            else:
                columns.append([one[rows] for rows in spans])
        return columns

    def _tasks(
        self, work: Callable[..., Any], given: Sequence[Any], size: int | None, name: str
    ) -> list[Future]:
        if size is None:
            chunks, ends = self._chunks, np.cumsum([0, *self._sizes]).tolist()
            spans = [slice(start, stop) for start, stop in pairwise(ends)]
            assert not any(isinstance(one, DaskRows) for one in given)
        else:
            chunks, spans = self.at(size), row_blocks(self.shape[0], size)
        columns = self._given(given, spans, size or 0)
        sent = self._one(f"{name}-plan", identity, sealed(work))
        return self._each(name, apply, [sent] * len(chunks), chunks, *columns)

    def map(
        self, work: Callable[..., Any], *given: Any, size: int | None = None, name: str = "map"
    ) -> list[Any]:
        """Return what ``work`` makes of every span, in their order; see ``Rows``."""
        return self.client.gather(self._tasks(work, given, size, name))

    def run(
        self,
        work: Callable[..., Part],
        *given: Any,
        size: int,
        stay: bool = False,
        name: str = "stream",
        progress: Progress | None = None,
    ) -> Ran:
        """Send ``work`` to every span of rows; see ``Rows``."""
        parts = self._tasks(work, given, size, name)
        if not stay:
            # Sums wait for their parts from the start, and go first: workers let go of a part as
            # soon as it is in a sum, and need not hold the summands of all spans.
            total = self._tree(parts, joined, name, priority=1)
            follow(parts, progress, release=True)
            return Ran(*map(_own, total.result()))
        follow(parts, progress)
        kinds, adds = self._one(f"{name}-kind", part_kinds, parts[0]).result()
        kept = []
        for index, (shape, dtype, nnz) in enumerate(kinds):
            rows = self._each(f"{name}-rows", part_kept, parts, [index] * len(parts))
            # Rows that are made have as many numbers each, where they are sparse.
            stored = None if nnz is None else nnz * self.shape[0] // shape[0]
            kept.append(DaskRows(self.client, rows, self._sizes, shape[1], dtype, stored))
        total = _own(self._tree(parts, sum_of, name).result()) if adds else None
        return Ran(tuple(kept), total)

    def _tree(
        self, parts: list[Future], function: Callable[..., Any], name: str, priority: int = 0
    ) -> Future:
        """Bring parts together, FAN consecutive ones at a time."""
        while True:
            groups = [parts[first : first + FAN] for first in range(0, len(parts), FAN)]
            token = f"sketchmeans-{name}-sum-{uuid.uuid4().hex}"
            parts = [
                self.client.submit(
                    function, *group, key=(token, index), pure=False, priority=priority
                )
                for index, group in enumerate(groups)
            ]
            if len(parts) == 1:
                return parts[0]

    def tournament(
        self,
        task: Callable[..., Any],
        *given: Any,
        size: int,
        stay: bool = False,
        progress: Progress | None = None,
    ) -> Tournament:
        """Let every two strips of rows meet; see ``Rows`` and ``Meetings``."""
        spans = row_blocks(self.shape[0], size)
        columns = [
            self._each("pass-strip", identity, column) if isinstance(one, np.ndarray) else column
            for one, column in zip(given, self._given(given, spans, size), strict=True)
        ]
        strips = list(zip(self.at(size), *columns, strict=True))
        meetings = Meetings(
            self.client, self._one("pass-plan", identity, sealed(task)), strips, spans
        )
        follow(meetings.tasks, progress, release=True)
        squares, diagonal = meetings.small()
        if not stay:
            W = _own(np.concatenate(self.client.gather(meetings.sums)))
            return Tournament(W, squares, diagonal)
        follow(meetings.sums, None)
        width = self._one("pass-width", columns_of, meetings.sums[0]).result()
        W = DaskRows(self.client, meetings.sums, self._sizes, width, np.float64)
        return Tournament(W, squares, diagonal)


def _own(value: Any) -> Any:
    """Return arrays that may be written to: what was received may be read only."""
    if isinstance(value, tuple):
        return tuple(map(_own, value))
    return np.require(value, requirements=["A", "W"]) if isinstance(value, np.ndarray) else value


def follow(futures: Sequence[Future], progress: Progress | None, *, release: bool = False) -> None:
    """Wait for tasks and tell of them; the first error is raised.

    With ``release``, those that are done are let go, for other tasks that were submitted need them.
    """
    for done, future in enumerate(_completed(futures), start=1):
        if future.status in ("error", "cancelled"):
            future.result()  # raises what the task raised, or that it was cancelled
        if progress is not None:
            progress(done, len(futures))
        if release:
            future.release()


def _completed(futures: Sequence[Future]) -> Iterator[Future]:
    # The loop is that of their client, which need not be the default one.
    return iter(as_completed(list(futures), loop=futures[0].client.loop)) if futures else iter(())
