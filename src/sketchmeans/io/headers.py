"""The first rows of a table of text: what names the columns, and how many there are."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sketchmeans.io.source import quoted, unnamed
from sketchmeans.io.values import MISSING, is_number
from sketchmeans.text import counted, setting


@dataclass(frozen=True)
class Layout:
    """Which columns a table of text has."""

    names: list[str]
    named: bool
    """Whether the first row names them."""
    widest: int
    """Fields of a row, with empty ones at its end that are no columns."""
    nameless: list[int] = field(default_factory=list)
    """The column of row names, which has no name itself."""
    note: str | None = None

    @property
    def width(self) -> int:
        """Fields of a row that are columns."""
        return len(self.names)


def layout_of(
    file: str,
    rows: Sequence[Sequence[str]],
    header: bool | None,
    missing: Collection[str] = MISSING,
) -> Layout:
    """Look at the first rows of a file; ``header`` says whether the first one names columns."""
    first, body = list(rows[0]), rows[1:]
    named = looks_like_header(first, missing) if header is None else header
    if named and first[0].startswith("#") and len(first) > 1:  # np.savetxt
        first = [first[0].lstrip("# "), *first[1:]] if first[0].strip("# ") else first[1:]
    if header is None:
        _warn_of_doubt(file, first, named, missing)
    lengths = {len(row) for row in body}
    if named and len(body) > 1 and lengths == {len(first) + 1} and all(row[-1] for row in body):
        first = ["", *first]  # R gives the names of rows no name
    # Excel and others end lines with delimiters that no column follows.
    filled = len(first)
    while filled > 1 and not first[filled - 1].strip():
        filled -= 1
    widest = max([len(first), *lengths])
    is_empty = not any(text.strip() for row in body for text in row[filled:])
    note = None
    if is_empty and widest > filled and (lengths <= {filled, widest} or widest == len(first)):
        first = first[:filled]
        left = widest - filled
        which = "the empty column" if left == 1 else f"{counted(left, 'empty column')}"
        note = f"{which} at the end of the lines of {file} {'is' if left == 1 else 'are'} left out."
    else:
        widest = len(first)
    generated = unnamed(len(first))
    if not named:
        return Layout(generated, False, widest, note=note)
    names = [text.strip() or spare for text, spare in zip(first, generated, strict=True)]
    nameless = [0] if not first[0].strip() and len(first) > 1 else []
    return Layout(names, True, widest, nameless, note)


def looks_like_header(fields: Sequence[str], missing: Collection[str] = MISSING) -> bool:
    """Whether a first row names columns: by some text and no fraction, or by 0, 1, 2, …."""
    texts = [text.strip() for text in fields]
    texts = texts[1:] if not texts[0] else texts  # pandas leaves its index without a name
    if len(texts) > 1 and texts == [str(index) for index in range(len(texts))]:
        return True
    filled = [text for text in texts if text not in missing]
    if any(_is_value(text) and set(text) & set(".,eE") for text in filled):
        return False
    return not all(_is_value(text) for text in filled)


def _is_value(text: str) -> bool:
    """Whether a text is a number, with a decimal point or a comma, or a truth."""
    return is_number(text) or is_number(text, ",")


def _warn_of_doubt(file: str, first: Sequence[str], named: bool, missing: Collection[str]) -> None:
    """Warn of a first row of names and numbers: one row more or less is easily overlooked."""
    numbers = [text.strip() for text in first if _is_value(text)]
    texts = [text for text in first if text.strip() not in missing and not _is_value(text)]
    if numbers and texts:
        warnings.warn(
            f"the first row of {file} holds {quoted(texts[0])} and {quoted(numbers[0])}: it was "
            f"taken as {'names' if named else 'data'}. Say {setting('header', not named)} if it is "
            "not.",
            stacklevel=6,
        )
