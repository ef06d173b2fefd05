"""Opening data files: which format, from where, and how they are packed."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from sketchmeans.io.formats import FORMATS, OTHERS, by_extension, by_magic, by_members
from sketchmeans.io.limits import DataError
from sketchmeans.io.packing import (
    Packing,
    Shared,
    Unpacked,
    names_inside,
    only_member,
    packing_of,
    without_packing,
)
from sketchmeans.io.room import IN_MEMORY, Room
from sketchmeans.text import called

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""What old Excel files begin with, and encrypted new ones."""


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
    packing: Packing | None = None
    room: Room = IN_MEMORY
    """Where its numbers are put."""

    def stream(self) -> BinaryIO:
        """Return the content from its beginning, unpacked; closing it leaves the file open."""
        self.handle.seek(0)
        packing = self.packing
        raw: Any = (
            Shared(self.handle) if packing is None else Unpacked(self.name, self.handle, packing)
        )
        return cast(BinaryIO, io.BufferedReader(raw, 1 << 20))


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
    packing = packing_of(start)
    found = format or _format_of(start, handle, name, path, packing)
    if packing is not None and packing.title == "zip" and found in ("npz", "xlsx"):
        packing = None  # they are such archives themselves
    if packing is not None and not FORMATS[found].is_text:
        raise DataError(
            f"{name} is packed by {packing.title}, which {found} files are not. Unpack it first "
            f"({packing.command})."
        )
    if found == "xlsx" and start == OLE:
        raise DataError(
            f"{name} is encrypted, or in Excel's old format (.xls). Save it as .xlsx without a "
            "password, or as CSV."
        )
    return DataFile(name, found, handle, size, path, packing)


def _format_of(
    start: bytes, handle: BinaryIO, name: str, path: Path | None, packing: Packing | None
) -> str:
    """Return the format by the extension; by the content for standard input."""
    suffix = "" if path is None else PurePosixPath(without_packing(path.name)).suffix
    if packing is not None and packing.title == "zip" and by_extension(suffix) is None:
        inside = names_inside(handle)
        if (found := by_members(inside)) is not None:
            return found
        if inside:
            with zipfile.ZipFile(handle) as archive:
                suffix = PurePosixPath(only_member(name, archive).filename).suffix
    if (found := by_extension(suffix)) is not None:
        return found
    if path is None:
        return by_magic(start) or "csv"
    hint = OTHERS.get(suffix.lower())
    raise DataError(
        f"{name} cannot be read: {hint}."
        if hint
        else f"the format of {path} cannot be told from its name. Say {called('format')} with one "
        f"of: {', '.join(FORMATS)}."
    )


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that is full: nothing is wrong with the file that is read."""


@contextmanager
def damage_told(file: DataFile, way_out: str | None = None) -> Iterator[None]:
    """Turn the errors of parsers, which raise all kinds on damaged files, into one sentence."""
    try:
        yield
    except (DataError, ImportError, FileNotFoundError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            if "scratch" in str(error):
                raise
            raise OSError(
                error.errno,
                f"there is no room for the rows of {file.name} in a scratch file in "
                f"{tempfile.gettempdir()}. Make some, or set TMPDIR to a folder that has it",
            ) from error
        reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        otherwise = way_out or f"say {called('format')} if the name misleads"
        raise DataError(
            f"{file.name} cannot be read as {file.format}: {reason.rstrip('.')}. It is damaged or "
            f"of another format; {otherwise}."
        ) from error
