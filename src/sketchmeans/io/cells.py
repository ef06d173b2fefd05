"""Rows whose cells come one by one, each a number or something else: JSON lines and Excel."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.io.limits import check_expansion
from sketchmeans.io.opening import DataFile
from sketchmeans.io.source import Source, whole_numbers
from sketchmeans.io.trouble import Trouble, refuse_text
from sketchmeans.io.values import number

LARGEST = 2**53
"""The first whole number that a float does not tell from the next one."""


class Cells:
    """Columns that grow row by row: numbers in arrays, everything else beside them."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self.numbers: list[array[float]] = []
        self.others: list[dict[int, Any]] = []
        """Of each column what is no number, by its row from 0."""
        self.n_rows = 0

    def begin_row(self) -> None:
        """Let the cells that follow be those of one more row."""
        self.n_rows += 1
        check_expansion(
            self._file.name,
            self._file.size,
            8 * self.n_rows * len(self.numbers),
            way_out="write its columns as LIBSVM or a sparse NPZ, where most of them are empty",
        )

    def put(self, column: int, value: Any) -> None:
        """Set a cell of the last row; columns are made as they are needed."""
        while len(self.numbers) <= column:
            self.numbers.append(array("d"))
            self.others.append({})
        cells, row = self.numbers[column], self.n_rows - 1
        if isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST):
            found = float(value)
        else:
            found = np.nan
            if value is not None:
                self.others[column][row] = str(value) if isinstance(value, int) else value
        if len(cells) < row:
            cells.extend([np.nan] * (row - len(cells)))
        if len(cells) == row:
            cells.append(found)
        else:  # a cell that is there twice
            cells[row] = found

    def column(self, index: int, start: int) -> FloatArray:
        """Return the numbers of a column from a row on, NaN where there is none."""
        found = np.full(self.n_rows - start, np.nan)
        there = self.numbers[index][start:]
        found[: len(there)] = there
        return found


class CellSource(Source):
    """A file whose cells are all in memory once it is open."""

    _cells: Cells
    _columns: Sequence[int]
    """The columns of cells that are columns of the table."""
    _start: int = 0
    """The first row of cells that is no header."""
    _missing: Collection[str]

    def texts(self, features: Sequence[int]) -> list[int]:
        """Return columns with a text that is neither a number nor a date."""
        troubles = [self._trouble(index, self._numbers(index)) for index in features]
        return [trouble.column for trouble in troubles if trouble and not trouble.is_date]

    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return the features as float64; other columns as whole numbers, or as text."""
        X = np.empty((self._cells.n_rows - self._start, len(features)))
        troubles = []
        for place, index in enumerate(features):
            X[:, place] = numbers = self._numbers(index)
            if (trouble := self._trouble(index, numbers)) is not None:
                troubles.append(trouble)
        if troubles:
            refuse_text(self, features, troubles)
        return X, [self._values(index) for index in kept]

    def _others(self, index: int) -> dict[int, Any]:
        """Return what is neither a number nor missing, by row."""
        found = self._cells.others[self._columns[index]]
        return {
            row - self._start: value
            for row, value in found.items()
            if row >= self._start
            and not (isinstance(value, str) and value.strip() in self._missing)
        }

    def _numbers(self, index: int) -> FloatArray:
        """Return a column as numbers, those that are written as text too."""
        found = self._cells.column(self._columns[index], self._start)
        for row, value in self._others(index).items():
            if isinstance(value, str):
                try:
                    found[row] = number(value)
                except ValueError:
                    continue
        return found

    def _trouble(self, index: int, numbers: FloatArray) -> Trouble | None:
        others = {
            row: value for row, value in self._others(index).items() if np.isnan(numbers[row])
        }
        if not others:
            return None
        row = min(others)
        return Trouble(index, row + 1, others[row], len(others))

    def _values(self, index: int) -> Any:
        """Return a column of ids, labels or categories."""
        numbers = self._cells.column(self._columns[index], self._start)
        others = self._others(index)
        if not others and not np.isnan(numbers).any():
            return whole_numbers(numbers)
        shown = ["" if np.isnan(value) else f"{value:.17g}" for value in numbers.tolist()]
        values = np.array(shown, object)
        for row, value in others.items():
            values[row] = value if isinstance(value, str) else str(value)
        return values
