"""The nearest rows of the data: one graph, by which clusterings of any kernel are judged.

A link of rank r among k has weight 1 − r / k. Of two rows, one of which is near to the other and
not the other way round, there are two readings: in one graph their link counts half, in another one
not at all. Borders that stand in both do not come from the reading, and clusters of unlike density
meet only in the first. Rows that lie alone, far from their nearest rows in comparison with these
from theirs, are on no side of a border and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from sketchmeans._arrays import BoolArray, FloatArray, IntArray

ROWS_PER_NEIGHBOR, FEWEST, MOST, WIDER = 60, 8, 25, 1.6
"""Neighbours in the narrower graph: a sixtieth of the rows, between these two; in the wider one
so many times more. Fewer follow chance, more bridge the gaps between thin clusters."""
LONE = 1.5
"""How many times farther a lone row is from its nearest rows than these from theirs (the local
outlier factor of Breunig, Kriegel, Ng and Sander 2000, from 20 neighbours or fewer)."""
LEAST_REACH = 0.01
"""Distances below this part of the mean one count as this much: equal rows are at distance zero."""


@dataclass(frozen=True)
class Neighborhoods:
    """The nearest rows of every row, nearest first, and how far they are."""

    distances: FloatArray
    nearest: IntArray

    @classmethod
    def of(cls, X: Any) -> Neighborhoods:
        """Look for as many neighbours as the wider graph has; distances: n², or fewer by a tree."""
        search = NearestNeighbors(n_neighbors=max(scales(X.shape[0])), n_jobs=1)
        return cls(*search.fit(X).kneighbors())

    @property
    def scales(self) -> tuple[int, int]:
        """Neighbours in the narrower graph, and in the wider one."""
        return scales(len(self.nearest))

    def lone(self) -> BoolArray:
        """Return which rows lie alone."""
        k = min(20, max(FEWEST, len(self.nearest) // 20), self.nearest.shape[1])
        near, far = self.nearest[:, :k], self.distances[:, k - 1]
        reach = np.maximum(far[near], self.distances[:, :k]).mean(axis=1)
        if not reach.any():
            return np.zeros(len(reach), bool)
        reach = np.maximum(reach, LEAST_REACH * reach.mean())
        return reach * (1 / reach[near]).mean(axis=1) > LONE

    def graphs(self, rows: IntArray) -> Iterator[Any]:
        """Yield the graphs of some rows, symmetric CSR matrices: both readings at both scales."""
        n = len(self.nearest)
        for count in self.scales:
            weights = np.tile(1 - np.arange(count) / count, n)
            pointers = np.arange(0, n * count + 1, count)
            near = np.ascontiguousarray(self.nearest[:, :count])
            links = sparse.csr_matrix((weights, near.ravel(), pointers), shape=(n, n))
            links.sort_indices()
            for graph in ((links + links.T) / 2, links.minimum(links.T)):
                yield graph.tocsr()[rows][:, rows]


def share_cut(graph: Any, labels: IntArray, n_clusters: int) -> float:
    """Return the normalized cut of labels over that of labels at random, which is n_clusters − 1.

    The normalized cut is the sum over clusters of the share of their links that leaves them. Links
    of a graph, a symmetric matrix; clusters without links count as whole.
    """
    members = np.eye(n_clusters)[labels]
    links = graph @ members
    all_links = links.sum(axis=1) @ members
    inside = (links * members).sum(axis=0)
    full = all_links > 0
    cut = float((1 - inside[full] / all_links[full]).sum())
    return round(cut / max(n_clusters - 1, 1), 12)  # what is not cut is zero, not rounding


def scales(n: int) -> tuple[int, int]:
    """Return the neighbours in the narrower graph of n rows, and in the wider one."""
    narrow = int(np.clip(n // ROWS_PER_NEIGHBOR, FEWEST, MOST))
    return min(narrow, n - 1), min(int(WIDER * narrow), n - 1)
