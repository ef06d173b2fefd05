"""``OneHotEncoder`` as a step of a pipeline in a file."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from sketchmeans._arrays import Array
from sketchmeans.checks import check_count
from sketchmeans.container import ModelFileError
from sketchmeans.models import texts
from sketchmeans.models.checks import Spec, check_flag, check_range
from sketchmeans.models.steps import Kind

MOST_CELLS = 500_000
"""Columns times the categories of the column with most: so many cells are encoded on loading."""
MOST_COLUMNS = 10_000
"""Each takes scikit-learn a fraction of a millisecond on loading."""
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("float32", "float64"),
)
"""What categories that are numbers may be of."""


class Encoder(Kind):
    """``OneHotEncoder`` without groups of infrequent categories."""

    cls = OneHotEncoder
    flags = ("sparse_output",)
    words: ClassVar[dict[str, tuple[Any, ...]]] = {
        "drop": (None, "first", "if_binary"),
        "handle_unknown": ("error", "ignore", "infrequent_if_exist", "warn"),
        "feature_name_combiner": ("concat",),
    }
    fields: ClassVar[set[str]] = {"dtype", "chosen", "dtypes", "counts", "missing"}

    def describe(self, step: Any) -> dict[str, Any]:
        """Say how many categories each column has, of which type, and whether one is missing."""
        parameters = step.get_params(deep=False)
        for name in ("min_frequency", "max_categories"):
            if parameters[name] is not None:
                raise ValueError(f"a OneHotEncoder with {name} cannot be saved. Leave it out.")
        said = super().describe(step)
        parts = [_apart(categories) for categories in step.categories_]
        return said | {
            "dtype": np.dtype(parameters["dtype"]).name,
            "chosen": not isinstance(parameters["categories"], str),
            "dtypes": [dtype for dtype, _, _ in parts],
            "counts": [len(values) for _, values, _ in parts],
            "missing": [missing for _, _, missing in parts],
        }

    def arrays_of(self, step: Any) -> dict[str, Array]:
        """Return the categories of all columns, texts and numbers apart."""
        words: list[str] = []
        numbers: list[float] = []
        for dtype, values, _ in map(_apart, step.categories_):
            (numbers if dtype in NUMBERS else words).extend(values)
        if numbers and max(map(abs, numbers)) >= 2**53:
            raise ValueError("a OneHotEncoder of whole numbers beyond 2^53 cannot be saved.")
        found = super().arrays_of(step)
        found |= texts.as_arrays("categories", words)
        return found | {"numbers": np.array(numbers, np.float64)}

    def check(self, described: dict[str, Any]) -> tuple[dict[str, Spec], dict[str, int]]:
        """Check types and numbers of categories; their sum is the length of the arrays."""
        specs, sizes = super().check(described)
        check_flag("chosen", described["chosen"])
        p = described["n_features"]
        lists = [described[name] for name in ("dtypes", "counts", "missing")]
        if not all(isinstance(one, list) and len(one) == p for one in lists):
            raise ModelFileError(f"its encoder does not say of {p} columns what they hold.")
        if not isinstance(described["dtype"], str) or described["dtype"] not in NUMBERS:
            raise ModelFileError(f"dtype={described['dtype']!r:.80} is not one of {NUMBERS}.")
        words = numbers = 0
        for dtype, count, missing in zip(*lists, strict=True):
            check_count("counts", count, least=0 if missing is not None else 1)
            if not isinstance(dtype, str) or dtype not in ("object", "str", *NUMBERS):
                raise ModelFileError(f"categories are not of type {dtype!r:.80}.")
            if not isinstance(missing, str | None) or missing not in (None, "nan", "none"):
                raise ModelFileError(f"missing={missing!r:.80} is no missing category.")
            if (missing == "none" and dtype != "object") or (
                missing == "nan" and dtype not in ("object", "float32", "float64")
            ):
                raise ModelFileError(f"categories of type {dtype} cannot be missing.")
            words += 0 if dtype in NUMBERS else count
            numbers += count if dtype in NUMBERS else 0
        if p > MOST_COLUMNS or p * (max(described["counts"]) + 1) > MOST_CELLS:
            raise ModelFileError(
                f"{p:,} columns of up to {max(described['counts']):,} categories are more than a "
                "file holds."
            )
        specs |= texts.specs_of("categories", "words") | {"numbers": (("numbers",), ("<f8",))}
        return specs, sizes | {"words": words, "numbers": numbers}

    def fitted(self, described: dict[str, Any], arrays: dict[str, Array]) -> Any:
        """Return an encoder that was fitted to its categories."""
        words, numbers = texts.from_arrays("categories", arrays), arrays["numbers"]
        check_range("numbers", numbers)
        categories: list[Any] = []
        taken = {True: 0, False: 0}
        lists = (described["dtypes"], described["counts"], described["missing"])
        for dtype, count, missing in zip(*lists, strict=True):
            is_number = dtype in NUMBERS
            part = slice(taken[is_number], taken[is_number] + count)
            taken[is_number] = part.stop
            categories.append(_together(dtype, (numbers if is_number else words)[part], missing))
        rows = np.empty((max(map(len, categories)), len(categories)), object)
        for column, known in enumerate(categories):
            rows[:, column] = np.resize(np.array(known, object), len(rows))
        step = OneHotEncoder(dtype=np.dtype(described["dtype"]).type, **described["parameters"])
        step.fit(rows)
        if [len(found) for found in step.categories_] != [len(known) for known in categories]:
            raise ModelFileError("its encoder has a category twice.")
        step.categories_ = categories
        if described["chosen"]:
            step.categories = categories
        return step


def _apart(categories: Array) -> tuple[str, list[Any], str | None]:
    """Return the type of some categories, those that are not missing, and which one is."""
    values, missing = categories.tolist(), None
    last = values[-1] if values else ""
    if last is None or (isinstance(last, float) and np.isnan(last)):
        missing = "none" if values.pop() is None else "nan"
    dtype = "str" if categories.dtype.kind in "UT" else str(categories.dtype)
    if dtype not in NUMBERS and not all(isinstance(value, str) for value in values):
        raise ValueError(
            f"a OneHotEncoder of {dtype} categories such as {values[0]!r:.80} cannot be saved: "
            "they must be texts, or numbers."
        )
    return dtype, values, missing


def _together(dtype: str, values: Any, missing: str | None) -> Array:
    """Return categories of a type, with the missing one at the end."""
    last = [] if missing is None else [None if missing == "none" else np.nan]
    if dtype in NUMBERS:
        found: Array = np.array([*values.tolist(), *last])
        with np.errstate(invalid="ignore"):
            kept = found.astype(dtype)
        if not np.array_equal(kept.astype(np.float64), found, equal_nan=True):
            raise ModelFileError(f"its categories of type {dtype} are none.")
        return kept
    texts_found = np.empty(len(values) + len(last), object)
    texts_found[:] = [*values, *last]
    return texts_found if dtype == "object" else texts_found.astype(str)
