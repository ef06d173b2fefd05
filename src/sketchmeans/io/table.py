"""TableData: the rows and columns of a data file, ready to be clustered."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import data_blocks
from sketchmeans.io.arrays import ArchiveSource, ArraySource
from sketchmeans.io.choosing import check_number, choose_columns, find_column
from sketchmeans.io.columnar import ArrowSource, ParquetSource
from sketchmeans.io.delimited import DelimitedSource
from sketchmeans.io.libsvm import LibsvmSource
from sketchmeans.io.missing import completed
from sketchmeans.io.opening import DataError, DataFile, open_data
from sketchmeans.io.source import Source, column_option, quoted, unnamed
from sketchmeans.text import human

MOST_DENSE = 4_000_000_000
"""Bytes that sparse rows may take when they are made dense, which standardizing them needs."""


@dataclass(frozen=True)
class TableData:
    """Rows to cluster, and what they are called."""

    X: Any
    """The features: a float array (n × p), or a CSR matrix where the file is sparse."""
    names: tuple[str, ...]
    """One a column of X; "column 1", … where the file has none."""
    named: bool
    """Whether the file itself names its columns."""
    rows: FloatArray
    """The row of the file that each row of X was, counted from 1, without the header."""
    n_rows: int
    """Rows of the file, those that were dropped included."""
    ids: Any = None
    """A name for each row, from the id column."""
    id_name: str | None = None
    labels: Any = None
    """The true class of each row, from the label column or the format's own place for it."""
    label_name: str | None = None
    n_imputed: int = 0
    """Values that were missing and filled in."""
    fill_values: FloatArray | None = None
    """What ``impute`` fills in, a number a column; None if it was not asked for."""
    center: FloatArray | None = None
    """What ``standardize`` took away from each column; None if it was not asked for."""
    scale: FloatArray | None = None
    """What it divided each column by."""

    @property
    def n_dropped(self) -> int:
        """Rows of the file that were left out."""
        return self.n_rows - len(self.rows)

    def standardized(
        self, center: FloatArray | None = None, scale: FloatArray | None = None
    ) -> TableData:
        """Return the table with columns of mean 0 and deviation 1, or moved as those of another.

        A constant column is moved and not divided. X itself is changed: no second copy of the data
        is made. Sparse columns become dense, unless nothing is taken away from any of them: the
        same rows give the same numbers in any format.
        """
        X = self.X
        if sparse.issparse(X) and (center is None or center.any()):
            X = _dense(X, training=center is None)
        if center is None or scale is None:
            center, scale = _moments(X)
        if sparse.issparse(X):
            X.data /= scale[X.indices].astype(X.dtype)
        else:
            for rows in data_blocks(X):
                X[rows] -= center.astype(X.dtype)
                X[rows] /= scale.astype(X.dtype)
        return replace(self, X=X, center=center, scale=scale)


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
    wrong with the file is a ``ValueError`` whose text names the options of the command line, which
    are these.

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
        What the model that there is fills in for missing values, a number a feature.
    expected : sequence of str, optional
        The features, by name, of a file that has names; other columns are left alone.
    n_features : int, optional
        How many features there must be, for the model that there is. A LIBSVM file with fewer is
        widened: its last columns may just be empty. Messages then name the options of ``predict``.
    libsvm_base : {0, 1}, optional
        The first index of a LIBSVM file; 1 if left out, or 0 if 0 is there.

    Returns
    -------
    TableData
    """
    if drop_missing and impute is not None:
        raise ValueError("--drop-missing and --impute exclude each other: choose one of them.")
    with open_data(path, format) as file:
        try:
            source = _source(file, header, libsvm_base)
            source.n_wanted = n_features
            kept, features = choose_columns(source, columns, id_column, label_column, expected)
            if n_features is not None:
                check_number(source, features, n_features)
            X, others = source.read(features, kept)
            own = source.own_labels()
        except (DataError, ImportError, FileNotFoundError, KeyboardInterrupt):
            raise
        except Exception as error:
            # Parsers raise all kinds of errors on damaged files: one sentence for all of them.
            reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
            raise DataError(
                f"{file.name} cannot be read as {file.format}: {reason.rstrip('.')}. It is damaged "
                "or of another format; say --format if the name misleads."
            ) from error
        if n_features is not None and X.shape[1] < n_features:
            X = _widened(X, n_features)
        table = _assembled(source, features, X, others, own, id_column, label_column)
        if not source.complete or impute is not None:
            training = n_features is None
            table = completed(
                table, file.name, drop_missing, impute, fill_values, training=training
            )
        if n_features is None:
            _warn_of_counters(table, source)
    return table.standardized() if standardize else table


def _source(file: DataFile, header: bool | None, libsvm_base: int | None) -> Source:
    if libsvm_base is not None and file.format != "libsvm":
        raise DataError(f"--libsvm-base is for LIBSVM, not for {file.format}.")
    if file.format in ("csv", "tsv"):
        return DelimitedSource(file, header)
    if header is not None:
        raise DataError(f"--header and --no-header are for CSV and TSV, not for {file.format}.")
    sources: dict[str, Callable[[DataFile], Source]] = {
        "parquet": ParquetSource,
        "feather": ArrowSource,
        "arrow": ArrowSource,
        "npy": ArraySource,
        "npz": ArchiveSource,
        "libsvm": partial(LibsvmSource, base=libsvm_base),
    }
    return sources[file.format](file)


def _widened(X: Any, n_features: int) -> Any:
    """Return X with columns of zeros after its last one."""
    if sparse.issparse(X):
        X.resize((X.shape[0], n_features))
        return X
    return np.concatenate([X, np.zeros((len(X), n_features - X.shape[1]), X.dtype)], axis=1)


def _assembled(
    source: Source,
    features: Sequence[int],
    X: Any,
    others: list[Any],
    own: Any,
    id_column: str | None,
    label_column: str | None,
) -> TableData:
    n = X.shape[0]
    if n == 0:
        raise DataError(f"{source.file.name} holds no rows.")
    label_name = None if own is None else source.labels_name
    if label_column is not None:
        own, label_name = others[-1], source.names[find_column(source, label_column)]
    return TableData(
        X=X,
        names=(*(source.names[index] for index in features), *unnamed(X.shape[1])[len(features) :]),
        named=source.named,
        rows=np.arange(1, n + 1),
        n_rows=n,
        ids=others[0] if id_column is not None else None,
        id_name=None if id_column is None else source.names[find_column(source, id_column)],
        labels=own,
        label_name=label_name,
    )


def _dense(X: Any, *, training: bool) -> FloatArray:
    """Return a sparse matrix as an array, where that is not too large."""
    n, p = X.shape
    needed = n * p * X.dtype.itemsize
    if needed > MOST_DENSE:
        way_out = (
            "Leave --standardize out; to divide the columns in the file keeps their zeros"
            if training
            else "Split the rows among several files"
        )
        raise DataError(
            f"{n:,} sparse rows of {p:,} columns would take {human(needed)} once they are "
            f"standardized, which fills in their zeros, and at most {human(MOST_DENSE)} are taken "
            f"for that. {way_out}."
        )
    return X.toarray()


def _moments(X: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of each column, in float64 over fixed blocks of rows.

    Sums run about the first row, which keeps the digits of columns far from zero.
    """
    n, p = X.shape
    first = X[0].astype(np.float64)
    total, squares = np.zeros(p), np.zeros(p)
    for rows in data_blocks(X):
        block = X[rows] - first
        total += block.sum(axis=0)
        squares += np.square(block).sum(axis=0)
    mean = total / n
    deviation = np.sqrt(np.maximum(squares / n - mean**2, 0))
    tiny = 1e-12 * np.abs(first + mean)
    return first + mean, np.where(deviation > tiny, deviation, 1.0)


def _warn_of_counters(table: TableData, source: Source) -> None:
    """Warn where a feature counts the rows: most likely it is an id."""
    X = table.X
    if sparse.issparse(X) or X.shape[0] < 10 or not table.named:
        return
    for column, name in enumerate(table.names):
        if X[1, column] - X[0, column] == 1 and (np.diff(X[:, column]) == 1).all():
            warnings.warn(
                f"column {quoted(name)} counts the rows and is used as a feature. If it is an id, "
                f"say --id-column {column_option(source.names, source.places[name])}.",
                stacklevel=3,
            )
