"""Files of clusters, as ``write_labels`` makes them and as people have them."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans._arrays import Array
from sketchmeans.io.dialect import LOOKED_AT, SPACES, guess_delimiter
from sketchmeans.io.extras import arrow
from sketchmeans.io.formats import by_extension
from sketchmeans.io.limits import DataError
from sketchmeans.io.table import TableData
from sketchmeans.text import called, counted, printable

NAMES = ("cluster", "label", "labels", "clusters")
"""What the column of clusters may be called; of other names the last column is meant."""


@dataclass(frozen=True)
class ClusterFile:
    """A cluster per row: of the row with this key, or in the order of the data."""

    path: str
    clusters: list[str]
    key_name: str | None = None
    """What its column of keys is called; None where it has no header."""
    keys: list[str] | None = None

    def of(self, table: TableData) -> Array:
        """Return the clusters of the rows of a table, in its order, as text."""
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


def read_clusters(path: str | os.PathLike[str], id_column: str | None = None) -> ClusterFile:
    """Read a file of clusters: NPY, CSV, TSV, Parquet or Feather, with ids of rows or without.

    The ids are in the column of this name, if there is one; else the numbers of rows in ``row``,
    or ids in the first column that holds no clusters.
    """
    name, format = os.fspath(path), by_extension(Path(path).suffix)
    if format == "npy":
        array = np.load(path, allow_pickle=False)
        if array.ndim != 1:
            raise DataError(f"{name} holds an array of shape {array.shape}: one label a row.")
        return ClusterFile(name, [str(value) for value in array.tolist()])
    if format in ("csv", "tsv"):
        expected = "," if format == "csv" else "\t"
        with Path(path).open(encoding="utf-8-sig", newline="") as text:
            mark = guess_delimiter(list(islice(text, LOOKED_AT)), expected, cut=False)
            text.seek(0)
            # Spaces may stand in the names of clusters.
            rows = list(csv.reader(text, delimiter=expected if mark == SPACES else mark))
        columns = _text_columns(name, [row for row in rows if row])
    elif format in ("parquet", "feather", "arrow"):
        columns = _arrow_columns(path, format)
    else:
        raise DataError(
            f"labels are not read from {name}: give .csv, .tsv, .parquet, .feather or .npy."
        )
    names = list(columns)
    chosen = next((one for one in NAMES if one in columns), names[-1])
    others = [one for one in names if one != chosen]
    if not others:
        return ClusterFile(name, columns[chosen])
    key = next((one for one in (id_column, "row") if one in others), others[0])
    return ClusterFile(name, columns[chosen], key or None, columns[key])


def _text_columns(name: str, rows: list[list[str]]) -> dict[str, list[str]]:
    """Return columns of text by their names: those of the first row, unless it holds a number."""
    if not rows:
        raise DataError(f"{name} is empty.")
    width = len(rows[0])
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise DataError(f"{name} has {len(row)} fields in row {number}, and {width} before.")
    if rows[0][-1].lstrip("-").isdigit():
        # The first column holds keys that have no name, then.
        header = ["", *(str(index) for index in range(1, width - 1)), "cluster"][-width:]
    else:
        header, rows = rows[0], rows[1:]
    return {title: [row[index] for row in rows] for index, title in enumerate(header)}


def _arrow_columns(path: Any, format: str) -> dict[str, list[str]]:
    arrow()
    if format == "parquet":
        from pyarrow import parquet

        frame = parquet.read_table(path)
    else:
        from pyarrow import feather

        frame = feather.read_table(path)
    return {
        name: [str(value) for value in frame.column(name).to_pylist()]
        for name in frame.column_names
    }
