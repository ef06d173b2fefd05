"""The file of a stored model or of a part of a checkpoint: JSON and raw arrays with checksums.

::

    offset  0   8 bytes    magic
            8   uint32     version of the format
           12   uint32     bytes of the header, h
           16   16 bytes   BLAKE2b of bytes 0 to 15 and of the header
           32   h bytes    header: JSON in UTF-8
                           arrays, each at the next multiple of 64, zeros between

Numbers are little-endian. ``header["arrays"]`` lists name, dtype, shape, order, offset (from the
first array), bytes and checksum of each. The layout has no freedom: arrays follow one another in
the order of the table and the file ends with the last one, so nothing can overlap, lie outside or
hide between. A file is data and no more: no name in it is imported, and nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from typing import Any, BinaryIO, NoReturn

import numpy as np

from sketchmeans._arrays import Array

MAGIC = b"\x89SKM\r\n\x1a\n"
"""As PNG's: bytes that a transfer as text would change."""
VERSION = 5
"""The format that is written, and the newest that is read: ``schema.upgraded`` knows the others."""
DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")
MOST_HEADER = 1 << 20
"""Bytes of a header; that of a fitted model takes about 4,000."""
MOST_BRACKETS = 512
"""Lists and objects in a header, nested or not; that of a fitted model has about 50."""
MOST_ARRAYS = 128
ALIGNMENT = 64
CHUNK = 1 << 20
"""Bytes that are hashed, written or read at a time."""

_PREAMBLE = struct.Struct("<8sII16s")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A text of JSON; one without an end is one to the end, so that no header is searched twice."""
DAMAGED = "The file is damaged: copy it again, or save the model again."


class ModelFileError(ValueError):
    """A file is no model, is damaged, or holds what no fitted model holds."""


@dataclass(frozen=True)
class Entry:
    """Where an array is in the file, and what it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: str
    """"C" or "F": products of matrices have the same bits for the same order only."""
    offset: int
    """From the first array."""
    bytes: int
    checksum: str


def write(
    file: BinaryIO,
    header: dict[str, Any],
    arrays: dict[str, Array],
    *,
    version: int = VERSION,
    magic: bytes = MAGIC,
) -> None:
    """Write a header and arrays to an empty file; no array is copied whole.

    Parameters
    ----------
    file : binary file
        Open for writing, at its start.
    header : dict
        What JSON can hold; "arrays" is added.
    arrays : dict of arrays
        Of one or two dimensions.
    version : int
        Of the format; a sketchmeans that knows only lower ones says that a newer one is needed.
    magic : bytes
        What the file begins with: a model's, or that of another kind of file, of eight bytes.
    """
    entries = place(arrays)
    start = _aligned(len(_encode(header, entries, version, magic)))
    file.write(
        magic.ljust(start, b"\0")
    )  # whose it is shows, if somebody is killed while he writes
    finished = []
    for entry, array in zip(entries, arrays.values(), strict=True):
        file.write(bytes(start + entry.offset - file.tell()))
        digest = _digest()
        for chunk in _chunks(array, entry):
            digest.update(chunk)
            file.write(chunk)
        finished.append(replace(entry, checksum=digest.hexdigest()))
    file.seek(0)
    file.write(
        _encode(header, finished, version, magic)
    )  # as long as before: checksums have one length


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse what is no ordinary file, before it is opened: a pipe would wait for ever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError("it is no ordinary file. Give the path of a file that save wrote.")


def read_header(
    file: BinaryIO, *, newest: int = VERSION, magic: bytes = MAGIC
) -> tuple[int, dict[str, Any], list[Entry]]:
    """Read and check everything before the arrays; allocates no more than the header takes.

    Returns
    -------
    version : int
        Of the format.
    header : dict
        Without "arrays".
    entries : list of Entry
        The table of arrays: it fits the real size of the file, to the byte.
    """
    size = os.fstat(file.fileno()).st_size
    begin = _read(file, min(size, _PREAMBLE.size))
    if begin[: len(magic)] != magic:
        shown = f"no sketchmeans model: it begins with {begin[:8]!r}" if begin else "empty"
        whole = "a model that save wrote" if magic == MAGIC else "one that is whole"
        shown = shown if magic == MAGIC else shown.replace("no sketchmeans model", "another file")
        raise ModelFileError(f"it is {shown}, and {whole} begins with {magic!r}.")
    if len(begin) < _PREAMBLE.size:
        raise ModelFileError(f"it ends after {len(begin)} bytes. {DAMAGED}")
    _, version, length, checksum = _PREAMBLE.unpack(begin)
    if version > newest:
        raise ModelFileError(
            f"it has format {version}, and this version of sketchmeans reads formats up to "
            f"{newest}. Install a newer sketchmeans."
        )
    if version < 1:
        raise ModelFileError(f"format {version} does not exist. {DAMAGED}")
    if length > MOST_HEADER or _PREAMBLE.size + length > size:
        raise ModelFileError(
            f"its header declares {length:,} bytes, where at most {MOST_HEADER:,} are allowed and "
            f"the file has {size:,}. {DAMAGED}"
        )
    text = _read(file, length)
    if _digest(begin[:16], text).digest() != checksum:
        raise ModelFileError(f"the checksum of its header is wrong. {DAMAGED}")
    header = parse(text)
    start = _aligned(_PREAMBLE.size + length)
    entries = _read_table(header.pop("arrays", None), size, start)
    _skip_zeros(file, start)
    return version, header, entries


