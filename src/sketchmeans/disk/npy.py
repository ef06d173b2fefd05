"""Arrays in .npy files that were opened by their names, and whether they are what they were.

A memory map shows what the file holds now. Who gives the name of a file does not expect that a
model changes with the file, and a map that reaches beyond the end of it ends the process.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.lib import format as npy

CUT = "It is damaged or cut off: write it again with np.save."


class Watch:
    """A file, and what it was when it was opened.

    The file itself, and not its name: another one that takes its place by a rename does no harm.
    """

    def __init__(self, path: str, file: Any) -> None:
        self.path, self._file = path, file
        self._was = self._now()

    def _now(self) -> tuple[int, int, int, int]:
        found = os.fstat(self._file.fileno())
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def refuse_changed(self) -> None:
        """Refuse a file that was written to since it was opened."""
        if self._now() != self._was:
            raise ValueError(
                f"{self.path!r} was written to since it was opened, and its rows are read from "
                "there: by a fit, and for new points after it. Fit again; to be free of the file, "
                "fit to np.load(path)."
            )


class Mapped(np.memmap):
    """A memory map that knows the file that it was opened from."""

    watch: Watch | None = None

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self.watch = getattr(obj, "watch", None)

    def __reduce__(self) -> Any:
        return np.array(self).__reduce__()  # what is pickled needs no file


def watch_of(array: Any) -> Watch | None:
    """Return what watches the file of an array, or of what it is a view of; None where nobody."""
    while array is not None:
        if isinstance(array, Mapped):
            return array.watch
        array = getattr(array, "base", None)
    return None


def mapped_file(path: str) -> Mapped:
    """Return the array in a .npy file as a memory map that is only read."""
    with open(path, "rb") as file:
        shape, order, dtype, offset = _header(path, file)
        if len(shape) != 2:
            raise ValueError(
                f"{path!r} holds an array of {len(shape)} dimensions, {shape}, where rows and "
                "columns are needed. Reshape it first."
            )
        if dtype.kind not in "fiub":
            raise ValueError(
                f"{path!r} holds values of dtype {dtype}, and kernels need real numbers: float32, "
                "float64, or others that become float64."
            )
        held = os.fstat(file.fileno()).st_size - offset
        declared = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if held < declared:
            raise ValueError(
                f"{path!r} declares {shape[0]:,} × {shape[1]:,} numbers, {declared:,} bytes, and "
                f"holds {max(held, 0):,}. {CUT}"
            )
        if declared == 0:
            return np.empty(shape, dtype).view(Mapped)
        array = Mapped(file, dtype, "r", offset, shape, order)
        # A descriptor of its own: it lives as long as the map does.
        array.watch = Watch(path, os.fdopen(os.dup(file.fileno()), "rb"))
    return array


def _header(path: str, file: Any) -> tuple[tuple[int, ...], Any, np.dtype, int]:
    """Return shape, order, dtype and the place where the numbers begin."""
    try:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, is_fortran, dtype = read.get(version, npy.read_array_header_2_0)(file)
    except ValueError as error:
        size = os.fstat(file.fileno()).st_size
        what = "is empty" if size == 0 else "is no file of NumPy, whatever its name"
        file.seek(0)
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            what = "begins as a file of NumPy, and has no header that can be read"
        raise ValueError(f"{path!r} {what}. {CUT}") from error
    return shape, "F" if is_fortran else "C", dtype, file.tell()
