"""The sampling theorem: a bound that almost surely holds, from blocks that are drawn.

Draw blocks independently, so that every sample is in a block with probability exactly b/n, and let
X_t = (n/b)·max(LB_t, 0). The expectation of X_t is at most L(C*): restrict the best centroids to
the block. So the product of X_t/L(C*) has an expectation of at most one, and by the inequality of
Markov, for all T at once by that of Ville, L(C*) ≥ δ^{1/T}·(Π X_t)^{1/T} except with probability δ.
"""

from __future__ import annotations

import math
import time

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.blockwise import Blockwise, Bound
from sketchmeans.certificate.proving import LEVELS, Proof, prove
from sketchmeans.engine import Crew

MOST_DRAWN = 4000
"""Blocks that are drawn, at most: then δ = 10⁻⁶ costs 0.3 %."""


def drawn_block(n: int, size: int, seed: int, index: int) -> IntArray:
    """Draw samples without replacement, each with probability size/n: any block by itself."""
    random = np.random.default_rng([seed, n, index])
    return np.sort(random.choice(n, size, replace=False))


def geometric_bound(bounds: FloatArray, share: float, failure_probability: float) -> float:
    """Return δ^{1/T}·(Π LB_t/share)^{1/T}: zero if one of them is not positive."""
    if not len(bounds) or not (bounds > 0).all():
        return 0.0
    logs = math.fsum(np.log(bounds / share)) + math.log(failure_probability)
    return math.exp(logs / len(bounds))


def drawn_bound(
    ask: Blockwise, size: int, seconds: float, failure_probability: float, *, most: int = MOST_DRAWN
) -> Bound:
    """Draw blocks while time allows, and bound the objective by their geometric mean.

    Whatever is known when the time is over counts, in the order in which blocks were drawn and up
    to the first that is missing: to stop there does not depend on a block's bound.
    """
    n, deadline = len(ask.labels), time.perf_counter() + seconds
    proofs: list[Proof | None] = [None] * most
    interrupted = False
    with Crew(ask.n_threads) as crew:

        def work(index: int) -> None:
            if time.perf_counter() > deadline:
                return
            part = ask.part(drawn_block(n, size, ask.seed, index))
            proofs[index] = prove(part.block(), part.labels, ask.effort)

        def progress(done: int) -> None:
            if ask.report is not None:
                known = _first(proofs)
                ask.report(done, most, _mean(known, size / n, failure_probability))

        try:
            crew.each(work, range(most), progress)
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


def _first(proofs: list[Proof | None]) -> list[Proof]:
    known = []
    for proof in proofs:
        if proof is None:
            break
        known.append(proof)
    return known


def _mean(known: list[Proof], share: float, failure_probability: float) -> float:
    return geometric_bound(np.array([p.bound for p in known]), share, failure_probability)