def read_arrays(
    file: BinaryIO,
    entries: list[Entry],
    room: Mapping[str, int] | None = None,
    new: Callable[..., Array] = np.empty,
) -> Iterator[tuple[str, Array]]:
    """Read the arrays of a table that ``read_header`` gave, from where it left the file, in turn.

    Memory: an array. Each is read in place and hashed on the way. Those that ``room`` names have
    room for so many rows, of which the file has the first ones; ``new(shape, dtype)`` makes them.
    """
    start, room = file.tell(), room or {}
    for entry in entries:
        shape = entry.shape if entry.order == "C" else entry.shape[::-1]
        more = entry.name in room and entry.order == "C"
        rows = max(room[entry.name], shape[0]) if more else shape[0]
        array = (new if more else np.empty)((rows, *shape[1:]), entry.dtype)
        whole = array[: shape[0]].reshape(-1).data.cast("B") if entry.bytes else memoryview(b"")
        parts = (whole[first : first + CHUNK] for first in range(0, len(whole), CHUNK))
        _read_entry(file, entry, start, parts)
        yield entry.name, array if entry.order == "C" else array.T


def check_arrays(file: BinaryIO, entries: list[Entry]) -> None:
    """Check what ``read_arrays`` would read. Memory: a chunk."""
    start, buffer = file.tell(), memoryview(bytearray(CHUNK))
    for entry in entries:
        sizes = (min(CHUNK, entry.bytes - first) for first in range(0, entry.bytes, CHUNK))
        _read_entry(file, entry, start, (buffer[:size] for size in sizes))


def _read_entry(file: BinaryIO, entry: Entry, start: int, parts: Iterable[memoryview]) -> None:
    """Read an array into these parts, one after the other, and check it."""
    _skip_zeros(file, start + entry.offset)
    digest = _digest()
    for part in parts:
        _fill(file, part)
        digest.update(part)
    if digest.hexdigest() != entry.checksum:
        raise ModelFileError(f"the checksum of its array {entry.name} is wrong. {DAMAGED}")


