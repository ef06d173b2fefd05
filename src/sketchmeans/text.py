"""A small table: rows of a report that a person reads and a program can take apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; prints as Markdown, turns into a frame on request."""

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
