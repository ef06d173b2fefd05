"""Missing values: an error, rows left out, or values filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sketchmeans.io.opening import DataError
from sketchmeans.io.source import counted, quoted
from sketchmeans.kernels import FloatArray
from sketchmeans.points import data_blocks

if TYPE_CHECKING:
    from sketchmeans.io.table import TableData


def completed(
    table: TableData,
    name: str,
    drop_missing: bool,
    impute: str | float | None,
    *,
    training: bool,
) -> TableData:
    """Refuse, drop or fill in what is missing; refuse what is infinite.

    Where there is a model already, it says which columns there are, and nothing can be filled in.
    """
    X = table.X
    values = X.data if sparse.issparse(X) else X
    blocks = data_blocks(X) if values.ndim == 2 else [slice(0, len(values))]
    if all(np.isfinite(values[rows]).all() for rows in blocks):
        return table
    cells = np.argwhere(~np.isfinite(values)) if values.ndim == 2 else _stored_cells(X)
    found = X[cells[:, 0], cells[:, 1]]
    found = np.asarray(found).ravel()
    if np.isinf(found).any():
        row, column = cells[np.isinf(found)][0]
        raise DataError(
            f"{name}: column {quoted(table.names[column])} holds an infinite value in row "
            f"{row + 1}. Mend it{', or leave the column out with --columns' if training else ''}."
        )
    if drop_missing:
        complete = np.ones(X.shape[0], bool)
        complete[cells[:, 0]] = False
        if not complete.any():
            way_out = "Use --impute, or choose columns with --columns."
            raise DataError(
                f"{name}: every row has a missing value, so --drop-missing leaves nothing. "
                f"{way_out if training else 'Fill them in first.'}"
            )
        return replace(
            table,
            X=X[complete],
            rows=table.rows[complete],
            ids=None if table.ids is None else table.ids[complete],
            labels=None if table.labels is None else table.labels[complete],
        )
    if impute is not None:
        _fill(X, cells, table.names, name, impute)
        return replace(table, n_imputed=len(cells))
    row, column = cells[0]
    rows, columns = len(np.unique(cells[:, 0])), len(np.unique(cells[:, 1]))
    said = f"{name}: column {quoted(table.names[column])} has no value in row {row + 1}"
    if len(cells) > 1:
        said += (
            f"; {len(cells):,} values are missing, in {counted(rows, 'row')} and "
            f"{counted(columns, 'column')}"
        )
    way_out = "with --impute mean (or median, or a number)" if training else "first"
    raise DataError(f"{said}. Leave such rows out with --drop-missing, or fill them in {way_out}.")


def _stored_cells(X: Any) -> FloatArray:
    """Return row and column of every stored value of a CSR matrix that is not finite."""
    places = np.flatnonzero(~np.isfinite(X.data))
    rows = np.searchsorted(X.indptr, places, side="right") - 1
    return np.column_stack([rows, X.indices[places]])


def _fill(X: Any, cells: FloatArray, names: Sequence[str], name: str, impute: str | float) -> None:
    """Put the mean, the median or a number into missing cells, in place."""
    if sparse.issparse(X):
        raise DataError(f"{name} is sparse: --impute cannot fill it in. Use --drop-missing.")
    for column in np.unique(cells[:, 1]):
        values = X[:, column]
        there = values[~np.isnan(values)]
        if isinstance(impute, str) and not len(there):
            raise DataError(
                f"{name}: column {quoted(names[column])} has no value at all, so that it has no "
                f"{impute}. Leave it out with --columns."
            )
        if isinstance(impute, str):
            filler = np.mean(there, dtype=np.float64) if impute == "mean" else np.median(there)
        else:
            filler = impute
        X[cells[cells[:, 1] == column, 0], column] = filler
