"""``read_table``: from a file to a table, whatever the format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray
from sketchmeans.io.columns import choose_columns
from sketchmeans.io.formats import FORMATS
from sketchmeans.io.missing import complete
from sketchmeans.io.opening import DataError, DataFile, open_data
from sketchmeans.io.source import Source, quoted, typed_column, unnamed
from sketchmeans.io.table import TableData
from sketchmeans.text import called, setting


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    header: bool | None = None,
    columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    drop_missing: bool = False,
    impute: str | float | None = None,
    standardize: bool = False,
    fill_values: FloatArray | None = None,
    expected: Sequence[str] | None = None,
    n_features: int | None = None,
    libsvm_base: int | None = None,
) -> TableData:
    """Read a data file.

    Memory: the table, and one batch of rows (one row group of Parquet) beside it. Whatever is
    wrong with the file is a ``ValueError`` that names a parameter which helps.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    format : str, optional
        One of ``FORMATS``; by the extension if left out, and for standard input by the first
        bytes, CSV if they say nothing.
    header : bool, optional
        Whether the first row of CSV or TSV names the columns; it is looked at if left out.
    columns : sequence of str, or str with commas, optional
        The features, by name, by number from 1, or by a range of numbers such as "2-5"; if left
        out, all columns but those of ids and labels.
    id_column, label_column : str, optional
        Columns that are carried along, and are no features.
    drop_missing : bool
        Leave out rows with a missing value.
    impute : {"mean", "median"} or float, optional
        What to fill in for missing values.
    standardize : bool
        Give every column mean 0 and deviation 1. A sparse table becomes a dense one.
    fill_values : array, optional
        What the model that there is fills in for missing values, a number per feature.
    expected : sequence of str, optional
        The features, by name, of a file that has names; other columns are left alone.
    n_features : int, optional
        How many features there must be, for the model that there is. A LIBSVM file with fewer is
        widened: its last columns may just be empty.
    libsvm_base : {0, 1}, optional
        The first index of a LIBSVM file; 1 if left out, or 0 if 0 is there.

    Returns
    -------
    TableData
    """
    if drop_missing and impute is not None:
        both = f"{called('drop_missing')} and {called('impute')}"
        raise ValueError(f"{both} exclude each other: choose one of them.")
    with open_data(path, format) as file:
        with _damage_told(file):
            source = _source(file, header, libsvm_base)
            source.n_wanted = n_features
            features, kept = choose_columns(source, columns, id_column, label_column, expected)
            X, others = source.read(features, list(kept.values()))
        table = _assembled(source, X, features, kept, others)
        if not source.complete or impute is not None:
            complete(table, source, drop_missing, impute, fill_values)
        if n_features is None:
            _warn_of_counters(table, source)
    if standardize:
        table.standardize()
    return table


def _source(file: DataFile, header: bool | None, libsvm_base: int | None) -> Source:
    options: dict[str, Any] = {}
    if libsvm_base is not None:
        options["base"] = libsvm_base
        if file.format != "libsvm":
            raise DataError(f"{called('libsvm_base')} is for LIBSVM, not for {file.format}.")
    if header is not None:
        options["header"] = header
        if file.format not in ("csv", "tsv"):
            both = f"{setting('header', True)} and {setting('header', False)}"
            raise DataError(f"{both} are for CSV and TSV, not for {file.format}.")
    source: Source = resolve_name(f"{__package__}.{FORMATS[file.format].source}")(file, **options)
    return source


@contextmanager
def _damage_told(file: DataFile) -> Iterator[None]:
    """Turn the errors of parsers, which raise all kinds on damaged files, into one sentence."""
    try:
        yield
    except (DataError, ImportError, FileNotFoundError):
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise DataError(
            f"{file.name} cannot be read as {file.format}: {reason.rstrip('.')}. It is damaged or "
            f"of another format; say {called('format')} if the name misleads."
        ) from error


def _assembled(
    source: Source, X: Any, features: list[int], kept: dict[str, int], others: list[Any]
) -> TableData:
    """Return the table; a model may want more columns than a sparse file has."""
    n = X.shape[0]
    if n == 0:
        raise DataError(f"{source.file.name} holds no rows.")
    missing = (source.n_wanted or 0) - X.shape[1]
    if missing > 0 and sparse.issparse(X):
        X.resize((n, source.n_wanted))
    elif missing > 0:
        X = np.concatenate([X, np.zeros((n, missing), X.dtype)], axis=1)
    carried = dict(zip(kept, others, strict=True))
    names = {role: source.names[place] for role, place in kept.items()}
    own = source.own_labels()
    return TableData(
        X=X,
        names=(*(source.names[index] for index in features), *unnamed(X.shape[1])[len(features) :]),
        named=source.named,
        rows=np.arange(1, n + 1),
        n_rows=n,
        ids=carried.get("id"),
        id_name=names.get("id"),
        labels=carried.get("label", own),
        label_name=names.get("label", None if own is None else source.labels_name),
    )


def _warn_of_counters(table: TableData, source: Source) -> None:
    """Warn where a feature counts the rows: most likely it is an id."""
    X = table.X
    if sparse.issparse(X) or X.shape[0] < 10 or not table.named:
        return
    for column, name in enumerate(table.names):
        if X[1, column] - X[0, column] == 1 and (np.diff(X[:, column]) == 1).all():
            option = setting("id_column", typed_column(source.names, source.places[name]))
            warnings.warn(
                f"column {quoted(name)} counts the rows and is used as a feature. If it is an id, "
                f"say {option}.",
                stacklevel=3,
            )
