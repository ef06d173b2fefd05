"""Results as .npy files that appear whole or not at all, written in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from sketchmeans.atomic import refuse_existing
from sketchmeans.blocks import row_blocks
from sketchmeans.disk.naming import new_files, try_folder
from sketchmeans.rows import Rows

Named = str | os.PathLike[str]

WAY_OUT = "Delete it, or choose another name."


@dataclass(frozen=True)
class Outputs:
    """The files that results are written to; None where there is none."""

    files: dict[str, Named | None]
    """By the names of the parameters that ask for them."""

    def check(self) -> None:
        """Refuse files that exist, or cannot be, before any long work."""
        given = {name: Path(path) for name, path in self.files.items() if path is not None}
        for name, path in given.items():
            if path.suffix != ".npy":
                raise ValueError(
                    f"{name}={os.fspath(path)!r} must end in .npy: it becomes a file of NumPy."
                )
            if not path.parent.is_dir():
                raise FileNotFoundError(
                    f"{name}={os.fspath(path)!r} cannot be written: the folder {path.parent} does "
                    "not exist. Create it first."
                )
            try:
                refuse_existing(path, way_out=WAY_OUT)
                try_folder(path)
            except FileExistsError:
                raise
            except OSError as error:
                raise type(error)(
                    error.errno,
                    f"{name}={os.fspath(path)!r} cannot be written: {error.strerror}. Choose "
                    "another folder, or another name",
                ) from error
        if len({path.resolve() for path in given.values()}) < len(given):
            raise ValueError(f"{' and '.join(given)} name one file: give two.")

    @property
    def folder(self) -> Path | None:
        """The folder of the first of them: there is room for large files."""
        return next((Path(path).parent for path in self.files.values() if path is not None), None)

    def write(self, **arrays: Any) -> dict[str, Any]:
        """Write arrays, or rows, to the files that were asked for; return these as memory maps.

        None of them appears before all are written, and one that cannot appear takes the others
        with it. They are mapped before they appear: nothing is left then that can fail.
        """
        asked = {name: Path(path) for name, path in self.files.items() if path is not None}
        found: dict[str, Any] = {}
        with new_files(asked.values(), way_out=WAY_OUT) as files:
            for name, file in zip(asked, files, strict=True):
                array = arrays[name]
                with npy_file(file.path, array.shape, array.dtype) as append:
                    for block in blocks_of(array):
                        append(block)
                found[name] = np.load(file.path, mmap_mode="r")
                found[name].filename = asked[name].resolve()
        return found


def blocks_of(array: Any) -> Iterable[Any]:
    """Give an array, or rows, in blocks."""
    size = array.span if isinstance(array, Rows) else max((1 << 20) // max(array[:1].size, 1), 1)
    return (array[rows] for rows in row_blocks(len(array), size))


@contextmanager
def npy_file(path: Path, shape: tuple[int, ...], dtype: Any) -> Iterator[Callable[[Any], None]]:
    """Open a .npy file of an array of this shape; yield what appends the next rows."""
    with path.open("wb") as file:
        header = {
            "descr": npy.dtype_to_descr(np.dtype(dtype)),
            "fortran_order": False,
            "shape": shape,
        }
        npy.write_array_header_1_0(file, header)

        def append(block: Any) -> None:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)

        yield append


class Results:
    """Results of all rows as they come, in memory or in a file.

    Parameters
    ----------
    n : int
        Rows.
    shape : tuple of int
        Of the result of one.
    dtype : dtype
    """

    def __init__(self, n: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = (n, *shape), np.dtype(dtype)
        self._array: Any = None

    @contextmanager
    def opened(self, out: Named | None) -> Iterator[Callable[[Any], None]]:
        """Yield what takes the next results; the file is there when all are."""
        if out is not None:
            with (
                new_files([Path(out)], way_out=WAY_OUT) as files,
                npy_file(files[0].path, self.shape, self.dtype) as append,
            ):
                yield append
            return
        self._array = np.empty(self.shape, self.dtype)
        done = 0

        def put(block: Any) -> None:
            nonlocal done
            self._array[done : done + len(block)] = block
            done += len(block)

        yield put

    def found(self, out: Named | None) -> Any:
        """Return all results: an array, or a memory map of the file."""
        return self._array if out is None else np.load(out, mmap_mode="r")
