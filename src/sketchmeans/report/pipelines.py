"""What a Pipeline did to the data before the model saw them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from sketchmeans.plotting.given import unpiped

KEEP_SCALES = ("SimpleImputer", "KNNImputer", "OneHotEncoder", "OrdinalEncoder")
"""Steps after which columns of numbers have the scales that they had."""

LONGEST_CODE = 10_000
"""Characters of an estimator that are written; scikit-learn would cut it to 700."""


@dataclass(frozen=True)
class Steps:
    """The steps before a model, in words, and what left them."""

    words: str = ""
    """Empty where there was no Pipeline."""
    names: Sequence[Any] | None = None
    """Of the columns that the model saw, if they are known."""
    rescale: bool = False
    """Whether somebody has decided on the scales of the columns."""
    code: str = ""
    """What repeats the fit in Python."""


def steps_of(estimator: Any, names: Sequence[Any] | None) -> Steps:
    """Return what comes before the model; ``names`` are those of the columns that were given."""
    last, _ = unpiped(estimator)
    data = "K" if isinstance(last.kernel, str) and last.kernel == "precomputed" else "X"
    code = f"{written(estimator)}.fit({data})"
    if not isinstance(estimator, Pipeline):
        return Steps(names=names, code=code)
    before = estimator[:-1]
    words = ", ".join(_names(before))
    return Steps(words, _names_out(before, names), any(map(_rescales, _leaves(before))), code)


def written(estimator: Any) -> str:
    """Return an estimator as Python writes it, on one line, and without where its parts lie.

    >>> from sklearn.preprocessing import FunctionTransformer
    >>> written(FunctionTransformer(len))
    'FunctionTransformer(func=<built-in function len>)'
    """
    whole = estimator.__repr__(N_CHAR_MAX=LONGEST_CODE)
    return re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-fA-F]+", "", whole))


def _leaves(step: Any) -> list[Any]:
    """Return the steps that are not made of others."""
    inside: list[Any] = []
    if isinstance(step, Pipeline):
        inside = [one for _, one in step.steps]
    elif isinstance(step, ColumnTransformer):
        inside = [one for _, one, _ in step.transformers]
    else:
        return [] if step is None or isinstance(step, str) else [step]
    return [leaf for one in inside for leaf in _leaves(one)]


def _names(before: Any) -> list[str]:
    """Return the names of the steps, each once."""
    return list(dict.fromkeys(type(step).__name__ for step in _leaves(before)))


def _rescales(step: Any) -> bool:
    return type(step).__name__ not in KEEP_SCALES


def _names_out(before: Pipeline, names: Sequence[Any] | None) -> Sequence[Any] | None:
    """Return the names of the columns that leave the steps; None where some step has no names."""
    if not len(before):
        return names
    for given in (None, None if names is None else [str(name) for name in names]):
        try:
            return before.get_feature_names_out(given).tolist()
        except (AttributeError, TypeError, ValueError):
            continue
    return None
