"""Which columns of a source are features, and which are carried along."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Sequence

from sketchmeans.io.opening import DataError
from sketchmeans.io.source import SHOWN, Source, columns_option


def choose_columns(
    source: Source,
    columns: str | Sequence[str] | None,
    id_column: str | None,
    label_column: str | None,
    expected: Sequence[str] | None,
) -> tuple[list[int], list[int]]:
    """Return the columns to carry along, and the features."""
    kept = [find_column(source, name) for name in (id_column, label_column) if name is not None]
    if columns is not None:
        wanted = next(csv.reader([columns])) if isinstance(columns, str) else columns
        features = [index for name in wanted for index in _span(source, name.strip())]
    elif expected is not None and source.named:
        features = [_expected(source, name) for name in expected]
    else:
        features = [index for index in range(len(source.names)) if index not in kept]
        _refuse_nameless(source, features)
    seen = set(kept)
    for index in features:
        if index in seen:
            raise DataError(
                f"column {source.names[index]!r} is asked for twice. Name it once, in "
                "--columns, --id-column or --label-column."
            )
        seen.add(index)
    if not features:
        raise DataError(f"{source.file.name} has no column left to cluster by.")
    return kept, features


def _refuse_nameless(source: Source, features: Sequence[int]) -> None:
    """Refuse the row index that pandas writes: as a feature it would outweigh all others."""
    if source.nameless and 0 in features:
        raise DataError(
            f"{source.file.name}: the first column has no name, as the row index that pandas "
            f"writes. Carry it along with --id-column '{source.names[0]}', or choose columns: "
            f"--columns {columns_option(source.names, features[1:])}."
        )


def check_number(source: Source, found: int, n_features: int) -> None:
    """Refuse another number of features than the model has."""
    if found == n_features or (found < n_features and source.may_widen):
        return
    raise DataError(
        f"{source.file.name} has {found:,} feature columns, and the model was fitted to "
        f"{n_features:,}. Choose the same columns with --columns, and leave ids out with "
        "--id-column."
    )


def _span(source: Source, text: str) -> list[int]:
    """Return the columns that a name, a number or a range of numbers stands for."""
    span = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text)
    if text in source.places or span is None:
        return [find_column(source, text)]
    first, last = int(span[1]), int(span[2])
    if not 1 <= first <= last <= len(source.names):
        raise DataError(
            f"--columns {text} goes beyond the {len(source.names)} columns of {source.file.name}."
        )
    return list(range(first - 1, last))


def _expected(source: Source, name: str) -> int:
    """Return a column that a model was fitted to: by its name alone."""
    if name not in source.places:
        raise DataError(
            f"{source.file.name} has no column {name!r}, which the model was fitted to. Its "
            f"columns are {_shown(source)}. Rename them, or say which ones with --columns, in the "
            "order of the model."
        )
    return source.places[name]


def find_column(source: Source, name: str) -> int:
    """Return the place of a column, by its name or else by its number from 1."""
    if name in source.places:
        return source.places[name]
    if re.fullmatch(r"\d{1,9}", name) and 1 <= int(name) <= len(source.names):
        return int(name) - 1
    close = difflib.get_close_matches(name, source.names[:1000], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"{source.file.name} has no column {name!r}.{hint} Its columns are {_shown(source)}."
    )


def _shown(source: Source) -> str:
    shown = ", ".join(repr(known) for known in source.names[:SHOWN])
    more = f" and {len(source.names) - SHOWN} more" if len(source.names) > SHOWN else ""
    return shown + more
