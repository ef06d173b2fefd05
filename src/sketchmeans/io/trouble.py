"""Columns that hold no numbers: what they hold instead, and the way out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sketchmeans.io.dialect import LIBSVM
from sketchmeans.io.limits import DataError
from sketchmeans.io.source import Source, listed, quoted, typed_column, typed_columns
from sketchmeans.io.values import is_date
from sketchmeans.text import called, counted, setting


@dataclass
class Trouble:
    """What is no number in a column."""

    column: int
    row: int
    """The first such row, counted from 1."""
    value: Any
    count: int = 1

    @property
    def is_date(self) -> bool:
        """Whether the first value is a date or a time."""
        return is_date(self.value)


class TextFound(DataError):
    """Columns hold text where numbers are needed."""

    def __init__(self, message: str, troubles: Sequence[Trouble]) -> None:
        super().__init__(message)
        self.troubles = troubles


def refuse_text(source: Source, features: Sequence[int], troubles: Sequence[Trouble]) -> None:
    """Raise the error that says which columns hold no numbers, and how to go on."""
    first, names = troubles[0], source.names
    what = "a date or a time, and no number" if first.is_date else "no number"
    said = (
        f"{source.file.name}: column {quoted(names[first.column])} holds {quoted(first.value)} in "
        f"row {first.row}, which is {what}"
    )
    if first.count > 1:
        said += f" ({counted(first.count - 1, 'more row')} with text)"
    said += f". {_likely(first.value)}"
    if len(troubles) > 1:
        others = [names[trouble.column] for trouble in troubles[1:]]
        said += f"The same goes for {listed(others)}. "
        dates = [names[trouble.column] for trouble in troubles[1:] if trouble.is_date]
        if dates and not first.is_date:
            said += f"There are dates or times in {listed(dates)}. "
    if source.n_wanted is not None:
        raise TextFound(
            f"{said}The model was fitted to numbers there. Mend the file, or say with "
            f"{called('columns')} which {source.n_wanted:,} columns to take, in the order of the "
            "model.",
            troubles,
        )
    bad = {trouble.column for trouble in troubles}
    good = [index for index in source.chosen or features if index not in bad]
    raise TextFound(said + _ways_out(source, first, good) + ".", troubles)


def _ways_out(source: Source, first: Trouble, good: Sequence[int]) -> str:
    """Return what can be done with a column that holds no numbers, and the columns that do."""
    typed = typed_column(source.names, first.column)
    chosen = setting("columns", typed_columns(source.names, good)) if good else ""
    by_id = setting("id_column", typed)
    if first.is_date:
        said = f"Leave the column out: {chosen}; or t" if good else "T"
        said += "urn it into numbers first, such as days since a first day"
        return f"{said}. If it names the rows, say {by_id}"
    said = f"If it names the rows, say {by_id}; if it holds true classes, "
    said += f"{setting('label_column', typed)}; if it holds categories, "
    said += setting("categorical", "one-hot")
    return f"{said}; to leave it out, choose columns: {chosen}" if good else said


def _likely(value: Any) -> str:
    """Say what a text that should be a number looks like, where it is a known trouble."""
    if not isinstance(value, str) or is_date(value):
        return ""
    if re.fullmatch(r"\s*[-+]?\d*,\d+\s*", value):
        comma = setting("decimal", ",")
        return f"If the comma marks decimals, say {comma}; if thousands, take it out. "
    if re.fullmatch(r"\s*[-+]?\d{1,3}([., ']\d{3})+([.,]\d+)?\s*", value):
        return "Numbers are read without marks between thousands: take them out. "
    if re.fullmatch(r"\s*[-+]?\d*\.\d+\s*", value):
        return f"If the point marks decimals, say {setting('decimal', '.')}. "
    if LIBSVM.fullmatch(value.strip()):
        return f"It looks like LIBSVM: say {setting('format', 'libsvm')}. "
    return ""
