"""Excel: one sheet of a workbook as a table."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchmeans.io.cells import Cells, CellSource
from sketchmeans.io.headers import looks_like_header
from sketchmeans.io.limits import DataError
from sketchmeans.io.opening import DataFile
from sketchmeans.io.source import listed, quoted, unnamed
from sketchmeans.io.values import MISSING
from sketchmeans.io.workbook import Workbook, column_of
from sketchmeans.text import setting


class ExcelSource(CellSource):
    """A sheet: formulas count by the values that they had when the file was saved.

    Parameters
    ----------
    file : DataFile
    header : bool, optional
        Whether the first row names the columns; as for CSV if left out.
    sheet : str, optional
        A sheet by its name, or its number from 1; the first if left out.
    na_values : sequence of str
        Texts that stand for a missing value, beside those that are known.
    """

    def __init__(
        self,
        file: DataFile,
        header: bool | None = None,
        sheet: str | None = None,
        na_values: Sequence[str] = (),
    ) -> None:
        super().__init__(file)
        self._missing = frozenset([*MISSING, *na_values])
        workbook = Workbook(file)
        self._cells = Cells(file)
        _Filling(workbook, self._cells).run(workbook.sheets[self._chosen(workbook, sheet)])
        if not self._cells.n_rows:
            raise DataError(f"{file.name} holds no rows.")
        # Columns without a cell lie beside the table, or between its parts.
        self._columns = [place for place, cells in enumerate(self._cells.numbers) if len(cells)]
        first = [self._first(place) for place in self._columns]
        self.named = looks_like_header(first, self._missing) if header is None else header
        self._start = int(self.named)
        generated = unnamed(len(first))
        if self.named:
            self.nameless = [0] if not first[0].strip() and len(first) > 1 else []
            generated = [
                name.strip() or spare for name, spare in zip(first, generated, strict=True)
            ]
        self.set_names(generated)

    def _first(self, place: int) -> str:
        """Return a cell of the first row as text."""
        if 0 in (others := self._cells.others[place]):
            return str(others[0])
        value = self._cells.numbers[place][0]
        return "" if np.isnan(value) else f"{value:.15g}"

    def _chosen(self, workbook: Workbook, sheet: str | None) -> str:
        names = list(workbook.sheets)
        if sheet is None:
            if len(names) > 1:
                self.notes.append(
                    f"{self.file.name} has the sheets {listed(names)}, and the first is read. Say "
                    f"{setting('sheet', names[1] if names[1].isprintable() else 2)} for the second."
                )
            return names[0]
        if sheet in workbook.sheets:
            return sheet
        if sheet.isdigit() and len(sheet) < 9 and 1 <= int(sheet) <= len(names):
            return names[int(sheet) - 1]
        close = difflib.get_close_matches(sheet, names, n=1)
        hint = f" Did you mean {quoted(close[0])}?" if close else ""
        raise DataError(
            f"{self.file.name} has no sheet {quoted(sheet)}.{hint} Its sheets are {listed(names)}."
        )


class _Filling:
    """Fills cells from the XML of a sheet."""

    def __init__(self, workbook: Workbook, cells: Cells) -> None:
        self._workbook = workbook
        self._cells = cells
        self._row_begun = False
        self._column = -1
        self._kind = ""
        self._style = ""
        self._value: str | None = None
        self._formula = ""
        self._inline: list[str] = []

    def run(self, part: str) -> None:
        """Read a part of the workbook."""
        self._workbook.parse_sheet(part, self._start, self._end)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "c":
            place = column_of(attributes.get("r", ""))
            self._column = self._column + 1 if place < 0 else place
            self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._value, self._formula = None, ""
            self._inline.clear()
        elif tag == "row":
            self._row_begun, self._column = False, -1

    def _end(self, tag: str, text: str) -> None:
        if tag == "v":
            self._value = text
        elif tag == "t":
            self._inline.append(text)
        elif tag == "f":
            self._formula = text
        elif tag == "c" and (value := self._content()) is not None:
            if not self._row_begun:  # rows without a value are none
                self._cells.begin_row()
                self._row_begun = True
            self._cells.put(self._column, value)

    def _content(self) -> Any:
        """Return what a cell holds: a number, a text, or None."""
        value = self._value
        if self._kind == "inlineStr":
            return "".join(self._inline) or None
        if not value:
            return f"={self._formula}" if self._formula else None
        if self._kind == "s":
            texts = self._workbook.texts
            if not value.isdigit() or len(value) > 9 or int(value) >= len(texts):
                raise DataError(
                    f"{self._workbook.file.name} has a cell with text {value!r:.40} of "
                    f"{len(texts):,}: it is damaged."
                )
            return texts[int(value)] or None
        if self._kind == "b":
            return float(value == "1")
        if self._kind != "n":
            return value  # a text that a formula gave, an error, a date
        found = float(value)
        style = int(self._style) if self._style.isdigit() and len(self._style) < 9 else 0
        return self._workbook.date(found) if style in self._workbook.dates else found
