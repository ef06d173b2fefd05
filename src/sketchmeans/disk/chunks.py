"""Rows of HDF5 and Zarr arrays, which are stored in chunks: each is decoded once a stream.

A chunk is decoded as a whole, however few of its rows are asked for. Blocks of rows are therefore
cut from bands: rows of whole chunks, of which the last one read is kept.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.disk.sources import BLOCK_BYTES, NEAR_BYTES, ArraySource
from sketchmeans.text import human

LARGEST = 1 << 30
"""Bytes of a band beyond which none is kept: such chunks hold nearly whole columns."""
ITSELF, COPIES = 20_000_000, 3
"""Bytes of a library that decodes, and how often it holds what it decodes, packed chunks included;
one more is the band that is kept. Measured on h5py with gzip and on Zarr."""


def chunk_rows(array: Any) -> int | None:
    """Return how many rows a chunk has; None where rows are not stored in chunks."""
    chunks = getattr(array, "chunks", None)
    if not isinstance(chunks, tuple) or len(chunks) != 2:
        return None
    rows = chunks[0]
    return int(rows) if isinstance(rows, int | np.integer) and rows > 1 else None


class ChunkedSource(ArraySource):
    """Rows of an array that is stored in chunks.

    Parameters
    ----------
    array : object
        Has ``chunks``, and ``array[start:stop]`` gives rows.
    """

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        rows = chunk_rows(array)
        assert rows is not None
        row = max(self.shape[1] * self.given.itemsize, 1)
        self._chunk = min(rows, max(self.shape[0], 1))
        # Small chunks are read together, as many as make a block.
        self._band = self._chunk * max(1, BLOCK_BYTES // (self._chunk * row))
        self._keeps = self._band * row <= LARGEST
        self.scratch_bytes = ITSELF + (COPIES + self._keeps) * self._band * row
        self._near = self._chunk * row <= NEAR_BYTES
        self._lock = threading.Lock()
        self._start, self._rows = 0, np.empty((0, self.shape[1]), self.given)
        if not self._keeps:
            warnings.warn(
                f"X is stored in chunks of {rows:,} rows, and these take {human(self._band * row)} "
                "to decode, which is done anew for every block that is read. Store it in chunks of "
                "fewer rows and more columns, or copy it to a .npy file first.",
                UserWarning,
                stacklevel=4,
            )

    def read(self, start: int, stop: int) -> FloatArray:
        """Return a block of rows, cut from the bands that hold it."""
        if not self._keeps:
            return super().read(start, stop)
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        with self._lock:
            at = start
            while at < stop:
                first = at - at % self._band
                last = min(first + self._band, self.shape[0])
                self._seek(first, last)
                upto = min(stop, last)
                out[at - start : upto - start] = self._rows[at - first : upto - first]
                at = upto
        return out

    def _seek(self, first: int, last: int) -> None:
        """Let the band of these rows be the one that is kept."""
        if self._start == first and len(self._rows) == last - first:
            return
        self._rows = self._rows[:0].copy()  # never two bands at a time
        rows = np.asarray(self._array[first:last])
        self._check_shape(rows, first, last)
        self._start, self._rows = first, rows

    def take(self, indices: IntArray) -> FloatArray:
        """Return some rows by their numbers; of each chunk those are read that are wanted."""
        order = np.argsort(indices, kind="stable")
        wanted = np.asarray(indices)[order]
        size = max(self._chunk, self.block_rows) if self._near else self._chunk
        out = np.empty((len(wanted), self.shape[1]), self.dtype)
        cuts = np.flatnonzero(np.diff(wanted // size)) + 1
        for part in np.split(np.arange(len(wanted)), cuts):
            if len(part):
                start = int(wanted[part[0]])
                block = self._few(start, int(wanted[part[-1]]) + 1)
                out[order[part]] = block[wanted[part] - start]
        return out

    def _few(self, start: int, stop: int) -> FloatArray:
        """Return rows of one chunk, or of small ones: from the band where it is there anyway."""
        with self._lock:
            there = self._start <= start and stop <= self._start + len(self._rows)
        whole = self._keeps and self._band == self._chunk
        return self.read(start, stop) if there or whole else super().read(start, stop)
