"""Rows of a Parquet file, or of a folder of them: decoded in batches, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.disk.sources import BLOCK_BYTES, Source

BATCH = 1 << 15
"""Rows that are decoded at once, at the most; fewer where there are many columns."""
STRIP = 1 << 12
"""Rows that are turned from columns into rows at once: they stay in the processor's cache."""
NUMBERS = {"float", "double", "halffloat", "bool"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


ITSELF, BATCHES, POOL = 30_000_000, 11, 1.4
"""Bytes of pyarrow itself; how many batches it and we hold of one that is decoded; and what its
allocator takes beyond what was asked of it: measured on 20 and 800 columns."""
PAGE = 1_250_000
"""Bytes of a page, and of a dictionary, as writers cut them."""
GROUPS = 8
"""Row groups whose columns are looked at: the largest."""


class ParquetSource(Source):
    """Rows of Parquet files; in a folder, of all its files in the order of their names.

    What is read in order is decoded once. A row group that is begun in the middle is decoded from
    its start.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self._paths = _files_of(Path(path))
        self._files = [_opened(one) for one in self._paths]
        schema = self._files[0].schema_arrow
        self.names = list(schema.names)
        for file in self._files[1:]:
            if not file.schema_arrow.equals(schema):
                raise ValueError(
                    f"the files of {path} have different columns: {file.schema_arrow.names} where "
                    f"the first has {self.names}, or other types of them."
                )
        for field in schema:
            if str(field.type) not in NUMBERS:
                raise ValueError(
                    f"column {field.name!r} of {path} holds {field.type}, and kernels need numbers."
                    " Write a file without it, or encode it first."
                )
        single = all(str(field.type) == "float" for field in schema)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        groups = [
            (number, group, file.metadata.row_group(group).num_rows)
            for number, file in enumerate(self._files)
            for group in range(file.num_row_groups)
        ]
        self._groups = [(number, group) for number, group, rows in groups if rows]
        self._ends = np.cumsum([0, *(rows for _, _, rows in groups if rows)])
        self.shape = int(self._ends[-1]), len(self.names)
        row = max(self.shape[1] * self.dtype.itemsize, 1)
        self._batch = max(1, min(BATCH, BLOCK_BYTES // row))
        pages = max((_decoded_bytes(file) for file in self._files), default=0)
        self.scratch_bytes = ITSELF + BATCHES * self._batch * row + int(POOL * pages)
        self._lock = threading.Lock()
        self._at = 0
        self._blocks: Iterator[FloatArray] = iter(())
        self._left = np.empty((0, self.shape[1]), self.dtype)
        """Rows from ``_at`` on that are decoded already."""

    def read(self, start: int, stop: int) -> FloatArray:
        """Return a block of rows."""
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        done = 0
        with self._lock:
            self._seek(start)
            while done < len(out):
                if not len(self._left):
                    self._left = next(self._blocks)
                few = min(len(self._left), len(out) - done)
                out[done : done + few] = self._left[:few]
                self._left = self._left[few:]
                done, self._at = done + few, self._at + few
        return out

    def _seek(self, start: int) -> None:
        """Go to a row: on within its row group, or to the begin of it."""
        group = min(int(np.searchsorted(self._ends, start, side="right")) - 1, len(self._groups))
        if self._at > start or self._at < self._ends[group] or not self._at:
            self._blocks = self._decoded(group)
            self._left, self._at = self._left[:0], int(self._ends[group])
        while self._at < start:
            if not len(self._left):
                self._left = next(self._blocks)
            few = min(len(self._left), start - self._at)
            self._left, self._at = self._left[few:], self._at + few

    def _decoded(self, first: int) -> Iterator[FloatArray]:
        """Give rows from a row group on."""
        for (number, group), (start, stop) in zip(
            self._groups[first:], list(pairwise(self._ends))[first:], strict=True
        ):
            file, left = self._files[number], int(stop - start)
            batches = file.iter_batches(self._batch, row_groups=[group], use_threads=False)
            while left:
                try:
                    batch = next(batches)
                except StopIteration:
                    raise ValueError(
                        f"a row group of {str(self._paths[number])!r} declares {stop - start:,} "
                        f"rows and holds {stop - start - left:,}. It is damaged: write it again."
                    ) from None
                except OSError as error:  # what pyarrow says of pages that it cannot decode
                    raise _unreadable(self._paths[number], error) from error
                left -= batch.num_rows
                yield self._rows_of(batch)

    def _rows_of(self, batch: Any) -> FloatArray:
        out = np.empty((batch.num_rows, self.shape[1]), self.dtype)
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        for start in range(0, len(out), STRIP):
            for place, column in enumerate(columns):
                out[start : start + STRIP, place] = column[start : start + STRIP]
        return out


def _decoded_bytes(file: Any) -> int:
    """Return what the pages of a row group take that are open at a time: one of each column."""
    groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
    groups.sort(key=lambda group: group.total_byte_size, reverse=True)
    largest = 0
    for group in groups[:GROUPS]:
        total = 0
        for place in range(group.num_columns):
            column = group.column(place)
            copies = 2 if column.has_dictionary_page else 1
            if copies == 1 and column.compression == "UNCOMPRESSED":
                continue  # read where it is mapped
            total += copies * min(column.total_uncompressed_size, PAGE)
        largest = max(largest, total)
    return largest


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    # Names that begin so are those of files that others have not finished, or hide.
    there = [one for one in path.iterdir() if not one.name.startswith((".", "_"))]
    files = sorted(one for one in there if one.suffix in (".parquet", ".pq") and not one.is_dir())
    folders = sorted(one.name for one in there if one.is_dir())
    if folders:
        raise ValueError(
            f"the folder {path} holds folders, such as {folders[0]!r}, and the files of one folder "
            "are read: give the path of that, or put all files in one."
        )
    if not files:
        raise FileNotFoundError(f"the folder {path} holds no .parquet file.")
    return files


def _opened(path: Path) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            f'{path} needs pyarrow to be read: pip install "sketchmeans[files]".'
        ) from error
    try:
        return parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
    except pyarrow.ArrowInvalid as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ValueError:
    """Return what pyarrow says, in one line, and what to do."""
    said = str(error).strip().splitlines()[0].rstrip(".")
    return ValueError(
        f"{str(path)!r} cannot be read as Parquet: {said}. It is damaged or cut off: write it "
        "again."
    )
