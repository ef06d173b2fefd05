"""How a file of text is written: what separates fields, and what marks decimals."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, BinaryIO

from sketchmeans.io.limits import DataError
from sketchmeans.io.values import MISSING, is_number
from sketchmeans.text import setting

SPACES = " "
"""The delimiter that stands for any number of spaces and tabs."""
WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": SPACES}
"""Delimiters that are hard to type, by name."""
MARKS = (",", ";", "\t", "|", SPACES)
"""Delimiters that are looked for, in this order where several would do."""
LOOKED_AT = 100
"""Rows that a delimiter is guessed from."""
_COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(?:,\d{3})+\s*")
LIBSVM = re.compile(r"[-+.\deE]+(?:\s+\d+:[-+.\deE]+)+\s*(?:#.*)?")
"""A line of a LIBSVM file."""


def rows_of(lines: Iterable[str], delimiter: str) -> Any:
    """Return Python's reader of rows; what it skips and counts is what a file means."""
    if delimiter == SPACES:
        squeezed = (line.strip().replace("\t", " ") for line in lines)
        return csv.reader(squeezed, delimiter=" ", skipinitialspace=True)
    return csv.reader(lines, delimiter=delimiter)


class Squeezed(io.RawIOBase):
    """A stream with one space between the fields of its lines, for readers that need that.

    Quotes, which may hold spaces, are a ``ValueError``.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._rest = b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or some of it."""
        if not self._rest:
            lines = self._stream.readlines(len(buffer))
            self._rest = b"".join([b" ".join(line.split()) + b"\n" for line in lines])
            if b'"' in self._rest:
                raise ValueError("there are quotes")
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def check_delimiter(text: str) -> str:
    r"""Return the one character that a delimiter is.

    >>> check_delimiter("tab"), check_delimiter(";")
    ('\t', ';')
    """
    mark = WORDS.get(text, text)
    if len(mark) != 1 or mark in '"\r\n' or mark.isalnum() or ord(mark) > 127:
        raise DataError(
            f"{setting('delimiter', text)} is no delimiter: it is one character such as ';', or "
            f"one of {', '.join(WORDS)}."
        )
    return mark


def check_decimal(text: str, delimiter: str | None) -> str:
    """Return the mark of decimals, a point or a comma."""
    if text not in (".", ","):
        raise DataError(f"{setting('decimal', text)} is neither '.' nor ','.")
    if text == delimiter:
        raise DataError(
            f"{setting('decimal', text)} and {setting('delimiter', delimiter)} are the same mark: "
            "nobody could tell them apart."
        )
    return text


def guess_delimiter(lines: Sequence[str], expected: str, *, cut: bool) -> str:
    """Return what separates the fields of some lines; the last one is left out if ``cut``.

    It is what gives every row the same number of fields, and more than one; of several such
    marks the one whose fields are numbers, and then the one that is ``expected``.

    >>> guess_delimiter(["a;b", "1,5;2,5"], ",", cut=False)
    ';'
    >>> guess_delimiter(["1,5;2,5"], ",", cut=False)
    ';'
    """
    # NOTE: csv.Sniffer takes letters for delimiters too, and knows nothing of numbers.
    filled = [line for line in islice(lines, LOOKED_AT) if line.strip()]
    first = filled[0] if filled else ""
    # By spaces, LIBSVM would be a table of texts such as 1:0.5, or a short clock.
    is_libsvm = all(LIBSVM.fullmatch(line.strip()) for line in filled)
    best, best_share = "", -1.0
    for mark in sorted(MARKS, key=lambda mark: mark != expected):
        if mark == SPACES and is_libsvm:
            continue
        if (share := _numbers(filled, mark, cut=cut)) is not None and share > best_share:
            best, best_share = mark, share
    if best or expected in first:
        return best or expected
    if len(filled) > 1 and all(_COMMA.fullmatch(line) for line in filled[1:]):
        return ";"  # there is one column, of decimal commas
    marks = [mark for mark in MARKS if mark in first and mark != SPACES]
    return marks[0] if marks else (SPACES if _is_ragged_table(filled) else expected)


def _is_ragged_table(lines: Sequence[str]) -> bool:
    """Whether most lines have as many fields between spaces as the first, and more than one."""
    counts = [len(line.split()) for line in lines]
    return bool(counts) and counts[0] > 1 and 2 * counts.count(counts[0]) > len(counts) > 2


def _numbers(lines: Sequence[str], mark: str, *, cut: bool) -> float | None:
    """Return which share of the fields are numbers; None where rows differ in length."""
    try:
        rows = [row for row in rows_of(lines, mark) if row]
    except csv.Error:
        return None
    rows = rows[:-1] if cut and len(rows) > 1 else rows
    if rows and rows[0][0] == "#":
        rows[0] = rows[0][1:]
    widths = Counter(len(row) for row in rows)
    if not rows or max(widths) < 2 or len(widths) > 2 or max(widths) - min(widths) > 1:
        return None
    # The first row may differ: R names no column of row names, others end it by a delimiter. But
    # "body mass" over a single column is one name, and x over 1,5 is one column.
    first = len(rows[0])
    if len(widths) == 2 and (widths[first] > 1 or first == 1):
        return None
    if len(widths) == 2 and mark == SPACES and first == max(widths):
        return None
    body = rows[1:] or rows
    fields = [field for row in body for field in row if field.strip()]
    good = sum(is_number(field) or is_number(field, ",") for field in fields)
    return good / max(len(fields), 1)


def guess_decimal(rows: Iterable[Sequence[str]], delimiter: str) -> tuple[str, str | None]:
    """Return the mark of decimals, and a number that shows it where it is a comma.

    >>> guess_decimal([["1,5", "x"], ["2", "y"]], ";")
    (',', '1,5')
    >>> guess_decimal([["1,500", "2.5"]], ",")
    ('.', None)
    """
    shown = None
    sure = delimiter in (";", SPACES, "\t")
    for row in rows:
        for field in row:
            if _COMMA.fullmatch(field):
                shown = shown or field.strip()
                sure = sure or not _THOUSANDS.fullmatch(field)
            elif "." in field and field.strip() not in MISSING and is_number(field):
                return ".", None
    return ("," if shown and sure else "."), (shown if sure else None)
