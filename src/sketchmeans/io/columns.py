"""Which columns of a source are features, and which are carried along."""

from __future__ import annotations

import csv
import difflib
import re
import warnings
from collections.abc import Sequence

from sketchmeans.io.limits import DataError
from sketchmeans.io.source import SHOWN, Source, listed, quoted, typed_column, typed_columns
from sketchmeans.text import called, setting


def choose_columns(
    source: Source,
    columns: str | Sequence[str] | None,
    id_column: str | None,
    label_column: str | None,
    expected: Sequence[str] | None,
) -> tuple[list[int], dict[str, int]]:
    """Return the features, and the columns to carry along as "id" and "label"."""
    roles = {"id": id_column, "label": label_column}
    kept = {role: place_of(source, name) for role, name in roles.items() if name is not None}
    if columns is not None:
        wanted = next(csv.reader([columns])) if isinstance(columns, str) else columns
        features = [index for name in wanted for index in _span(source, name)]
    elif expected is not None and source.named:
        features = [_expected(source, name) for name in expected]
    else:
        features = [index for index in range(len(source.names)) if index not in kept.values()]
        _refuse_nameless(source, features)
    seen: set[int] = set()
    for index in [*kept.values(), *features]:
        if index in seen:
            raise DataError(
                f"column {quoted(source.names[index])} is asked for twice. Name it once: a column "
                "is a feature, an id or a label."
            )
        seen.add(index)
    if not features:
        raise DataError(f"{source.file.name} has no column left to cluster by.")
    if columns is not None and expected is not None and source.named:
        features = _in_order(source, features, expected)
    if source.n_wanted is not None:
        _check_number(source, features, source.n_wanted)
    return features, kept


def _refuse_nameless(source: Source, features: Sequence[int]) -> None:
    """Refuse the row index that pandas writes: as a feature it would outweigh all others."""
    for place in source.nameless:
        if place not in features:
            continue
        others = [index for index in features if index not in source.nameless]
        said = (
            f"{source.file.name}: column {place + 1} has no name, as the row index that pandas "
            f"writes. Carry it along with {setting('id_column', typed_column(source.names, place))}"
        )
        if others:
            chosen = setting("columns", typed_columns(source.names, others))
            said += f", or choose columns: {chosen}"
        raise DataError(f"{said}.")


def _check_number(source: Source, features: Sequence[int], n_features: int) -> None:
    """Refuse another number of features than the model has, unless the last ones are just empty."""
    found = len(features)
    if found == n_features:
        return
    # Of chosen columns nobody knows which ones are absent.
    if found > n_features or not source.may_widen or list(features) != list(range(found)):
        raise DataError(
            f"{source.file.name} has {found:,} feature columns, and the model was fitted to "
            f"{n_features:,}. Choose the same columns with {called('columns')}, and leave ids out "
            f"with {called('id_column')}."
        )
    if source.base_is_guessed:
        warnings.warn(
            f"the indices of {source.file.name} run from 1 to {found:,}, where the model has "
            f"{n_features:,} columns. They are taken to count from 1; if they count from 0, say "
            f"{setting('libsvm_base', 0)}.",
            stacklevel=4,
        )


def _span(source: Source, text: str) -> list[int]:
    """Return the columns that a name, a number or a range of numbers stands for."""
    text = text if text in source.places else text.strip()
    span = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text)
    if text in source.places or span is None:
        return [place_of(source, text)]
    first, last = int(span[1]), int(span[2])
    if not 1 <= first <= last <= len(source.names):
        raise DataError(
            f"{setting('columns', text)} goes beyond the {len(source.names)} columns of "
            f"{source.file.name}, which are counted from 1."
        )
    return list(range(first - 1, last))


def _expected(source: Source, name: str) -> int:
    """Return a column that a model was fitted to: by its name alone."""
    _refuse_shared(source, name)
    if name not in source.places:
        raise DataError(
            f"{source.file.name} has no column {quoted(name)}, which the model was fitted to. "
            f"Its columns are {listed(source.names)}. Rename them, or say which ones with "
            f"{called('columns')}, in the order of the model."
        )
    return source.places[name]


def _in_order(source: Source, features: list[int], expected: Sequence[str]) -> list[int]:
    """Return chosen columns in the order of the model, by name; others stay where they stand."""
    names = [source.names[index] for index in features]
    if sorted(names) == sorted(expected):
        return [source.places[name] for name in expected]
    places = {name: place for place, name in enumerate(expected)}
    for place, name in enumerate(names):
        if places.get(name, place) != place:
            raise DataError(
                f"{called('columns')} has {quoted(name)} in place {place + 1}, and the model in "
                f"place {places[name] + 1}. Put columns in the order of the model: "
                f"{listed(list(expected))}."
            )
    return features


def place_of(source: Source, name: str) -> int:
    """Return the place of a column, by its name or else by its number from 1."""
    if name in source.places:
        return source.places[name]
    _refuse_shared(source, name)
    if re.fullmatch(r"\d{1,9}", name) and 1 <= int(name) <= len(source.names):
        return int(name) - 1
    close = difflib.get_close_matches(name, source.names[:1000], n=1)
    hint = f" Did you mean {quoted(close[0])}?" if close else ""
    raise DataError(
        f"{source.file.name} has no column {quoted(name)}.{hint} Its columns are "
        f"{listed(source.names)}."
    )


def _refuse_shared(source: Source, name: str) -> None:
    """Refuse a name that several columns have: nobody knows which one is meant."""
    places = source.shared.get(name, [])
    if places:
        numbers = ", ".join(str(place + 1) for place in places[:SHOWN])
        raise DataError(
            f"{source.file.name} has {len(places)} columns called {quoted(name)}: the columns "
            f"{numbers}. Name them by these numbers, or as {quoted(source.names[places[0]])}."
        )
