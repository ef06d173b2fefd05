"""The folder of a checkpoint: a list, the parts that it names, and a lock.

A part is written once and never changed. The list is replaced when its parts are on the disk, in
one step of the system, and parts that it no longer names are removed after that: whenever a process
is killed, the list and its parts are whole. Both are files of ``sketchmeans.container``, with a
checksum of every byte, and both bear the token of their checkpoint, so that a part of another one
is not taken for its own.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sketchmeans._arrays import Array
from sketchmeans.atomic import whole_file
from sketchmeans.container import ModelFileError, read_arrays, read_header, write
from sketchmeans.text import called

MAGIC = b"\x89SKC\r\n\x1a\n"
VERSION = 1
"""Of the format; a checkpoint of another one is refused."""
LIST, LOCK = "checkpoint.skc", "checkpoint.lock"
PARTS, UNFINISHED, DAMAGED = "part-*.skc", ".unfinished-*.skc", "damaged-"


class CheckpointWarning(UserWarning):
    """A checkpoint could not be read or written; the fit goes on without it."""


class Damaged(Exception):
    """Files of a checkpoint are not what was written."""


class Folder:
    """The files of a checkpoint, for whoever holds its lock.

    Parameters
    ----------
    path : str or path
        Made if it does not exist; then it is removed in the end.
    """

    def __init__(self, path: Any) -> None:
        self.path = checked_path(path)
        try:
            self.path.mkdir()
            made = True
        except FileExistsError:
            made = False
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{called('checkpoint')}={str(path)!r}: the folder {self.path.parent} does not "
                "exist, so none can be made in it. Create it first."
            ) from None
        self._lock = _Lock(self.path / LOCK, made)
        self._made = self._lock.made
        for left in self.path.glob(UNFINISHED):  # by somebody who was killed while he wrote
            left.unlink()

    def read(self) -> dict[str, Any] | None:
        """Return the list, None if there is none; every part that it names has been checked."""
        try:
            listed, _ = self._read(LIST, keep=True)
        except FileNotFoundError:
            self.remove_others(set())
            return None
        if set(listed) != {"token", "made", "parts", "of", "random"}:
            raise Damaged(f"{LIST} has other entries than the list of a checkpoint")
        self._made |= listed["made"] is True
        for place, number in listed["parts"].items():
            try:
                header, _ = self._read(part_name(number), keep=False)
            except FileNotFoundError:
                raise Damaged(f"{part_name(number)} is missing") from None
            expected = {"token": listed["token"], "place": place, "number": number}
            if {name: header.get(name) for name in expected} != expected:
                raise Damaged(f"{part_name(number)} belongs to another place or checkpoint")
        self.remove_others(set(listed["parts"].values()))
        return listed

    def read_part(self, number: int) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of a part."""
        return self._read(part_name(number), keep=True)

    def _read(self, name: str, *, keep: bool) -> tuple[dict[str, Any], dict[str, Array]]:
        with (self.path / name).open("rb") as file:
            try:
                version, header, entries = read_header(file, newest=2**32, magic=MAGIC)
                if version != VERSION:
                    raise ValueError(
                        f"the checkpoint in {self.path} has format {version}, and this version of "
                        f"sketchmeans writes and reads format {VERSION}. Go on with the version "
                        "that wrote it, or delete the folder to start anew."
                    )
                arrays: dict[str, Array] = {}
                room = header["state"].get("room") if keep and "state" in header else None
                for array, values in read_arrays(file, entries, room):
                    if keep:
                        arrays[array] = values
            except ModelFileError as error:
                raise Damaged(f"of {name}, {error}") from error
        return header, arrays

    def write_part(self, number: int, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Write a part; it counts when the list names it."""
        self._write(part_name(number), header, arrays)

    def write_list(self, header: dict[str, Any]) -> None:
        """Put another list in the place of the one before."""
        self._write(LIST, {**header, "made": self._made}, {})
        with suppress(OSError):  # not every system knows how to, and the list is there
            descriptor = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _write(self, name: str, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        with whole_file(self.path / name) as temporary, temporary.open("wb") as file:
            write(file, header, arrays, version=VERSION, magic=MAGIC)

    def remove_others(self, numbers: set[int]) -> None:
        """Remove the parts that are not among these."""
        kept = {part_name(number) for number in numbers}
        for part in self.path.glob(PARTS):
            if part.name not in kept:
                part.unlink(missing_ok=True)

    def set_aside(self) -> None:
        """Give all files of a damaged checkpoint names under which nobody looks for them."""
        for file in [*self.path.glob(PARTS), self.path / LIST]:
            with suppress(FileNotFoundError):
                file.replace(self.path / f"{DAMAGED}{file.name}")

    def clear(self) -> None:
        """Remove all that belongs to the checkpoint."""
        (self.path / LIST).unlink(missing_ok=True)  # first: parts without a list are nobody's
        self.remove_others(set())

    def close(self) -> None:
        """Release the lock; remove a folder that was made for this and holds nothing."""
        self._lock.release()
        if self._made:
            with suppress(OSError):  # it is not empty, or gone
                self.path.rmdir()


def checked_path(path: Any) -> Path:
    """Return the folder of a checkpoint as a path; refuse what is none."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise TypeError(
            f"{called('checkpoint')}={path!r} must be the path of a folder, which may not exist "
            "yet, or None."
        )
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(
            f"{called('checkpoint')}={str(path)!r} is a file, and checkpoints are kept in a "
            "folder. Name a folder, which may not exist yet."
        )
    return folder


def part_name(number: int) -> str:
    """Return the name of a part."""
    return f"part-{number:06d}.skc"


class _Lock:
    """A lock on a file, which the system releases when its process ends, however it ends."""

    def __init__(self, path: Path, made: bool) -> None:
        self.path = path
        while True:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _take(self._file)
                if os.path.samestat(os.fstat(self._file), path.stat()):
                    break
                os.close(self._file)  # its last owner has removed it meanwhile
            except FileNotFoundError:
                os.close(self._file)
            except OSError as error:
                owner = os.read(self._file, 100).decode(errors="replace").split()
                os.close(self._file)
                raise BlockingIOError(
                    f"the checkpoint in {path.parent} is in use by "
                    f"{f'process {owner[0]}' if owner else 'another process'}: two fits cannot "
                    "write to one. Wait until that has ended, or name another folder."
                ) from error
        before = os.read(self._file, 100).split()
        self.made = made or before[1:] == [b"made"]
        """Whether the folder was made by this process, or by one that was killed."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, f"{os.getpid()}{' made' if self.made else ''}\n".encode())

    def release(self) -> None:
        if sys.platform == "win32":
            os.close(self._file)
            self.path.unlink(missing_ok=True)
        else:  # removed while it is held: whoever waits for it sees that it is gone
            self.path.unlink(missing_ok=True)
            os.close(self._file)


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
