"""What to do next after a fit: two or three lines that are true for this run.

The most important comes first: columns that drown the others, then what the clusters themselves
show, then what the kernel changed. All of it is seen in the fit itself and in some of the rows.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.comparing import accuracy
from sketchmeans.advice.plain import PlainKMeans, plain_labels
from sketchmeans.centers import subsample
from sketchmeans.text import counted, printable, setting

LINES = 3
"""Lines, at most."""
ROWS = 5_000
"""Rows that are looked at, at most: a seeded choice."""
WIDER = 10.0
"""A column so many times wider than half of the others decides nearly alone: their part in squared
distances is a hundredth of its own."""
NO_DIFFERENCE = 0.95
"""Share of rows in the clusters of plain K-means from which the kernel made no difference."""
TINY, HUGE = 0.05, 0.95
"""A cluster is tiny below this part of an even share, and huge above this share of all rows."""


def guidance(
    model: Any,
    X: Any,
    *,
    feature_names: Sequence[Any] | None = None,
    standardized: bool = False,
    command: str | None = None,
    plain: PlainKMeans | None = None,
) -> tuple[str, ...]:
    """Return what to do next, in at most three lines, the most important first.

    Parameters
    ----------
    model : KernelKMeans or FullKernelKMeans
        Fitted.
    X : array or CSR matrix of shape (n_samples, n_features)
        Its training samples, as the model saw them.
    feature_names : sequence, optional
        Names of the columns; their numbers, from 1, if left out.
    standardized : bool
        Whether the columns were given one scale: then nothing is said of it.
    command : str, optional
        The ``sketchmeans cluster`` that ran: further commands are built from it. Without one the
        words are those of Python.
    plain : PlainKMeans, optional
        What plain K-means found, where it is known; else some of the rows are clustered.
    """
    follow_up = _FollowUp.of(command)
    lines = list(_lines(model, X, feature_names, standardized, follow_up, plain))
    return tuple(lines[:LINES])


def _lines(
    model: Any,
    X: Any,
    names: Sequence[Any] | None,
    standardized: bool,
    follow_up: _FollowUp,
    plain: PlainKMeans | None,
) -> Iterator[str]:
    has_rows = not (isinstance(model.kernel, str) and model.kernel == "precomputed")
    some = subsample(np.arange(len(model.labels_)), ROWS, 0)
    if has_rows and not standardized and (wide := _scales(X, some, names)):
        yield f"{wide} {follow_up.standardize()}"
    if model.n_clusters > 1 and (uneven := _sizes(model)):
        yield uneven
    if has_rows and model.n_clusters > 1:
        labels = (
            plain_labels(_rows(X, some), model.n_clusters, 0) if plain is None else plain.labels
        )
        ours = model.labels_[some] if plain is None else model.labels_
        yield _agreement(accuracy(labels, ours))
    yield follow_up.choose(model)


def _rows(X: Any, some: IntArray) -> Any:
    """Return some rows, dense or sparse as X is."""
    if sparse.issparse(X):
        return X.tocsr()[some]
    return np.asarray(X)[some]


def _scales(X: Any, some: IntArray, names: Sequence[Any] | None) -> str | None:
    """Say which column is much wider than half of the others; None where none is."""
    widths = _deviations(_rows(X, some))
    order = np.flatnonzero(widths > 0)
    order = order[np.argsort(-widths[order], kind="stable")]
    if len(order) < 2:
        return None
    typical = order[(len(order)) // 2]
    if widths[order[0]] < WIDER * widths[typical]:
        return None
    widest, narrowest = (_name(names, int(column)) for column in (order[0], order[-1]))
    times = widths[order[0]] / widths[order[-1]]
    return f"{widest} is {_times(times)} × wider than {narrowest}, and decides over it."


def _deviations(rows: Any) -> FloatArray:
    """Return the standard deviation of every column."""
    if sparse.issparse(rows):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        return np.sqrt(np.maximum(squares - mean**2, 0.0))
    return np.asarray(rows, np.float64).std(axis=0)


def _times(ratio: float) -> str:
    """Return a ratio with two digits.

    >>> _times(1283.7), _times(12.34)
    ('1,300', '12')
    """
    digits = max(int(np.floor(np.log10(ratio))) - 1, 0)
    return f"{round(ratio, -digits):,.0f}"


def _name(names: Sequence[Any] | None, column: int) -> str:
    return f"column {column + 1}" if names is None else printable(str(names[column]), 40)


def _sizes(model: Any) -> str | None:
    """Say which cluster is very small, or holds nearly all rows; None where none does."""
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    n, least, most = len(model.labels_), int(sizes.argmin()), int(sizes.argmax())
    if sizes[least] < TINY * n / model.n_clusters:
        return (
            f"Cluster {least} has {counted(int(sizes[least]), 'row')} of {n:,}: outliers, or more "
            "clusters than there are."
        )
    if sizes[most] > HUGE * n:
        return f"Cluster {most} holds {sizes[most] / n:.0%} of the rows."
    return None


def _agreement(share: float) -> str:
    """Say what the kernel changed, from the share of rows in the clusters of plain K-means."""
    if share >= NO_DIFFERENCE:
        return (
            f"The kernel made no difference: {share:.0%} of the rows are in the same clusters as "
            "with plain K-means."
        )
    return (
        f"The kernel made a difference: {share:.0%} of the rows are in the same clusters as with "
        "plain K-means."
    )


class _FollowUp:
    """Words for what to run next: commands to copy, or names of Python."""

    def __init__(self, arguments: list[str] | None) -> None:
        self.arguments = arguments

    @classmethod
    def of(cls, command: str | None) -> _FollowUp:
        """Take a command apart; None where there is none, or not one of ours."""
        try:
            words = shlex.split(command or "")
        except ValueError:
            words = []
        return cls(words[2:] if words[:2] == ["sketchmeans", "cluster"] else None)

    def standardize(self) -> str:
        """Say how to give all columns one scale."""
        if self.arguments is None:
            return "Unless they are in one unit, scale them first: StandardScaler."
        again = shlex.join(["sketchmeans", "cluster", *self.arguments, "--standardize"])
        return f"Unless they are in one unit: {again}"

    def choose(self, model: Any) -> str:
        """Say how to ask for the number of clusters."""
        if self.arguments is None:
            kernel = f", {setting('kernel', model.kernel)}" if isinstance(model.kernel, str) else ""
            return f"How many clusters the data have: sketchmeans.choose(X{kernel})."
        data = next((word for word in self.arguments if not word.startswith("-")), "-")
        return f"How many clusters the data have: {shlex.join(['sketchmeans', 'choose', data])}"
