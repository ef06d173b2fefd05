"""Scratch files: arrays that are too large for memory, and are gone with whoever used them.

A scratch file has no name from the start, where the system allows that: nothing is left behind,
whatever ends the process.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.text import human


def scratch_array(folder: Path | None, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array in a scratch file: in this folder, or where temporary files are.

    The room is taken at once: a full disk is an error here, and not a crash later.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    place = tempfile.gettempdir() if folder is None else os.fspath(folder)
    if size == 0:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix=".sketchmeans-", dir=place) as file:
        try:
            reserve(file.fileno(), size)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                error.errno,
                f"there is no room for {human(size)} of scratch in {place}. Make some, or set "
                "TMPDIR to a folder that has it",
            ) from error
        return np.memmap(file, dtype, "r+", shape=shape)


def reserve(descriptor: int, size: int) -> None:
    """Give a file this size, and its room on the disk where the system can say so at once."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


def read_only(array: Any) -> Any:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
