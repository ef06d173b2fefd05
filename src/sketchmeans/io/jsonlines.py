"""JSON lines: an object a line, whose names are the columns; or an array a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sketchmeans.io.cells import Cells, CellSource
from sketchmeans.io.encoding import TextFile, Undecodable
from sketchmeans.io.limits import DataError
from sketchmeans.io.opening import DataFile
from sketchmeans.io.source import unnamed
from sketchmeans.io.values import MISSING


class JsonLinesSource(CellSource):
    """One row of JSON a line.

    A name that an object lacks is a missing value, as null is. true and false are 1 and 0.
    """

    def __init__(
        self, file: DataFile, encoding: str | None = None, na_values: Sequence[str] = ()
    ) -> None:
        super().__init__(file)
        self._missing = frozenset([*MISSING, *na_values])
        text = TextFile(file, encoding)
        try:
            names = self._load(text)
        except Undecodable as error:
            if not text.settle(error):
                raise
            names = self._load(text)
        if text.note is not None:
            self.notes.append(text.note)
        self._columns = range(len(self._cells.numbers))
        self.named = names is not None
        self.set_names(unnamed(len(self._columns)) if names is None else names)

    def _load(self, text: TextFile) -> list[str] | None:
        """Fill the cells; return the names of the columns, None where rows are arrays."""
        self._cells = Cells(self.file)
        places: dict[str, int] = {}
        width = None
        for line_number, line in enumerate(text.lines(), start=1):
            if not line.strip():
                continue
            row = self._parsed(line, line_number)
            self._cells.begin_row()
            if isinstance(row, dict) and width is None:
                for name, value in row.items():
                    self._cells.put(places.setdefault(name, len(places)), value)
            elif isinstance(row, list) and not places and len(row) == (width or len(row)) > 0:
                width = len(row)
                for place, value in enumerate(row):
                    self._cells.put(place, value)
            else:
                raise DataError(
                    f"{self.file.name}: line {line_number} is not as the lines before: each is one "
                    "object, or each is one array of the same length. Mend that line."
                )
        return None if width is not None else list(places)

    def _parsed(self, line: str, line_number: int) -> Any:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise DataError(
                f"{self.file.name}: line {line_number} is no JSON: {reason[:200]}. Each line is an "
                "object; jq -c '.[]' makes such lines of an array."
            ) from error
        if not isinstance(row, dict | list):
            raise DataError(
                f"{self.file.name}: line {line_number} is neither an object nor an array. Each "
                "line is one row."
            )
        return row
