"""Labels, written beside the ids of their rows: whole or not at all."""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from sketchmeans._arrays import IntArray
from sketchmeans.atomic import real_file, refuse_existing, whole_file
from sketchmeans.blocks import row_blocks
from sketchmeans.io.extras import arrow
from sketchmeans.io.formats import by_extension
from sketchmeans.io.limits import DataError
from sketchmeans.io.table import TableData
from sketchmeans.text import setting

WRITTEN = ("csv", "tsv", "parquet", "feather", "arrow", "npy")


def how_to_overwrite() -> str:
    """Say how a file that exists can be overwritten."""
    return f"Say {setting('force', True)} to overwrite it, or choose another name."


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
        refuse_existing(path, way_out=how_to_overwrite())


def write_labels(
    path: str | os.PathLike[str], table: TableData, labels: IntArray, *, force: bool = True
) -> None:
    """Write a cluster per row, beside its id, or its row number where there is no id column.

    The format follows the extension: CSV, TSV, Parquet, Feather, or NPY; ``-`` is CSV to standard
    output. NPY holds the labels alone, one per row of the source, −1 for rows that were dropped. A
    file that exists is replaced by ``force`` alone.
    """
    if os.fspath(path) == "-":
        _write_text(sys.stdout, table, labels, ",")
        return
    format = _format(Path(path))
    with whole_file(path, way_out=None if force else how_to_overwrite()) as temporary:
        if format == "npy":
            every = np.asarray(labels, np.int32)
            if table.n_dropped:
                every = np.full(table.n_rows, -1, np.int32)
                every[table.rows - 1] = labels
            with temporary.open("wb") as stream:
                np.save(stream, every, allow_pickle=False)
        elif format in ("csv", "tsv"):
            with temporary.open("w", encoding="utf-8", newline="") as text:
                _write_text(text, table, labels, "," if format == "csv" else "\t")
        else:
            _write_arrow(temporary, format, _columns(table, labels))


def _format(path: Path) -> str:
    format = by_extension(path.suffix)
    if format not in WRITTEN:
        raise DataError(
            f"labels cannot be written to {path}: the name must end in .csv, .tsv, .parquet, "
            ".feather or .npy."
        )
    return format


def _columns(table: TableData, labels: IntArray) -> dict[str, Any]:
    """Return the two columns by name."""
    if table.ids is None:
        return {"row": table.rows, "cluster": labels}
    name = str(table.id_name)
    return {name: table.ids, "label" if name == "cluster" else "cluster": labels}


def _write_text(stream: TextIO, table: TableData, labels: IntArray, delimiter: str) -> None:
    columns = _columns(table, labels)
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for rows in row_blocks(len(labels), 1 << 16):
        few = (column[rows].tolist() for column in columns.values())
        writer.writerows(zip(*few, strict=True))


def _write_arrow(path: Path, format: str, columns: dict[str, Any]) -> None:
    frame = arrow().table(columns)
    if format == "parquet":
        from pyarrow import parquet

        parquet.write_table(frame, path)
    else:
        from pyarrow import feather

        feather.write_feather(frame, path)
