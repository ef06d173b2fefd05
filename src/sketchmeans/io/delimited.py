"""CSV, TSV and other rows of text: by pyarrow where it is installed, else by Python's own reader.

Python's reader defines what a file means. pyarrow is tried first for its speed, and where it
refuses a file, Python's reader either reads it or says which row is wrong.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sketchmeans.io.dialect import (
    SPACES,
    Squeezed,
    check_decimal,
    check_delimiter,
    guess_decimal,
    guess_delimiter,
    rows_of,
)
from sketchmeans.io.encoding import LONGEST_LINE, TextFile, Undecodable
from sketchmeans.io.headers import layout_of
from sketchmeans.io.limits import DataError
from sketchmeans.io.opening import DataFile
from sketchmeans.io.room import Growing
from sketchmeans.io.source import Source, quoted
from sketchmeans.io.texts import GrowingTexts, GrowingWords
from sketchmeans.io.trouble import Trouble, refuse_text
from sketchmeans.io.values import FALSE, MISSING, TRUE, is_date, is_number, is_truth, number
from sketchmeans.text import called, counted, setting

LOOKED_AT = 1000
"""Rows at the start of a file that say how it is written."""
LOOKED_AT_CHARACTERS = 1 << 20
BLOCK = 1 << 18
"""Bytes of text that pyarrow parses at once. It reads up to forty such blocks ahead of whoever
takes the rows, and has no option for that."""
LINES = 4
"""Lines of a block, at the least."""
ROWS = 1 << 14
"""Rows that Python's reader hands on together."""


