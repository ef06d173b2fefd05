"""What people hand over: a Pipeline with a model at its end, a table with text and gaps in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from sketchmeans._arrays import IntArray

CATEGORIES = 10
"""Categories of a column of text that become columns of ones and zeros: the commonest."""


def unpiped(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the last step of a Pipeline, and X as it reaches that step.

    An estimator that is no Pipeline comes back as it is.
    """
    while isinstance(estimator, Pipeline):
        if X is not None and len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    return estimator, X


@dataclass(frozen=True)
class Categories:
    """A column of text: its values, and which of them each row has."""

    column: str
    names: list[str]
    codes: IntArray

    @property
    def common(self) -> IntArray:
        """The codes of the commonest values, those first."""
        return np.argsort(-np.bincount(self.codes), kind="stable")[:CATEGORIES]


@dataclass(frozen=True)
class Columns:
    """A table as numbers: columns of text are ones and zeros, a column for each common value."""

    X: Any
    """Dense, with NaN where a value is missing, or CSR."""
    names: list[Any]
    n_numeric: int
    """Columns from this one on stand for values of text."""
    texts: list[Categories] = field(default_factory=list)


def columns_of(X: Any, names: Sequence[Any] | None = None) -> Columns:
    """Return a table, of any kind that a Pipeline takes, as numbers.

    Names are those given, those of a frame, or "feature 0" and so on.
    """
    if names is None and hasattr(X, "columns"):
        names = X.columns
    if not sparse.issparse(X):
        X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    elif X.format != "csr":
        X = X.tocsr()
    p = X.shape[1]
    listed = [f"feature {column}" for column in range(p)] if names is None else list(names)
    if len(listed) != p:
        raise ValueError(
            f"feature_names has {len(listed)} names, but X has {p} columns. Give a name per column."
        )
    return Columns(X, listed, p) if X.dtype.kind in "biuf" else _sorted_out(X, listed)


def _sorted_out(X: Any, names: list[Any]) -> Columns:
    """Tell columns of numbers from columns of text."""
    numbers, numeric, texts = [], [], []
    for name, column in zip(names, X.T, strict=True):
        if (values := _as_numbers(column)) is not None:
            numeric.append(name)
            numbers.append(values)
        else:
            texts.append(categories(column, str(name)))
    n_numeric = len(numeric)
    for found in texts:
        for code in found.common:
            numeric.append(f"{found.column} = {found.names[code]}")
            numbers.append((found.codes == code).astype(np.float64))
    return Columns(np.column_stack(numbers), numeric, n_numeric, texts)


def _as_numbers(column: Any) -> Any:
    """Return a column in float64, NaN where a value is missing; None where it is not numbers."""
    values = column.tolist()
    if any(isinstance(value, str) for value in values):
        return None
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    except (TypeError, ValueError):
        return None


def categories(values: Any, column: str) -> Categories:
    """Return values as text, in their order, and which of them each row has."""
    written = [as_text(value) for value in values]
    names = sorted(Counter(written))
    place = {name: code for code, name in enumerate(names)}
    return Categories(column, names, np.array([place[name] for name in written], np.intp))


def as_text(value: Any) -> str:
    """Return a value as one reads it in a table.

    >>> as_text(3.0), as_text(float("nan")), as_text("red")
    ('3', '(missing)', 'red')
    """
    if is_missing(value):
        return "(missing)"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or one of the marks of pandas for the same."""
    # NOTE: pandas' NA is neither equal to itself nor unequal: asking raises an error.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