def parse(text: bytes) -> dict[str, Any]:
    """Parse a header: an object without NaN, infinity, repeated names or deep nesting."""
    brackets = _brackets(text)
    if brackets > MOST_BRACKETS:
        raise ModelFileError(
            f"its header has {brackets:,} lists and objects, where at most {MOST_BRACKETS} are "
            f"allowed. {DAMAGED}"
        )
    try:
        header = json.loads(
            text.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its header is no JSON that save writes: {error}.") from error
    if not isinstance(header, dict):
        raise ModelFileError(f"its header is a {type(header).__name__} and no object.")
    return header


def _brackets(text: bytes) -> int:
    """Count lists and objects: brackets that stand in no text."""
    bare = _TEXT.sub(b"", text)
    return bare.count(b"[") + bare.count(b"{")


def place(arrays: dict[str, Array]) -> list[Entry]:
    """Return the table that ``write`` will write, with checksums still open."""
    entries, offset = [], 0
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<").str
        by_columns = array.ndim == 2 and abs(array.strides[0]) < abs(array.strides[1])
        order = "F" if by_columns and array.shape[0] > 1 else "C"
        entries.append(Entry(name, dtype, array.shape, order, offset, array.nbytes, "0" * 32))
        offset = _aligned(offset + array.nbytes)
    return entries


def _encode(header: dict[str, Any], entries: list[Entry], version: int, magic: bytes) -> bytes:
    """Return the bytes before the arrays."""
    table = [asdict(entry) for entry in entries]
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    if len(text) > MOST_HEADER or _brackets(text) > MOST_BRACKETS or len(table) > MOST_ARRAYS:
        raise ModelFileError(
            f"a header of {len(text):,} bytes with {_brackets(text):,} lists and objects and "
            f"{len(table):,} arrays could not be read again: at most {MOST_HEADER:,}, "
            f"{MOST_BRACKETS} and {MOST_ARRAYS} are."
        )
    begin = struct.pack("<8sII", magic, version, len(text))
    return begin + _digest(begin, text).digest() + text


def _chunks(array: Array, entry: Entry) -> Iterator[memoryview]:
    """Yield the bytes of an array, about CHUNK at a time, in the order of its entry."""
    rows = array if entry.order == "C" else array.T
    step = max(1, CHUNK * len(rows) // max(entry.bytes, 1))
    for first in range(0, len(rows) if entry.bytes else 0, step):
        block = np.ascontiguousarray(rows[first : first + step], dtype=entry.dtype)
        yield block.reshape(-1).data.cast("B")


def _read_table(table: Any, size: int, start: int) -> list[Entry]:
    """Check the table of arrays against itself and the real size of the file."""
    if not isinstance(table, list) or len(table) > MOST_ARRAYS:
        raise ModelFileError(f"its table of arrays is no list of at most {MOST_ARRAYS}.")
    entries, end = [], 0
    for row in table:
        entry = _read_row(row)
        if entry.offset != _aligned(end):
            raise ModelFileError(
                f"its array {entry.name} lies at {entry.offset:,}, where {_aligned(end):,} comes "
                "next: arrays overlap, or leave a gap."
            )
        end = entry.offset + entry.bytes
        if start + end > size:
            raise ModelFileError(
                f"its array {entry.name} of shape {entry.shape} ends at byte {start + end:,}, and "
                f"the file has {size:,}. {DAMAGED}"
            )
        entries.append(entry)
    if len({entry.name for entry in entries}) < len(entries):
        raise ModelFileError("its table names an array twice.")
    if start + end != size:
        raise ModelFileError(
            f"it has {size:,} bytes, where its table of arrays ends at {start + end:,}. {DAMAGED}"
        )
    return entries


def _read_row(row: Any) -> Entry:
    names = {field.name for field in fields(Entry)}
    if not isinstance(row, dict) or set(row) != names:
        raise ModelFileError(f"a row of its table of arrays has other entries than {names}.")
    name, dtype, shape = row["name"], row["dtype"], row["shape"]
    if not isinstance(name, str) or not 0 < len(name) <= 64 or not name.isidentifier():
        raise ModelFileError(f"{name!r:.80} is no name of an array.")
    if dtype not in DTYPES:
        raise ModelFileError(f"its array {name} has dtype {dtype!r:.80}, not one of {DTYPES}.")
    if not isinstance(shape, list) or not 1 <= len(shape) <= 2 or not all(map(_is_size, shape)):
        raise ModelFileError(f"its array {name} has shape {shape!r:.80}, not one or two sizes.")
    if row["order"] not in ("C", "F"):
        raise ModelFileError(f"its array {name} has order {row['order']!r:.80}, not C or F.")
    if not _is_size(row["offset"]) or not _is_size(row["bytes"]):
        raise ModelFileError(f"the offset or the bytes of its array {name} are no sizes.")
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    if row["bytes"] != needed:
        raise ModelFileError(
            f"its array {name} of shape {tuple(shape)} and dtype {dtype} needs {needed:,} bytes, "
            f"and its table says {row['bytes']:,}."
        )
    if not isinstance(row["checksum"], str):
        raise ModelFileError(f"the checksum of its array {name} is no text.")
    return Entry(**{**row, "shape": tuple(shape)})


def _is_size(value: Any) -> bool:
    """Whether a value is a whole number that a file can hold so many bytes of."""
    return type(value) is int and 0 <= value < 1 << 62


def _skip_zeros(file: BinaryIO, position: int) -> None:
    """Read up to ``position``; what lies before it is zeros, and no checksum covers it."""
    if any(_read(file, position - file.tell())):
        raise ModelFileError(f"the bytes between its arrays are not zero. {DAMAGED}")


def _read(file: BinaryIO, count: int) -> bytes:
    buffer = bytearray(count)
    _fill(file, memoryview(buffer))
    return bytes(buffer)


def _fill(file: BinaryIO, view: memoryview) -> None:
    """Read as many bytes as the view takes."""
    while view:
        count = file.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise ModelFileError(f"it became shorter while it was read. {DAMAGED}")
        view = view[count:]


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _digest(*parts: bytes) -> Any:
    return blake2b(b"".join(parts), digest_size=16)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found
