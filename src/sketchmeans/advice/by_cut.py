"""The number of clusters with the neighbours kernel: where one more would cut much more.

Labels with k clusters cut the graph that the kernel is; at random they would cut k − 1. Their share
of that grows slowly with k while clusters are only cut to pieces, and jumps behind the number at
which nothing but pieces is left to cut. The eigenvalues tell the same without labels: as many as
clusters are close to one, then there is a gap. Borders among the nearest rows, which know nothing
of the kernel, come before both where they are clear. ``python -m benchmarks.choosing`` compares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.borders import PIECES, Votes, separated
from sketchmeans.advice.evidence import (
    CLEAR_GAP,
    STABLE,
    WEAK,
    Choice,
    check_halves,
    stability,
)
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import subsample
from sketchmeans.certificate.cut import cut_certificate
from sketchmeans.certificate.objective import cluster_sums
from sketchmeans.estimators.cluster import KernelKMeans
from sketchmeans.estimators.embedded import Embedded
from sketchmeans.estimators.landmark_lloyd import refine_by_landmarks
from sketchmeans.estimators.parts import check_options
from sketchmeans.estimators.sketched import embed
from sketchmeans.estimators.walks import cluster_rows
from sketchmeans.lowrank import ColumnStream
from sketchmeans.operators import NeighborOperator
from sketchmeans.text import Table, setting

CLEAR_JUMP = 3.5
"""Ratio of shares cut above which a jump counts as clear. In eight seeds of ``python -m
benchmarks.choosing`` samples without clusters had at most 3.3, by chance (a line; Gaussians and
squares 1.6), and the digits, whose classes touch, 2.7; the first 900 of them have 3.3."""
NESTED_JUMP = 2.0
"""Ratio above which a larger number of clusters is called to mind beside the one recommended."""
FIRM = 0.98
"""ARI of two halves above which a larger number is called to mind where the evidence is weak."""
LEAST = 1e-4
"""Shares cut, and what eigenvalues lack of one, are not told apart below this: a ratio of two
numbers that are nearly zero says nothing."""
APART = 1e-9
"""An eigenvalue as close to one belongs to samples that share no neighbour with the others."""
FEWEST_ROWS, MOST_ROWS = 200, 2000
"""Rows from which borders among them are looked at, and of which so many are drawn at the most."""
STARTS = 10
"""Starts of K-means where n_init is "auto"."""


@dataclass(frozen=True)
class _Seen:
    """What was seen of one number of clusters."""

    n_clusters: int
    eigenvalues: tuple[float, float]
    """λ_k and λ_{k+1}."""
    shares: tuple[float, float]
    """The normalized cut over that of labels at random, with k clusters and with k + 1."""
    stability: float

    @property
    def gap(self) -> float:
        """How many times farther from 1 the next eigenvalue is."""
        this, after = self.eigenvalues
        return _ratio(1 - after, 1 - this)

    @property
    def jump(self) -> float:
        """How many times more k + 1 clusters cut."""
        return _ratio(self.shares[1], self.shares[0])

    @property
    def row(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            "clusters": self.n_clusters,
            "cut": self.shares[0],
            "jump": self.jump,
            "eigenvalue": self.eigenvalues[0],
            "gap": self.gap,
            "stability": self.stability,
        }


CAPTION = (
    "cut: the normalized cut of the labels found, over that of labels at random. jump: the cut of "
    "one cluster more, over this one. eigenvalue: the one of this number. gap: how many times "
    "farther from 1 the next one is. stability: ARI of two halves."
)


def choose_by_cut(
    X: Any, tried: list[int], options: dict[str, Any], *, n_splits: int, seed: int
) -> Choice:
    """Recommend a number of clusters for kernel="neighbors"; the rank is the same number.

    Distances: those of one fit. For every number K-means in as many columns of one embedding.
    """
    if "rank" in options:
        raise ValueError(
            f"{setting('rank', options['rank'])} cannot be chosen here: "
            f"{setting('kernel', 'neighbors')} takes as many columns as clusters for each number "
            "of them. Leave it out."
        )
    if not isinstance(X, ColumnStream):
        check_halves(X.shape[0] if hasattr(X, "shape") else len(X), tried[-1])
    most = tried[-1] + 1
    model = KernelKMeans(most, random_state=seed, **options)
    check_options(model)
    embedded = embed(model.set_params(n_init=STARTS if model.n_init == "auto" else model.n_init), X)
    random = np.random.default_rng(seed)
    with OneBlasThread():
        wanted = sorted({k for number in tried for k in (number, number + 1)})
        shares = {k: _share_cut(model, embedded, k) for k in wanted}
    values = embedded.low_rank.eigenvalues
    known = np.append(values, np.zeros(max(most - len(values), 0)))
    seen = [
        _Seen(
            k,
            (float(known[k - 1]), float(known[k])),
            (shares[k], shares[k + 1]),
            stability(embedded.embedding[:, :k], k, n_splits=n_splits, random=random),
        )
        for k in tried
    ]
    return _choice(seen, int((values > 1 - APART).sum()), votes_of(model, embedded))


def _ratio(after: float, this: float) -> float:
    return max(after, LEAST) / max(this, LEAST)


def _share_cut(model: KernelKMeans, embedded: Embedded, k: int) -> float:
    """Cluster as a fit with k clusters does; return its cut over that of labels at random."""
    labels, sums = clustered(model, embedded, k)
    cut = cut_certificate(labels, embedded.low_rank, sums, None).normalized_cut
    assert cut is not None
    return cut / (k - 1)


def votes_of(model: KernelKMeans, embedded: Embedded) -> Votes | None:
    """Return what borders separate, in some of the rows if there are many; None of too few."""
    operator = embedded.operator
    assert isinstance(operator, NeighborOperator)
    n = operator.shape[0]
    if n < FEWEST_ROWS:
        return None
    with OneBlasThread():
        pieces = [clustered(model, embedded, k)[0] for k in PIECES]
    rows = subsample(np.arange(n), MOST_ROWS, 0)
    seen = operator.map.frame.rows(operator.data[rows])
    return separated(seen, [labels[rows] for labels in pieces])


def clustered(model: KernelKMeans, embedded: Embedded, k: int) -> tuple[IntArray, FloatArray]:
    """Cluster as a fit with k clusters does; return labels, and sums of features over clusters."""
    operator, run = embedded.operator, embedded.plan.run
    assert isinstance(operator, NeighborOperator)
    leading = np.ascontiguousarray(embedded.embedding[:, :k])
    labels = cluster_rows(model, replace(embedded, embedding=leading), k).start.labels_
    if n_iter := embedded.decision.n_refine:
        diagonal = operator.diagonal()
        refined = refine_by_landmarks(
            operator, labels, k, n_iter=n_iter, diagonal=diagonal, run=run
        )
        return refined.labels, refined.sums
    return labels, cluster_sums(operator, labels, None, run)


def _choice(seen: list[_Seen], apart: int, votes: Votes | None) -> Choice:
    """Take the number that borders separate, or that with the largest jump; say how clear it is."""
    best = max(seen, key=lambda one: one.jump)  # of equal ones the first
    agreed = [one for one in seen if votes is not None and one.n_clusters == votes.number]
    if apart > seen[-1].n_clusters:
        best, doubts = seen[-1], [f" At least {apart} groups share no neighbour: try more."]
    elif agreed and votes is not None and votes.unanimous:
        best, doubts = agreed[0], []
    else:
        doubts = _doubts(best, seen) + _unlike(best, votes)
    k = best.n_clusters
    said = _words(best, apart) + _borders(k, votes) + "".join(doubts) + (WEAK if doubts else "")
    table = Table(tuple(one.row for one in seen), caption=CAPTION)
    return Choice(k, k, None, bool(doubts), said, table)


def _doubts(best: _Seen, seen: list[_Seen]) -> list[str]:
    """Return what speaks against the number that is recommended."""
    doubts, larger = [], [one for one in seen if one.n_clusters > best.n_clusters]
    if best.jump < CLEAR_JUMP:
        doubts.append(" No number stands out; the samples may be one cluster, or touch.")
    if best.gap < CLEAR_GAP:
        doubts.append(" The eigenvalues show no gap there.")
    if best.stability < STABLE:
        doubts.append(" Halves of the data do not agree.")
    within = [one for one in larger if one.jump >= NESTED_JUMP and one.gap >= CLEAR_GAP]
    if within and not doubts:
        other = max(within, key=lambda one: one.jump)
        doubts.append(
            f" {other.n_clusters} clusters stand out too (then {other.jump:.1f} times as much): "
            "there may be clusters within clusters."
        )
    agreed = [one.n_clusters for one in larger if one.stability >= FIRM]
    if doubts and agreed:
        doubts.append(f" Halves of the data agree on as many as {agreed[-1]} clusters.")
    return doubts


def _unlike(best: _Seen, votes: Votes | None) -> list[str]:
    """Return what borders among the nearest rows say against a number."""
    if votes is None:
        return [f" There are fewer than {FEWEST_ROWS} rows, which say little of borders."]
    if votes.number == best.n_clusters:
        return []
    if votes.number == 1:
        return [" No border among the nearest rows separates clusters."]
    return [f" Borders among the nearest rows speak for {votes.number} clusters."]


def _borders(k: int, votes: Votes | None) -> str:
    """Say that borders separate so many clusters, where they do."""
    if votes is None or votes.number != k:
        return ""
    share = "all" if votes.unanimous else f"{votes.counts[k]} of {votes.counts.total()}"
    return (
        f" Borders between {k} clusters have fewer links of nearest rows than the thinnest place "
        f"inside any of them, in {share} of the ways to look."
    )


def _words(best: _Seen, apart: int) -> str:
    """Say what was seen of the number that is recommended."""
    k, (share, after), (value, following) = best.n_clusters, best.shares, best.eigenvalues
    if apart >= k:
        cut = (
            f"{k} groups of samples share no neighbour with each other; {k + 1} clusters would cut "
            f"{after:.2%} of what labels at random do"
        )
    else:
        times = "" if share < LEAST else f", {best.jump:.1f} times as much"
        cut = (
            f"{k} clusters cut {share:.2%} of what labels at random do, and {k + 1} cut "
            f"{after:.2%}{times}"
        )
    far = "" if 1 - value < LEAST else f", {best.gap:.1f} times as far from 1"
    return (
        f"{cut}. Eigenvalue {k} is {value:.4f}, the next {following:.4f}{far}. Two halves of the "
        f"data agree with ARI {best.stability:.2f}."
    )
