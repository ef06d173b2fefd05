"""K-means of many rows: starts on some of them, and Lloyd's iterations over blocks of all.

A step of a block is a pure function of its rows, their weights and the centers. The grid of blocks
is fixed by the shape of Y and K, and sums are added in the order of the blocks: whatever maps a
function over them, threads or others, finds the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import first_distinct, masses, row_blocks
from sketchmeans.checkpoints import NOTHING, Checkpoint, Stage
from sketchmeans.engine import Crew
from sketchmeans.estimators.iterating import State
from sketchmeans.rows import Rows

MANY = 40_000
"""Rows from which the starts run on some of them.

Measured by ``python -m benchmarks.many_rows``.
"""

SOME = 20_000
"""Rows that are drawn for the starts: ``python -m benchmarks.many_rows --choices``."""

EACH = 50
"""Rows that are drawn for a cluster at the least, where there are many clusters."""

ENOUGH = 20
"""Starts on some rows up to which there are two for one that was asked for.

Which optimum ten starts find is luck, and the draw adds its own; more starts on few rows are cheap
(``python -m benchmarks.many_rows --choices``).
"""

FEW, TRIED = 3, 5
"""Starts, the best ones, that are tried over all rows, and for how many iterations.

The best then goes on to its end: ``python -m benchmarks.many_rows --choices``.
"""

WALKED = 5000
"""Rows that walks see (``estimators.walks``), or ``EACH`` for a cluster: their starts are many, and
the anchors that they tell apart few. ``python -m benchmarks.neighbors walks`` compares."""

_ROWS, _NUMBERS = 16_384, 1 << 20
"""Rows of a block, and numbers of a block and its distances; fixed, for they decide the bits.

