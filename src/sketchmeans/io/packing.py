"""What packs a data file: gzip, bzip2, xz, Zstandard, or a zip archive with one file in it.

Whatever packs it, a file is unpacked as a stream, a megabyte at a time, and never to the disk;
what comes out is counted against what went in. The name of a file in an archive tells its format
and is shown in messages: it is never a path.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO

from sketchmeans.io.extras import arrow
from sketchmeans.io.limits import TEXT_RATIO, DataError, check_expansion
from sketchmeans.text import human, printable

CHUNK = 1 << 16
"""Packed bytes of xz that are read at a time."""
XZ_MEMORY = 100_000_000
"""Bytes that unpacking xz may take; ``xz -9`` needs 68 million, and a file can ask for 4 GB."""
SHOWN = 5
"""Files of an archive that a message lists."""


class Shared(io.RawIOBase):
    """Reads a file from where it is, and does not close it."""

    # NOTE: open(fd, closefd=False) would move the file under the buffer of its handle.
    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or some of it."""
        data = self._handle.read(min(len(buffer), 1 << 20))
        buffer[: len(data)] = data
        return len(data)


class Unpacked(Shared):
    """Unpacks a file, and stops where the output is out of proportion to the input."""

    def __init__(self, name: str, handle: BinaryIO, packing: Packing) -> None:
        handle.seek(0)
        super().__init__(packing.opened(name, handle))
        self._name = name
        self._packed = handle
        self._way_out = f"unpack it first ({packing.command})"
        self._count = 0

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or some of it; a bomb is an error."""
        size = super().readinto(buffer)
        self._count += size
        # Of a zip archive that is where its file lies, at least: sizes were compared before.
        read = self._packed.tell()
        check_expansion(self._name, read, self._count, ratio=TEXT_RATIO, way_out=self._way_out)
        return size


class _Xz:
    """Unpacks xz, with a limit to the memory that it takes: ``lzma.LZMAFile`` has none."""

    def __init__(self, name: str, handle: BinaryIO) -> None:
        self._name = name
        self._handle = handle
        self._unused = b""
        self._begin()

    def _begin(self) -> None:
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def _next(self) -> bool:
        """Go on to the next stream of the file, if there is one; zeros may stand between them."""
        rest = self._decoder.unused_data
        while not (rest := rest.lstrip(b"\0")):
            rest = self._handle.read(CHUNK)
            if not rest:
                return False
        self._unused = rest
        self._begin()
        return True

    def read(self, size: int) -> bytes:
        """Return some bytes; none at the end."""
        try:
            while True:
                if self._decoder.eof and not self._next():
                    return b""
                data, self._unused = self._unused, b""
                if not data and self._decoder.needs_input:
                    data = self._handle.read(CHUNK)
                    if not data:
                        raise EOFError("it ends before its last byte")
                if out := self._decoder.decompress(data, size):
                    return out
        except lzma.LZMAError as error:
            if "emory" not in str(error):
                raise
            raise DataError(
                f"{self._name} takes more than {human(XZ_MEMORY)} to unpack. Unpack it first "
                "(unxz)."
            ) from error


def _zstandard(name: str, handle: BinaryIO) -> Any:
    del name
    pa = arrow("files packed by Zstandard (.zst)")
    return pa.CompressedInputStream(pa.PythonFile(Shared(handle), mode="r"), "zstd")


def _member(name: str, handle: BinaryIO) -> Any:
    archive = zipfile.ZipFile(handle)
    member = only_member(name, archive)
    handle.seek(0, io.SEEK_END)
    packed = min(member.compress_size, handle.tell())
    way_out = "unpack it first (unzip)"
    check_expansion(name, packed, member.file_size, ratio=TEXT_RATIO, way_out=way_out)
    return archive.open(member)  # which gives no more bytes than the archive declares


def only_member(name: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the one file of an archive; folders and what macOS adds do not count."""
    files = [
        member
        for member in archive.infolist()
        if not member.is_dir()
        and not member.filename.startswith("__MACOSX/")
        and PurePosixPath(member.filename).name != ".DS_Store"
    ]
    if len(files) == 1:
        return files[0]
    listed = ", ".join(printable(repr(member.filename), 60) for member in files[:SHOWN])
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    said = f"holds {len(files):,} files ({listed}{more})" if files else "holds no file"
    raise DataError(f"{name} {said}, and one is read. Unpack it, and name the file to read.")


@dataclass(frozen=True)
class Packing:
    """One way to pack a file."""

    title: str
    extensions: tuple[str, ...]
    magic: tuple[bytes, ...]
    command: str
    """What unpacks such a file."""
    opened: Callable[[str, BinaryIO], IO[bytes] | Any]
    """Of the name for messages and the file at its start: what reads the content."""


PACKINGS = (
    Packing(
        "gzip",
        (".gz", ".gzip"),
        (b"\x1f\x8b",),
        "gunzip",
        lambda name, handle: gzip.GzipFile(fileobj=handle),
    ),
    Packing(
        "bzip2",
        (".bz2",),
        tuple(b"BZh%d1AY&" % size for size in range(1, 10)),
        "bunzip2",
        lambda name, handle: bz2.BZ2File(handle),
    ),
    Packing("xz", (".xz",), (b"\xfd7zXZ\0",), "unxz", _Xz),
    Packing("Zstandard", (".zst", ".zstd"), (b"\x28\xb5\x2f\xfd",), "unzstd", _zstandard),
    Packing("zip", (".zip",), (b"PK\x03\x04", b"PK\x05\x06"), "unzip", _member),
)


def packing_of(start: bytes) -> Packing | None:
    """Return how a file is packed that begins so; None where it is not."""
    return next((packing for packing in PACKINGS if start.startswith(packing.magic)), None)


def without_packing(name: str) -> str:
    """Return the name that a file has once it is unpacked.

    >>> without_packing("table.csv.XZ"), without_packing("table.csv")
    ('table.csv', 'table.csv')
    """
    endings = tuple(ending for packing in PACKINGS for ending in packing.extensions)
    return PurePosixPath(name).stem if name.lower().endswith(endings) else name


def names_inside(handle: BinaryIO) -> list[str]:
    """Return the names of the files in a zip archive; none where it is no such archive."""
    try:
        with zipfile.ZipFile(handle) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return []
