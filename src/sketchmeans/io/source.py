"""What a format must offer: the names of its columns, and the columns that are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.io.opening import DataFile

SHOWN = 8
"""Columns that a message lists before it says how many there are."""
LONGEST_NAME = 40
"""Characters of a name or a value that a message shows: a file may hold a megabyte there."""


class Source(ABC):
    """A data file as columns.

    A subclass sets the names by ``set_names``, ``named`` (whether the file itself gives them), and
    ``labels_name`` where the format has a place for true labels of its own.
    """

    names: list[str]
    """One per column, all different."""
    shared: dict[str, list[int]]
    """The columns of a name that several have; in ``names`` a number tells them apart."""
    named: bool = False
    labels_name: str | None = None
    may_widen: bool = False
    """Whether the last columns can be absent only because they are empty."""

    base: int | None = None
    """The first index of a LIBSVM file."""
    base_is_guessed: bool = False
    """Whether indices that count from 0 were taken to count from 1, if 0 is just not there."""
    nameless: Sequence[int] = ()
    """Columns without a name in a file that names the others."""
    chosen: Sequence[int] = ()
    """All columns to cluster by, for messages; those of categories are among them."""
    compact: Collection[int] = ()
    """Columns of text that are kept as ``Texts`` where there is little room: nobody counts them."""
    n_wanted: int | None = None
    """Features that a model needs, for messages; None where a model is yet to be fitted."""
    complete: bool = False
    """Whether ``read`` found that no value is missing or infinite; else it is looked at again."""

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.notes: list[str] = []

    def set_names(self, names: Sequence[str]) -> None:
        """Name the columns; a name that stands twice gets a number, and a note says so."""
        self.names, self.shared = distinct(names)
        for name, places in list(self.shared.items())[:SHOWN]:
            known = " and ".join(quoted(self.names[place]) for place in places[:2])
            self.notes.append(
                f"{self.file.name} has {len(places)} columns called {quoted(name)}: they go by "
                f"{known}{' and so on' if len(places) > 2 else ''}, or by their numbers."
            )

    def told(self) -> list[str]:
        """Return what a person should know of how the file was read."""
        return self.notes

    def texts(self, features: Sequence[int]) -> list[int]:
        """Return those of some columns that hold text and no dates, as far as a look tells."""
        del features
        return []

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each column, by name."""
        return {name: index for index, name in enumerate(self.names)}

    @abstractmethod
    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return the features and the columns that are kept as they are.

        Features are a float array (n × features), float32 where all of them are, with NaN where a
        value is missing; or a CSR matrix. The others are one-dimensional arrays.
        """

    def own_labels(self) -> Any:
        """Return the labels that the format has a place for, or None."""
        return None


class MatrixSource(Source):
    """A file whose numbers are all in memory once it is open: an array or a CSR matrix."""

    _X: Any

    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return columns by their number; the matrix itself is let go."""
        X, self._X = self._X, None
        # Before X becomes floats: whole numbers beyond 2⁵³ would be rounded.
        columns = (X[:, [i]].toarray()[:, 0] if sparse.issparse(X) else X[:, i] for i in kept)
        others = [whole_numbers(column) for column in columns]
        return (X if list(features) == list(range(X.shape[1])) else X[:, list(features)]), others


def whole_numbers(column: Any) -> Any:
    """Return a copy of a column of ids or labels, as whole numbers where all of it is.

    Beyond 2⁵³ a float does not say which whole number it stands for, and stays a float.
    """
    if column.dtype.kind == "f":
        is_whole = (np.abs(column) < 2**53).all() and (column == np.rint(column)).all()
        return column.astype(np.int64 if is_whole else column.dtype.newbyteorder("="))
    return column.astype(np.int64 if column.dtype.kind == "b" else column.dtype.newbyteorder("="))


def unnamed(count: int) -> list[str]:
    """Return names for columns that have none.

    >>> unnamed(2)
    ['column 1', 'column 2']
    """
    return [f"column {index}" for index in range(1, count + 1)]


def distinct(names: Sequence[str]) -> tuple[list[str], dict[str, list[int]]]:
    """Return names that differ, and the places of those that were given to several columns.

    >>> distinct(["a", "b", "a"])
    (['a (1)', 'b', 'a (2)'], {'a': [0, 2]})
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    shared = {name: found for name, found in places.items() if len(found) > 1}
    changed = list(names)
    for name, found in shared.items():
        number = 0
        for place in found:
            number += 1
            while f"{name} ({number})" in places:
                number += 1
            changed[place] = f"{name} ({number})"
    return changed, shared


def typed_column(names: Sequence[str], chosen: int) -> str:
    r"""Write a column as ``id_column`` takes it: by name, or by number where that is odd.

    >>> typed_column(["row number", "\x1b[2J"], 0), typed_column(["row number", "\x1b[2J"], 1)
    ('row number', '2')
    """
    name = names[chosen]
    return name if _can_be_typed(name) else str(chosen + 1)


def typed_columns(names: Sequence[str], chosen: Sequence[int]) -> str:
    """Write columns as ``columns`` takes them: by name, or by ranges where they are many.

    >>> print(typed_columns(["a", "b, c", "d"], [1, 2]))
    "b, c",d
    >>> typed_columns([f"x{i}" for i in range(20)], [1, *range(4, 20)])
    '2-2,5-20'
    """
    picked = [names[index] for index in chosen[: SHOWN + 1]]
    if len(picked) <= SHOWN and all(_can_be_typed(name) for name in picked):
        return ",".join(_field(name) for name in picked)
    ranges: list[list[int]] = []
    for index in chosen:
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    # 2-2 rather than 2: a column may be called "2".
    return ",".join(f"{first + 1}-{last + 1}" for first, last in ranges)


def _can_be_typed(name: str) -> bool:
    return name.isprintable() and len(name) <= LONGEST_NAME


def _field(name: str) -> str:
    """Return a name as a field of CSV, which is how ``columns`` is read."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name


def quoted(value: Any) -> str:
    """Return what stands in a file for a message: in quotes, escaped, and cut."""
    shown = repr(value[: 2 * LONGEST_NAME] if isinstance(value, str | bytes) else value)
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 3] + "..."


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(quoted(name) for name in names[:SHOWN])
    rest = len(names) - SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
