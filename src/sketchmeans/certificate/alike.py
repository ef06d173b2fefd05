"""Blocks that are alike, *anticlusters*: the less their means differ, the less they lose.

The block theorem gives every block centroids of its own. What is lost by that is, of each cluster,
the spread of the blocks' means around the mean of all. So samples are sorted by label, and within
it by their distance from the mean, and dealt like cards; and of the samples of one round, which go
to different blocks, each goes where it brings the sum of a block back to the mean best.

Any partition is valid. This one is a function of the labels and the rows alone, made a span of rows
at a time where the rows are: O(n · p · min(blocks, ``WINDOW``)), and a number a sample travels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.certificate.parts import stratified
from sketchmeans.engine import Crew
from sketchmeans.operators import DataOperator, FeatureMapOperator, KernelOperator
from sketchmeans.rows import Part, Rows, is_sparse

SPAN, NUMBERS = 1 << 17, 1 << 25
"""Rows of a span at the most, and numbers of it: fixed, for they decide the blocks."""
WINDOW = 1024
"""Blocks among which a sample chooses."""
DIRECTIONS = 64
"""Columns of rows that are looked at; of wider ones, so many random combinations."""


def blocks_alike(
    operator: KernelOperator, labels: IntArray, size: int, seed: int, n_threads: int = 1
) -> list[IntArray]:
    """Cut the samples into blocks of at most ``size`` that are alike.

    Where there are no dense rows to look at, clusters have their shares in blocks, and that is all.
    """
    n, X = len(labels), operator.data
    count = max(-(-n // size), 1)
    known = isinstance(operator, DataOperator | FeatureMapOperator) and not is_sparse(X)
    if count == 1 or not known:
        return stratified(labels, size, seed)
    span = max(min(SPAN, NUMBERS // max(X.shape[1], 1)), 1)
    weights = operator.weights
    given: tuple[Any, ...] = (np.arange(n), labels)
    if weights is not None:
        given = *given, weights
    deal = partial(_dealt, count=count)
    if isinstance(X, Rows):
        owners = X.run(_Dealt(deal), *given, size=span, name="deal").kept[0]
    else:
        owners = np.empty(n, np.intp)

        def work(rows: slice) -> None:
            owners[rows] = deal(X[rows], *(one[rows] for one in given))

        with Crew(n_threads) as crew:
            crew.each(work, row_blocks(n, span))
    order = np.argsort(owners, kind="stable")
    return np.split(order, np.searchsorted(owners[order], np.arange(1, count)))


@dataclass(frozen=True)
class _Dealt:
    """Deals a span of rows where it is."""

    deal: Any

    def __call__(self, rows: FloatArray, *given: Any) -> Part:
        return Part((self.deal(rows, *given),))


def _dealt(
    rows: FloatArray,
    places: IntArray,
    labels: IntArray,
    weights: FloatArray | None = None,
    *,
    count: int,
) -> IntArray:
    """Return the block of each row of a span; ``places`` are its numbers among all samples.

    Every block gets as many samples of a label as from cards that are dealt in this order.
    """
    R = _residuals(rows, labels, weights)
    order = np.lexsort((-np.vecdot(R, R), labels))
    slots = (places[0] + np.arange(len(order))) % count
    # A run of samples of one label that go to different blocks of one window, and may be swapped.
    ends = np.flatnonzero((np.diff(labels[order]) != 0) | (slots[1:] % WINDOW == 0)) + 1
    owners = np.empty(len(order), np.intp)
    sums, label = np.zeros((count, R.shape[1])), None
    for few, free in zip(np.split(order, ends), np.split(slots, ends), strict=True):
        if labels[few[0]] != label:
            sums[:], label = 0.0, labels[few[0]]
        chosen = free[_chosen(R[few] @ sums[free].T)]
        owners[few] = chosen
        sums[chosen] += R[few]
    return owners


def _chosen(cost: FloatArray) -> IntArray:
    """Return a column of its own for each row: the cheapest that rows before it have left."""
    chosen = np.empty(len(cost), np.intp)
    for row in range(len(cost)):
        column = int(cost[row].argmin())
        chosen[row] = column
        cost[:, column] = np.inf
    return chosen


def _residuals(rows: FloatArray, labels: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return rows less the mean of their cluster, times their weights, in few columns."""
    R = rows.astype(np.float64)
    if R.shape[1] > DIRECTIONS:
        random = np.random.default_rng(R.shape[1])
        R = R @ random.choice([-1.0, 1.0], (R.shape[1], DIRECTIONS))
    for label in np.unique(labels):
        inside = labels == label
        R[inside] -= R[inside].mean(axis=0)
    if weights is not None:
        R *= weights[:, None]
    return R
