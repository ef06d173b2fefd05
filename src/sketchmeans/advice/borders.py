"""Clusters as what borders separate: pieces are cut at their waists, and joined across others.

Two pieces are apart where the border between them has fewer links than the waist of either, the
thinnest place inside. Whatever has no clusters, in any number of dimensions, has borders at least
as thick as the waists of what they separate, for a waist is the thinnest border that there is.
Chance makes both thinner or thicker, the more the fewer rows they end at: a border must be thinner
by what chance may do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.neighborhoods import Neighborhoods
from sketchmeans.advice.waists import Waist, participation, waist
from sketchmeans.blas import OneBlasThread

CAUTION = 1.5
"""What chance may do to the logarithm of a ratio of links, in units of √(1/m + 1/m') for borders
that end at m and m' rows: 1.0 splits some lines, 2.0 joins clusters that touch."""
FEWEST_TO_SPLIT, FEWEST_APART = 40, 16
"""Rows of a piece that is looked at for a border inside, and on either side of it."""


PIECES = (12, 14, 16)
"""Numbers of pieces that are begun with."""
SMALLEST = 0.01
"""Share of the rows that a cluster must have to be counted."""
MOST_LONE = 0.25
"""Share of lone rows up to which borders between the others say enough."""


@dataclass(frozen=True)
class Votes:
    """What borders separate, seen in every graph of the rows and from several pieces."""

    counts: Counter[int]
    """Votes for each number of clusters."""
    lone: float
    """Share of the rows that lie alone, and are on no side of a border."""
    graphs: tuple[Counter[int], ...] = ()
    """The votes in each graph."""

    @property
    def number(self) -> int:
        """The number with most votes."""
        return self.counts.most_common(1)[0][0]

    @property
    def unanimous(self) -> bool:
        """Whether all votes are for one number, and few rows were left out."""
        return len(self.counts) == 1 and self.lone <= MOST_LONE

    def share(self, number: int) -> float:
        """Return the share of the graphs in which more than half of the votes are for a number."""
        won = sum(2 * votes[number] > votes.total() for votes in self.graphs)
        return won / max(len(self.graphs), 1)


def separated(X: Any, pieces: Sequence[IntArray]) -> Votes:
    """Return how many clusters borders separate: a vote for each of some pieces in every graph.

    Cost: the nearest rows of all rows, and for each vote a few Cholesky factors as large as a
    piece; a second or two for 1,500 rows.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    pieces : sequence of arrays of shape (n_samples,)
        Labels of rather too many clusters, from ``PIECES``.
    """
    with OneBlasThread():
        near = Neighborhoods.of(X)
        rows = np.flatnonzero(~near.lone())
        least = max(near.scales[0], SMALLEST * len(near.nearest))
        graphs = tuple(
            Counter(
                max(int((np.bincount(clusters_by_borders(graph, labels[rows])) >= least).sum()), 1)
                for labels in pieces
            )
            for graph in near.graphs(rows)
        )
    return Votes(sum(graphs, Counter()), 1 - len(rows) / len(near.nearest), graphs)


def clusters_by_borders(graph: Any, labels: IntArray, caution: float = CAUTION) -> IntArray:
    """Return labels of what borders separate, from labels of pieces of it.

    Pieces that hold a border are split first, so that they need not be good; what is joined at the
    end is looked at once more.

    Parameters
    ----------
    graph : CSR matrix
        Symmetric: the links of rows.
    labels : array of shape (n,)
        Of pieces: rather too many than too few.
    caution : float
        How much thinner a border must be, by chance.
    """
    joined = _Pieces(graph, _split(graph, labels, caution), caution).joined()
    return _split(graph, joined, caution)


def thickness(border: float, ends: float, inside: Waist, caution: float) -> float:
    """Return a border over a waist, as large as chance may have made it; below one it is thin."""
    if border <= 0:
        return 0.0
    if inside.links <= 0:
        return np.inf
    chance = np.sqrt(1 / max(ends, 1.0) + 1 / max(inside.ends, 1.0))
    return float(border / inside.links * np.exp(caution * chance))


def _within(graph: Any, rows: IntArray) -> Any:
    return graph[rows][:, rows]


def _split(graph: Any, labels: IntArray, caution: float) -> IntArray:
    """Split pieces at waists that are borders, until none is left."""
    labels = np.unique(labels, return_inverse=True)[1]
    waiting, following = list(range(labels.max() + 1)), int(labels.max()) + 1
    while waiting:
        piece = waiting.pop()
        rows = np.flatnonzero(labels == piece)
        if len(rows) < FEWEST_TO_SPLIT:
            continue
        part = _within(graph, rows)
        found = waist(part)
        if found.side is None or min(found.side.sum(), (~found.side).sum()) < FEWEST_APART:
            continue
        halves = [_within(part, np.flatnonzero(side)) for side in (found.side, ~found.side)]
        if all(thickness(found.links, found.ends, waist(half), caution) < 1 for half in halves):
            labels[rows[found.side]] = following
            waiting += [piece, following]
            following += 1
    return labels


class _Pieces:
    """Pieces of a graph that are joined where no border separates them."""

    def __init__(self, graph: Any, labels: IntArray, caution: float) -> None:
        self.graph, self.caution = graph, caution
        self.labels = np.unique(labels, return_inverse=True)[1]
        self.left = list(range(int(self.labels.max()) + 1))
        self.links: FloatArray = graph @ np.eye(len(self.left))[self.labels]  # rows × pieces
        self.waists = {piece: self._waist(piece) for piece in self.left}
        self.known: dict[tuple[int, int], float] = {}

    def _waist(self, piece: int) -> Waist:
        return waist(_within(self.graph, np.flatnonzero(self.labels == piece)))

    def _thickness(self, one: int, other: int) -> float:
        """Return how thick the border of two pieces is beside the thinner of their waists."""
        if (one, other) not in self.known:
            there = [
                self.links[self.labels == piece, beyond]
                for piece, beyond in ((one, other), (other, one))
            ]
            border, ends = float(there[0].sum()), participation(np.concatenate(there))
            self.known[one, other] = max(
                thickness(border, ends, self.waists[piece], self.caution) for piece in (one, other)
            )
        return self.known[one, other]

    def joined(self) -> IntArray:
        """Join pieces, the thickest border first and each piece once a round; return the labels."""
        while True:
            pairs = [(self._thickness(a, b), a, b) for a in self.left for b in self.left if b < a]
            thick = sorted((pair for pair in pairs if pair[0] >= 1), reverse=True)
            if not thick:
                return self.labels
            seen: set[int] = set()
            for _, one, other in thick:
                if not seen & {one, other}:
                    seen |= {one, other}
                    self._join(one, other)

    def _join(self, one: int, other: int) -> None:
        self.labels[self.labels == other] = one
        self.links[:, one] += self.links[:, other]
        self.left.remove(other)
        pair = {one, other}
        self.known = {key: value for key, value in self.known.items() if not pair & {*key}}
        if len(self.left) > 1:
            self.waists[one] = self._waist(one)
