"""Missing values: an error, rows left out, or values filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import data_blocks
from sketchmeans.io.limits import DataError
from sketchmeans.io.source import Source, quoted
from sketchmeans.io.table import TableData
from sketchmeans.text import called, counted, setting


@dataclass(frozen=True)
class Gaps:
    """What is to become of missing values."""

    drop: bool
    """Leave out their rows."""
    impute: str | float | None
    """Fill them in, by "mean", "median" or a number."""
    fill_values: FloatArray | None
    """What the model that there is fills in, a number per column."""
    numbers: Sequence[float] = ()
    """Numbers that stand for a missing value."""
    keep: bool = False
    """Leave them as they are."""


def complete(table: TableData, source: Source, gaps: Gaps) -> None:
    """Refuse, drop or fill in what is missing; refuse what is infinite.

    Where there is a model already, it says which columns there are, and what is filled in.
    """
    X, name, training = table.X, source.file.name, source.n_wanted is None
    X = table.own() if gaps.numbers else X
    impute, fill_values = gaps.impute, gaps.fill_values
    for number in gaps.numbers:
        values = X.data if sparse.issparse(X) else X
        for rows in data_blocks(X) if values.ndim == 2 else [slice(0, len(values))]:
            values[rows][values[rows] == number] = np.nan
    cells = _unusable_cells(X)
    if len(cells):
        _refuse_infinite(table, name, cells, training)
    if impute is not None:
        # Of every column: the rows of predict may lack values where these have them all.
        fill_values = table.fill_values = _fill_values(X, table.names, name, impute)
    if not len(cells):
        return
    if gaps.drop:
        _drop_rows(table, name, cells, training)
    elif fill_values is None and not gaps.keep:
        _refuse_missing(table, name, cells, training)
    elif fill_values is not None:
        table.n_imputed = len(_in_the_file(table, cells))
        X = table.own()
        if sparse.issparse(X):
            places = np.flatnonzero(np.isnan(X.data))
            X.data[places] = fill_values[X.indices[places]]
        else:
            X[cells[:, 0], cells[:, 1]] = fill_values[cells[:, 1]]


def _unusable_cells(X: Any) -> IntArray:
    """Return row and column of every value that is not finite."""
    values = X.data if sparse.issparse(X) else X
    blocks = data_blocks(X) if values.ndim == 2 else [slice(0, len(values))]
    if all(np.isfinite(values[rows]).all() for rows in blocks):
        return np.empty((0, 2), int)
    if values.ndim == 2:
        cells = [np.argwhere(~np.isfinite(values[rows])) for rows in blocks]
        for block, part in zip(blocks, cells, strict=True):
            part[:, 0] += block.start
        return np.concatenate(cells)
    places = np.flatnonzero(~np.isfinite(X.data))
    rows = np.searchsorted(X.indptr, places, side="right") - 1
    return np.column_stack([rows, X.indices[places]])


def _in_the_file(table: TableData, cells: IntArray) -> IntArray:
    """Return cells, those of one text that became several columns once."""
    if not table.encoded:
        return cells
    first = np.array([table.origin(column)[0] for column in range(len(table.names))])
    return np.unique(np.column_stack([cells[:, 0], first[cells[:, 1]]]), axis=0)


def _drop_rows(table: TableData, name: str, cells: IntArray, training: bool) -> None:
    kept = np.ones(len(table.rows), bool)
    kept[cells[:, 0]] = False
    if not kept.any():
        way_out = f"Use {called('impute')}, or choose columns with {called('columns')}."
        raise DataError(
            f"{name}: every row has a missing value, so {setting('drop_missing', True)} leaves "
            f"nothing. {way_out if training else 'Fill them in first.'}"
        )
    table.keep_rows(kept)


def _refuse_missing(table: TableData, name: str, cells: IntArray, training: bool) -> None:
    cells = _in_the_file(table, cells)
    row, column = cells[0]
    rows, columns = len(np.unique(cells[:, 0])), len(np.unique(cells[:, 1]))
    said = f"{name}: column {quoted(table.origin(column)[1])} has no value in row {row + 1}"
    if len(cells) > 1:
        said += (
            f"; {len(cells):,} values are missing, in {counted(rows, 'row')} and "
            f"{counted(columns, 'column')}"
        )
    way_out = f"with {setting('impute', 'mean')} (or median, or a number)" if training else "first"
    raise DataError(
        f"{said}. Leave such rows out with {setting('drop_missing', True)}, or fill them in "
        f"{way_out}."
    )


def _refuse_infinite(table: TableData, name: str, cells: IntArray, training: bool) -> None:
    found = np.asarray(table.X[cells[:, 0], cells[:, 1]]).ravel()
    if np.isinf(found).any():
        row, column = cells[np.isinf(found)][0]
        way_out = f", or leave the column out with {called('columns')}" if training else ""
        raise DataError(
            f"{name}: column {quoted(table.names[column])} holds an infinite value in row "
            f"{row + 1}. Mend it{way_out}."
        )


def _fill_values(X: Any, names: Sequence[str], name: str, impute: str | float) -> FloatArray:
    """Return the number, or the mean or the median of what is there, for each column."""
    # NOTE: SimpleImputer makes masked copies of all of X, and drops a column without any value.
    n, p = X.shape
    if not isinstance(impute, str):
        return np.full(p, float(impute))
    fill_values = np.empty(p)
    columns = _stored_columns(X) if sparse.issparse(X) else (X[:, column] for column in range(p))
    for column, values in enumerate(columns):
        there = values[~np.isnan(values)]
        zeros = n - len(values)  # those that a sparse column does not store
        if not len(there) + zeros:
            raise DataError(
                f"{name}: column {quoted(names[column])} has no value at all, so that it has no "
                f"{impute}. Leave it out with {called('columns')}."
            )
        if impute == "mean":
            fill_values[column] = there.sum(dtype=np.float64) / (len(there) + zeros)
        elif zeros > len(there):
            fill_values[column] = 0  # without writing the zeros out
        else:
            fill_values[column] = np.median(np.concatenate([there, np.zeros(zeros, X.dtype)]))
    return fill_values


def _stored_columns(X: Any) -> Iterator[FloatArray]:
    """Yield the stored values of each column of a CSR matrix."""
    by_column = X.tocsc()
    by_column.sum_duplicates()
    for start, stop in pairwise(by_column.indptr):
        yield by_column.data[start:stop]
