"""Rows of a Parquet file, or of a folder of them: decoded in batches, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.disk.sources import Source

BATCH = 1 << 15
"""Rows that are decoded at once."""
STRIP = 1 << 12
"""Rows that are turned from columns into rows at once: they stay in the processor's cache."""
NUMBERS = {"float", "double", "halffloat", "bool"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


DECODING = 80_000_000
"""Bytes that pyarrow takes: itself, and what it decodes at once."""


class ParquetSource(Source):
    """Rows of Parquet files; in a folder, of all its files in the order of their names.

    What is read in order is decoded once. A row group that is begun in the middle is decoded from
    its start.

    Parameters
    ----------
    path : str
    """

    scratch_bytes = DECODING

    def __init__(self, path: str) -> None:
        self._files = [_opened(one) for one in _files_of(Path(path))]
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
            for batch in file.iter_batches(BATCH, row_groups=[group], use_threads=False):
                left -= batch.num_rows
                yield self._rows_of(batch)
            if left:
                raise ValueError(f"a row group declares {stop - start:,} rows and holds others.")

    def _rows_of(self, batch: Any) -> FloatArray:
        out = np.empty((batch.num_rows, self.shape[1]), self.dtype)
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        for start in range(0, len(out), STRIP):
            for place, column in enumerate(columns):
                out[start : start + STRIP, place] = column[start : start + STRIP]
        return out


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(one for one in path.iterdir() if one.suffix in (".parquet", ".pq"))
    if not files:
        raise FileNotFoundError(f"the folder {path} holds no .parquet file.")
    return files


def _opened(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            f'{path} needs pyarrow to be read: pip install "sketchmeans[files]".'
        ) from error
    return parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