Small blocks keep threads waiting for the interpreter: ``python -m benchmarks.many_rows --step``.
"""

Found = TypeVar("Found")


def drawn_rows(n: int, n_clusters: int) -> int | None:
    """Return how many of n rows the starts see; None where they see all."""
    drawn = max(SOME, EACH * n_clusters)
    return drawn if n >= max(MANY, 2 * drawn) else None


def walked_rows(n: int, n_clusters: int) -> int:
    """Return how many of n rows walks see."""
    return min(n, max(WALKED, EACH * n_clusters))


def grid(n: int, n_clusters: int, columns: int) -> list[slice]:
    """Return the blocks of rows; their sums together take a quarter of Y at most."""
    return row_blocks(n, min(_ROWS, max(_NUMBERS // (n_clusters + columns), 4 * n_clusters)))


def finish_bytes(n: int, n_clusters: int, columns: int, itemsize: int, n_threads: int) -> int:
    """Return what ``Lloyd`` takes: labels, before, now and the best; sums; blocks at work."""
    blocks = grid(n, n_clusters, columns)
    rows = blocks[0].stop
    working = rows * (columns * (itemsize + 8) + n_clusters * 2 * itemsize + 64)
    return 3 * n * 4 + (len(blocks) + 4) * n_clusters * (columns + 1) * 8 + n_threads * working


class Drawn(NamedTuple):
    """Rows for the starts, ascending, and how often each was hit."""

    rows: IntArray
    hits: FloatArray


def draw(
    Y: FloatArray, weights: FloatArray | None, count: int, n_clusters: int, seeds: Sequence[int]
) -> Drawn:
    """Draw ``count`` rows by their weights, a hit in each of as many equal parts of the mass.

    Where they have fewer distinct points than clusters, the first distinct ones of all rows come
    in: K-means warns of too few only where there are no more. A row of weight zero never does.
    """
    at = (np.arange(count) + np.random.default_rng(list(seeds)).random(count)) / count
    if weights is None:
        hit = np.minimum((at * len(Y)).astype(np.intp), len(Y) - 1)
    else:
        mass = np.cumsum(weights)
        hit = np.searchsorted(mass, at * mass[-1], side="right")
        hit = np.minimum(hit, np.flatnonzero(weights)[-1])
    rows = np.unique(hit)
    if len(first_distinct(Y[rows], n_clusters)) < n_clusters:
        possible = np.arange(len(Y)) if weights is None else np.flatnonzero(weights)
        hit = np.concatenate([hit, first_distinct(Y, n_clusters, possible)])
    rows, counts = np.unique(hit, return_counts=True)
    # scikit-learn asks for a row per cluster even where fewer count: others come in weightless.
    others = np.setdiff1d(np.arange(min(len(Y), len(rows) + n_clusters)), rows)
    others = others[: max(n_clusters - len(rows), 0)]
    order = np.argsort(np.concatenate([rows, others]))
    hits = np.concatenate([counts.astype(np.float64), np.zeros(len(others))])
    return Drawn(np.concatenate([rows, others])[order], hits[order])


def starts_on_some(n_init: int) -> int:
    """Return how many starts some rows see where ``n_init`` were asked for."""
    return max(n_init, min(2 * n_init, ENOUGH))


def more_seeds(seeds: Sequence[int]) -> list[int]:
    """Return seeds for the starts on some rows; the first ones are those given."""
    # NOTE: the key keeps this stream apart from that of ``draw``.
    random = np.random.default_rng([ENOUGH, *seeds])
    others = random.integers(2**31 - 1, size=starts_on_some(len(seeds)) - len(seeds))
    return [int(seed) for seed in (*seeds, *others)]


class Step(NamedTuple):
    """What a block of rows gives to an iteration."""

    labels: IntArray
    sums: FloatArray
    """Of the rows of each cluster, less the middle, times their weights: in float64."""
    masses: FloatArray


class Spread(NamedTuple):
    """Mass, sum and squares of rows, by columns, about the middle."""

    mass: float
    sums: FloatArray
    squares: FloatArray


class Far(NamedTuple):
    """Rows far from their centers, the farthest first."""

    squares: FloatArray
    rows: FloatArray
    masses: FloatArray
    labels: IntArray


def step(
    Y: FloatArray, weights: FloatArray | None, *, centers: FloatArray, middle: FloatArray
) -> Step:
    """Assign a block of rows to centers, which are given from the middle on, and sum it up.

    What the block adds to the objective follows from these sums and the squares of ``spread``.
    """
    rows = Y - middle  # distances by products are exact where rows are not far from zero
    labels = _nearest(rows, centers)
    # NOTE: a sparse product sums in the order of the rows, in float64; a dense one with memberships
    # takes longer where there are many clusters (python -m benchmarks.many_rows --step).
    mass = masses(weights, len(rows))
    columns = np.arange(len(rows) + 1, dtype=np.int32)
    member = sparse.csc_array((mass, labels, columns), shape=(len(centers), len(rows)))
    return Step(labels, member @ rows, member.sum(axis=1))


def _nearest(rows: FloatArray, centers: FloatArray) -> IntArray:
    distances = rows @ (-2 * centers.T)
    distances += np.vecdot(centers, centers)
    return distances.argmin(axis=1).astype(np.int32)


def spread(Y: FloatArray, weights: FloatArray | None, *, middle: FloatArray) -> Spread:
    """Return the mass of a block of rows, and their sum and squares about the middle."""
    rows = (Y - middle).astype(np.float64, copy=False)
    mass = masses(weights, len(rows))
    return Spread(float(mass.sum()), mass @ rows, mass @ np.square(rows))


def farthest(
    Y: FloatArray,
    weights: FloatArray | None,
    *,
    centers: FloatArray,
    middle: FloatArray,
    count: int,
) -> Far:
    """Return the rows of a block that are farthest from their centers, of positive weight."""
    rows = Y - middle
    labels = _nearest(rows, centers)
    away = rows.astype(np.float64, copy=False) - centers[labels]
    squares = np.vecdot(away, away)
    mass = masses(weights, len(rows))
    squares[mass == 0] = 0
    few = np.argsort(-squares, kind="stable")[:count]
    few = few[squares[few] > 0]
    return Far(squares[few], rows[few].astype(np.float64), mass[few], labels[few])


class Blocks(Protocol):
    """Whatever maps a function over blocks of rows and their weights."""

    def map(self, work: Callable[[FloatArray, FloatArray | None], Found]) -> list[Found]:
        """Return what the work gives for each block, in their order."""


@dataclass(frozen=True)
class RowBlocks:
    """Blocks of an array, mapped by a crew."""

    Y: FloatArray
    weights: FloatArray | None
    cuts: list[slice]
    crew: Crew

    def map(self, work: Callable[[FloatArray, FloatArray | None], Found]) -> list[Found]:
        """Return what the work gives for each block, in their order."""
        found: dict[int, Found] = {}

        def one(index: int) -> None:
            rows = self.cuts[index]
            weights = None if self.weights is None else self.weights[rows]
            found[index] = work(self.Y[rows], weights)

        self.crew.each(one, range(len(self.cuts)))
        return [found[index] for index in range(len(self.cuts))]


@dataclass(frozen=True)
class PlacedBlocks:
    """Blocks of rows that are elsewhere."""

    Y: Rows
    weights: FloatArray | None
    size: int

    def map(self, work: Callable[[FloatArray, FloatArray | None], Found]) -> list[Found]:
        """Return what the work gives for each block, in their order."""
        given = () if self.weights is None else (self.weights,)
        return self.Y.map(_Optional(work), *given, size=self.size, name="k-means")


@dataclass(frozen=True)
class _Optional:
    """Work that may be given weights, or none."""

    work: Callable[[FloatArray, FloatArray | None], object]

    def __call__(self, rows: FloatArray, weights: FloatArray | None = None) -> object:
        return self.work(rows, weights)


@dataclass(frozen=True)
class Lloyd:
    """Lloyd's iterations over blocks of rows, which stop as scikit-learn's do.

    They end where no label changes, or where the centers move by less than ``tol`` times the mean
    variance of the columns, squared; labels are then those of the last centers. An empty cluster
    takes the row that is farthest from its center.
    """

    blocks: Blocks
    middle: FloatArray
    max_iter: int
    tol: float
    checkpoint: Checkpoint = NOTHING

    def finish(self, starts: Sequence[FloatArray]) -> tuple[State, int]:
        """Try each start for some iterations, and the best to its end; return it, and its index."""
        total = self._spread()
        best, chosen = State(self.middle), 0
        for index, centers in enumerate(starts):
            tried = self._run(State(centers - self.middle), min(TRIED, self.max_iter), total)
            if index == 0 or tried.inertia < best.inertia:
                best, chosen = tried, index
        del tried
        end = self._run(best, self.max_iter, total)
        if not end.settled:
            end = replace(end, labels=())  # room for others
            labels, sums, mass = self._step(end.centers)
            end = replace(end, labels=labels, inertia=_inertia(end.centers, sums, mass, total))
        return end, chosen

    def _spread(self) -> Spread:
        parts = self.blocks.map(partial(spread, middle=self.middle))
        return Spread(
            sum(part.mass for part in parts),
            _in_order([part.sums for part in parts]),
            _in_order([part.squares for part in parts]),
        )

    def _run(self, state: State, max_iter: int, total: Spread) -> State:
        variance = total.squares / total.mass - np.square(total.sums / total.mass)
        still = self.tol * float(np.maximum(variance, 0).mean())
        with self.checkpoint.stage("k-means-all", max_iter) as stage:
            if stage.state is not None:
                state = State.restored(stage.state)
            state = self._iterated(state, max_iter, total, still, stage)
            if state.labels:
                stage.finish(state.saved)
        return state

    def _iterated(
        self, state: State, max_iter: int, total: Spread, still: float, stage: Stage
    ) -> State:
        while state.n_iter < max_iter and not (state.settled or state.still):
            labels, sums, mass = self._step(state.centers)
            centers = self._moved(state.centers, sums, mass)
            same = len(state.labels) > 0 and all(map(np.array_equal, state.labels, labels))
            shift = np.square(centers - state.centers, dtype=np.float64).sum()
            state = State(
                centers,
                labels,
                state.n_iter + 1,
                _inertia(centers, sums, mass, total),
                # The center of an empty cluster may move without a label that changes.
                settled=same and bool(mass.all()),
                still=bool(shift <= still),
            )
            stage.offer(state.saved)
        return state

    def _step(self, centers: FloatArray) -> tuple[list[IntArray], FloatArray, FloatArray]:
        parts = self.blocks.map(partial(step, centers=centers, middle=self.middle))
        sums = _in_order([part.sums for part in parts])
        return [part.labels for part in parts], sums, _in_order([part.masses for part in parts])

    def _moved(self, centers: FloatArray, sums: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the means of the clusters; one that nothing can fill stays where it is."""
        if not mass.all():
            sums, mass = self._filled(centers, sums.copy(), mass.copy())
        moved = centers.copy()
        full = mass > 0
        moved[full] = sums[full] / mass[full, None]
        return moved

    def _filled(
        self, centers: FloatArray, sums: FloatArray, mass: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Give to each empty cluster the farthest row, of a cluster that keeps others."""
        empty = list(np.flatnonzero(mass == 0))
        count = len(centers) + len(empty)  # a cluster may have one row, and keeps it
        parts = self.blocks.map(partial(farthest, centers=centers, middle=self.middle, count=count))
        far = Far(*(np.concatenate(one) for one in zip(*parts, strict=True)))
        for row in np.argsort(-far.squares, kind="stable"):
            giver, weight = far.labels[row], far.masses[row]
            if not empty:
                break
            if mass[giver] - weight > 0:
                taker = empty.pop(0)
                sums[taker], mass[taker] = weight * far.rows[row], weight
                sums[giver] -= sums[taker]
                mass[giver] -= weight
        return sums, mass


def _inertia(centers: FloatArray, sums: FloatArray, mass: FloatArray, total: Spread) -> float:
    """Return the objective of labels, from the sums of their clusters."""
    within = np.vecdot(centers, mass[:, None] * centers - 2 * sums).sum()
    return max(0.0, float(total.squares.sum() + within))


def _in_order(parts: Sequence[FloatArray]) -> FloatArray:
    total = np.zeros(parts[0].shape)
    for part in parts:
        total += part
    return total
