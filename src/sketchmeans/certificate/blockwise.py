"""The block theorem at work: bounds of blocks, side by side, added up in order.

A block is bounded by ``part_bound``, a pure function of what a ``Part`` and an ``Effort`` say: it
can be run anywhere. Threads do it where the rows are here; where they are elsewhere (``Rows``) each
block is a task there, and its rows go to the task. Without a time limit the sum has the same bits
whoever does it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.alike import blocks_alike
from sketchmeans.certificate.parts import Part, Recipe, members_of, part_of, recipe_of
from sketchmeans.certificate.proving import LEVELS, Effort, Proof, prove
from sketchmeans.checkpoints import IDLE, NOTHING, Checkpoint, Stage
from sketchmeans.engine import Crew
from sketchmeans.operators import KernelOperator
from sketchmeans.rows import Rows

ONE_BLOCK = 3000
"""Samples up to which there is one block if nothing else is asked for."""
BLOCK_SIZE = 1000
"""Samples of a block beyond that: 0.6 to 0.8 s each, and losses of about K/b."""
SMALLEST, LARGEST = 100, 2400
"""Between these, a time limit chooses the size of blocks, if there are several."""
BLOCK_SECONDS = 0.9
"""Seconds in which a core lifts a block of a thousand samples; it grows as b^2.4."""
BLOCK_GAIN = 1e-4
"""What a round must gain, of the objective, where there are several blocks: each loses about K/b by
centroids of its own, which no step brings back. Blocks of 350 to 1,000 samples of cores and shells
(rbf, c = 4) end after 90 steps with it, within 0.01 % of what 420 steps reach."""
SHARE = 0.85
"""Of a time limit, what a plan may take: blocks end a little late."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on the objective of all clusterings."""

    value: float
    level: str
    n_blocks: int
    block_size: int
    """The largest."""
    interrupted: bool = False
    """Whether Ctrl-C ended it; what had been found until then is valid."""
    failure_probability: float | None = None
    """Of a bound from blocks that were drawn; None for one that always holds."""
    fractional: tuple[tuple[IntArray, FloatArray], ...] = ()
    """Samples of blocks with their rows of the fractional clusterings, where it was asked for."""


@dataclass(frozen=True)
class Blockwise:
    """What is to be bounded, and how."""

    operator: KernelOperator
    labels: IntArray
    effort: Effort
    rounding: float
    seed: int = 0
    n_threads: int = 1
    keep_fractional: bool = False
    report: Callable[[int, int, float], None] | None = None
    """Called with blocks done, blocks in all, and the bound so far."""
    checkpoint: Checkpoint = NOTHING

    def blocks(self, size: int) -> list[IntArray]:
        """Cut the samples that have weight into blocks of at most this size."""
        found = blocks_alike(self.operator, self.labels, size, self.seed, self.n_threads)
        weights = self.operator.weights
        if weights is None or weights.all():
            return found
        found = [block[weights[block] > 0] for block in found]
        return [block for block in found if len(block)]

    def part(self, indices: IntArray) -> Part:
        """Return a block."""
        return part_of(self.operator, indices, self.labels, self.rounding)


def part_bound(part: Part, effort: Effort, *, keep_fractional: bool = True, **more: Any) -> Proof:
    """Bound a block by itself: a pure function, for whoever has its rows.

    To make the block is part of its time; ``more`` goes to ``prove``.
    """
    began = time.perf_counter()
    block = part.block()
    if effort.seconds is not None:
        effort = replace(effort, seconds=effort.seconds - (time.perf_counter() - began))
    proof = prove(block, part.labels, effort, **more)
    return proof if keep_fractional else replace(proof, fractional=None)


def block_bytes(size: int, level: str) -> int:
    """Return what a block takes while it is bounded."""
    cuts = 120_000 * size if level == "triangles" else 0
    return 64 * size**2 + cuts


