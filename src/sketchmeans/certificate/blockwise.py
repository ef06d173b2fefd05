"""The block theorem at work: bounds of blocks, side by side, added up in order.

A block is bounded by ``part_bound``, a pure function of what a ``Part`` and an ``Effort`` say: it
can be run anywhere. Without a time limit the sum has the same bits for any number of threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.parts import Part, part_of, stratified
from sketchmeans.certificate.proving import LEVELS, Effort, Proof, prove
from sketchmeans.checkpoints import IDLE, NOTHING, Checkpoint, Stage
from sketchmeans.engine import Crew
from sketchmeans.operators import KernelOperator

ONE_BLOCK = 3000
"""Samples up to which there is one block if nothing else is asked for."""
BLOCK_SIZE = 1000
"""Samples of a block beyond that: 0.6 to 0.8 s each, and losses of about K/b."""
SMALLEST, LARGEST = 100, 2400
"""Between these, a time limit chooses the size of blocks, if there are several."""
BLOCK_SECONDS = 0.9
"""Seconds in which a core lifts a block of a thousand samples; it grows as b^2.4."""
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

    def part(self, indices: IntArray) -> Part:
        """Return a block."""
        return part_of(self.operator, indices, self.labels, self.rounding)


def part_bound(part: Part, effort: Effort) -> Proof:
    """Bound a block by itself: a pure function, for whoever has its rows."""
    return prove(part.block(), part.labels, effort)


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


def sum_of_blocks(ask: Blockwise, blocks: list[IntArray], deadline: float | None = None) -> Bound:
    """Bound all blocks and add up; those that the deadline leaves no time for count nothing."""
    proofs: list[Proof | None] = [None] * len(blocks)
    alone, interrupted = len(blocks) == 1, False
    size = max(len(block) for block in blocks)
    threads = ask.n_threads if alone else min(ask.n_threads, len(blocks))
    kept: list[tuple[IntArray, FloatArray] | None] = [None] * len(blocks)

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
                rows = proof.fractional
                proofs[index] = replace(proof, fractional=None)
                if ask.keep_fractional and rows is not None:
                    kept[index] = indices, rows
                if alone and ask.report is not None:
                    ask.report(0, 1, proof.bound)

            indices = blocks[index]
            part = ask.part(indices)
            more = {"each": crew.each} if alone else {"stopped": lambda: crew.stopped}
            prove(part.block(), part.labels, effort, tell=tell, stage=stage, **more)

        def progress(done: int) -> None:
            if ask.report is not None:
                ask.report(done, len(blocks), math.fsum(p.bound for p in proofs if p))

        try:
            if alone:
                with ask.checkpoint.stage("block", size, ask.seed) as stage:
                    work(0, stage)
                progress(1)
            else:
                with ask.checkpoint.stage("blocks", len(blocks), size, ask.seed) as stage:
                    if stage.state is not None:
                        proofs[: stage.state["done"]] = _restored(stage.state)
                    stage.each(
                        crew, work, len(blocks), lambda done: _saved(proofs[:done]), progress
                    )
        except KeyboardInterrupt:
            interrupted = True
    found = [proof for proof in proofs if proof is not None]
    least = -math.inf if alone and ask.operator.is_psd is not True else 0.0
    value = math.fsum(proof.bound for proof in found) if found else least
    level = max((proof.level for proof in found), key=LEVELS.index, default="blocks")
    fractional = tuple(each for each in kept if each is not None)
    return Bound(value, level, len(blocks), size, interrupted, fractional=fractional)


def _saved(proofs: list[Proof | None]) -> dict[str, Any]:
    """Return what is known of the first blocks; fractional clusterings of several serve nobody."""
    found = [proof for proof in proofs if proof is not None]
    return {
        "bounds": np.array([proof.bound for proof in found]),
        "levels": np.array([LEVELS.index(proof.level) for proof in found], np.int32),
        "steps": np.array([proof.steps for proof in found], np.int32),
    }


def _restored(state: dict[str, Any]) -> list[Proof | None]:
    """Return what was known of the first blocks."""
    known = zip(state["bounds"].tolist(), state["levels"], state["steps"].tolist(), strict=True)
    return [Proof(bound, LEVELS[level], steps) for bound, level, steps in known]


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
        return sum_of_blocks(ask, stratified(ask.labels, size, ask.seed))
    deadline = time.perf_counter() + seconds
    size = block_size or size_for(n, seconds, ask.n_threads)
    best: Bound | None = None
    while True:
        began = time.perf_counter()
        found = sum_of_blocks(ask, stratified(ask.labels, size, ask.seed), deadline)
        if best is None or found.value > best.value:
            best = replace(found, interrupted=False)
        spent, left = time.perf_counter() - began, deadline - time.perf_counter()
        if found.interrupted:
            return replace(best, interrupted=True)
        larger = min(2 * size, largest if n > ONE_BLOCK else n)
        if block_size or larger <= size or 5 * spent > left:
            return best
        size = larger
