"""Choosing the kernel, its width and the number of clusters.

All together where nothing is said of the kernel (``together``); with the neighbours kernel the
number by what is cut (``by_cut``); with others number, rank and width from one sketch each, here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sketchmeans._arrays import FloatArray
from sketchmeans.advice.by_cut import choose_by_cut
from sketchmeans.advice.evidence import (
    CLEAR_GAP,
    STABLE,
    WEAK,
    Choice,
    check_halves,
    python_line,
    stability,
)
from sketchmeans.advice.few import CHOSEN, few_of
from sketchmeans.advice.together import choose_together
from sketchmeans.certificate.moments import moments
from sketchmeans.checks import check_count
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.parts import check_options
from sketchmeans.estimators.sizing import auto_rank
from sketchmeans.estimators.sketched import embed
from sketchmeans.lowrank import ColumnStream, LowRank
from sketchmeans.text import Table, called, setting

CAPTION = (
    "stability: ARI of two halves. eigengap: how many times smaller the next eigenvalue is. "
    "dominant terms: directions of the kernel that make up the mean likeness of all rows."
)
TRACE = 0.9
"""Share of the trace that the rank should hold."""
RUNNING = {"n_init", "max_iter", "tol", "n_refine", "n_jobs", "memory_limit", "verbose"}
"""Options that every kernel reads. Others belong to some kernels, and ask for the one of a fit."""


def entropy_terms(low_rank: LowRank) -> FloatArray:
    """λᵢ(uᵢᵀ1/n)² for each column, falling: Girolami's terms, large for as many as clusters."""
    n = len(low_rank.factor)
    return np.sort(np.square(low_rank.factor.sum(axis=0) / n))[::-1]


def dominant_terms(terms: FloatArray, most: int) -> int:
    """Return how many of Girolami's terms dominate: those before the largest relative fall."""
    terms = terms[: most + 1]
    if len(terms) < 2 or terms[0] <= 0:
        return 1
    ratios = terms[:-1] / np.maximum(terms[1:], 1e-12 * terms[0])
    return int(np.argmax(ratios)) + 1


def eigengaps(low_rank: LowRank) -> FloatArray:
    """θ_{K−1}/θ_K of the centred spectrum for K = 2, 3, …: K clusters have K − 1 directions."""
    theta = moments(low_rank).theta
    floor = 1e-9 * max(float(theta[0]), 1e-300) if len(theta) else 1.0
    return theta[:-1] / np.maximum(theta[1:], floor)


def choose(
    X: Any,
    *,
    n_clusters: Iterable[int] = range(2, 11),
    gammas: Iterable[Any] | None = None,
    trace: float | None = None,
    n_splits: int = 6,
    random_state: Any = None,
    **options: Any,
) -> Choice:
    """Recommend a kernel, its width and a number of clusters, with reasons and what to run.

    Left to itself it tries the neighbours kernel and four widths of rbf, and judges all of them in
    the data: by the normalized cut of the graph of nearest rows, agreement of neighbours and of
    halves of the rows, and borders among the nearest rows (``advice.together``). Of more than 3,000
    rows so many are drawn by the seed. The number is called weak unless all ways to look at borders
    agree on it, or most of them and the cut.

    With a kernel, or widths of rbf, only those are tried, on 10,000 rows at the most:

    - kernel="neighbors": the number that borders among the nearest rows separate, where all ways to
      look at them agree; else the one behind which the normalized cut jumps.
    - Other kernels, one sketch per width: the number of clusters on which K-means on two halves of
      the data agrees best; weak unless the eigengap of the centred kernel is clear and agrees. The
      width whose best number is most stable; ties go to the least local. The rank is the least that
      holds the share ``trace`` of the kernel's trace, as far as the sketch tells, and never below
      n_clusters + 10.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    n_clusters : iterable of int
        Numbers to try.
    gammas : iterable, optional
        Widths to try, as ``KernelKMeans`` takes them, of kernel="rbf" if no other is given.
    trace : float, optional
        Share of the trace that the rank should hold, 0.9 if left out; not with neighbours.
    n_splits : int
        Splits of the data into halves, for stability.
    random_state : int, RandomState or None
    **options
        Passed on to ``KernelKMeans``: kernel, n_passes, n_jobs, … Options that not every kernel
        reads ask for one kernel: that of a fit, if none is named.
    """
    tried = _numbers(n_clusters)
    check_count("n_splits", n_splits)
    if gammas is not None:
        options = {"kernel": "rbf"} | options  # whatever the default is: widths are asked for
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    known = options | {"random_state": random_state}
    asked = {"n_splits": n_splits, "seed": seed}
    if not ({*options} - RUNNING or trace is not None or isinstance(X, ColumnStream)):
        choice = choose_together(X, tried, options, **asked)
    else:
        choice = _choose_for_one(X, tried, options, gammas, trace, **asked)
    return choice.running(python_line(choice, known))


def _choose_for_one(
    X: Any,
    tried: list[int],
    options: dict[str, Any],
    gammas: Iterable[Any] | None,
    trace: float | None,
    *,
    n_splits: int,
    seed: int,
) -> Choice:
    """Recommend for one kernel; of very many rows some are looked at, and the caption says so."""
    kernel = KernelKMeans(**options).kernel
    X, _, said = few_of(X, CHOSEN, kernel, seed)
    asked = {"n_splits": n_splits, "seed": seed}
    if isinstance(kernel, str) and kernel == "neighbors":
        _refuse_widths(gammas, trace)
        choice = choose_by_cut(X, tried, options, **asked)
    else:
        share = TRACE if trace is None else trace
        choice = _choose_by_sketch(X, tried, _given(options, gammas), trace=share, **asked)
    if not said:
        return choice
    return replace(choice, table=replace(choice.table, caption=f"{choice.table.caption} {said}."))


