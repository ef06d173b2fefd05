"""``read_table``: from a file to a table, whatever the format."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.io.categories import (
    ONE_HOT,
    Encoded,
    Encoder,
    categorical_columns,
    collapsed,
    read_features,
)
from sketchmeans.io.columns import choose_columns
from sketchmeans.io.formats import FORMATS
from sketchmeans.io.limits import DataError
from sketchmeans.io.missing import Gaps, complete
from sketchmeans.io.opening import DataFile, damage_told, open_data
from sketchmeans.io.room import Room
from sketchmeans.io.source import Source, quoted, typed_column, unnamed
from sketchmeans.io.table import TableData
from sketchmeans.io.values import MISSING, numbers_of
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
    categorical: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    na_values: str | Sequence[str] = (),
    sheet: str | None = None,
    libsvm_base: int | None = None,
    fill_values: FloatArray | None = None,
    expected: Sequence[str] | None = None,
    n_features: int | None = None,
    encoded: Sequence[Encoded] = (),
    trained_base: int | None = None,
    keep_missing: bool = False,
    room: Room | None = None,
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
    categorical : str, optional
        "one-hot" turns every feature that holds text into a column of zeros and ones for each of
        its texts, and "one-hot:color,shape" those two.
    delimiter : str, optional
        What separates the fields of text: a character, or "tab", or "space" for any number of
        spaces; looked for in the first rows if left out.
    decimal : {".", ","}, optional
        What marks the decimals of text; a comma is recognised if left out, and noted.
    encoding : str, optional
        Of text; recognised if left out, and noted where it is not UTF-8.
    na_values : sequence of str, or str with commas, optional
        Values that are missing, beside those that are known: an empty field, ``NA``, ``n/a``,
        ``-``, ``.``, ``?`` and others. Numbers among them count in every format.
    sheet : str, optional
        The sheet of an Excel file, by name or number from 1; the first if left out.
    libsvm_base : {0, 1}, optional
        The first index of a LIBSVM file; 1 if left out, or 0 if 0 is there.
    fill_values : array, optional
        What the model that there is fills in for missing values, a number per feature.
    expected : sequence of str, optional
        The features, by name, of a file that has names; other columns are left alone.
    n_features : int, optional
        How many features there must be, for the model that there is. A LIBSVM file with fewer is
        widened: its last columns may just be empty.
    encoded : sequence of Encoded
        The columns of text that became features of the model, and their categories.
    trained_base : {0, 1}, optional
        The first index of the LIBSVM file that the model was fitted to.
    keep_missing : bool
        Leave missing values as NaN, for a model that fills them in itself.
    room : Room, optional
        Where dense numbers are put: in memory if left out.

    Returns
    -------
    TableData
        Its ``notes`` say what was guessed.
    """
    if drop_missing and impute is not None:
        both = f"{called('drop_missing')} and {called('impute')}"
        raise ValueError(f"{both} exclude each other: choose one of them.")
    extra = next(csv.reader([na_values]), []) if isinstance(na_values, str) else na_values
    extra = [text.strip() for text in extra]
    options = {
        **{"header": header, "delimiter": delimiter, "decimal": decimal, "encoding": encoding},
        **{"sheet": sheet, "libsvm_base": libsvm_base},
    }
    chosen = _Chosen(columns, id_column, label_column, categorical, extra)
    with open_data(path, format) as opened:
        file = opened if room is None else replace(opened, room=room)
        with damage_told(file):
            source = _source(file, options, extra, trained_base)
        with _noted(source):
            table = _read(source, chosen, expected, n_features, encoded)
            gaps = Gaps(drop_missing, impute, fill_values, numbers_of(extra), keep_missing)
            if table.encoded or gaps.numbers or not source.complete or impute is not None:
                complete(table, source, gaps)
        if n_features is None:
            _warn_of_counters(table, source)
    table.notes = (*source.told(), *table.notes)
    if standardize:
        table.standardize()
    return table


@dataclass(frozen=True)
class _Chosen:
    """Which columns are asked for, and what they are."""

    columns: str | Sequence[str] | None
    id_column: str | None
    label_column: str | None
    categorical: str | None
    na_values: Sequence[str]


