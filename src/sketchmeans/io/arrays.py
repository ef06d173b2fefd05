"""NumPy's files: one array (NPY), or named arrays in a zip archive (NPZ). Nothing is unpickled."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from sketchmeans.io.limits import DataError, check_expansion
from sketchmeans.io.opening import DataFile
from sketchmeans.io.room import IN_MEMORY, Room
from sketchmeans.io.source import MatrixSource, unnamed

HEADER_LIMIT = 10_000
"""Characters of the header of an array: it is parsed as a Python literal."""
CHUNK = 1 << 22
"""Bytes of a member of an archive that are unpacked at a time."""
DATA_NAMES = ("X", "x", "data", "arr_0")
LABEL_NAMES = ("y", "labels", "target")
NAME_NAMES = ("names", "feature_names", "columns")
SPARSE_NAMES = {"data", "indices", "indptr", "format", "shape"}
"""Members of an archive that ``scipy.sparse.save_npz`` writes."""


class ArraySource(MatrixSource):
    """Columns of a two-dimensional array or a CSR matrix."""

    def __init__(self, file: DataFile) -> None:
        super().__init__(file)
        self._labels: Any = None
        self._X = self._load()
        if not self.named:
            self.set_names(unnamed(self._X.shape[1]))

    def _load(self) -> Any:
        """Return the data; set labels and names that came with them."""
        file = self.file
        dtype, shape, fortran = sized_header(file)
        declared = math.prod(shape) * dtype.itemsize
        if not declared or file.room.scratch is None or file.room.fits(declared):
            return check_table(filled(file.handle, dtype, shape, fortran), file.name)
        order: Any = "F" if fortran else "C"
        # A map of the file itself, which nobody writes to.
        X = np.memmap(file.handle, dtype, "r", file.handle.tell(), shape, order)
        return check_table(X, file.name)

    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return columns as floats: float32 stays, anything else becomes float64."""
        whole = self._X
        dtype = np.float32 if whole.dtype in (np.float16, np.float32) else np.float64
        if not sparse.issparse(whole):
            self.file.room.announce((len(whole), len(features)), dtype)
        if isinstance(whole, np.memmap):
            others = super().read([], kept)[1]
            return self._copied(whole, list(features), dtype), others
        X, others = super().read(features, kept)
        X = X.astype(dtype, copy=False)
        return X if sparse.issparse(X) else np.ascontiguousarray(X), others

    def _copied(self, X: Any, features: list[int], dtype: Any) -> Any:
        """Return columns of an array in a file: itself, or in a scratch file where that must be."""
        same = features == list(range(X.shape[1])) and X.dtype == dtype and X.flags.c_contiguous
        plain = X.dtype.isnative and X.flags.aligned
        return X if same and plain else self.file.room.copied(X, features, dtype)

    def own_labels(self) -> Any:
        """Return the labels of an archive, or None."""
        return self._labels


