"""The folder of a checkpoint: a list, the parts that it names, and a lock.

A part is written once and never changed. The list is replaced when its parts are on the disk, in
one step of the system, and parts that it no longer names are removed after that: whenever a process
is killed, the list and its parts are whole. Others' files may lie in the folder: what is removed
has the exact name of a part, and begins as one. Both are files of ``sketchmeans.container``, with a
checksum of every byte, and both bear the token of their checkpoint, so that a part of another one
is not taken for its own.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans._arrays import Array
from sketchmeans.atomic import whole_file
from sketchmeans.checkpoints.lock import Lock, remove_folder
from sketchmeans.container import (
    DAMAGED,
    ModelFileError,
    check_arrays,
    read_arrays,
    read_header,
    write,
)
from sketchmeans.text import called

MAGIC = b"\x89SKC\r\n\x1a\n"
VERSION = 1
"""Of the format; a checkpoint of another one is refused."""
LIST, LOCK = "checkpoint.skc", "checkpoint.lock"
_PART = re.compile(r"part-(\d{6,})\.skc")
_UNFINISHED = re.compile(r"\.unfinished-[0-9a-f]{16}\.skc")
_ASIDE = "damaged-"
_TURNS = 100
"""Times that a folder is made which others remove at once."""


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
        self._lock, self._made = _taken(self.path)
        try:
            for left in self._named(_UNFINISHED):  # by somebody who was killed while he wrote
                if _begins_as_ours(left, unfinished=True):
                    left.unlink(missing_ok=True)
        except BaseException:
            self.close()
            raise

    def read(self) -> dict[str, Any] | None:
        """Return the list, None if there is none; every part that it names has been checked."""
        try:
            listed, _ = self._read(LIST, keep=True)
        except FileNotFoundError:
            if any(map(_begins_as_ours, self._named(_PART))):
                raise Damaged(f"{LIST} is missing, and parts that it named are there") from None
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

    def saved(self) -> tuple[float, int] | None:
        """Return when something was saved last, and how much is; None if nothing is."""
        try:
            listed, _ = self._read(LIST, keep=True)
            if not listed["parts"]:
                return None
            files = [
                self.path / LIST,
                *(self.path / part_name(n) for n in listed["parts"].values()),
            ]
            return files[0].stat().st_mtime, sum(one.stat().st_size for one in files)
        except (OSError, Damaged):
            return None

    def read_part(
        self, number: int, new: Callable[..., Any] = np.empty
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of a part; ``new`` makes those with room for more."""
        return self._read(part_name(number), keep=True, new=new)

    def _read(
        self, name: str, *, keep: bool, new: Callable[..., Any] = np.empty
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        if (self.path / name).is_dir():
            raise Damaged(f"{name} is a folder, and no file")
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
                if keep:
                    room = header["state"].get("room") if "state" in header else None
                    arrays = dict(read_arrays(file, entries, room, new))
                else:
                    check_arrays(file, entries)
            except ModelFileError as error:
                whole = str(error).removesuffix(DAMAGED).rstrip(" .")
                raise Damaged(f"of {name}, {whole}") from error
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
        for part in self._named(_PART):
            if part.name not in kept and _begins_as_ours(part):
                part.unlink(missing_ok=True)

    def last(self) -> int:
        """Return the highest number that a part has: others' files keep theirs."""
        found = (_PART.fullmatch(part.name) for part in self._named(_PART))
        return max((int(one[1]) for one in found if one is not None), default=0)

    def _named(self, pattern: re.Pattern[str]) -> list[Path]:
        return [file for file in self.path.glob("*.skc") if pattern.fullmatch(file.name)]

    def set_aside(self) -> None:
        """Give all files of a damaged checkpoint names under which nobody looks for them."""
        for file in [*self._named(_PART), self.path / LIST]:
            number, target = 1, self.path / f"{_ASIDE}{file.name}"
            while os.path.lexists(target):  # another one was damaged before
                number, target = number + 1, self.path / f"{_ASIDE}{number + 1}-{file.name}"
            with suppress(FileNotFoundError):
                file.replace(target)

    def clear(self) -> None:
        """Remove all that belongs to the checkpoint."""
        if (self.path / LIST).exists():
            with suppress(OSError):  # whoever is killed here has left no damage, but nothing
                self.write_list({"token": "", "parts": {}, "of": {}, "random": None})
        self.remove_others(set())
        (self.path / LIST).unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock; remove a folder that was made for this and holds nothing."""
        if self._lock.release() or self._made:
            remove_folder(self.path, LOCK)


def _taken(path: Path) -> tuple[Lock, bool]:
    """Return the lock of a folder, and whether the folder was made for it."""
    for _ in range(_TURNS):
        try:
            path.mkdir()
            made = True
        except FileExistsError:
            made = False
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{called('checkpoint')}={str(path)!r}: the folder {path.parent} does not exist, "
                "so none can be made in it. Create it first."
            ) from None
        try:
            return Lock(path / LOCK, made), made
        except FileNotFoundError:  # whoever used the folder before has just removed it
            continue
        except BaseException:
            if made:
                remove_folder(path, LOCK)
            raise
    raise FileNotFoundError(
        f"{called('checkpoint')}={str(path)!r} is there, and no file can be made in it: a link to "
        "nothing, perhaps. Name another folder."
    )


def checked_path(path: Any) -> Path:
    """Return the folder of a checkpoint as a path; refuse what is none."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise TypeError(
            f"{called('checkpoint')}={path!r} must be the path of a folder, which may not exist "
            "yet, or None."
        )
    folder = Path(path)
    try:  # asked once: others may remove it meanwhile
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_folder = True
    if not is_folder:
        raise NotADirectoryError(
            f"{called('checkpoint')}={str(path)!r} is a file, and checkpoints are kept in a "
            "folder. Name a folder, which may not exist yet."
        )
    return folder


def _begins_as_ours(file: Path, *, unfinished: bool = False) -> bool:
    """Whether a file begins as a part does; one that was not finished may have nothing in it."""
    try:
        with file.open("rb") as opened:
            begin = opened.read(len(MAGIC))
    except OSError:  # a folder, or nobody's to read
        return False
    return begin == MAGIC or (unfinished and not any(begin))


def part_name(number: int) -> str:
    """Return the name of a part."""
    return f"part-{number:06d}.skc"