def _given(options: dict[str, Any], gammas: Iterable[Any] | None) -> list[dict[str, Any]]:
    """Return the options of the fits that are tried, one for each width."""
    return [options] if gammas is None else [{**options, "gamma": one} for one in _widths(gammas)]


def _choose_by_sketch(
    X: Any,
    tried: list[int],
    given: list[dict[str, Any]],
    *,
    trace: float,
    n_splits: int,
    seed: int,
) -> Choice:
    """Recommend a number of clusters, a rank and a width, from one sketch for each width."""
    for options in given:
        check_options(KernelKMeans(tried[-1], **options))
    if not isinstance(X, ColumnStream):
        check_halves(X.shape[0] if hasattr(X, "shape") else len(X), tried[-1])
    best: _Candidate | None = None
    rows: list[dict[str, Any]] = []
    for options in given:
        candidate = _examine(X, tried, options, n_splits, seed)
        rows += candidate.rows
        if best is None or candidate.score > best.score + 0.01:
            best = candidate
    assert best is not None
    return _choice(best, tried, trace, Table(tuple(rows), CAPTION))


def _numbers(n_clusters: Iterable[int]) -> list[int]:
    """Return the numbers of clusters to try, rising."""
    tried = sorted({int(k) for k in n_clusters})
    if not tried or tried[0] < 2:
        raise ValueError(f"n_clusters={tried} must hold numbers from 2 up.")
    return tried


def _widths(gammas: Iterable[Any]) -> list[Any]:
    """Return the widths to try; one alone need not be in a list."""
    widths = [gammas] if isinstance(gammas, str) else list(gammas)
    if not widths:
        raise ValueError(
            f'{called("gammas")} is empty. Give widths such as "median", or leave it out.'
        )
    return widths


def _refuse_widths(gammas: Any, trace: float | None) -> None:
    """Refuse what the neighbours kernel does not read."""
    for name, value in (("gammas", gammas), ("trace", trace)):
        if value is not None:
            raise ValueError(
                f"{called(name)} is not read with {setting('kernel', 'neighbors')}, which has no "
                f"width and a rank of n_clusters: add {setting('kernel', 'rbf')}, or leave "
                f"{called(name)} out."
            )


@dataclass(frozen=True)
class _Candidate:
    """What speaks for each number of clusters at one width of the kernel."""

    score: float
    """The best stability."""
    n_clusters: int
    embedded: Embedded
    kernel: Any
    width: Any
    """γ as it was given; None where the kernel has none."""
    gaps: FloatArray
    terms: int
    rows: list[dict[str, Any]]


def _examine(
    X: Any, tried: list[int], options: dict[str, Any], n_splits: int, seed: int
) -> _Candidate:
    """Sketch the kernel once, and look at every number of clusters."""
    model = KernelKMeans(tried[-1], random_state=seed, **options)
    check_options(model)
    embedded = embed(model.set_params(n_init=1, n_refine=0), X)  # nothing is clustered yet
    width = None if embedded.gamma is None else model.gamma
    gaps = eigengaps(embedded.low_rank)
    terms = dominant_terms(entropy_terms(embedded.low_rank), tried[-1])
    random = np.random.default_rng(seed)
    scores = [stability(embedded.embedding, k, n_splits=n_splits, random=random) for k in tried]
    rows = [
        {
            "width": width,
            "gamma": embedded.gamma,
            "clusters": k,
            "stability": score,
            "eigengap": float(gaps[k - 2]) if k - 2 < len(gaps) else None,
            "dominant terms": terms,
        }
        for k, score in zip(tried, scores, strict=True)
    ]
    top = max(scores)
    # Of numbers that are equally stable, the largest tells the most.
    k = max(k for k, score in zip(tried, scores, strict=True) if score >= top - 0.01)
    return _Candidate(top, k, embedded, model.kernel, width, gaps, terms, rows)


def _choice(best: _Candidate, tried: list[int], trace: float, table: Table) -> Choice:
    """Word the recommendation, and say how strong it is."""
    k, gaps, low_rank = best.n_clusters, best.gaps, best.embedded.low_rank
    limit = min(len(gaps), tried[-1] - 1)
    by_gap = int(np.argmax(gaps[:limit])) + 2 if limit else 2
    ratio = float(gaps[by_gap - 2]) if limit else 1
    is_weak = not (limit and ratio >= CLEAR_GAP and by_gap == k and best.score >= STABLE)
    needed = low_rank.rank_for(trace)
    rank = max(needed or low_rank.rank, auto_rank(k, low_rank.factor.shape[1]))
    said = (
        f"Two halves of the data agree best on {k} clusters (ARI {best.score:.2f}). The "
        f"eigenvalues of the kernel fall most behind {by_gap} clusters ({ratio:.1f} times). The "
        "mean likeness of all rows is a sum over the directions of the kernel, as many of which "
        f"are large as there are clusters apart (Girolami's terms): {best.terms}."
    )
    if needed is None:
        said += f" The sketch holds {low_rank.share_held:.0%} of the trace, less than {trace:.0%}."
    if is_weak:
        said += WEAK
    choice = Choice(k, int(rank), best.embedded.gamma, is_weak, said, table)
    return replace(choice, kernel=best.kernel, width=best.width)
