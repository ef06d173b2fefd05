"""Labels, written beside the ids of their rows: whole or not at all."""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.atomic import real_file, refuse_existing, whole_file
from sketchmeans.io.columnar import arrow
from sketchmeans.io.opening import EXTENSIONS, DataError
from sketchmeans.io.table import TableData

FORCE = "Say --force to overwrite it, or choose another name."
WRITTEN = ("csv", "tsv", "parquet", "feather", "arrow", "npy")


def check_output(path: str | os.PathLike[str], *, force: bool, labels: bool = False) -> None:
    """Refuse, before any long work, a file that could not be written in the end."""
    if os.fspath(path) == "-":
        return
    target = real_file(path)
    if labels and _format(Path(path)) in ("parquet", "feather", "arrow"):
        arrow()
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist. Create it first.")
    try:
        with tempfile.TemporaryFile(dir=target.parent):  # without a name, where the system can
            pass
    except OSError as error:
        raise DataError(
            f"{os.fspath(path)} cannot be written: {error.strerror}. Choose another folder."
        ) from error
    if not force:
        refuse_existing(path, way_out=FORCE)


def write_labels(
    path: str | os.PathLike[str], table: TableData, labels: FloatArray, *, force: bool = True
) -> None:
    """Write a cluster a row, beside its id, or its row number where there is no id column.

    The format follows the extension: CSV, TSV, Parquet, Feather, or NPY; ``-`` is CSV to standard
    output. NPY holds the labels alone, one a row of the source, and −1 for rows that were dropped.
    A file that exists is replaced by ``force`` alone.
    """
    if os.fspath(path) == "-":
        _write_text(sys.stdout, table, labels, ",")
        return
    format = _format(Path(path))
    with whole_file(path, way_out=None if force else FORCE) as temporary:
        if format == "npy":
            every = np.full(table.n_rows, -1, np.int32)
            every[table.rows - 1] = labels
            with temporary.open("wb") as stream:
                np.save(stream, every, allow_pickle=False)
        elif format in ("csv", "tsv"):
            with temporary.open("w", encoding="utf-8", newline="") as text:
                _write_text(text, table, labels, "," if format == "csv" else "\t")
        else:
            names, columns = _columns(table, labels)
            _write_arrow(temporary, format, dict(zip(names, columns, strict=True)))


def _format(path: Path) -> str:
    format = EXTENSIONS.get(path.suffix.lower())
    if format not in WRITTEN:
        raise DataError(
            f"labels cannot be written to {path}: the name must end in .csv, .tsv, .parquet, "
            ".feather or .npy."
        )
    return format


def _columns(table: TableData, labels: FloatArray) -> tuple[list[str], list[Any]]:
    """Return the names and values of the two columns."""
    if table.ids is None:
        return ["row", "cluster"], [table.rows, labels]
    name = str(table.id_name)
    return [name, "label" if name == "cluster" else "cluster"], [table.ids, labels]


def _write_text(stream: TextIO, table: TableData, labels: FloatArray, delimiter: str) -> None:
    names, columns = _columns(table, labels)
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


def _write_arrow(path: Path, format: str, columns: dict[str, Any]) -> None:
    frame = arrow().table(columns)
    if format == "parquet":
        from pyarrow import parquet

        parquet.write_table(frame, path)
    else:
        from pyarrow import feather

        feather.write_feather(frame, path)
