"""What each method will spend on a kernel, reckoned before it runs: passes, entries, distances.

``Cost`` is what was spent, and this is what will be. Both come from the same sizes: the schedule of
a pass, the columns that are held or streamed, the samples that pivots come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchmeans.centers import rows_for_centers
from sketchmeans.lowrank.cholesky import streams_columns
from sketchmeans.lowrank.exact import forms_matrix, useful_features
from sketchmeans.lowrank.filtered import PASSES, STEPS, is_filtered
from sketchmeans.lowrank.landmarks import halvings, refuse_without_data
from sketchmeans.lowrank.nystrom import auto_sampling, holds_columns
from sketchmeans.lowrank.request import Request
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import KernelOperator, NeighborOperator
from sketchmeans.operators.anchors import COMPARED, takes_samples

LANCZOS_PASSES = 1000
"""Passes of Lanczos iterations beyond which nothing is foretold."""


@dataclass(frozen=True)
class Expected:
    """What will be spent: exactly, where the two are the same; else the data decide between."""

    least: Cost
    most: Cost

    @classmethod
    def exactly(cls, cost: Cost) -> Expected:
        """Return a cost that does not depend on the data."""
        return cls(cost, cost)

    def __add__(self, other: Expected) -> Expected:
        return Expected(self.least + other.least, self.most + other.most)


def one_pass_costs(operator: KernelOperator, ask: Request) -> Expected:
    """n_passes passes."""
    return Expected.exactly(Cost(ask.n_passes, ask.n_passes * operator.pass_entries))


def weighty_count(operator: KernelOperator) -> int:
    """Return how many samples have a weight."""
    root = operator.root_weights
    return operator.shape[0] if root is None else int(np.count_nonzero(root))


def landmark_sampling(operator: KernelOperator, ask: Request) -> tuple[str, int]:
    """Return how a Nyström method finds landmarks, and how many there will be."""
    m = min(ask.width, operator.shape[0])
    sampling = auto_sampling(operator, m) if ask.sketch == "auto" else ask.sketch
    if sampling == "kmeans":
        refuse_without_data(operator)
    elif sampling in ("uniform", "leverage"):
        m = min(m, weighty_count(operator))
    return sampling, m


def nystrom_costs(operator: KernelOperator, ask: Request) -> Expected:
    """The diagonal, what sampling takes, and the streams of ``landmark_costs``."""
    n, (sampling, m) = operator.shape[0], landmark_sampling(operator, ask)
    passes = entries = 0
    if sampling == "leverage":
        entries = sum(size * m for size in halvings(weighty_count(operator), m))
    elif sampling == "column-norm":
        passes, entries = 1, operator.tile_entries
    entries += operator.diagonal_entries
    rank = 0 if ask.tolerance > 0 else ask.rank
    streams = _landmark_entries(operator, n, m, rank, at_samples=sampling != "kmeans")
    return Expected.exactly(Cost(passes, entries + streams))


def _landmark_entries(
    operator: KernelOperator, n: int, m: int, rank: int, *, at_samples: bool
) -> int:
    """Return what ``from_landmarks`` takes: C once where it is held, else twice, and A."""
    if not holds_columns(n, m, rank):
        return 2 * n * m + m * m
    return n * m + (0 if at_samples and operator.columns_dtype == np.float64 else m * m)


def cholesky_costs(operator: KernelOperator, ask: Request, batch: int) -> Expected:
    """The diagonal, a column per pivot, and ``batch²`` for a round of several proposals.

    Where there is no more to eliminate, or the tolerance is kept, there are fewer pivots.
    """
    n, m = operator.shape[0], min(ask.width, operator.shape[0])
    streamed, rows = 0, n
    if streams_columns(n, m, ask.rank, ask.tolerance):
        rows = min(rows_for_centers(m), weighty_count(operator))
        m = min(m, rows)
        streamed = 1
    all_pivots = m
    m = min(m, operator.rank_at_most)
    least, most = (
        operator.diagonal_entries
        + rows * count
        + (batch**2 * rounds if batch > 1 else 0)
        + streamed * _landmark_entries(operator, n, count, ask.rank, at_samples=True)
        for count, rounds in ((1, 1), (m, m))
    )
    # NOTE: a kernel that is not used up gives all pivots; of several proposals at a time, at the
    # best all are taken.
    if ask.tolerance > 0 or m < all_pivots:
        pass
    elif batch == 1:
        least = most
    else:
        least = most - batch**2 * (m - -(-m // batch))
    return Expected(Cost(entries=least), Cost(entries=most))


def exact_costs(operator: KernelOperator, ask: Request) -> Expected:
    """As ``exact`` says; how many passes iterations take is the spectrum's to decide."""
    n, rank = operator.shape[0], min(ask.rank, operator.shape[0])
    if isinstance(operator, NeighborOperator):
        return Expected.exactly(Cost(distances=_neighbor_distances(operator, ask)))
    diagonal = Cost(entries=operator.diagonal_entries)
    one = Cost(1, operator.pass_entries)
    if is_filtered(operator, rank):
        least = Cost(2, 2 * operator.pass_entries)
        most = Cost(PASSES + STEPS + 1, (PASSES + STEPS + 1) * operator.pass_entries)
        return Expected(diagonal + least, diagonal + most)
    if useful_features(operator):
        return Expected.exactly(one + Cost(entries=n))
    if forms_matrix(n, rank):
        return Expected.exactly(diagonal + Cost(1, n * n))
    most = Cost(LANCZOS_PASSES, LANCZOS_PASSES * operator.pass_entries)
    return Expected(diagonal + one, diagonal + most)


def planned_anchors(operator: NeighborOperator) -> tuple[int, int, int]:
    """Return anchors of a set, sets, and rows that they are found among, if no rows are equal."""
    m = min(operator.planned_sizes()[0], weighty_count(operator))
    rows = min(rows_for_centers(m), weighty_count(operator))
    # Where all rows are anchors, another set would be the same.
    return m, 1 if rows <= m else operator.options.graphs, rows


def _neighbor_distances(operator: NeighborOperator, ask: Request) -> int:
    """Return what ``build`` and the streams take where no two rows are equal."""
    n = operator.shape[0]
    m, graphs, rows = planned_anchors(operator)
    width = m * graphs
    placing = rows * min(COMPARED * m, rows) * graphs
    if rows <= m or takes_samples(operator.data, m):
        placing = 0
    streams = 0 if ask.run.pack else (2 if width <= n else 1)
    return placing + (1 + streams) * n * width
