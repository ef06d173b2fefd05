"""A pass over K of rows in a file: strips of rows meet, two at a time, as in a tournament.

The order of the sums is that of a pass in memory (``engine.passes``), so that both have the same
bits. Every strip is read once a round, ahead of its meeting; a round takes as many kernel entries
as there are rows, times those of a strip, which takes longer than to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
    progress: Callable[[int, int], None] | None = None,
) -> Tournament:
    """Let every two strips meet; see ``Rows.tournament``. Memory: W, Ω and a few strips."""
    n = spans[-1].stop
    given = [one.matrix if hasattr(one, "matrix") else one for one in given]
    pairs = [pair for met in tournament(len(spans)) for pair in met]
    squares = np.empty(len(pairs))
    diagonal = np.empty(n)
    W: list[Any] = []

    def strip(index: int) -> tuple[Any, ...]:
        rows = spans[index]
        return read(rows.start, rows.stop), *(one[rows] for one in given)

    def read_pair(pair: tuple[int, int]) -> tuple[Any, Any]:
        ours, theirs = pair
        return strip(ours), None if ours == theirs else strip(theirs)

    def take(index: int, outcome: Any) -> None:
        (ours, theirs), (met, own) = pairs[index], outcome
        if not W:
            W.append(np.zeros((n, met.ours.shape[1])))
        W[0][spans[ours]] += met.ours
        if met.theirs is not None:
            W[0][spans[theirs]] += met.theirs
        squares[index] = met.squares
        if own is not None:
            diagonal[spans[ours]] = own
        blocks.done()

    def compute(block: tuple[int, Any]) -> None:
        index, (ours, theirs) = block
        ordered.put(index, task(ours, theirs))

    report = None if progress is None else lambda done: progress(done, len(pairs))
    ordered = InOrder(take)
    with Crew(n_threads) as crew, Ahead(read_pair, pairs, n_threads + 2, crew) as blocks:
        crew.each(compute, blocks, report)
    return Tournament(W[0], float(squares.sum()), diagonal)
