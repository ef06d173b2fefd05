"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


def exists_already(path: str | os.PathLike[str], way_out: str) -> FileExistsError:
    """Return the error that ``path`` exists; ``way_out`` tells how to overwrite it."""
    return FileExistsError(f"{os.fspath(path)} exists already. {way_out}")


def refuse_existing(path: str | os.PathLike[str], *, way_out: str) -> None:
    """Raise where ``path`` exists, before any long work; ``whole_file`` looks again at its end."""
    if os.path.lexists(path):
        raise exists_already(path, way_out)


def real_file(path: str | os.PathLike[str]) -> Path:
    """Return where a file lies, or will, behind all links; refuse what is no ordinary file.

    A device or a pipe must not be replaced by a file, nor a link by what it should lead to.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise ValueError(f"{os.fspath(path)} is a folder: name a file in it.")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{os.fspath(path)} is a device or a pipe, and no file can take its place. Choose "
            "another name."
        )
    return Path(os.path.realpath(path) if os.path.islink(path) else path)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, way_out: str | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; it becomes ``path`` if all went well.

    Whatever goes wrong before the block ends, Ctrl-C included, ``path`` is as it was and nothing is
    left beside it. A link stays, and leads to the new file. The name ends as that of ``path``
    does, for writers that look at it.

    A file that exists is replaced, unless there is a ``way_out`` to tell of: then it is kept, also
    if it came at the last moment, and the error is that of ``refuse_existing``. Of several writers
    at once one wins.

    >>> with whole_file("labels.csv") as temporary:  # doctest: +SKIP
    ...     temporary.write_text("id,label")
    """
    target = real_file(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist, so {target.name} cannot be written there. "
            "Create it first."
        )
    # The name is known before the file is there, so that no interruption falls between the two.
    name = f".unfinished-{secrets.token_hex(8)}{''.join(Path(path).suffixes[-2:])}"
    temporary = target.parent / name
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        if way_out is None:
            temporary.replace(target)
        elif not took_free_name(temporary, target):
            raise exists_already(path, way_out)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def took_free_name(temporary: Path, target: Path) -> bool:
    """Give a file the name ``target``, and return whether that was free: one step of the system."""
    with suppress(FileExistsError):
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # FAT and some network folders have no hard links: take the name first
            target.touch(exist_ok=False)
            try:
                temporary.replace(target)
            except BaseException:
                target.unlink()
                raise
        return True
    return False


def write_whole(path: str | os.PathLike[str], text: str, *, way_out: str | None = None) -> None:
    """Write text to a file that appears whole or not at all."""
    with whole_file(path, way_out=way_out) as temporary:
        temporary.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Folder:
    """Where a long run writes its files, all of them replaced or all of them kept."""

    path: Path
    way_out: str | None = None
    """As that of ``whole_file``."""

    def whole_file(self, name: str) -> AbstractContextManager[Path]:
        """Return ``whole_file`` of a file in the folder."""
        return whole_file(self.path / name, way_out=self.way_out)

    def write(self, name: str, text: str) -> None:
        """Write text to a file in the folder."""
        write_whole(self.path / name, text, way_out=self.way_out)
