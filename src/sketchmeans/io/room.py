"""Where the numbers of a table are put: in memory, or where that is too small in a scratch file.

This room imports no other: who reads a table gives a function that makes arrays in scratch files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sketchmeans._arrays import Array
from sketchmeans.blocks import row_blocks

Scratch = Callable[[tuple[int, ...], Any], Any]
Ask = Callable[[tuple[int, int], np.dtype], None]
BESIDE = 4
"""What is read at once takes this part of the room at most."""


@dataclass(frozen=True)
class Room:
    """Room for a table."""

    most: int | None = None
    """Bytes that it may take of memory; any number if left out."""
    scratch: Scratch | None = None
    """Makes an array of a shape and a dtype in a scratch file."""
    ask: Ask | None = None
    """Told of rows before they are read, where a file says how many there are: may refuse them."""

    def announce(self, shape: tuple[int, int], dtype: Any) -> None:
        """Say what is about to be read."""
        if self.ask is not None:
            self.ask(shape, np.dtype(dtype))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array without numbers yet."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self.scratch is None or self.fits(size):
            return np.empty(shape, dtype)
        return self.scratch(shape, dtype)

    def fits(self, size: int) -> bool:
        """Whether so many bytes may be in memory."""
        return self.most is None or size <= self.most

    def beside(self, size: int) -> bool:
        """Whether so many bytes may be in memory for a moment, beside the table."""
        return self.most is None or BESIDE * size <= self.most

    def copied(self, X: Any, columns: list[int] | slice, dtype: Any) -> Any:
        """Return columns of an array in C order, copied a block of rows at a time."""
        width = len(columns) if isinstance(columns, list) else len(range(X.shape[1])[columns])
        found = self.empty((len(X), width), dtype)
        for rows in row_blocks(len(X)):
            found[rows] = X[rows][:, columns]
        return found


IN_MEMORY = Room()


@dataclass
class Growing:
    """Blocks of rows as they come: in memory as long as there is room, then in a file."""

    room: Room
    width: int
    dtype: Any = np.float64
    blocks: list[Array] = field(default_factory=list)
    n_rows: int = 0
    _file: Any = None

    def add(self, block: Array) -> None:
        """Take the next rows."""
        self.n_rows += len(block)
        self.blocks.append(block)
        if self.room.scratch is not None and not self.room.fits(self.n_rows * self._row):
            self._spill()

    @property
    def _row(self) -> int:
        return self.width * np.dtype(self.dtype).itemsize

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix=".sketchmeans-")  # noqa: SIM115
        for block in self.blocks:
            self._file.write(np.ascontiguousarray(block, dtype=self.dtype).data)
        self.blocks.clear()

    def whole(self) -> Any:
        """Return all rows, letting go of each block when it is copied."""
        if self._file is not None and self.n_rows * self._row:
            self._file.flush()
            with self._file as file:
                return np.memmap(file, self.dtype, "r+", shape=(self.n_rows, self.width))
        X = np.empty((self.n_rows, self.width), self.dtype)
        start = 0
        self.blocks.reverse()
        while self.blocks:
            block = self.blocks.pop()
            X[start : start + len(block)] = block
            start += len(block)
        return X
