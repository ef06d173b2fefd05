"""Every method by its name, behind one request and one result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from sketchmeans.lowrank.cholesky import BATCH, greedy_cholesky, rp_cholesky
from sketchmeans.lowrank.costs import (
    Expected,
    cholesky_costs,
    exact_costs,
    nystrom_costs,
    one_pass_costs,
)
from sketchmeans.lowrank.exact import exact
from sketchmeans.lowrank.needs import (
    cholesky_needs,
    exact_needs,
    nystrom_needs,
    one_pass_needs,
)
from sketchmeans.lowrank.nystrom import SAMPLINGS, nystrom
from sketchmeans.lowrank.one_pass import one_pass
from sketchmeans.lowrank.request import Needs, Request
from sketchmeans.lowrank.residual import examine_residual
from sketchmeans.lowrank.result import LowRank, warn_indefinite
from sketchmeans.operators import KernelOperator
from sketchmeans.sketches import SKETCHES, make_sketch


@dataclass(frozen=True)
class Method:
    """A way to approximate K.

    Parameters
    ----------
    approximate : callable
        Turns an operator and a request into a ``LowRank``.
    needs : callable
        Reckons the bytes that that would allocate.
    costs : callable
        Reckons what that would spend on the kernel.
    sketches : tuple of str
        What ``sketch`` may be beside "auto".
    reads : tuple of str
        The options of the estimators that the method reads.
    landmarks : bool
        Whether it meets only columns of K.
    stops_at_tolerance : bool
        Whether it finds by itself how many columns a share of the trace needs.
    """

    approximate: Callable[[KernelOperator, Request], LowRank]
    needs: Callable[[KernelOperator, Request], Needs]
    costs: Callable[[KernelOperator, Request], Expected]
    sketches: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    landmarks: bool = True
    stops_at_tolerance: bool = False


def _one_pass(operator: KernelOperator, ask: Request) -> LowRank:
    name = "hadamard" if ask.sketch == "auto" else ask.sketch
    return one_pass(
        operator,
        make_sketch(name, operator.shape[0], ask.width, ask.seed),
        rank=ask.rank,
        truncation=ask.truncation,
        n_passes=ask.n_passes,
        run=ask.run,
    )


def _nystrom(operator: KernelOperator, ask: Request) -> LowRank:
    return nystrom(
        operator,
        columns=ask.width,
        rank=ask.rank,
        seed=ask.seed,
        sampling=ask.sketch,
        truncation=ask.truncation,
        tolerance=ask.tolerance,
        run=ask.run,
    )


def _greedy(operator: KernelOperator, ask: Request) -> LowRank:
    return greedy_cholesky(
        operator,
        columns=ask.width,
        rank=ask.rank,
        tolerance=ask.tolerance,
        run=ask.run,
    )


def _rp(operator: KernelOperator, ask: Request) -> LowRank:
    return rp_cholesky(
        operator,
        columns=ask.width,
        rank=ask.rank,
        seed=ask.seed,
        tolerance=ask.tolerance,
        run=ask.run,
    )


def _exact(operator: KernelOperator, ask: Request) -> LowRank:
    silent = replace(ask.run, progress=None)  # nobody knows how many passes there will be
    return exact(operator, rank=ask.rank, seed=ask.seed, run=silent)


METHODS: dict[str, Method] = {
    "one-pass": Method(
        _one_pass,
        one_pass_needs,
        one_pass_costs,
        sketches=tuple(SKETCHES),
        reads=("oversampling", "sketch", "truncation", "n_passes", "precision"),
        landmarks=False,
    ),
    "nystrom": Method(
        _nystrom,
        nystrom_needs,
        nystrom_costs,
        sketches=SAMPLINGS,
        reads=("n_landmarks", "sketch", "truncation", "precision"),
    ),
    "rpcholesky": Method(
        _rp,
        partial(cholesky_needs, batch=BATCH),
        partial(cholesky_costs, batch=BATCH),
        reads=("n_landmarks", "precision"),
        stops_at_tolerance=True,
    ),
    "greedy-cholesky": Method(
        _greedy,
        partial(cholesky_needs, batch=1),
        partial(cholesky_costs, batch=1),
        reads=("n_landmarks", "precision"),
        stops_at_tolerance=True,
    ),
    "exact": Method(_exact, exact_needs, exact_costs, reads=("precision",), landmarks=False),
}


def approximate(operator: KernelOperator, method: str, ask: Request) -> LowRank:
    """Approximate K by the method of this name; examine what it leaves of a kernel of others."""
    found = METHODS[method].approximate(operator, ask)
    examined = examine_residual(operator, found, ask.seed)
    if examined.negative_mass > found.negative_mass:  # else the method has warned already
        warn_indefinite(examined.negative_mass, "as far as the method met it")
    return examined
