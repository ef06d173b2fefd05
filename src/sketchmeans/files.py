"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def refuse_existing(path: str | os.PathLike[str], *, way_out: str) -> None:
    """Raise FileExistsError where ``path`` exists; ``way_out`` tells how to overwrite it."""
    if os.path.lexists(path):
        raise FileExistsError(f"{os.fspath(path)} exists already. {way_out}")


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
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``; it becomes ``path`` if all went well.

    Whatever goes wrong before the block ends, Ctrl-C included, ``path`` is as it was and nothing is
    left beside it. A link stays, and leads to the new file. The name ends as that of ``path``
    does, for writers that look at it.

    >>> with whole_file("labels.csv") as temporary:  # doctest: +SKIP
    ...     temporary.write_text("id,label")
    """
    target = real_file(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {target.parent} does not exist, so {target.name} cannot be written there. "
            "Create it first."
        )
    handle, name = tempfile.mkstemp(
        prefix=".unfinished-", suffix="".join(Path(path).suffixes[-2:]), dir=target.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp allows the owner alone
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a file that appears whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
