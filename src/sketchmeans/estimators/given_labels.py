"""Labels that anybody found: whole numbers or text. What stands for no cluster is refused."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NoReturn

import numpy as np

from sketchmeans._arrays import Array, IntArray

NOISE = ("-1", "-1.0")
"""What stands for noise among names, too."""


def numbered(labels: Any, n: int) -> IntArray:
    """Return the labels of n samples as whole numbers from 0; refuse samples in no cluster.

    A missing label, a negative number and the text of one stand for noise, as DBSCAN has it.
    """
    if isinstance(labels, np.ma.MaskedArray) and labels.shape == (n,) and labels.mask.any():
        _refuse_missing(np.flatnonzero(labels.mask), n)
    found = np.asarray(labels)
    if found.shape != (n,):
        raise ValueError(
            f"labels must be one per sample: there are {n} samples, and labels of shape "
            f"{found.shape}."
        )
    if found.dtype.kind == "O":
        found = _of_objects(found)
    if found.dtype.kind == "f":
        found = _of_floats(found)
    if found.dtype.kind not in "iubUS":
        raise ValueError(f"labels must be whole numbers or text, not {found.dtype}.")
    _refuse_noise(found)
    return np.unique(found, return_inverse=True)[1].ravel()


def _of_objects(labels: Array) -> Array:
    """Return whole numbers where all objects are that, else their text."""
    values = labels.tolist()
    missing = [index for index, value in enumerate(values) if _is_missing(value)]
    if missing:
        _refuse_missing(missing, len(values))
    if all(isinstance(value, Integral | float) for value in values):
        with np.errstate(over="ignore"):
            numbers = np.array(values)
        if numbers.dtype.kind in "iubf":
            return numbers
    return np.array([str(value) for value in values])


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or another that does not equal itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA will not say
        return True


def _of_floats(labels: Array) -> Array:
    """Return whole numbers; others are no labels."""
    missing = np.flatnonzero(np.isnan(labels))
    if len(missing):
        _refuse_missing(missing, len(labels))
    odd = np.flatnonzero(np.isinf(labels) | (labels != np.trunc(labels)))
    if len(odd):
        raise ValueError(
            f"labels must be whole numbers or text: the label of sample {odd[0]} is "
            f"{labels[odd[0]]:g}."
        )
    return labels.astype(np.int64) if np.abs(labels).max(initial=0) < 2**63 else labels.astype(str)


def _refuse_noise(labels: Array) -> None:
    """Refuse negative numbers, also where they are text, and text that is empty."""
    numbers = labels
    if labels.dtype.kind in "US":
        empty = np.flatnonzero(labels == labels.dtype.type())
        if len(empty):
            _refuse_missing(empty, len(labels))
        try:
            numbers = labels.astype(np.float64)
        except ValueError:  # they are names
            numbers = np.where(np.isin(labels, np.array(NOISE, labels.dtype.kind)), -1, 0)
        missing = np.flatnonzero(np.isnan(numbers))
        if len(missing):
            _refuse_missing(missing, len(labels))
    if numbers.dtype.kind in "if" and numbers.min(initial=0) < 0:
        noise = int((numbers < 0).sum())
        raise ValueError(
            f"labels hold {numbers.min():g} for {noise} of {len(labels)} samples: noise is in no "
            "cluster, and has no objective. Leave these samples out, X[labels >= 0], or give each "
            "of them to a cluster."
        )


def _refuse_missing(missing: Any, n: int) -> NoReturn:
    raise ValueError(
        f"labels are missing for {len(missing)} of {n} samples, first for sample {missing[0]}: "
        "what is in no cluster has no objective. Leave these samples out, or give each of them to "
        "a cluster."
    )
