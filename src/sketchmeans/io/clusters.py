"""Files of clusters, as ``write_labels`` makes them and as people have them."""

from __future__ import annotations

import csv
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans._arrays import Array
from sketchmeans.io.arrays import filled, sized_header
from sketchmeans.io.dialect import LOOKED_AT, SPACES, guess_delimiter
from sketchmeans.io.encoding import TextFile, Undecodable
from sketchmeans.io.extras import arrow
from sketchmeans.io.formats import by_extension
from sketchmeans.io.limits import DataError
from sketchmeans.io.opening import DataFile, damage_told, open_data
from sketchmeans.io.table import TableData
from sketchmeans.text import called, counted, printable

Columns = list[tuple[str, list[str]]]

NAMES = ("cluster", "label", "labels", "clusters")
"""What the column of clusters may be called; of other names the last column is meant."""
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
"""A whole number as it is written by programs; ``01`` may be another cluster than ``1``."""


@dataclass(frozen=True)
class ClusterFile:
    """A cluster per row: of the row with this key, or in the order of the data."""

    path: str
    clusters: list[str]
    key_name: str | None = None
    """What its column of keys is called; None where it has no header."""
    keys: list[str] | None = None

    def of(self, table: TableData) -> Array:
        """Return the clusters of the rows of a table, in its order: whole numbers, or text."""
        found = self._matched(table)
        return found.astype(int) if all(map(_WHOLE.fullmatch, self.clusters)) else found

    def _matched(self, table: TableData) -> Array:
        if self.keys is None:
            if len(self.clusters) != table.n_rows:
                raise DataError(
                    f"{self.path} has {counted(len(self.clusters), 'label')} and no ids, and the "
                    f"data {counted(table.n_rows, 'row')}: they cannot be matched."
                )
            return np.array(self.clusters)[table.rows - 1]
        wanted = self._wanted(table)
        known: dict[str, str] = {}
        for key, cluster in zip(self.keys, self.clusters, strict=True):
            if known.setdefault(key, cluster) != cluster:
                raise DataError(f"{self.path} has {printable(key)!r} twice, in two clusters.")
        found = [known.get(str(key)) for key in wanted]
        if None in found:
            missing = printable(str(list(wanted)[found.index(None)]))
            raise DataError(
                f"{self.path} has no label for {self.key_name or 'row'} {missing!r}, and for "
                f"{found.count(None) - 1:,} more rows of the data."
            )
        return np.array(found)

    def _wanted(self, table: TableData) -> Any:
        """Return the keys of the rows of a table: their ids, or their numbers."""
        assert self.keys is not None
        numbers = all(key.isdecimal() for key in self.keys)
        if self.key_name == "row" or (self.key_name is None and table.ids is None and numbers):
            return table.rows.tolist()
        if table.ids is None:
            named = "ids" if self.key_name is None else repr(self.key_name)
            raise DataError(
                f"{self.path} names rows by {named}. Say {called('id_column')} which column of the "
                "data holds these ids."
            )
        return table.ids


def read_clusters(
    path: str | os.PathLike[str], id_column: str | None = None, encoding: str | None = None
) -> ClusterFile:
    """Read a file of clusters: NPY, CSV, TSV, Parquet or Feather, with ids of rows or without.

    The ids are in the column of this name, if there is one; else the numbers of rows in ``row``,
    or ids in the first column that holds no clusters. The encoding of text is guessed if it is
    not given.
    """
    name, format = os.fspath(path), by_extension(Path(path).suffix)
    if format not in ("npy", "csv", "tsv", "parquet", "feather", "arrow"):
        raise DataError(
            f"labels are not read from {name}: give .csv, .tsv, .parquet, .feather or .npy."
        )
    with open_data(path, format) as file, damage_told(file, "its name must end as its format does"):
        if format == "npy":
            array = filled(file.handle, *sized_header(file))
            if array.ndim != 1:
                raise DataError(f"{name} holds an array of shape {array.shape}: one label a row.")
            return ClusterFile(name, [str(value) for value in array.tolist()])
        columns = (
            _text_columns(file, encoding) if format in ("csv", "tsv") else _arrow_columns(file)
        )
    names = [title for title, _ in columns]
    if not names:
        raise DataError(f"{name} has no columns.")
    chosen = next((one for one in NAMES if one in names), names[-1])
    others = [one for one in names if one != chosen]
    key = next((one for one in (id_column, "row", *others) if one in others), None)
    for title in (chosen,) if key is None else (chosen, key):
        if names.count(title) > 1:
            raise DataError(f"{name} has {names.count(title)} columns {title!r}: which is meant?")
    values = dict(columns)
    return ClusterFile(name, values[chosen], key or None, None if key is None else values[key])


def _text_columns(file: DataFile, encoding: str | None) -> Columns:
    """Return columns of text with their names: those of the first row, unless it holds a number."""
    text = TextFile(file, encoding)
    try:
        lines = list(text.lines())
    except Undecodable as error:
        if not text.settle(error):
            raise
        lines = list(text.lines())
    if text.note is not None:
        warnings.warn(text.note, stacklevel=3)
    expected = "," if file.format == "csv" else "\t"
    mark = guess_delimiter(lines[:LOOKED_AT], expected, cut=False)
    # Spaces may stand in the names of clusters.
    rows = [row for row in csv.reader(lines, delimiter=expected if mark == SPACES else mark) if row]
    if not rows:
        raise DataError(f"{file.name} is empty.")
    width = len(rows[0])
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            fields = counted(len(row), "field")
            raise DataError(f"{file.name} has {fields} in row {number}, and {width} before.")
    if rows[0][-1].lstrip("-").isdigit():
        # The first column holds keys that have no name, then.
        header = ["", *(str(index) for index in range(1, width - 1)), "cluster"][-width:]
    else:
        header, rows = rows[0], rows[1:]
    return [(title, [row[index] for row in rows]) for index, title in enumerate(header)]


def _arrow_columns(file: DataFile) -> Columns:
    """Return columns as text with their names; what is missing is empty."""
    arrow()
    from pyarrow import feather, parquet

    if file.format == "parquet":
        frame = parquet.ParquetFile(file.handle).read()
    else:
        frame = feather.read_table(file.handle)
    return [
        (title, ["" if value is None else str(value) for value in column.to_pylist()])
        for title, column in zip(frame.column_names, frame.columns, strict=True)
    ]
