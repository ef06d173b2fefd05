"""A pass over K on a cluster: strips of rows meet in tasks, and W is summed where it is needed.

The order of the sums is that of the tournament of a local pass (``engine.passes``), so that both
have the same bits. A task lets some pairs of strips meet, enough for about half a second.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.dask.sending import here, opened
from sketchmeans.engine import tournament
from sketchmeans.engine.strips import Met

ENTRIES = 300_000_000
"""Kernel entries of a task, about: half a second of one core."""
GROUP = 4
"""Products of a strip that are added to its sum at once: those before can be let go."""

Pair = tuple[int, int]
Outcome = tuple[Met, Any]


def meet_all(task: bytes, pairs: Sequence[Pair], *flat: Any) -> list[Outcome]:
    """Let pairs of strips meet; they come one after the other, as many things of each."""
    count = 1 + max(max(pair) for pair in pairs)
    each = len(flat) // count
    strips = [tuple(here(one) for one in flat[i * each : (i + 1) * each]) for i in range(count)]
    with OneBlasThread(), np.errstate(over="ignore", invalid="ignore"):
        meet = opened(task)
        return [meet(strips[i], None if i == j else strips[j]) for i, j in pairs]


def products_of(outcomes: Sequence[Outcome], places: Sequence[tuple[int, bool]]) -> list[Any]:
    """Return what pairs gave to one strip, in order: (which pair, whether it is their first)."""
    return [
        outcomes[index][0].ours if first else outcomes[index][0].theirs for index, first in places
    ]


def small_of(outcomes: Sequence[Outcome]) -> list[tuple[float, Any]]:
    """Return the sums of squares, and the diagonals, of all pairs of a task."""
    return [(met.squares, diagonal) for met, diagonal in outcomes]


def added(total: Any, *lists: Sequence[Any]) -> Any:
    """Return a sum of products, and more of them."""
    total = np.zeros(lists[0][0].shape) if total is None else total.copy()
    for products in lists:
        for product in products:
            total += product
    return total


class Meetings:
    """The tasks of a pass.

    Parameters
    ----------
    client : Client
    task : Future
        What two strips give to each other.
    strips : list of tuples
        What each strip is: futures of its rows and of others that belong to them, or what makes
        those.
    spans : list of slice
        Their rows.
    """

    def __init__(
        self, client: Client, task: Future, strips: Sequence[tuple[Any, ...]], spans: list[slice]
    ) -> None:
        self.client, self.spans = client, spans
        self.pairs: list[Pair] = [pair for met in tournament(len(spans)) for pair in met]
        self.tasks: list[Future] = []
        self._small: list[Future] = []
        self._token = uuid.uuid4().hex
        # A bundle is some rounds: what it gives to a strip comes after what those before gave.
        products: list[list[Future]] = [[] for _ in spans]
        for number, bundle in enumerate(self._bundles()):
            names = sorted({strip for pair in bundle for strip in pair})
            local = [(names.index(i), names.index(j)) for i, j in bundle]
            flat = [one for name in names for one in strips[name]]
            outcome = self._submit("pass", number, meet_all, task, local, *flat)
            self.tasks.append(outcome)
            # What follows goes before other pairs: workers then let go of what pairs have found,
            # and need not hold it all.
            self._small.append(self._submit("pass-small", number, small_of, outcome, first=True))
            for name in names:
                places = [(at, pair[0] == name) for at, pair in enumerate(bundle) if name in pair]
                index = number * len(spans) + name
                given = self._submit(
                    "pass-products", index, products_of, outcome, places, first=True
                )
                products[name].append(given)
        self.sums = [self._chain(strip, products[strip]) for strip in range(len(spans))]

    def _submit(
        self, name: str, index: int, function: Callable[..., Any], *args: Any, first: bool = False
    ) -> Future:
        key = (f"sketchmeans-{name}-{self._token}", index)
        return self.client.submit(function, *args, key=key, pure=False, priority=int(first))

    def _bundles(self) -> list[list[Pair]]:
        """Cut the pairs, in the order of the tournament, into what a task does."""
        bundles: list[list[Pair]] = [[]]
        entries = 0
        for i, j in self.pairs:
            size = self._rows(i) * self._rows(j)
            if bundles[-1] and entries + size // 2 > ENTRIES:
                bundles.append([])
                entries = 0
            bundles[-1].append((i, j))
            entries += size
        return bundles

    def _rows(self, strip: int) -> int:
        return self.spans[strip].stop - self.spans[strip].start

    def _chain(self, strip: int, products: list[Future]) -> Future:
        """Add up the products of a strip in the order of the rounds."""
        total: Any = None
        for first in range(0, len(products), GROUP):
            index, some = first * len(self.spans) + strip, products[first : first + GROUP]
            total = self._submit("pass-sum", index, added, total, *some, first=True)
        return total

    def small(self) -> tuple[float, FloatArray]:
        """Fetch the sum of squares, and the diagonal."""
        small = [one for outcome in self.client.gather(self._small) for one in outcome]
        squares = np.array([one[0] for one in small])
        diagonal = np.empty(self.spans[-1].stop)
        for (i, _), (_, part) in zip(self.pairs, small, strict=True):
            if part is not None:
                diagonal[self.spans[i]] = part
        return float(squares.sum()), diagonal
