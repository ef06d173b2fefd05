"""Rows that are elsewhere, on the workers of a cluster: functions are sent to them.

A fit asks little of its data: a few rows by their numbers, and what a function makes of every span
of rows. ``Rows`` is that and no more. What the function returns comes back, is added up in a tree
of a fixed shape, or stays where it was made, as other rows. Here nobody knows who runs the tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

FAN = 8
"""Sums that are added up in their order before their sum goes on; fixed, for it decides the bits.

A tree and not a row: on a cluster no task then waits for all others, and none receives all sums.
"""

Kept = tuple[Any, ...]
"""What stays of some rows: arrays with a row for each."""


class Part(NamedTuple):
    """What a function makes of a span of rows."""

    kept: Kept
    summand: Any = None
    """An array or a sparse matrix of its own, which may be written to."""


class Ran(NamedTuple):
    """What a function has made of all spans."""

    kept: Kept
    """Arrays of all rows; ``Rows`` where they stayed."""
    total: Any
    """The sum of the summands; None where there were none."""


class Tournament(NamedTuple):
    """What a pass over all pairs of strips of rows leaves behind."""

    W: Any
    """``Rows`` where it stayed."""
    squares: float
    diagonal: Any


class Rows(ABC):
    """Rows of a matrix that are elsewhere.

    What goes with them as ``given`` has as many rows: arrays here, other ``Rows``, or what makes
    them, with a method ``rows(start, stop)``, as a sketch does.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    nnz: int | None = None
    """Numbers that sparse rows store; None where rows are dense."""
    names: list[str] | None = None
    """Of the columns, where they have some."""
    spills = False
    """Whether what stays with these rows is put in files of this machine, and takes no memory."""
    scratch_bytes = 0
    """What reading them takes of the memory of this machine, beside the rows."""
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    @property
    @abstractmethod
    def span(self) -> int:
        """Rows of a span as they are placed now: work on these moves nothing."""

    @abstractmethod
    def __getitem__(self, few: Any) -> Any:
        """Fetch a few rows, by a slice or by their numbers, dense or sparse as they are."""

    @abstractmethod
    def map(
        self, work: Callable[..., Any], *given: Any, size: int | None = None, name: str = "map"
    ) -> list[Any]:
        """Return what ``work(rows, *given)`` is for every span of rows, in their order.

        Parameters
        ----------
        work : callable
            Takes rows and as many rows of each of ``given``.
        *given : arrays of n rows, or Rows
        size : int, optional
            Rows of a span; any spans if left out: then results must not depend on them.
        name : str
            What people are told that is being done.
        """

    @abstractmethod
    def run(
        self,
        work: Callable[..., Part],
        *given: Any,
        size: int,
        stay: bool = False,
        name: str = "stream",
        progress: Callable[[int, int], None] | None = None,
    ) -> Ran:
        """Send ``work`` to every span of rows; join what it keeps, and add up the rest.

        The parameters are those of ``map``; with ``stay``, what is kept stays where it is.
        """

    @abstractmethod
    def tournament(
        self,
        task: Callable[..., Any],
        *given: Any,
        size: int,
        stay: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Tournament:
        """Let every two strips of ``size`` rows meet; add up what they give as tournaments do.

        ``task(ours, theirs)`` takes the rows of two strips, (rows, *given), or one and None, and
        returns what ``engine.strips.meet`` does, and the diagonal of a strip. With ``stay``, W
        stays where it is summed up.
        """

    @property
    @abstractmethod
    def n_threads(self) -> int:
        """Tasks that run side by side where the rows are."""

    @abstractmethod
    def of_groups(
        self,
        work: Callable[..., Any],
        groups: Sequence[Any],
        given: Sequence[tuple[Any, ...]],
        *,
        seconds: float | None = None,
        name: str = "groups",
    ) -> Iterator[tuple[int, Any]]:
        """Yield ``work(rows, *given[i])`` of groups of rows with their places, as they are done.

        Parameters
        ----------
        work : callable
        groups : sequence of arrays
            Numbers of rows, rising; none is empty.
        given : sequence of tuples
            What goes with each group.
        seconds : float, optional
            To end after that time; groups that are not done then are not yielded.
        name : str
            What people are told that is being done.
        """


def is_sparse(X: Any) -> bool:
    """Whether rows are sparse, wherever they are."""
    return X.nnz is not None if isinstance(X, Rows) else bool(sparse.issparse(X))


def added(total: Any, part: Any) -> Any:
    """Return total + part; dense sums are added in place."""
    return total + part if sparse.issparse(part) else np.add(total, part, out=total)


def in_order(parts: Sequence[Any]) -> Any:
    """Return the sum of some parts in their order, none of which is changed."""
    total = parts[0].copy()
    for part in parts[1:]:
        total = added(total, part)
    return total


class TreeSum:
    """The sum of parts that come in their order: of FAN parts, then of FAN such sums, and so on.

    Memory: a sum for each level of the tree.

    >>> sums = TreeSum()
    >>> for part in range(40):
    ...     sums.add(np.array([part]))
    >>> sums.total()
    array([780])
    """

    def __init__(self, levels: Sequence[tuple[int, Any]] = ()) -> None:
        self._levels = list(levels)

    def state(self) -> dict[str, Any]:
        """Return where the sum stands: arrays, and counts of parts; see ``restored``."""
        found: dict[str, Any] = {"counts": [count for count, _ in self._levels], "sparse": []}
        for level, (_, total) in enumerate(self._levels):
            if sparse.issparse(total):
                found["sparse"].append(level)
                found |= {f"data{level}": total.data, f"indices{level}": total.indices}
                found |= {f"indptr{level}": total.indptr, f"shape{level}": np.array(total.shape)}
            elif total is not None:
                found[f"sum{level}"] = total
        return found

    @classmethod
    def restored(cls, state: dict[str, Any]) -> TreeSum:
        """Return the sum that stands where ``state`` says."""
        levels = []
        for level, count in enumerate(state["counts"]):
            total = state.get(f"sum{level}")
            if level in state["sparse"]:
                arrays = (state[f"{name}{level}"] for name in ("data", "indices", "indptr"))
                total = sparse.csr_matrix(tuple(arrays), shape=tuple(state[f"shape{level}"]))
            levels.append((count, total))
        return cls(levels)

    def add(self, part: Any, level: int = 0) -> None:
        """Add the next part, which may be written to."""
        if level == len(self._levels):
            self._levels.append((0, None))
        count, total = self._levels[level]
        count, total = count + 1, part if total is None else added(total, part)
        if count == FAN:
            self.add(total, level + 1)
            count, total = 0, None
        self._levels[level] = (count, total)

    def total(self) -> Any:
        """Return the sum of all parts; None if there were none."""
        carried: Any = None
        for _, total in self._levels:
            if carried is None:
                carried = total
            elif total is not None:
                carried = added(total, carried)
        return carried
