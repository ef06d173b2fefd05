"""Texts of rows, such as ids, kept compactly: in memory, or where that is too small in a file.

A text of Python takes some sixty bytes beside its characters. Under a memory limit the ids of many
rows are UTF-8 behind each other instead, and become texts a block at a time, when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sketchmeans._arrays import IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.io.extras import arrow
from sketchmeans.io.room import Growing, Room

TOGETHER = 1 << 16
"""Rows whose texts are made at once."""
LARGEST = 2**31 - 1
"""Bytes of an Arrow array of texts."""


class Texts:
    """A text for each row, which behaves like an array of them as far as tables ask.

    Parameters
    ----------
    letters : array of uint8
        All texts in UTF-8, behind each other.
    ends : array of int64
        Where each of them ends.
    room : Room
        Where those of chosen rows are put.
    """

    def __init__(self, letters: Any, ends: Any, room: Room) -> None:
        self._letters, self._ends, self._room = letters, ends, room
        self.shape, self.dtype = (len(ends),), np.dtype(object)

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        for rows in row_blocks(len(self), TOGETHER):
            yield from self._decoded(rows.start, rows.stop)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of a row, an array of those of a slice, or ``Texts`` of chosen rows."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            found = np.empty(max(stop - start, 0), object)
            found[:] = self._decoded(start, stop)
            return found[::step]
        if np.ndim(rows) == 0:
            row = range(len(self))[int(rows)]
            return self._decoded(row, row + 1)[0]
        chosen = np.asarray(rows)
        return self._picked(np.flatnonzero(chosen) if chosen.dtype == bool else chosen)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self[:].astype(dtype or object)

    def __arrow_array__(self, type: Any = None) -> Any:
        """Return an Arrow array of the same bytes, or several where they are too many for one."""
        pa = arrow()
        parts: list[Any] = []
        start = 0
        while start < len(self) or not parts:
            first = self._begin(start)
            stop = int(np.searchsorted(self._ends, first + LARGEST, side="right"))
            ends = np.append(0, self._ends[start:stop] - first).astype(np.int32)
            letters = pa.py_buffer(self._letters[first : first + int(ends[-1])])
            parts.append(pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), letters))
            start = stop
        found = parts[0] if len(parts) == 1 else pa.chunked_array(parts)
        return found if type is None else found.cast(type)

    def tolist(self) -> list[str]:
        """Return all of them as texts of Python."""
        return list(self)

    @property
    def held(self) -> int:
        """Bytes of memory that they take."""
        return held_bytes(self._letters) + held_bytes(self._ends)

    def _begin(self, row: int) -> int:
        return int(self._ends[row - 1]) if row else 0

    def _decoded(self, start: int, stop: int) -> list[str]:
        """Return the texts of rows behind each other."""
        first = self._begin(start)
        ends = (np.asarray(self._ends[start:stop]) - first).tolist()
        letters = bytes(self._letters[first : first + (ends[-1] if ends else 0)])
        return [letters[begin:end].decode() for begin, end in zip([0, *ends], ends, strict=False)]

    def _picked(self, rows: IntArray) -> Texts:
        found = GrowingTexts(self._room)
        for block in row_blocks(len(rows), TOGETHER):
            found.add([self[row] for row in rows[block]])
        return found.whole()


class GrowingTexts:
    """Texts as they come, kept compactly.

    Parameters
    ----------
    room : Room
    """

    def __init__(self, room: Room) -> None:
        self._room, self._total = room, 0
        self._letters, self._ends = Growing(room, 1, np.uint8), Growing(room, 1, np.int64)

    def add(self, texts: Sequence[str]) -> None:
        """Take texts of Python."""
        coded = [text.encode() for text in texts]
        self._add(b"".join(coded), np.array([len(one) for one in coded], np.int64))

    def add_arrow(self, column: Any) -> None:
        """Take an Arrow array of texts, none of which is missing."""
        _, ends, letters = column.buffers()
        offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
        taken = np.frombuffer(letters or b"", np.uint8)[offsets[0] : offsets[-1]]
        self._add(taken.tobytes(), np.diff(offsets))

    def _add(self, letters: bytes, lengths: Any) -> None:
        ends = self._total + np.cumsum(lengths, dtype=np.int64)
        self._total += len(letters)
        self._letters.add(np.frombuffer(letters, np.uint8)[:, None])
        self._ends.add(ends[:, None])

    def whole(self) -> Texts:
        """Return all of them."""
        return Texts(self._letters.whole()[:, 0], self._ends.whole()[:, 0], self._room)


class GrowingWords:
    """Texts as they come, as an array of objects; one that repeats near by is there once."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def add(self, texts: Sequence[str]) -> None:
        """Take texts of Python."""
        known: dict[str, str] = {}
        part = np.empty(len(texts), object)
        part[:] = [known.setdefault(text, text) for text in texts]
        self._parts.append(part)

    def add_arrow(self, column: Any) -> None:
        """Take an Arrow array of texts, none of which is missing."""
        coded = column.dictionary_encode()
        words = np.empty(len(coded.dictionary), object)
        words[:] = coded.dictionary.to_pylist()
        self._parts.append(words[coded.indices.to_numpy()])

    def whole(self) -> Any:
        """Return all of them."""
        return np.concatenate(self._parts) if self._parts else np.empty(0, object)


def held_bytes(array: Any) -> int:
    """Return the bytes of memory that an array takes: none in a file; texts that repeat count once.

    >>> held_bytes(np.zeros(10)), held_bytes(None)
    (80, 0)
    """
    if array is None:
        return 0
    if isinstance(array, Texts):
        return array.held
    if hasattr(array, "indptr"):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return 0 if in_file(array) else int(array.nbytes)


def in_file(array: Any) -> bool:
    """Whether an array is part of a memory map."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            return True
        array = array.base
    return False
