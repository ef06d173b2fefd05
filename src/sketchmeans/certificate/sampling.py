"""The sampling theorem: a bound that almost surely holds, from blocks that are drawn.

Draw blocks independently, so that every sample is in a block with probability exactly b/n, and let
X_t = (n/b)·max(LB_t, 0). The expectation of X_t is at most L(C*): restrict the best centroids to
the block. So the product of X_t/L(C*) has an expectation of at most one, and by the inequality of
Markov, for all T at once by that of Ville, L(C*) ≥ δ^{1/T}·(Π X_t)^{1/T} except with probability δ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.blockwise import (
    BLOCK_GAIN,
    BLOCK_SECONDS,
    Blockwise,
    Bound,
    part_bound,
    parts_elsewhere,
)
from sketchmeans.certificate.proving import LEVELS, Proof
from sketchmeans.engine import Crew
from sketchmeans.rows import Rows

DRAWN_SIZE = 650
"""Samples of a block that is drawn: fewer lose more by centroids of their own, more leave time for
fewer blocks, and δ^{1/T} costs more (1.6 % + 2.9 % at 1,000 samples, 2.5 % + 1.2 % at 650: a
million samples in three minutes on two cores)."""
MOST_DRAWN = 4000
"""Blocks that are drawn, at most: then δ = 10⁻⁶ costs 0.3 %."""


def drawn_block(n: int, size: int, seed: int, index: int) -> IntArray:
    """Draw samples without replacement, each with probability size/n: any block by itself."""
    random = np.random.default_rng([seed, n, index])
    return np.sort(random.choice(n, size, replace=False))


def geometric_bound(bounds: FloatArray, share: float, failure_probability: float) -> float:
    """Return the largest δ^{1/T}·(Π LB_t/share)^{1/T} over all T, the first so many of them.

    It holds for all T at once: blocks at the end for which there was hardly time take nothing away.
    """
    positive = len(bounds) if (bounds > 0).all() else int((bounds <= 0).argmax())
    if not positive:
        return 0.0
    logs = np.cumsum(np.log(bounds[:positive] / share)) + math.log(failure_probability)
    return math.exp(float((logs / np.arange(1, positive + 1)).max()))


def drawn_bound(
    ask: Blockwise, size: int, seconds: float, failure_probability: float, *, most: int = MOST_DRAWN
) -> Bound:
    """Draw blocks while time allows, and bound the objective by their geometric mean.

    Whatever is known when the time is over counts, in the order in which blocks were drawn and up
    to the first that is missing; where to stop may depend on the bounds.
    """
    ask = replace(ask, effort=replace(ask.effort, least_gain=BLOCK_GAIN))
    n, interrupted = len(ask.labels), False
    proofs: list[Proof | None] = [None] * most
    draw = _draw_elsewhere if isinstance(ask.operator.data, Rows) else _draw_here

    def progress(done: int) -> None:
        if ask.report is not None:
            ask.report(done, most, _mean(_first(proofs), size / n, failure_probability))

    try:
        draw(ask, size, seconds, proofs, progress)
    except KeyboardInterrupt:
        interrupted = True
    known = _first(proofs)
    level = max((proof.level for proof in known), key=LEVELS.index, default="blocks")
    return Bound(
        _mean(known, size / n, failure_probability),
        level,
        len(known),
        size,
        interrupted,
        failure_probability,
    )


def _draw_here(
    ask: Blockwise,
    size: int,
    seconds: float,
    proofs: list[Proof | None],
    progress: Callable[[int], None],
) -> None:
    """Draw and bound blocks on threads."""
    n, deadline = len(ask.labels), time.perf_counter() + seconds
    with Crew(ask.n_threads) as crew:

        def work(index: int) -> None:
            began = time.perf_counter()
            if began <= deadline:
                part = ask.part(drawn_block(n, size, ask.seed, index))
                effort = replace(ask.effort, seconds=deadline - began)
                proofs[index] = part_bound(
                    part, effort, keep_fractional=False, stopped=lambda: crew.stopped
                )

        crew.each(work, range(len(proofs)), progress)


def _draw_elsewhere(
    ask: Blockwise,
    size: int,
    seconds: float,
    proofs: list[Proof | None],
    progress: Callable[[int], None],
) -> None:
    """Draw blocks here and bound them where their rows are."""
    # Twice as many as there may be time for: none is left over that would have had some.
    count = min(len(proofs), int(2 * seconds * ask.n_threads / BLOCK_SECONDS) + ask.n_threads)
    blocks = [drawn_block(len(ask.labels), size, ask.seed, index) for index in range(count)]
    effort = replace(ask.effort, seconds=seconds)
    work = partial(part_bound, effort=effort, keep_fractional=False)
    parts = parts_elsewhere(ask.operator, blocks, ask.labels, ask.rounding, work, seconds)
    for done, (index, proof) in enumerate(parts, start=1):
        proofs[index] = proof
        progress(done)


def _first(proofs: list[Proof | None]) -> list[Proof]:
    known = []
    for proof in proofs:
        if proof is None:
            break
        known.append(proof)
    return known


def _mean(known: list[Proof], share: float, failure_probability: float) -> float:
    return geometric_bound(np.array([p.bound for p in known]), share, failure_probability)