class ArchiveSource(ArraySource):
    """An NPZ file: the array X (or data, or the only one), and its y and names where they are.

    Also what ``scipy.sparse.save_npz`` writes.
    """

    def _load(self) -> Any:
        file = self.file
        file.handle.seek(0)
        with zipfile.ZipFile(file.handle) as archive:
            members = {}
            for member in archive.infolist():
                # Members are never written to disk, so that their names lead nowhere.
                name = member.filename.removesuffix(".npy")
                if name in members:
                    raise DataError(f"{file.name} holds the array {name!r} twice: it is damaged.")
                members[name] = member
            if members.keys() >= SPARSE_NAMES:
                return self._load_sparse(archive, members)
            data = _first(DATA_NAMES, members)
            if data is None and len(members) == 1:
                data = next(iter(members))
            if data is None:
                listed = ", ".join(repr(name) for name in list(members)[:8])
                raise DataError(
                    f"{file.name} holds {len(members)} arrays ({listed}), and none is called X. "
                    "Save the one to cluster as X: np.savez(path, X=X)."
                )
            X = check_table(self._member(archive, members[data], table=True), file.name)
            if (label := _first(LABEL_NAMES, members)) is not None:
                self._labels = self._member(archive, members[label])
                self.labels_name = label
                if self._labels.shape != (X.shape[0],):
                    raise DataError(
                        f"{file.name}: {label!r} has shape {self._labels.shape}, but {data!r} has "
                        f"{X.shape[0]} rows."
                    )
            if (key := _first(NAME_NAMES, members)) is not None:
                names = self._member(archive, members[key])
                self.set_names(_names(file, names, X.shape[1]))
                self.named = True
            return X

    def _load_sparse(self, archive: zipfile.ZipFile, members: dict[str, Any]) -> Any:
        parts = {name: self._member(archive, members[name]) for name in SPARSE_NAMES}
        kind = bytes(parts["format"].reshape(-1)[:1].astype("S8").tobytes()).rstrip(b"\0").decode()
        if kind not in ("csr", "csc"):
            raise DataError(
                f"{self.file.name} holds a sparse matrix of format {kind!r}. Save it as CSR: "
                "scipy.sparse.save_npz(path, X.tocsr())."
            )
        shape = tuple(int(size) for size in parts["shape"].reshape(-1))
        if len(shape) != 2 or min(shape) < 0:
            raise DataError(f"{self.file.name} declares the shape {shape}: it is damaged.")
        if shape[kind == "csr"] > max(1_000_000, 10 * len(parts["data"])):
            raise DataError(
                f"{self.file.name} declares {shape[kind == 'csr']:,} columns for "
                f"{len(parts['data']):,} numbers: it is damaged, or its columns need new numbers."
            )
        build = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
        X = build((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        X.check_format(full_check=True)
        return check_table(X.tocsr(), self.file.name)

    def _member(
        self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, *, table: bool = False
    ) -> Any:
        name = f"{self.file.name} ({member.filename})"
        way_out = "save it without compression (np.savez)"
        check_expansion(name, member.compress_size, member.file_size, way_out=way_out)
        with archive.open(member) as stream:
            dtype, shape, fortran = read_header(stream, name)
            declared = math.prod(shape) * dtype.itemsize
            held = member.file_size - stream.tell()
            if declared != held:
                raise DataError(
                    f"{name} declares {declared:,} bytes of numbers and holds {held:,}: it is "
                    "damaged."
                )
            if member.compress_size > self.file.size:
                raise DataError(f"{name} declares to be larger than its archive: it is damaged.")
            room = self.file.room if table else IN_MEMORY
            return filled(stream, dtype, shape, fortran, room)


def sized_header(file: DataFile) -> tuple[Any, tuple[int, ...], bool]:
    """Return what the array of an NPY file is, which is all that the file holds."""
    file.handle.seek(0)
    dtype, shape, fortran = read_header(file.handle, file.name)
    declared = math.prod(shape) * dtype.itemsize
    held = file.size - file.handle.tell()
    if declared != held:
        raise DataError(
            f"{file.name} declares an array of {' × '.join(map(str, shape))} {dtype} numbers, "
            f"which is {declared:,} bytes, and holds {held:,}: it is damaged or cut off."
        )
    return dtype, shape, fortran


def read_header(stream: Any, name: str) -> tuple[Any, tuple[int, ...], bool]:
    """Return the dtype, the shape and the order that an array declares."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(stream)
    if version not in readers:
        raise DataError(f"{name} is of version {version} of NPY; versions 1.0 and 2.0 are read.")
    shape, fortran, dtype = readers[version](stream, max_header_size=HEADER_LIMIT)
    if dtype.hasobject:
        raise DataError(
            f"{name} holds Python objects, which would have to be unpickled: that can run any "
            "program, so it is never done. Save numbers: np.save(path, X.astype(float))."
        )
    if dtype.names is not None or dtype.itemsize == 0:
        raise DataError(f"{name} holds records of type {dtype}. Save a plain array of numbers.")
    if any(size < 0 for size in shape):
        raise DataError(f"{name} declares the shape {shape}: it is damaged.")
    return dtype, shape, fortran


def filled(
    stream: IO[bytes], dtype: Any, shape: tuple[int, ...], fortran: bool, room: Room = IN_MEMORY
) -> Any:
    """Read an array whose size has been checked, a chunk at a time into its place."""
    flat = room.empty((math.prod(shape),), dtype)
    target = flat.view(np.uint8)
    done = 0
    while done < len(target):
        chunk = stream.read(min(CHUNK, len(target) - done))
        if not chunk:
            raise EOFError("it ends before its last number")
        target[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
        done += len(chunk)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def check_table(X: Any, name: str) -> Any:
    """Return X, which must be real numbers in rows and columns."""
    if X.ndim != 2:
        raise DataError(
            f"{name} holds an array of shape {X.shape}: rows and columns are needed. Reshape it "
            "with X.reshape(len(X), -1)."
        )
    if X.dtype.kind not in "fiub":
        raise DataError(f"{name} holds {X.dtype} values: kernels need real numbers.")
    return X


def _first(known: Sequence[str], members: dict[str, Any]) -> str | None:
    return next((name for name in known if name in members), None)


def _names(file: DataFile, names: Any, width: int) -> list[str]:
    """Return the names of columns that an archive holds, checked."""
    found = [
        name.decode() if isinstance(name, bytes) else str(name)
        for name in names.reshape(-1).tolist()
    ]
    if len(found) != width:
        raise DataError(f"{file.name} names {len(found)} columns and has {width}.")
    return found
