"""CSV and TSV: by pyarrow where it is installed, else by Python's own reader.

Python's reader defines what a file means. pyarrow is tried first for its speed, and where it
refuses a file, Python's reader either reads it or says which row is wrong.
"""

from __future__ import annotations

import csv
import io
import warnings
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.io.opening import DataError, DataFile
from sketchmeans.io.source import Source, Trouble, check_names, quoted, refuse_text, unnamed
from sketchmeans.text import called, counted, setting

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A")
"""Texts that stand for a missing value."""
LONGEST_LINE = 4_000_000
"""Characters of a line: beyond, a file is taken for something else than a table."""


class DelimitedSource(Source):
    """Rows of text: a header or none, fields between delimiters.

    Parameters
    ----------
    file : DataFile
    header : bool, optional
        Whether the first row names the columns. If left out, it does unless all its fields are
        numbers or one of them is a fraction, such as 6.26, which hardly names a column; but 0, 1,
        2, …, which pandas writes for a frame without names, are a header.
    """

    def __init__(self, file: DataFile, header: bool | None = None) -> None:
        super().__init__(file)
        self._delimiter = "\t" if file.format == "tsv" else ","
        lines = self._lines()
        start = next((line for line in lines if line.strip("\r\n")), "")
        self._delimiter = _delimiter_of(start, self._delimiter)
        reader = self._reader()
        first = next((row for row in reader if row), None)
        if first is None:
            raise DataError(f"{file.name} holds no rows.")
        self.named = _looks_like_header(first) if header is None else header
        if header is None:
            self._warn_of_doubt(first)
        self._skip = reader.line_num if self.named else 0
        generated = unnamed(len(first))
        if self.named:
            self.names = [
                field.strip() or spare for field, spare in zip(first, generated, strict=True)
            ]
            self.nameless = [0] if not first[0].strip() and len(first) > 1 else []
        else:
            self.names = generated
        check_names(file, self.names)

    def _warn_of_doubt(self, first: Sequence[str]) -> None:
        """Warn of a first row of names and numbers: one row more or less is easily overlooked."""
        numbers = [field.strip() for field in first if _is_number(field)]
        texts = [field for field in first if field.strip() not in MISSING and not _is_number(field)]
        if numbers and texts:
            warnings.warn(
                f"the first row of {self.file.name} holds {quoted(texts[0])} and "
                f"{quoted(numbers[0])}: it was taken as {'names' if self.named else 'data'}. Say "
                f"{setting('header', not self.named)} if it is not.",
                stacklevel=5,
            )

    def _lines(self) -> Iterator[str]:
        text = io.TextIOWrapper(self.file.stream(), encoding="utf-8-sig", newline="")
        number = 0
        try:
            while line := text.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE and not line.endswith(("\n", "\r")):
                    raise DataError(
                        f"{self.file.name}: line {number} is longer than {LONGEST_LINE:,} "
                        f"characters. {self._doubt()}"
                    )
                yield line
        except UnicodeDecodeError as error:
            wide = error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
            likely = "utf-16" if wide else "latin1"
            raise DataError(
                f"{self.file.name} is not UTF-8 text: byte {error.object[error.start]:#04x} after "
                f"line {number}. Convert it (iconv -f {likely} -t utf8), or say "
                f"{called('format')} if it is no text at all."
            ) from error

    def _doubt(self) -> str:
        kind = self.file.format.upper()
        return f"Is this a {kind} file? Say {called('format')} otherwise."

    def _reader(self) -> Any:
        return csv.reader(self._lines(), delimiter=self._delimiter)

    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return the features as float64 and the kept columns as text."""
        try:
            return self._read_fast(features, kept)
        except (ImportError, _Refused):
            return self._read_plain(features, kept)

    def _read_fast(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        import pyarrow as pa
        from pyarrow import csv as arrow

        # Columns go by their number here: a name may be any text.
        chosen = [*features, *kept]
        numbers = [str(index) for index in features]
        texts = [str(index) for index in kept]
        try:
            reader = arrow.open_csv(
                self.file.stream(),
                arrow.ReadOptions(
                    column_names=[str(index) for index in range(len(self.names))],
                    skip_rows=self._skip,
                    block_size=2 * LONGEST_LINE,
                ),
                arrow.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                arrow.ConvertOptions(
                    include_columns=[str(index) for index in chosen],
                    column_types={
                        **dict.fromkeys(numbers, pa.float64()),
                        **dict.fromkeys(texts, pa.string()),
                    },
                    null_values=list(MISSING),
                    strings_can_be_null=False,
                ),
            )
            blocks: list[FloatArray] = []
            parts: list[list[Any]] = [[] for _ in kept]
            for batch in reader:
                block = np.empty((batch.num_rows, len(features)))
                for index, name in enumerate(numbers):
                    block[:, index] = batch.column(name).to_numpy(zero_copy_only=False)
                blocks.append(block)
                for part, name in zip(parts, texts, strict=True):
                    part.append(batch.column(name).to_numpy(zero_copy_only=False))
        except pa.ArrowException as error:
            raise _Refused from error
        return joined(blocks, len(features)), [_joined_text(part) for part in parts]

    def _read_plain(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        width = len(self.names)
        numbers = array("d")
        texts: list[list[str]] = [[] for _ in kept]
        troubles: dict[int, Trouble] = {}
        reader = self._reader()
        rows = (row for row in reader if row)
        if self.named:
            next(rows, None)
        count = 0
        try:
            for count, row in enumerate(rows, start=1):
                if len(row) != width:
                    raise DataError(
                        f"{self.file.name}: row {count} has {counted(len(row), 'field')} where "
                        f"{width} are expected, as in the first line (line {reader.line_num} of "
                        f"the file). Mend that line, or say {called('format')} if the fields are "
                        f"not separated by {self._delimiter!r}."
                    )
                for text, index in zip(texts, kept, strict=True):
                    text.append(row[index])
                picked = [row[index] for index in features]
                try:
                    # A row is converted whole before any of it is kept.
                    numbers.extend([_number(field) for field in picked])
                except ValueError:
                    self._append_checked(picked, features, count, numbers, troubles)
        except csv.Error as error:
            raise DataError(
                f"{self.file.name}: {error}, near line {reader.line_num}. {self._doubt()}"
            ) from error
        if troubles:
            refuse_text(self, features, [troubles[index] for index in sorted(troubles)])
        X = np.frombuffer(numbers, np.float64) if numbers else np.empty(0)
        return X.reshape(count, len(features)), [np.array(text, object) for text in texts]

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
                numbers.append(np.nan if field.strip() in MISSING else _number(field))
            except ValueError:
                numbers.append(np.nan)
                if index in troubles:
                    troubles[index].count += 1
                else:
                    troubles[index] = Trouble(index, row, field)


class _Refused(Exception):
    """The fast reader could not read a file; the plain one will, or says why not."""


def joined(blocks: list[FloatArray], width: int) -> FloatArray:
    """Return blocks of rows as one array, letting go of each block when it is copied.

    Memory: the array and one block, for memory is only taken where it is written.
    """
    dtype = blocks[0].dtype if blocks else np.dtype(np.float64)
    X = np.empty((sum(len(block) for block in blocks), width), dtype)
    start = 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        X[start : start + len(block)] = block
        start += len(block)
    return X


def _joined_text(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, object)


def _delimiter_of(line: str, expected: str) -> str:
    """Return the delimiter of a header: the expected one, or the only one that is there."""
    # NOTE: csv.Sniffer takes letters and spaces for delimiters too.
    if expected in line:
        return expected
    return next((mark for mark in ",;\t|" if mark in line), expected)


def _looks_like_header(fields: Sequence[str]) -> bool:
    """Whether a first row names columns: by some text and no fraction, or by 0, 1, 2, …."""
    texts = [field.strip() for field in fields]
    texts = texts[1:] if not texts[0] else texts  # pandas leaves its index without a name
    if len(texts) > 1 and texts == [str(index) for index in range(len(texts))]:
        return True
    filled = [text for text in texts if text not in MISSING]
    if any(_is_number(text) and set(text) & set(".eE") for text in filled):
        return False
    return not all(_is_number(text) for text in filled)


def _is_number(text: str) -> bool:
    try:
        _number(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float:
    """Return a number. Python reads 2019_1 as 20191; in a table it is a name."""
    if "_" in text:
        raise ValueError(f"{text!r} is no number")
    return float(text)
