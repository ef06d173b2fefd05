"""Text for people: small tables, sizes, and the names that they know parameters by."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_FLAGS: ContextVar[Mapping[str, str] | None] = ContextVar("flags", default=None)
"""What the reader of messages calls parameters; None where that is their own name."""


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; prints as Markdown, turns into a frame on request."""

    # NOTE: pandas prints such tables too, but is not required.

    rows: tuple[dict[str, Any], ...]
    caption: str = ""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0]) if self.rows else []

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """Return a column as a list."""
        return [row[column] for row in self.rows]

    def to_pandas(self) -> Any:
        """Return the table as a pandas frame; pandas must be installed."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))

    def __str__(self) -> str:
        cells = [[_show(value) for value in row.values()] for row in self.rows]
        widths = [
            max(len(name), *(len(line[index]) for line in cells)) if cells else len(name)
            for index, name in enumerate(self.columns)
        ]

        def line(values: list[str]) -> str:
            return "| " + " | ".join(v.ljust(w) for v, w in zip(values, widths, strict=True)) + " |"

        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        body = [line(self.columns), rule, *(line(row) for row in cells)]
        return "\n".join([self.caption, "", *body] if self.caption else body)


def _show(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def printable(text: str, longest: int = 200) -> str:
    r"""Return text of a stranger for a terminal: cut, and escaped where it does not print.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    >>> printable("x" * 300, 4)
    'xxx…'
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in cut)


def human(size: float) -> str:
    """Write a number of bytes for a person.

    >>> human(1_900_000_000)
    '1.9 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def counted(number: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question after the known name that is nearest, to follow a message; or nothing.

    >>> did_you_mean("Neighbours", ["rbf", "neighbors"]), did_you_mean("x", ["rbf"])
    (" Did you mean 'neighbors'?", '')
    """
    close = difflib.get_close_matches(name.lower()[:200], list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


@contextmanager
def vocabulary(flags: Mapping[str, str]) -> Iterator[None]:
    """Let messages name parameters by flags of a command line, while the block runs."""
    token = _FLAGS.set(flags)
    try:
        yield
    finally:
        _FLAGS.reset(token)


def called(name: str) -> str:
    """Return what the reader of a message calls a parameter.

    >>> with vocabulary({"n_jobs": "--jobs"}):
    ...     print(called("n_jobs"), called("rank"))
    --jobs rank
    """
    return (_FLAGS.get() or {}).get(name, name)


def setting(name: str, value: Any) -> str:
    """Return a parameter with its value, as the reader of a message would write it.

    >>> setting("id_column", "row number")
    "id_column='row number'"
    >>> with vocabulary({"id_column": "--id-column", "header": "--header"}):
    ...     print(setting("id_column", "row number"), setting("header", False))
    --id-column 'row number' --no-header
    """
    flag = called(name)
    if flag == name:
        return f"{name}={value!r}"
    if isinstance(value, bool):
        return flag if value else flag.replace("--", "--no-", 1)
    return f"{flag} {shlex.quote(str(value))}"