def _read(
    source: Source,
    chosen: _Chosen,
    expected: Sequence[str] | None,
    n_features: int | None,
    encoded: Sequence[Encoded],
) -> TableData:
    """Return the table, with what is missing as NaN."""
    places: list[int] = []
    source.n_wanted = n_features
    if n_features is not None:
        expected, source.n_wanted, places = collapsed(expected, n_features, encoded)
        source.may_widen &= not places
    with damage_told(source.file):
        features, kept = choose_columns(
            source, chosen.columns, chosen.id_column, chosen.label_column, expected
        )
        categories, every = categorical_columns(source, features, chosen.categorical)
        categories += [features[place] for place in places]
        source.compact = {place for role, place in kept.items() if role == "id"}
        X, others, texts = read_features(
            source, features, list(kept.values()), categories, every=every
        )
    if not texts:
        names = [source.names[index] for index in features]
        table = _assembled(source, _widened(X, n_features), names, kept, others)
        if every:
            said = f"no column holds text: {setting('categorical', ONE_HOT)} changes nothing."
            table.notes = (said,)
        return table
    encoder = Encoder(source, {*MISSING, *chosen.na_values}, encoded or None)
    X, names, made = encoder.encode(X, features, texts, every=every)
    table = _assembled(source, X, names, kept, others)
    table.encoded = made
    return table


def _source(
    file: DataFile, options: dict[str, Any], na_values: Sequence[str], trained_base: int | None
) -> Source:
    """Open the source of a format, with the options that it reads; others are refused."""
    reads = FORMATS[file.format].reads
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in reads:
            raise DataError(_for_others(name, file.format))
    if "na_values" in reads:
        given["na_values"] = na_values
    if file.format == "libsvm":
        given["trained_base"] = trained_base
    source: Source = resolve_name(f"{__package__}.{FORMATS[file.format].source}")(file, **given)
    return source


def _for_others(option: str, format: str) -> str:
    """Say which formats an option is for."""
    titles = [known.title for known in FORMATS.values() if option in known.reads]
    *most, last = titles
    formats = f"{', '.join(most)} and {last}" if most else last
    flag = called(option)
    if option == "header":
        both = f"{setting('header', True)} and {setting('header', False)}"
        return f"{both} are for {formats}, not for {format}."
    return f"{flag} is for {formats}, not for {format}."


@contextmanager
def _noted(source: Source) -> Iterator[None]:
    """Let an error know what was guessed before it."""
    try:
        yield
    except DataError as error:
        error.notes = tuple(source.told())
        raise


def _widened(X: Any, n_features: int | None) -> Any:
    """Return X with as many columns as a model has: a sparse file may have fewer."""
    missing = (n_features or 0) - X.shape[1]
    if missing > 0 and sparse.issparse(X):
        X.resize((X.shape[0], n_features))
    elif missing > 0:
        X = np.concatenate([X, np.zeros((X.shape[0], missing), X.dtype)], axis=1)
    return X


def _assembled(
    source: Source, X: Any, names: Sequence[str], kept: dict[str, int], others: list[Any]
) -> TableData:
    """Return the table."""
    n = X.shape[0]
    if n == 0:
        raise DataError(f"{source.file.name} holds no rows.")
    carried = dict(zip(kept, others, strict=True))
    roles = {role: source.names[place] for role, place in kept.items()}
    own = source.own_labels()
    return TableData(
        X=X,
        names=(*names, *unnamed(X.shape[1])[len(names) :]),
        named=source.named,
        rows=_numbered(source.file.room, n),
        n_rows=n,
        ids=carried.get("id"),
        id_name=roles.get("id"),
        labels=carried.get("label", own),
        label_name=roles.get("label", None if own is None else source.labels_name),
        libsvm_base=source.base,
        room=source.file.room,
    )


def _numbered(room: Room, n: int) -> Any:
    """Return the numbers of rows, from 1."""
    numbers = room.empty((n,), np.int64)
    for rows in row_blocks(n):
        numbers[rows] = np.arange(rows.start + 1, rows.stop + 1)
    return numbers


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
