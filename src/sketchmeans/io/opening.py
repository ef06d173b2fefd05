"""Opening data files: which format, from where, and how much they may unpack to."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from sketchmeans.io.formats import FORMATS, by_extension, by_magic
from sketchmeans.text import called, human

FREE = 8_000_000
"""Bytes that any packed file may unpack to: below, a ratio says nothing."""
TEXT_RATIO = 100
"""Times its size that packed text may unpack to. Its numbers take four times the text at most, so
that a bomb is found within FREE · 4 bytes; gzip reaches 1030 on zeros, tables 3 to 50."""
ARRAY_RATIO = 500
"""Times its size that a file of arrays may unpack to, in memory."""


class DataError(ValueError):
    """A data file that cannot be used; the message names the file and the way out."""


@dataclass(frozen=True)
class DataFile:
    """A file that is open for reading, can be sought, and has a known format."""

    name: str
    """What messages call it."""
    format: str
    handle: BinaryIO
    size: int
    path: Path | None
    """None for standard input, which was copied to a temporary file."""

    @property
    def packed(self) -> bool:
        """Whether the content is packed by gzip."""
        self.handle.seek(0)
        return self.handle.read(2) == b"\x1f\x8b"

    def stream(self) -> BinaryIO:
        """Return the content from its beginning, unpacked; closing it leaves the file open."""
        packed = self.packed
        self.handle.seek(0)
        raw: Any = _Unpacked(self) if packed else _Shared(self.handle)
        return cast(BinaryIO, io.BufferedReader(raw, 1 << 20))


def check_expansion(
    name: str,
    packed: int,
    unpacked: int,
    *,
    ratio: int = ARRAY_RATIO,
    way_out: str = "write it again without compression",
) -> None:
    """Refuse what would unpack to far more than its size: a bomb, or damage."""
    if unpacked > FREE and unpacked > ratio * packed:
        raise DataError(
            f"{name} holds {human(packed)} that would unpack to {human(unpacked)} or more: over "
            f"{ratio} times as much, so it is taken for damaged or hostile. If you trust it, "
            f"{way_out}."
        )


@contextmanager
def open_data(path: str | os.PathLike[str], format: str | None = None) -> Iterator[DataFile]:
    """Open a data file, or standard input for ``-``, and find out its format."""
    if os.fspath(path) == "-":
        stream = _standard_input()
        with _spooled(stream, "standard input") as handle:
            yield _described(handle, "standard input", None, format)
        return
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {target}. Look at its name.") from None
    except ValueError as error:  # a NUL byte in the name
        raise DataError(f"{os.fspath(path)!r} is no name of a file: {error}.") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"{target} is a folder: name a file in it.")
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise DataError(f"{target} is a device, not a file: it may never end. Copy it to a file.")
    with target.open("rb") as opened:
        if stat.S_ISFIFO(mode):
            with _spooled(opened, str(target)) as handle:
                yield _described(handle, str(target), None, format)
        else:
            yield _described(opened, str(target), target, format)


def _standard_input() -> BinaryIO:
    stream = sys.stdin.buffer
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, io.UnsupportedOperation):  # not a file of the system
        return stream
    if stat.S_ISCHR(mode) and not os.isatty(stream.fileno()):
        raise DataError("standard input is a device: it may never end, or is empty. Pipe a file.")
    return stream


@contextmanager
def _spooled(stream: IO[bytes], name: str) -> Iterator[BinaryIO]:
    """Copy what can be read once to a temporary file: formats are recognised and sought in."""
    with tempfile.TemporaryFile() as handle:
        shutil.copyfileobj(stream, handle, 1 << 20)
        handle.seek(0)
        yield cast(BinaryIO, handle)


def _described(handle: BinaryIO, name: str, path: Path | None, format: str | None) -> DataFile:
    size = handle.seek(0, io.SEEK_END)
    if size == 0:
        raise DataError(f"{name} is empty.")
    handle.seek(0)
    start = handle.read(8)
    packed = start[:2] == b"\x1f\x8b"
    found = format or _format_of(start, path)
    if packed and not (found in FORMATS and FORMATS[found].is_text):
        raise DataError(f"{name} is packed by gzip, which {found} files are not. Unpack it first.")
    return DataFile(name, found, handle, size, path)


def _format_of(start: bytes, path: Path | None) -> str:
    """Return the format by the extension; by the first bytes for standard input."""
    if path is None:
        return by_magic(start) or "csv"
    unpacked = path.with_suffix("") if path.suffix.lower() in (".gz", ".gzip") else path
    if (found := by_extension(unpacked.suffix)) is not None:
        return found
    raise DataError(
        f"the format of {path} cannot be told from its name. Say {called('format')} with one of: "
        f"{', '.join(FORMATS)}."
    )


class _Shared(io.RawIOBase):
    """Reads a file from where it is, and does not close it."""

    # NOTE: open(fd, closefd=False) would move the file under the buffer of its handle.
    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._handle.read(min(len(buffer), 1 << 20))
        buffer[: len(data)] = data
        return len(data)


class _Unpacked(_Shared):
    """Unpacks gzip, and stops where the output is out of proportion to the input."""

    def __init__(self, file: DataFile) -> None:
        super().__init__(gzip.GzipFile(fileobj=file.handle))
        self._file = file
        self._count = 0

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer)
        self._count += size
        way_out, read = "unpack it first (gunzip)", self._file.handle.tell()
        check_expansion(self._file.name, read, self._count, ratio=TEXT_RATIO, way_out=way_out)
        return size
