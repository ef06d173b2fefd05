"""New files that all get their names at the end, or none does.

Where the system can, a file has no name until it is whole: nothing is left of it, whatever ends the
process. Elsewhere it is called ``.unfinished-…`` until then, and a killed process leaves that.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sketchmeans.atomic import exists_already, real_file, took_free_name


@dataclass(frozen=True)
class Temporary:
    """A file that is written, and has not got its name yet."""

    target: Path
    path: Path
    """Where it is written to meanwhile."""
    descriptor: int | None = None
    """Of a file that has no name; None for one that has another."""

    def take_name(self) -> bool:
        """Give it its name, and return whether that was free."""
        if self.descriptor is None:
            with self.path.open("rb") as written:
                os.fsync(written.fileno())
            return took_free_name(self.path, self.target)
        os.fsync(self.descriptor)
        with suppress(FileExistsError):
            link_unnamed(self.descriptor, self.target)
            return True
        return False


@contextmanager
def new_files(targets: Iterable[Path], *, way_out: str) -> Iterator[list[Temporary]]:
    """Yield temporaries, one for each of some new files; all get their names if all went well.

    Where one of them cannot have its name, no other keeps its own. ``way_out`` says what to do
    where there is a file of that name by then.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_temporary(Path(target))) for target in targets]
        yield files
        named: list[tuple[Path, tuple[int, int]]] = []
        try:
            for file in files:
                own = _identity(file.path)
                if not file.take_name():
                    raise exists_already(file.target, way_out)
                named.append((file.target, own))
        except BaseException:
            for target, own in named:
                with suppress(FileNotFoundError):
                    if _identity(target) == own:  # nobody else's that took its place
                        target.unlink()
            raise


def try_folder(path: Path) -> None:
    """Raise what will keep a file from being written: folders without a right to, long names."""
    with suppress(FileNotFoundError):
        path.lstat()
    with _temporary(path):
        pass


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


@contextmanager
def _temporary(path: Path) -> Iterator[Temporary]:
    target = real_file(path)
    other = target.parent / f".unfinished-{secrets.token_hex(8)}{target.suffix}"
    descriptor = unnamed_file(target.parent, other)
    if descriptor is not None:
        try:
            yield Temporary(target, Path(f"/proc/self/fd/{descriptor}"), descriptor)
        finally:
            os.close(descriptor)
        return
    try:
        other.touch(exist_ok=False)
        yield Temporary(target, other)
    finally:
        with suppress(FileNotFoundError):
            other.unlink()


def unnamed_file(folder: Path, probe: Path) -> int | None:
    """Return the descriptor of a file without a name; None where files cannot get one later.

    That is tried with the name ``probe``, which is gone again.
    """
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        # NOTE: a file that has had a name and lost it gets no other, so the trial has its own.
        trial = os.open(folder, flag | os.O_RDWR, 0o666)
        try:
            link_unnamed(trial, probe)
            probe.unlink()
        finally:
            os.close(trial)
        return os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError:
        return None  # a file with a name may be possible; if not, that says why


def link_unnamed(descriptor: int, target: Path) -> None:
    """Give a file without a name one."""
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        # NOTE: with the descriptor of a folder Python asks the system to follow the link, which
        # leads to the file; without, it does not.
        os.link(f"/proc/self/fd/{descriptor}", target.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