class DelimitedSource(Source):
    """Rows of text: a header or none, fields between delimiters.

    Parameters
    ----------
    file : DataFile
    header : bool, optional
        Whether the first row names the columns. If left out, it does unless all its fields are
        numbers or one of them is a fraction, such as 6.26, which hardly names a column; but 0, 1,
        2, …, which pandas writes for a frame without names, are a header.
    delimiter, decimal, encoding : str, optional
        Looked for in the first rows if left out; a decimal comma that is found is told.
    na_values : sequence of str
        Texts that stand for a missing value, beside those that are known.
    """

    def __init__(
        self,
        file: DataFile,
        header: bool | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        na_values: Sequence[str] = (),
    ) -> None:
        super().__init__(file)
        self._missing = frozenset([*MISSING, *na_values])
        self._text = TextFile(file, encoding)
        lines, cut = self._first_lines()
        if delimiter is None:
            expected = "\t" if file.format == "tsv" else ","
            self._delimiter = guess_delimiter(lines, expected, cut=cut)
        else:
            self._delimiter = check_delimiter(delimiter)
        sample = self._sample(lines, cut)
        if not sample:
            raise DataError(f"{file.name} holds no rows.")
        if decimal is None:
            self._decimal = self._guessed_decimal(sample)
        else:
            self._decimal = check_decimal(decimal, None if delimiter is None else self._delimiter)
        self._block = min(max(BLOCK, LINES * max(map(len, lines))), 2 * LONGEST_LINE)
        self._layout = layout_of(file.name, sample, header, self._missing)
        self._skipped = self._lines_before(lines) if self._layout.named else 0
        self._looked_at = sample[1:] if self._layout.named else sample
        self.named, self.nameless = self._layout.named, self._layout.nameless
        if self._layout.note is not None:
            self.notes.append(self._layout.note)
        self.set_names(self._layout.names)

    def _first_lines(self) -> tuple[list[str], bool]:
        """Return the first lines, and whether there are more."""
        lines: list[str] = []
        length = 0
        for line in self._text.lines():
            if len(lines) >= LOOKED_AT or length >= LOOKED_AT_CHARACTERS:
                return lines, True
            lines.append(line)
            length += len(line)
        return lines, False

    def _sample(self, lines: Sequence[str], cut: bool) -> list[list[str]]:
        """Return the rows of the first lines; the last one may go on."""
        try:
            rows = [row for row in rows_of(lines, self._delimiter) if row]
        except csv.Error:
            # The whole file is read before that is told, with the line where it is wrong.
            rows = [next(rows_of(lines[:1], self._delimiter))]
        return rows[:-1] if cut and len(rows) > 1 else rows

    def _lines_before(self, lines: Sequence[str]) -> int:
        """Return how many lines the header takes, with the empty ones before it."""
        reader = rows_of(lines, self._delimiter)
        next(row for row in reader if row)
        return int(reader.line_num)

    def _guessed_decimal(self, sample: Sequence[Sequence[str]]) -> str:
        found, shown = guess_decimal(sample, self._delimiter)
        if shown is not None:
            self.notes.append(
                f"{self.file.name} has decimal commas: {quoted(shown)} is read as "
                f"{shown.replace(',', '.')}. Say {setting('decimal', '.')} if that is wrong."
            )
        return found

    def texts(self, features: Sequence[int]) -> list[int]:
        """Return columns with a text among the first rows that is no date."""
        found = []
        for index in features:
            values = self._first_values(index)
            word = next((value for value in values if not is_number(value, self._decimal)), None)
            if word is not None and not is_date(word):
                found.append(index)
        return found

    def _first_values(self, index: int) -> Iterator[str]:
        """Yield what the first rows hold in a column, but for missing values."""
        for row in self._looked_at:
            if index < len(row) and (field := row[index].strip()) not in self._missing:
                yield field

    def _has_truths(self, index: int) -> bool:
        """Whether the first rows hold nothing but true and false in a column."""
        values = self._first_values(index)
        return is_truth(next(values, "")) and all(map(is_truth, values))

    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return the features as float64 and the kept columns as text."""
        for block in dict.fromkeys([self._block, 2 * LONGEST_LINE]):
            try:
                return self._read_fast(features, kept, block)
            except ImportError:
                break
            except _Refused as error:
                # A row that is longer than the first ones: again, and more at once.
                if "straddling" not in str(error):
                    break
        try:
            return self._read_plain(features, kept)
        except Undecodable as error:
            if not self._text.settle(error):
                raise
            return self._read_plain(features, kept)

    def told(self) -> list[str]:
        """Return what was guessed."""
        return [*([] if self._text.note is None else [self._text.note]), *self.notes]

    def _read_fast(
        self, features: Sequence[int], kept: Sequence[int], size: int
    ) -> tuple[Any, list[Any]]:
        import pyarrow as pa

        # Columns go by their number here: a name may be any text.
        numbers = [str(index) for index in features]
        beyond = range(self._layout.width, self._layout.widest)
        texts = [str(index) for index in [*kept, *beyond]]
        truths = {str(index) for index in features if self._has_truths(index)}
        types = {name: pa.bool_() if name in truths else pa.float64() for name in numbers}
        types |= dict.fromkeys(texts, pa.string())
        found = Growing(self.file.room, len(features))
        parts = [self._texts(index) for index in [*kept, *beyond]]
        try:
            for batch in self._batches(types, size):
                block = np.empty((batch.num_rows, len(features)))
                for index, name in enumerate(numbers):
                    column = batch.column(name)
                    if name in truths:
                        column = column.cast(pa.int8())
                    block[:, index] = column.to_numpy(zero_copy_only=False)
                found.add(block)
                for part, name in zip(parts, texts, strict=True):
                    part.add_arrow(batch.column(name))
        except DataError:  # a bomb, which the plain reader would only meet again
            raise
        except (pa.ArrowException, ValueError) as error:
            raise _Refused(str(error)) from error
        finally:
            pa.default_memory_pool().release_unused()  # it keeps what the blocks took
        columns = [part.whole() for part in parts]
        if any(map(any, columns[len(kept) :])):
            raise _Refused  # a column that was taken for empty is not
        return found.whole(), columns[: len(kept)]

    def _texts(self, index: int) -> GrowingTexts | GrowingWords:
        """Return what takes the texts of a column."""
        room = self.file.room
        return GrowingTexts(room) if index in self.compact and room.scratch else GrowingWords()

    def _batches(self, types: dict[str, Any], size: int) -> Iterator[Any]:
        """Yield the columns of these names and types, by pyarrow's reader."""
        from pyarrow import csv as arrow

        encoding = "utf8" if self._text.is_utf8 else self._text.encoding
        if self._delimiter == SPACES and encoding != "utf8":
            raise _Refused
        reader = arrow.open_csv(
            self._stream(),
            arrow.ReadOptions(
                column_names=[str(index) for index in range(self._layout.widest)],
                skip_rows=self._skipped,
                block_size=size,
                encoding=encoding,
            ),
            arrow.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            arrow.ConvertOptions(
                include_columns=list(types),
                column_types=types,
                null_values=list(self._missing),
                true_values=["1", *TRUE],
                false_values=["0", *FALSE],
                decimal_point=self._decimal,
                strings_can_be_null=False,
            ),
        )
        try:
            yield from reader
        finally:
            # It reads ahead, and waits for that when it goes: an error that keeps this frame must
            # not keep it until Python ends.
            del reader

    def _stream(self) -> Any:
        """Return the content for pyarrow; a file that it can open needs no Python to be read."""
        if self._delimiter == SPACES:
            return Squeezed(self.file.stream())
        if self.file.path is None or self.file.packing is not None:
            return self.file.stream()
        from pyarrow import OSFile

        return OSFile(str(self.file.path))

    def _read_plain(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        numbers, count = array("d"), 0
        found = Growing(self.file.room, len(features))
        texts: list[list[str]] = [[] for _ in kept]
        columns = [self._texts(index) for index in kept]

        def hand_on() -> None:
            nonlocal numbers
            rows = np.frombuffer(numbers, np.float64) if numbers else np.empty(0)
            found.add(rows.reshape(count - found.n_rows, len(features)))
            numbers = array("d")
            for column, text in zip(columns, texts, strict=True):
                column.add(text)
                text.clear()

        troubles: dict[int, Trouble] = {}
        reader = rows_of(self._text.lines(), self._delimiter)
        rows = (row for row in reader if row)
        if self.named:
            next(rows, None)
        decimal = self._decimal
        try:
            for count, row in enumerate(rows, start=1):
                if len(row) != self._layout.widest:
                    self._check_length(row, count, reader.line_num)
                for text, index in zip(texts, kept, strict=True):
                    text.append(row[index])
                picked = [row[index] for index in features]
                try:
                    # A row is converted whole before any of it is kept.
                    numbers.extend([number(field, decimal) for field in picked])
                except ValueError:
                    self._append_checked(picked, features, count, numbers, troubles)
                if len(row) > self._layout.width:
                    self._check_beyond(row, count)
                if count % ROWS == 0:
                    hand_on()
        except csv.Error as error:
            raise DataError(
                f"{self.file.name}: {error}, near line {reader.line_num}. {self._text.doubt()}"
            ) from error
        if troubles:
            refuse_text(self, features, [troubles[index] for index in sorted(troubles)])
        hand_on()
        return found.whole(), [column.whole() for column in columns]

    def _check_length(self, row: Sequence[str], count: int, line: int) -> None:
        """Refuse a row that is shorter or longer than the others."""
        width = self._layout.width
        if width <= len(row) <= self._layout.widest:
            return
        raise DataError(
            f"{self.file.name}: row {count} has {counted(len(row), 'field')} where {width} are "
            f"expected, as in the first line (line {line} of the file). Mend that line, or say "
            f"{called('delimiter')} if the fields are not separated by {self._delimiter!r}."
        )

    def _check_beyond(self, row: Sequence[str], count: int) -> None:
        """Refuse a value in a column that was taken for none."""
        for field in row[self._layout.width :]:
            if field.strip():
                raise DataError(
                    f"{self.file.name}: row {count} holds {quoted(field)} in a column without a "
                    "name that is empty in the rows before. Give it a name in the first line, or "
                    "empty it."
                )

    def _append_checked(
        self,
        picked: Sequence[str],
        features: Sequence[int],
        row: int,
        numbers: array[float],
        troubles: dict[int, Trouble],
    ) -> None:
        """Append a row that holds more than numbers: missing values, or trouble."""
        for index, field in zip(features, picked, strict=True):
            try:
                missing = field.strip() in self._missing
                numbers.append(np.nan if missing else number(field, self._decimal))
            except ValueError:
                numbers.append(np.nan)
                if index in troubles:
                    troubles[index].count += 1
                else:
                    troubles[index] = Trouble(index, row, field)


class _Refused(ValueError):
    """The fast reader could not read a file; the plain one will, or says why not."""
