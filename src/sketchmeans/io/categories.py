"""One-hot columns: a column of text becomes a column of zeros and ones for each of its texts."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray
from sketchmeans.io.columns import place_of
from sketchmeans.io.limits import DataError
from sketchmeans.io.source import Source, listed, quoted, typed_column
from sketchmeans.io.trouble import TextFound
from sketchmeans.text import called, counted, setting

ONE_HOT = "one-hot"
MOST = 256
"""Texts of a column that become columns of their own: beyond, it holds no categories."""
FEW = 10
"""Rows that may have a text each in a column of categories."""


class Encoded(NamedTuple):
    """A column of categories, as columns of features."""

    first: int
    """The place of its first feature; the others follow."""
    name: str
    """What the column is called in the file."""
    categories: tuple[str, ...]
    """One for each feature, sorted."""


def collapsed(
    names: Sequence[str] | None, n_features: int, trained: Sequence[Encoded]
) -> tuple[list[str] | None, int, list[int]]:
    """Return the columns of a file that the features of a model come from.

    Returns
    -------
    names : list of str or None
        Where the features have names.
    count : int
    places : list of int
        Of those that are categories, among them.

    >>> collapsed(["a", "b=x", "b=y", "c"], 4, [Encoded(1, "b", ("x", "y"))])
    (['a', 'b', 'c'], 3, [1])
    """
    by_first = {column.first: column for column in trained}
    found: list[str] = []
    places: list[int] = []
    position = 0
    while position < n_features:
        column = by_first.get(position)
        if column is not None:
            places.append(len(found))
            found.append(column.name)
            position += len(column.categories)
        else:
            found.append("" if names is None else names[position])
            position += 1
    return None if names is None else found, len(found), places


def categorical_columns(
    source: Source, features: Sequence[int], categorical: str | None
) -> tuple[list[int], bool]:
    """Return the features that are asked for as categories, and whether all with text are."""
    if categorical is None:
        return [], False
    kind, colon, names = categorical.partition(":")
    if kind != ONE_HOT or (colon and not names.strip()):
        raise DataError(
            f"{setting('categorical', categorical)} is not understood. Say "
            f"{setting('categorical', ONE_HOT)} for all columns of text, or "
            f"{setting('categorical', ONE_HOT + ':color,shape')} for some columns."
        )
    if not colon:
        return source.texts(features), True
    found: list[int] = []
    for name in next(csv.reader([names])):
        place = place_of(source, name if name in source.places else name.strip())
        if place not in features:
            raise DataError(
                f"column {quoted(source.names[place])} is to be {ONE_HOT} and is no feature. Add "
                f"it to {called('columns')}, or leave it out of {called('categorical')}."
            )
        if place not in found:
            found.append(place)
    return found, False


def read_features(
    source: Source,
    features: Sequence[int],
    kept: Sequence[int],
    categorical: Sequence[int],
    *,
    every: bool,
) -> tuple[Any, list[Any], dict[int, Any]]:
    """Return the numbers, the kept columns, and by their places those of categories.

    With ``every``, columns in which text turns up are categories too.
    """
    columns, source.chosen = list(categorical), features
    while True:
        numeric = [index for index in features if index not in columns]
        try:
            X, others = source.read(numeric, [*kept, *columns])
        except TextFound as found:
            # Dates are no categories, and are told as what they are.
            more = [trouble.column for trouble in found.troubles if not trouble.is_date]
            if not every or len(more) < len(found.troubles):
                raise
            columns += more
            continue
        texts = dict(zip(columns, others[len(kept) :], strict=True))
        return X, others[: len(kept)], {index: texts[index] for index in features if index in texts}


class Encoder:
    """Puts categories in the place of their columns.

    Parameters
    ----------
    source : Source
    missing : collection of str
        Texts that are none: a missing one is NaN in all its columns.
    trained : sequence of Encoded, optional
        The categories of a model, in the order of the columns; others are refused.
    """

    def __init__(
        self, source: Source, missing: Collection[str], trained: Sequence[Encoded] | None = None
    ) -> None:
        self._source = source
        self._missing = missing
        self._trained = None if trained is None else iter(trained)

    def encode(
        self, X: Any, features: Sequence[int], texts: dict[int, Any], *, every: bool
    ) -> tuple[Any, list[str], tuple[Encoded, ...]]:
        """Return the features, their names, and what was encoded; X holds the other columns."""
        names: list[str] = []
        encoded: list[Encoded] = []
        blocks: list[FloatArray] = []
        numeric: list[int] = []
        for index in features:
            name = self._source.names[index]
            if index not in texts:
                numeric.append(len(names))
                names.append(name)
                continue
            words = words_of(texts[index])
            categories = self._categories(index, words, every=every)
            blocks.append(self._block(index, words, categories, X.dtype))
            encoded.append(Encoded(len(names), name, categories))
            names += [f"{name}={category}" for category in categories]
        places = [
            column.first + place for column in encoded for place in range(len(column.categories))
        ]
        if sparse.issparse(X):
            order = np.argsort([*numeric, *places])
            X = sparse.hstack([X, *blocks], format="csr")[:, order]
        else:
            whole = np.empty((X.shape[0], len(names)), X.dtype)
            whole[:, numeric] = X
            for column, block in zip(encoded, blocks, strict=True):
                whole[:, column.first : column.first + block.shape[1]] = block
            X = whole
        return X, names, tuple(encoded)

    def _categories(self, index: int, words: list[str], *, every: bool) -> tuple[str, ...]:
        """Return the texts of a column, or those of the model."""
        if self._trained is not None:
            return next(self._trained).categories
        found = sorted(set(words) - set(self._missing))
        name, file = self._source.names[index], self._source.file.name
        typed = typed_column(self._source.names, index)
        if not found:
            raise DataError(
                f"{file}: column {quoted(name)} has no value at all, and so no categories. Leave "
                f"it out with {called('columns')}."
            )
        alone = every and len(found) == len(words) > FEW
        if len(found) > MOST or alone:
            said = "in every row another" if alone else f"{len(found):,} different"
            raise DataError(
                f"{file}: column {quoted(name)} holds {said} text, such as {quoted(found[0])}, "
                f"and at most {MOST} of a column become columns of their own. If it names the "
                f"rows, say {setting('id_column', typed)}; or leave it out with "
                f"{called('columns')}."
            )
        return tuple(found)

    def _block(
        self, index: int, words: list[str], categories: Sequence[str], dtype: Any
    ) -> FloatArray:
        """Return zeros and ones, a column for each category."""
        codes = {category: code for code, category in enumerate(categories)}
        codes |= dict.fromkeys(self._missing, -1)
        found = np.fromiter((codes.get(word, -2) for word in words), np.int64, len(words))
        if (found == -2).any():
            row = int(np.argmax(found == -2))
            count = int((found == -2).sum())
            self._refuse_unknown(index, words[row], row, count, categories)
        block: FloatArray = np.zeros((len(words), len(categories)), dtype)
        there = np.flatnonzero(found >= 0)
        block[there, found[there]] = 1
        block[found == -1] = np.nan
        return block

    def _refuse_unknown(
        self, index: int, word: str, row: int, count: int, categories: Sequence[str]
    ) -> None:
        more = f" ({counted(count - 1, 'more row')} like it)" if count > 1 else ""
        name = quoted(self._source.names[index])
        raise DataError(
            f"{self._source.file.name}: column {name} holds {quoted(word)} in row {row + 1}{more}, "
            f"which the model has not met: its categories are {listed(list(categories))}. Mend it, "
            f"fit the model again with such rows, or leave them out: "
            f"{setting('na_values', word)} {setting('drop_missing', True)}."
        )


def words_of(column: Any) -> list[str]:
    """Return a column as texts without spaces around them; whole numbers without a point.

    >>> words_of(np.array([1.0, 2.5, np.nan])), words_of(np.array([" red", None], object))
    (['1', '2.5', ''], ['red', ''])
    """
    if column.dtype.kind == "f":
        return ["" if np.isnan(value) else f"{value:.17g}" for value in column.tolist()]
    return ["" if value is None else str(value).strip() for value in column.tolist()]
