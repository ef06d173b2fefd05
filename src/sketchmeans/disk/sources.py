"""Where rows are read from: anything with a shape, a dtype and slices of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.disk.npy import watch_of

BLOCK_BYTES = 4 << 20
"""Bytes of rows that are read at once where nothing else says how many."""
NEAR_BYTES = 256 << 10
"""Bytes between two rows up to which both are read together: to seek takes longer."""


class Source(ABC):
    """Rows of numbers in a file, as the estimators take them: float32 or float64, in C order."""

    shape: tuple[int, int]
    dtype: np.dtype
    """Of the rows as they are given out."""
    names: list[str] | None = None
    """Of the columns, where they have some."""
    scratch_bytes: int = 0
    """What reading takes beside the blocks that it gives."""

    @abstractmethod
    def read(self, start: int, stop: int) -> FloatArray:
        """Return a block of rows, which nobody else writes to."""

    @property
    def block_rows(self) -> int:
        """Rows of ``BLOCK_BYTES``, about."""
        return max(1, BLOCK_BYTES // max(self.shape[1] * self.dtype.itemsize, 1))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as they are given out."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def mapped(self) -> Any:
        """The rows as an array that takes no memory of its own; None where there is none."""
        return None

    def take(self, indices: IntArray) -> FloatArray:
        """Return some rows by their numbers; what lies near is read together, and in order."""
        order = np.argsort(indices, kind="stable")
        wanted = np.asarray(indices)[order]
        out = np.empty((len(wanted), self.shape[1]), self.dtype)
        near = NEAR_BYTES // max(self.shape[1] * self.dtype.itemsize, 1)
        at = 0
        while at < len(wanted):
            start = int(wanted[at])
            gaps = np.flatnonzero(np.diff(wanted[at:]) > max(near, 1))
            after = at + 1 + int(gaps[0]) if len(gaps) else len(wanted)
            after = min(after, int(np.searchsorted(wanted, start + self.block_rows)))
            block = self.read(start, int(wanted[after - 1]) + 1)
            out[order[at:after]] = block[wanted[at:after] - start]
            at = after
        return out


class ArraySource(Source):
    """Rows of anything with a shape, a dtype and slices; of a memory map above all.

    Parameters
    ----------
    array : object
        ``array[start:stop]`` gives rows.
    columns : slice, optional
        Those that count.
    """

    def __init__(self, array: Any, columns: slice | None = None) -> None:
        n, p = (int(size) for size in array.shape)
        self._array, self._columns = array, columns
        self.shape = n, p if columns is None else len(range(p)[columns])
        self.given = np.dtype(array.dtype)
        self.dtype = float_dtype(self.given)
        self._watch = watch_of(array)

    def refuse_changed(self) -> None:
        """Refuse a file that was opened by its name, and was written to since."""
        if self._watch is not None:
            self._watch.refuse_changed()

    @property
    def array(self) -> Any:
        """What was given."""
        return self._array

    @property
    def is_given_map(self) -> bool:
        """Whether the rows are those of a memory map that somebody else has opened."""
        return isinstance(self._array, np.ndarray) and self._watch is None

    def read(self, start: int, stop: int) -> FloatArray:
        """Return a block of rows; a copy of what is mapped, which is read by this and not later."""
        self.refuse_changed()
        block = self._array[start:stop]
        if self._columns is not None:
            block = block[:, self._columns]
        is_view = isinstance(self._array, np.ndarray)
        block = np.array(block, dtype=self.dtype, order="C", copy=True if is_view else None)
        self._check_shape(block, start, stop)
        return block

    def _check_shape(self, block: Any, start: int, stop: int) -> None:
        """Refuse what are not the rows that were asked for."""
        if block.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"rows {start:,} to {stop:,} of X came as an array of shape {block.shape}, where "
                f"({stop - start:,}, {self.shape[1]:,}) is needed: X[start:stop] must give rows."
            )

    @property
    def mapped(self) -> Any:
        """The memory map itself, where it holds numbers as compiled code reads them."""
        array = self._array
        if not isinstance(array, np.ndarray) or self._columns is not None:
            return None
        plain = array.flags.c_contiguous and array.flags.aligned and array.dtype == self.dtype
        return array if plain and array.dtype.isnative else None

    def take(self, indices: IntArray) -> FloatArray:
        """Return some rows by their numbers."""
        if not isinstance(self._array, np.ndarray):
            return super().take(indices)
        self.refuse_changed()
        rows = self._array[indices]
        rows = rows if self._columns is None else rows[:, self._columns]
        return np.array(rows, dtype=self.dtype, order="C")


def float_dtype(given: np.dtype) -> np.dtype:
    """Return the precision in which numbers of this kind are taken: float32, or float64."""
    if given.kind not in "fiub":
        raise ValueError(
            f"X holds numbers of dtype {given}, and real ones are needed: float32, float64, or "
            "others that become float64."
        )
    plain = given.newbyteorder("=")
    return plain if plain in (np.float32, np.float64) else np.dtype(np.float64)


def is_memory_map(X: Any) -> bool:
    """Whether X is an array that lies in a file."""
    return isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None
