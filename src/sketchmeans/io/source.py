"""What a format must offer: the names of its columns, and the columns that are asked for."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchmeans.io.opening import DataError, DataFile

SHOWN = 8
"""Columns that a message lists before it says how many there are."""


@dataclass
class Trouble:
    """What is no number in a column."""

    column: int
    row: int
    """The first such row, counted from 1."""
    value: Any
    count: int = 1


class Source(ABC):
    """A data file as columns.

    A subclass sets ``names`` (one a column, all different), ``named`` (whether the file itself
    gives them), and ``labels_name`` where the format has a place for true labels of its own.
    """

    names: list[str]
    named: bool = False
    labels_name: str | None = None
    may_widen: bool = False
    """Whether the last columns can be absent only because they are empty."""

    nameless: bool = False
    """Whether the first column has no name in a file that names the others."""
    complete: bool = False
    """Whether ``read`` found that no value is missing or infinite; else it is looked at again."""

    def __init__(self, file: DataFile) -> None:
        self.file = file

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


def check_names(file: DataFile, names: Sequence[str]) -> None:
    """Refuse names that stand twice: a column could not be told from the other."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(
                f"{file.name} has two columns called {name!r}. Give every column its own name."
            )
        seen.add(name)


def refuse_text(
    file: DataFile, names: Sequence[str], features: Sequence[int], troubles: Sequence[Trouble]
) -> None:
    """Raise the error that says which columns hold no numbers, and how to go on."""
    first = troubles[0]
    name = names[first.column]
    value = repr(first.value)
    value = value if len(value) <= 40 else value[:37] + "..."
    said = f"{file.name}: column {name!r} holds {value} in row {first.row}, which is no number"
    if first.count > 1:
        said += f" (and so do {first.count - 1:,} more rows)"
    said += ". "
    if len(troubles) > 1:
        others = [names[trouble.column] for trouble in troubles[1:]]
        said += f"The same goes for {_listed(others)}. "
    bad = {trouble.column for trouble in troubles}
    good = [index for index in features if index not in bad]
    option = shlex.quote(name)
    said += f"If it names the rows, say --id-column {option}"
    said += f"; if it holds true classes, --label-column {option}"
    if good:
        said += f"; to leave it out, choose columns: --columns {columns_option(names, good)}"
    raise DataError(said + ".")


def columns_option(names: Sequence[str], chosen: Sequence[int]) -> str:
    """Write columns as the value of ``--columns``: by name, or by ranges where they are many.

    >>> print(columns_option(["a", "b, c", "d"], [1, 2]))
    '"b, c",d'
    >>> columns_option([f"x{i}" for i in range(20)], [1, *range(4, 20)])
    '2-2,5-20'
    """
    if len(chosen) <= SHOWN:
        picked = [names[index] for index in chosen]
        return shlex.quote(
            ",".join(_quoted(name) if set(name) & set(',"') else name for name in picked)
        )
    ranges: list[list[int]] = []
    for index in chosen:
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    # 2-2 rather than 2: a column may be called "2".
    return ",".join(f"{first + 1}-{last + 1}" for first, last in ranges)


def _quoted(name: str) -> str:
    """Return a name as a field of CSV, which is how ``--columns`` is read."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    rest = len(names) - SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
