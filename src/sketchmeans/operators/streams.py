"""A stream over all rows of a feature map: one plan, and two who run it.

The plan is a fixed grid. Rows are cut into blocks, blocks make up spans, and what spans give is
added up in the tree of ``sketchmeans.rows``. What a span gives is a pure function of its rows::

    rows ──▶ span 0 ──▶ block, block, … ──▶ kept, summand ──┐
         ──▶ span 1 ──▶ block, block, … ──▶ kept, summand ──┤ in their order, in a tree
         ──▶ …                                              └──▶ total

Threads of this process run it where the rows are here; where they are elsewhere (``Rows``), each
span is a task there. The bits are the same: the grid depends on the sizes of the data alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.checkpoints import Stage, first_rows
from sketchmeans.engine import Crew, Run
from sketchmeans.rows import Kept, Part, Ran, Rows, TreeSum

SPANS, LONGEST = 64, 1 << 18
"""Spans, about, and the most rows of one: fixed, for they decide the bits; many, so that threads
wait little for each other, and short enough for a worker of a cluster."""


class Work(Protocol):
    """What is done with a span of rows: a function that can be sent elsewhere."""

    def __call__(self, part: Any, rows: slice, *given: Any) -> Part:
        """Return what these rows of an operator give; ``given`` are rows that belong to them."""


@dataclass(frozen=True)
class Blockwise:
    """Work that is done a block at a time; what blocks of a span give is added in their order."""

    work: Callable[..., Part]
    size: int
    finish: Callable[[Part], Part] | None = None
    """What is made of a span when its blocks are joined and added up; nothing more if left out."""

    def __call__(self, part: Any, rows: slice, *given: Any) -> Part:
        """Go through the span."""
        kept: list[Kept] = []
        total: Any = None
        for block in row_blocks(rows.stop - rows.start, self.size):
            here = slice(rows.start + block.start, rows.start + block.stop)
            found = self.work(part, here, *(one[block] for one in given))
            kept.append(found.kept)
            if found.summand is not None:
                total = found.summand if total is None else np.add(total, found.summand, out=total)
        whole = Part(tuple(np.concatenate(one) for one in zip(*kept, strict=True)), total)
        return whole if self.finish is None else self.finish(whole)


@dataclass(frozen=True)
class Elsewhere:
    """A span's work as it is sent to where its rows are."""

    operator: Any
    """Without rows."""
    work: Work
    weighted: bool

    def __call__(self, rows: Any, *given: Any) -> Part:
        """Do the work on rows that are here now."""
        root = given[0] if self.weighted else None
        part = self.operator.on(rows, root)
        return self.work(part, slice(0, rows.shape[0]), *given[1 if self.weighted else 0 :])


def span_rows(n: int, block: int) -> int:
    """Return the rows of a span of such blocks."""
    blocks = -(-n // block)
    return block * max(min(-(-blocks // SPANS), LONGEST // block), 1)


class _Joined:
    """Arrays of all rows, filled by spans; the first rows may be known."""

    def __init__(self, n: int, arrays: Kept = ()) -> None:
        self._n, self._lock = n, threading.Lock()
        self.arrays = arrays

    def put(self, rows: slice, kept: Kept) -> None:
        with self._lock:
            if not self.arrays:
                self.arrays = tuple(np.empty((self._n, *one.shape[1:]), one.dtype) for one in kept)
        for whole, one in zip(self.arrays, kept, strict=True):
            whole[rows] = one


def stream_here(
    operator: Any,
    work: Work,
    given: tuple[Any, ...],
    *,
    size: int,
    sums: bool,
    name: str,
    run: Run,
    crew: Crew | None = None,
) -> Ran:
    """Run a stream on threads: memory is what is kept, and with ``sums`` a sum per thread."""
    n = operator.shape[0]
    spans = row_blocks(n, size)
    found: dict[int, Any] = {}

    def compute(index: int) -> None:
        rows = spans[index]
        part = work(operator, rows, *(one[rows] for one in given))
        joined.put(rows, part.kept)
        found[index] = part.summand

    def state(done: int) -> dict[str, Any]:
        kept = {f"kept{index}": whole for index, whole in enumerate(joined.arrays)}
        known = first_rows(kept, spans[done - 1].stop)
        return {"arrays": len(kept), **known, **total.state(), "done": done}

    # What is kept may depend on whether there is room for it.
    stage_of = run.checkpoint.stage(name, n, size, int(run.pack))
    with Crew(run.n_threads) if crew is None else nullcontext(crew) as crew, stage_of as stage:
        done, joined, total = _begun(stage, n)
        at_once = crew.n_threads if sums else max(len(spans), 1)
        while done < len(spans):
            group = range(done, min(done + at_once, len(spans)))
            taken = stage.until_due(group)
            crew.each(compute, taken, partial(_report, run, done, len(spans)))
            for index in range(done, taken.next):
                if (part := found.pop(index)) is not None:
                    total.add(part)
            done = taken.next
            if done < len(spans):
                stage.offer(partial(state, done))
        stage.finish(partial(state, done))
    return Ran(joined.arrays, total.total())


def _begun(stage: Stage, n: int) -> tuple[int, _Joined, TreeSum]:
    """Return the spans that are done, and what they gave: none, or what a stage has saved."""
    if stage.state is None:
        return 0, _Joined(n), TreeSum()
    known = tuple(stage.state[f"kept{index}"] for index in range(stage.state["arrays"]))
    return stage.state["done"], _Joined(n, known), TreeSum.restored(stage.state)


def _report(run: Run, before: int, total: int, done: int) -> None:
    run.report(before + done, total)


def stream_elsewhere(
    operator: Any,
    source: Rows,
    work: Work,
    given: tuple[Any, ...],
    *,
    size: int,
    stay: bool,
    name: str,
    run: Run,
) -> Ran:
    """Send a stream to where the rows are."""
    root: FloatArray | None = operator.root_weights
    task = Elsewhere(operator.on(None), work, root is not None)
    given = given if root is None else (root, *given)
    return source.run(task, *given, size=size, stay=stay, name=name, progress=run.progress)
