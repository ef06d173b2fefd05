"""What the command line did to the columns before a fit, as a file keeps it.

Columns of text that became zeros and ones, and the first index of a LIBSVM file. They are
attributes that ``sketchmeans cluster`` sets on a model, as those of standardizing and filling in;
the model itself does not use them.
"""

from __future__ import annotations

from typing import Any

from sketchmeans._arrays import Array
from sketchmeans.checks import check_count
from sketchmeans.container import ModelFileError
from sketchmeans.models import texts
from sketchmeans.models.checks import Spec

EncodedColumn = tuple[int, str, tuple[str, ...]]
"""The first feature of a column of text, its name, and its categories, a feature each."""
PREFIX = "encoded_columns"


def describe(model: Any) -> dict[str, Any]:
    """Return what a header says of the preparation of a model, if anything."""
    said: dict[str, Any] = {}
    if hasattr(model, "libsvm_base_"):
        said["libsvm_base"] = model.libsvm_base_
    if columns := getattr(model, "encoded_columns_", ()):
        first = [column[0] for column in columns]
        said["encoded"] = {"first": first, "count": [len(column[2]) for column in columns]}
    return said


def arrays_of(model: Any) -> dict[str, Array]:
    """Return the names and the categories of columns of text, if there are any."""
    columns = getattr(model, "encoded_columns_", ())
    words = [word for _, name, categories in columns for word in (name, *categories)]
    return texts.as_arrays(PREFIX, words) if words else {}


def check(header: dict[str, Any]) -> dict[str, Spec]:
    """Check what a header says of the preparation; return the arrays that belong to it."""
    base = header.get("libsvm_base", 0)
    if type(base) is not int or base not in (0, 1):
        raise ModelFileError(f"libsvm_base={base!r:.80} is neither 0 nor 1.")
    if "encoded" not in header:
        return {}
    encoded = header["encoded"]
    if not isinstance(encoded, dict) or set(encoded) != {"first", "count"}:
        raise ModelFileError("its encoded columns are not described by first and count.")
    first, count = encoded["first"], encoded["count"]
    for name, values in encoded.items():
        if not isinstance(values, list) or not values:
            raise ModelFileError(f"{name} of its encoded columns is no list of numbers.")
    if len(first) != len(count):
        raise ModelFileError("its encoded columns have a first feature each and a number, or none.")
    end = 0
    for start, number in zip(first, count, strict=True):
        check_count("first", start, least=0)
        check_count("count", number)
        if start < end or start + number > header["n_features_in_"]:
            raise ModelFileError("its encoded columns overlap, or go beyond its features.")
        end = start + number
    return texts.specs_of(PREFIX, "words")


def sizes_of(header: dict[str, Any]) -> dict[str, int]:
    """Return the dimensions that a checked header fixes."""
    if "encoded" not in header:
        return {}
    count = header["encoded"]["count"]
    return {"words": len(count) + sum(count)}


def restore(header: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """Return the attributes of a checked header."""
    found: dict[str, Any] = {}
    if "libsvm_base" in header:
        found["libsvm_base_"] = header["libsvm_base"]
    if "encoded" in header:
        words = iter(texts.from_arrays(PREFIX, arrays))
        columns: list[EncodedColumn] = []
        encoded = header["encoded"]
        for start, number in zip(encoded["first"], encoded["count"], strict=True):
            name, categories = next(words), tuple(next(words) for _ in range(number))
            if len(set(categories)) < number:
                raise ModelFileError(f"its column {name!r:.80} has a category twice.")
            columns.append((start, name, categories))
        found["encoded_columns_"] = tuple(columns)
    return found