def size_for(n: int, seconds: float, n_threads: int) -> int:
    """Return the size of blocks with which all can be lifted in this time."""
    per_sample = SHARE * seconds * n_threads / n
    size = 1000 * (1000 * per_sample / BLOCK_SECONDS) ** (1 / 1.4)
    if n <= min(size, ONE_BLOCK):
        return n
    return int(min(max(size, SMALLEST), LARGEST, n))


@dataclass(frozen=True)
class PartTask:
    """What is done with a block where its rows are."""

    recipe: Recipe
    work: Callable[[Part], Any]

    def __call__(self, rows: Any, labels: IntArray, weights: FloatArray | None) -> Any:
        """Make the block of rows that are here now, and do it."""
        return self.work(self.recipe.part(rows, labels, weights))


def parts_elsewhere(
    operator: KernelOperator,
    blocks: list[IntArray],
    labels: IntArray,
    rounding: float,
    work: Callable[[Part], Any],
    seconds: float | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield what ``work`` makes of blocks whose rows are elsewhere, as they are done."""
    recipe, source = recipe_of(operator, rounding)
    members = [members_of(operator, block, labels) for block in blocks]
    full = [index for index, (indices, _, _) in enumerate(members) if len(indices)]
    found = source.of_groups(
        PartTask(recipe, work),
        [members[index][0] for index in full],
        [members[index][1:] for index in full],
        seconds=seconds,
        name="proof",
    )
    for place, value in found:
        yield full[place], value


def of_one_part(
    operator: KernelOperator, labels: IntArray, rounding: float, work: Callable[[Part], Any]
) -> Any:
    """Return what ``work`` makes of all samples as one block."""
    everything = np.arange(len(labels))
    if isinstance(operator.data, Rows):
        ((_, found),) = parts_elsewhere(operator, [everything], labels, rounding, work)
        return found
    return work(part_of(operator, everything, labels, rounding))


class _Found:
    """What is known of blocks while they are bounded."""

    def __init__(self, ask: Blockwise, blocks: list[IntArray]) -> None:
        self.ask, self.blocks = ask, blocks
        self.proofs: list[Proof | None] = [None] * len(blocks)
        self.fractional: list[tuple[IntArray, FloatArray] | None] = [None] * len(blocks)

    def note(self, index: int, proof: Proof) -> None:
        """Take note of what is known of a block."""
        self.proofs[index] = replace(proof, fractional=None)
        if self.ask.keep_fractional and proof.fractional is not None:
            self.fractional[index] = self.blocks[index], proof.fractional

    def tell(self, done: int) -> None:
        """Say how many blocks are done, and what all add up to."""
        if self.ask.report is not None:
            self.ask.report(done, len(self.blocks), math.fsum(p.bound for p in self.proofs if p))

    def state(self, done: int) -> dict[str, Any]:
        """Return what is known when so many blocks, the first ones, are done.

        Of their fractional clusterings the first alone serves anybody.
        """
        found = [proof for proof in self.proofs[:done] if proof is not None]
        state = {
            "bounds": np.array([proof.bound for proof in found]),
            "levels": np.array([LEVELS.index(proof.level) for proof in found], np.int32),
            "steps": np.array([proof.steps for proof in found], np.int32),
        }
        return state if self.fractional[0] is None else {**state, "rows": self.fractional[0][1]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what was known."""
        known = zip(state["bounds"].tolist(), state["levels"], state["steps"].tolist(), strict=True)
        proofs = [Proof(bound, LEVELS[level], steps) for bound, level, steps in known]
        self.proofs[: int(state["done"])] = proofs
        if "rows" in state:
            self.fractional[0] = self.blocks[0], state["rows"]

    def bound(self, *, interrupted: bool) -> Bound:
        """Return the sum; blocks of which nothing is known count nothing."""
        found = [proof for proof in self.proofs if proof is not None]
        alone = len(self.blocks) == 1
        least = -math.inf if alone and self.ask.operator.is_psd is not True else 0.0
        value = math.fsum(proof.bound for proof in found) if found else least
        level = max((proof.level for proof in found), key=LEVELS.index, default="blocks")
        size = max(len(block) for block in self.blocks)
        kept = tuple(each for each in self.fractional if each is not None)
        return Bound(value, level, len(self.blocks), size, interrupted, fractional=kept)


def sum_of_blocks(ask: Blockwise, blocks: list[IntArray], deadline: float | None = None) -> Bound:
    """Bound all blocks and add up; those that the deadline leaves no time for count nothing."""
    if len(blocks) > 1:
        ask = replace(ask, effort=replace(ask.effort, least_gain=BLOCK_GAIN))
    found, interrupted = _Found(ask, blocks), False
    run = _elsewhere if isinstance(ask.operator.data, Rows) else _here
    try:
        run(ask, found, deadline)
    except KeyboardInterrupt:
        interrupted = True
    return found.bound(interrupted=interrupted)


def _here(ask: Blockwise, found: _Found, deadline: float | None) -> None:
    """Bound blocks on threads; one block alone by all of them."""
    blocks = found.blocks
    alone = len(blocks) == 1
    threads = ask.n_threads if alone else min(ask.n_threads, len(blocks))
    with Crew(threads) as crew:

        def work(index: int, stage: Stage = IDLE) -> None:
            effort = ask.effort
            if deadline is not None:
                waiting = -(-(len(blocks) - index) // threads)
                left = deadline - time.perf_counter()
                if left <= 0:
                    return
                effort = replace(effort, seconds=left / waiting)

            def tell(proof: Proof) -> None:
                found.note(index, proof)
                if alone:
                    found.tell(0)

            more = {"each": crew.each} if alone else {"stopped": lambda: crew.stopped}
            part_bound(ask.part(blocks[index]), effort, tell=tell, stage=stage, **more)

        size = max(len(block) for block in blocks)
        if alone:
            with ask.checkpoint.stage("block", size, ask.seed) as stage:
                work(0, stage)
            found.tell(1)
        else:
            with ask.checkpoint.stage("blocks", len(blocks), size, ask.seed) as stage:
                if stage.state is not None:
                    found.restore(stage.state)
                stage.each(crew, work, len(blocks), found.state, found.tell)


def _elsewhere(ask: Blockwise, found: _Found, deadline: float | None) -> None:
    """Bound blocks where their rows are: a task each."""
    effort, left = ask.effort, None
    if deadline is not None:
        left = max(deadline - time.perf_counter(), 0.01)
        waves = -(-len(found.blocks) // ask.n_threads)
        effort = replace(effort, seconds=left / waves)
    work = partial(part_bound, effort=effort, keep_fractional=ask.keep_fractional)
    parts = parts_elsewhere(ask.operator, found.blocks, ask.labels, ask.rounding, work, left)
    for done, (index, proof) in enumerate(parts, start=1):
        found.note(index, proof)
        found.tell(done)


def lower_bound(
    ask: Blockwise,
    block_size: int | None,
    seconds: float | None,
    largest: int = LARGEST,
) -> Bound:
    """Return the best bound that blocks of this size give, or of sizes that grow while time allows.

    ``largest`` is the size that several blocks do not grow beyond.
    """
    n = len(ask.labels)
    if seconds is None:
        size = block_size or (n if n <= ONE_BLOCK else BLOCK_SIZE)
        return sum_of_blocks(ask, ask.blocks(size))
    deadline = time.perf_counter() + seconds
    size = block_size or size_for(n, seconds, ask.n_threads)
    best: Bound | None = None
    while True:
        began = time.perf_counter()
        try:
            blocks = ask.blocks(size)
        except KeyboardInterrupt:
            return replace(best or Bound(0.0, "blocks", 0, 0), interrupted=True)
        found = sum_of_blocks(ask, blocks, deadline)
        if best is None or found.value > best.value:
            best = replace(found, interrupted=False)
        spent, left = time.perf_counter() - began, deadline - time.perf_counter()
        if found.interrupted:
            return replace(best, interrupted=True)
        larger = min(2 * size, largest if n > ONE_BLOCK else n)
        if block_size or larger <= size or 5 * spent > left:
            return best
        size = larger
