"""What has rows to be read, and what reads them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.disk.chunks import ChunkedSource, chunk_rows
from sketchmeans.disk.npy import mapped_file
from sketchmeans.disk.parquet import ParquetSource
from sketchmeans.disk.sources import ArraySource, Source
from sketchmeans.rows import Rows

IN_MEMORY = ("__array_interface__", "__dlpack__", "__dask_graph__", "iloc", "columns")
"""What arrays and frames have that are in memory, or are computed as a whole."""


def is_source(X: Any) -> bool:
    """Whether X is no array, and has rows to be read: a path, or anything with slices of rows.

    Arrays of other libraries that lie in memory are none: NumPy can take those as they are.
    """
    if isinstance(X, Source | os.PathLike | str):
        return True
    if isinstance(X, np.ndarray | np.generic | Rows) or sparse.issparse(X):
        return False
    if any(hasattr(X, name) for name in IN_MEMORY):
        return False
    if not all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__")):
        return False
    try:
        np.dtype(X.dtype)
        return len(X.shape) == 2
    except TypeError:
        return False


def as_source(X: Any) -> Source:
    """Return what reads the rows of X: a memory map, a path, or anything with slices of rows."""
    if isinstance(X, Source):
        return X
    if isinstance(X, os.PathLike | str):
        return _opened(os.fspath(X))
    if len(X.shape) != 2:
        raise ValueError(
            f"X has {len(X.shape)} dimensions, where rows and columns are needed. Reshape it first."
        )
    return ArraySource(X) if chunk_rows(X) is None else ChunkedSource(X)


def _opened(path: str) -> Source:
    """Open a file of rows by its name."""
    if not os.path.lexists(path):
        raise FileNotFoundError(
            f"X={path!r} is no file: give rows, or the path of a .npy or Parquet file, or of a "
            "folder of Parquet files."
        )
    if path.endswith(".npy"):
        return ArraySource(mapped_file(path))
    if os.path.isdir(path) or path.endswith((".parquet", ".pq")):
        return ParquetSource(path)
    raise ValueError(
        f"X={path!r} is neither a .npy nor a Parquet file, nor a folder of Parquet files. Open "
        "others first, and give the array: h5py.File(path)['name'], zarr.open(path)."
    )
