"""Kernel, width and number of clusters together, by evidence in which no kernel has a part.

Every candidate clusters the same rows into every number of clusters. Objectives of kernels cannot
be compared, so that all are judged in the data: by the normalized cut of one graph, that of the
nearest rows; by how often neighbours are in one cluster; by how well halves of the rows agree; and
by borders among the nearest rows, which say how many clusters there are without any labels. The
rule was made on seeds 0 to 3 of the sets of ``python -m benchmarks.choosing``, and its table is
kept from others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans.advice.borders import MOST_LONE, Votes
from sketchmeans.advice.by_cut import FEWEST_ROWS, LEAST
from sketchmeans.advice.candidates import Candidate, candidates, check_candidates
from sketchmeans.advice.evidence import STABLE, WEAK, Choice, check_halves
from sketchmeans.advice.neighborhoods import Neighborhoods, share_cut
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import near_one, subsample
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.parts import check_rows
from sketchmeans.estimators.sizing import auto_rank
from sketchmeans.metrics import neighbor_agreement, usual_neighbors
from sketchmeans.text import Table, counted

ROWS = 3_000
"""Rows that are looked at, at most: of more, so many are drawn by the seed."""
MOST_GRAPHS, JUMP = 0.75, 1.5
"""Where so many of the graphs speak for a number, and one more cluster cuts at least so many times
as much, that number is firm although not all ways to look at borders agree. Where all agree, the
cut must jump by as much."""
HALF_OF_GRAPHS, LARGE_JUMP = 0.5, 10.0
"""The same where fewer graphs agree, and the cut jumps by more."""
AS_GOOD, ABOUT = 1.05, 0.002
"""Kernels whose cut is the least one within this factor and this much are as good as the best: then
the more stable one is taken, and of those that differ by less than ``NOTICED`` the first."""
NOTICED = 0.02

CAPTION = (
    "Each number with the clusters of the kernel that cuts least. cut: links between near rows "
    "that are cut, over what labels at random cut. jump: what one cluster more cuts, over this "
    "(less than 0.0001 counts as that). "
    "neighbours: how often near rows are in one cluster, beyond chance. halves: how well two "
    "halves of the rows agree (ARI). borders: votes for this number, where borders among the "
    "nearest rows are looked at in several ways."
)
KERNELS_CAPTION = "The kernels that were tried, with the recommended number of clusters."


@dataclass(frozen=True)
class _Seen:
    """What was seen of one number of clusters, with the kernel that cuts least."""

    n_clusters: int
    best: Candidate
    cut: float
    after: float
    """The least cut with one cluster more."""
    agreement: float
    stability: float

    @property
    def jump(self) -> float:
        """How many times more one cluster more cuts."""
        return max(self.after, LEAST) / max(self.cut, LEAST)

    def row(self, votes: Votes | None) -> dict[str, Any]:
        """Return the row of the table."""
        return {
            "clusters": self.n_clusters,
            "kernel": self.best.name,
            "cut": self.cut,
            "jump": self.jump,
            "neighbours": self.agreement,
            "halves": self.stability,
            "borders": None if votes is None else votes.counts[self.n_clusters],
        }


@dataclass(frozen=True)
class _Judged:
    """A kernel with the recommended number of clusters."""

    candidate: Candidate
    cut: float
    agreement: float
    stability: float

    @property
    def row(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            "kernel": self.candidate.name,
            "cut": self.cut,
            "neighbours": self.agreement,
            "halves": self.stability,
        }


class _Judge:
    """The rows, and what they say of labels."""

    def __init__(self, X: Any, n_splits: int, seed: int) -> None:
        self.X, self.n_splits, self.seed = X, n_splits, seed
        with OneBlasThread():
            self.near = Neighborhoods.of(near_one(X)[0])
        self.graph = next(self.near.graphs(np.arange(X.shape[0])))

    def cut(self, one: Candidate, k: int) -> float:
        """Return the share of links that labels cut, over that of labels at random."""
        return share_cut(self.graph, one.labels[k], k)

    def of(self, one: Candidate, k: int) -> _Judged:
        """Return all that the rows say of the clusters of a candidate."""
        count = usual_neighbors(self.X.shape[0])
        agreement = neighbor_agreement(self.X, one.labels[k], n_neighbors=count)
        halves = one.stability(k, n_splits=self.n_splits, seed=self.seed)
        return _Judged(one, self.cut(one, k), agreement, halves)


def choose_together(
    X: Any, tried: list[int], options: dict[str, Any], *, n_splits: int, seed: int
) -> Choice:
    """Recommend a kernel, its width and a number of clusters.

    Of more than ``ROWS`` rows so many are drawn. For every kernel one embedding, K-means for every
    number of clusters and the next; the nearest rows of all that are looked at; borders in 2,000 of
    them at most.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    tried : list of int
        Numbers of clusters, rising.
    options : dict
        Of ``KernelKMeans``, that all kernels read.
    n_splits : int
        Splits of the rows into halves.
    seed : int
    """
    check_candidates(options)
    X = check_rows(KernelKMeans(**options), X)
    n = X.shape[0]
    check_halves(n, tried[-1])
    rows = subsample(np.arange(n), ROWS, seed)
    X = X if len(rows) == n else X[rows]
    numbers = sorted({k for number in tried for k in (number, number + 1)})
    found, votes = candidates(X, numbers, options, seed)
    judge = _Judge(X, n_splits, seed)
    cuts = {k: [judge.cut(one, k) for one in found] for k in numbers}
    seen = []
    for k in tried:
        judged = judge.of(found[int(np.argmin(cuts[k]))], k)
        after = min(cuts[k + 1])
        seen.append(
            _Seen(k, judged.candidate, judged.cut, after, judged.agreement, judged.stability)
        )
    number, doubts = _number(seen, votes)
    kernels = [judge.of(one, number.n_clusters) for one in found]
    best = _best(kernels)
    if not _unanimous(number, votes) and best.stability < STABLE:
        doubts.append(" Halves of the rows do not agree.")
    said = _reason(number, best, kernels, votes) + "".join(doubts)
    if len(rows) < n:
        said += f" Looked at {len(rows):,} of {counted(n, 'row')}, drawn by the seed."
    k, one = number.n_clusters, best.candidate
    return Choice(
        n_clusters=k,
        rank=auto_rank(k, n, extra=one.extra),
        gamma=one.gamma,
        is_weak=bool(doubts),
        reason=said + (WEAK if doubts else ""),
        table=Table(tuple(each.row(votes) for each in seen), caption=CAPTION),
        kernel=one.kernel,
        width=one.width,
        kernels=Table(tuple(each.row for each in kernels), caption=KERNELS_CAPTION),
    )


def _unanimous(number: _Seen, votes: Votes | None) -> bool:
    return votes is not None and votes.unanimous and votes.number == number.n_clusters


def _number(seen: list[_Seen], votes: Votes | None) -> tuple[_Seen, list[str]]:
    """Return the number that the evidence speaks for, and what speaks against it."""
    by_cut = max(seen, key=lambda one: one.jump)  # of equal ones the first
    k, few = by_cut.n_clusters, " There are fewer than {} rows, which say little of borders."
    if votes is None:
        return by_cut, [few.format(FEWEST_ROWS)]
    agreed = [one for one in seen if one.n_clusters == votes.number]
    lone = []
    if votes.lone > MOST_LONE:
        lone = [f" {votes.lone:.0%} of the rows lie alone, on no side of a border."]
    if agreed and len(votes.counts) == 1:
        jump = agreed[0].jump
        little = [] if jump >= JUMP else [f" One cluster more cuts only {jump:.1f} times as much."]
        return agreed[0], [*lone, *little]
    for share, jump in ((MOST_GRAPHS, JUMP), (HALF_OF_GRAPHS, LARGE_JUMP)):
        if votes.share(k) >= share and by_cut.jump >= jump:
            return by_cut, lone
    best = agreed[0] if agreed else by_cut
    doubts = [] if best is by_cut else [
        f" The cut speaks for {k} clusters: there one more cuts {by_cut.jump:.1f} times as much."
    ]  # fmt: skip
    return best, [_disagreement(votes, best.n_clusters), *doubts, *lone]


def _disagreement(votes: Votes, k: int) -> str:
    """Say what borders have against a number."""
    if votes.number == 1:
        return (
            " Borders among the nearest rows separate no clusters: the rows may be one cluster, or "
            "clusters that touch."
        )
    if votes.number != k:
        return f" Borders among the nearest rows speak for {votes.number} clusters."
    others = " and ".join(str(number) for number in sorted(votes.counts) if number != k)
    return f" Borders speak for {others} clusters too, depending on how they are looked at."


def _best(kernels: list[_Judged]) -> _Judged:
    """Return the kernel that cuts least; of those as good as it, the more stable one."""
    least = min(one.cut for one in kernels)
    good = [one for one in kernels if one.cut <= AS_GOOD * least + ABOUT]
    highest = max(one.stability for one in good)
    return next(one for one in good if one.stability >= highest - NOTICED)


def _reason(number: _Seen, best: _Judged, kernels: list[_Judged], votes: Votes | None) -> str:
    """Say what speaks for the number and for the kernel."""
    k, said = number.n_clusters, ""
    if votes is not None and votes.counts[k]:
        share = f"{votes.counts[k]} of {votes.counts.total()}"
        if len(votes.counts) == 1:
            share = f"all {votes.counts.total()}"
        said = (
            f"In {share} ways to look, borders separate {k} clusters: fewer links of nearest rows "
            "cross them than the thinnest place inside a cluster has. "
        )
    times = "" if number.cut < LEAST else f", {number.jump:.1f} times as much"
    said += (
        f"{k} clusters cut {best.cut:.2%} of the links between near rows that labels at random "
        f"would cut, and {k + 1} clusters {number.after:.2%}{times}. Neighbours are in one "
        f"cluster with {best.agreement:.2f} (1 is always, 0 as by chance), and halves of the rows "
        f"agree with {best.stability:.2f}."
    )
    as_good = [one for one in kernels if one.cut <= AS_GOOD * best.cut + ABOUT]
    if len(as_good) == len(kernels):
        return f"{said} All {len(kernels)} kernels that were tried find such clusters."
    others = min(one.cut for one in kernels if one not in as_good)
    least = "Kernels that are not as good cut" if len(as_good) > 1 else "All other kernels cut"
    return f"{said} {least} {others:.2%} or more."
