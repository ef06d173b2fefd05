"""What the messages of an Arrow file declare, read before anything is unpacked.

An Arrow file is a sequence of messages: a description (a FlatBuffer) and a body of buffers. Where
buffers are compressed, each begins with the size that it unpacks to, and pyarrow allocates that
much: it has no way to ask for the sizes alone. Only the few fields that tell them are looked up
here, which saves a library for FlatBuffers.
"""

from __future__ import annotations

import struct
from typing import Any

from sketchmeans.io.limits import ARRAY_RATIO, DataError, check_expansion
from sketchmeans.io.opening import DataFile

RECORD_BATCH = 3
DICTIONARY_BATCH = 2
"""Values of ``header_type`` in Arrow's Message.fbs."""
HEADER_TYPE, HEADER = 1, 2
"""Fields of a Message."""
DICTIONARY_DATA = 1
"""The record batch within a DictionaryBatch."""
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3
"""Fields of a RecordBatch."""


class _Table:
    """A table of a FlatBuffer: fields are found through a list of offsets."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place
        self.offsets = place - self._number("<i", place)
        self.size = self._number("<H", self.offsets)

    def _number(self, kind: str, place: int) -> int:
        if place < 0:
            raise struct.error("a place before the beginning")
        return int(struct.unpack_from(kind, self.data, place)[0])

    def where(self, field: int) -> int | None:
        """Return the place of a field, or None where it has its default."""
        entry = 4 + 2 * field
        offset = self._number("<H", self.offsets + entry) if entry + 2 <= self.size else 0
        return self.place + offset if offset else None

    def number(self, field: int, kind: str) -> int:
        """Return a number; 0 where it is left out."""
        place = self.where(field)
        return 0 if place is None else self._number(kind, place)

    def table(self, field: int) -> _Table | None:
        """Return a table within this one."""
        place = self.where(field)
        return None if place is None else _Table(self.data, place + self._number("<I", place))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a list of pairs of 64-bit numbers."""
        place = self.where(field)
        if place is None:
            return []
        place += self._number("<I", place)
        count = self._number("<I", place)
        if place + 4 + 16 * count > len(self.data):
            raise struct.error("a list beyond the end")
        return list(struct.iter_unpack("<qq", self.data[place + 4 : place + 4 + 16 * count]))


def count_rows(file: DataFile, start: int) -> int:
    """Return the rows that the messages from ``start`` declare; refuse bombs and nonsense."""
    from pyarrow import ipc, memory_map

    # Of a map only what is looked at is read, which is no number of a table.
    source = file.handle if file.path is None else memory_map(str(file.path))
    source.seek(start)
    rows = unpacked = 0
    try:
        for message in ipc.MessageReader.open_stream(source):
            description = message.metadata.to_pybytes()
            root = _Table(description, struct.unpack_from("<I", description)[0])
            kind = root.number(HEADER_TYPE, "<B")
            batch = root.table(HEADER)
            if kind == DICTIONARY_BATCH and batch is not None:
                batch = batch.table(DICTIONARY_DATA)
            if kind not in (RECORD_BATCH, DICTIONARY_BATCH) or batch is None:
                continue
            length = batch.number(LENGTH, "<q")
            # A row takes at least a bit of some buffer, or its column says nothing.
            if length < 0 or length > 8 * file.size * ARRAY_RATIO:
                raise DataError(f"{file.name} declares {length:,} rows: it is damaged.")
            rows += length if kind == RECORD_BATCH else 0
            if batch.where(COMPRESSION) is not None:
                unpacked += _unpacked(batch, message.body)
                check_expansion(file.name, file.size, unpacked)
    except struct.error as error:
        raise DataError(f"{file.name} is damaged: {error}.") from error
    return rows


def _unpacked(batch: _Table, body: Any) -> int:
    """Return the bytes that the buffers of a compressed record batch unpack to."""
    total = 0
    data = memoryview(body)
    for offset, length in batch.pairs(BUFFERS):
        if length == 0:
            continue
        if offset < 0 or length < 8 or offset + length > len(data):
            raise struct.error("a buffer beyond the end of its message")
        declared = struct.unpack_from("<q", data, offset)[0]
        if declared < -1:
            raise struct.error("a buffer of negative size")
        total += length if declared == -1 else declared  # −1: this buffer is stored as it is
    return total
