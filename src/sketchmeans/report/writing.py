"""write_report: what is given is held against the model, and the page becomes a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sketchmeans.atomic import refuse_existing, whole_file
from sketchmeans.blas import OneBlasThread
from sketchmeans.plotting.given import columns_of, unpiped
from sketchmeans.report.content import Preparation, Samples
from sketchmeans.report.findings import Findings
from sketchmeans.report.page import page
from sketchmeans.report.pipelines import steps_of


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    X: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    feature_names: Sequence[Any] | None = None,
    ids: Sequence[Any] | None = None,
    truth: Sequence[Any] | None = None,
    source: str | None = None,
    preparation: Preparation | None = None,
    overwrite: bool = False,
    random_state: int = 0,
) -> Path:
    """Write the report of a fitted model as one HTML file of less than 2 MB.

    Passes over K: none; one for ``FullKernelKMeans``, which has no embedding to show, and one of up
    to 10,000 samples for the objective of plain K-means. Memory: a few numbers per sample, and what
    2,000 samples against each other need.

    Parameters
    ----------
    path : path
        Appears whole or not at all.
    model : KernelKMeans or FullKernelKMeans
        Fitted. Or a Pipeline with one of them at its end: then X is what the Pipeline was fitted
        to, and values are shown as they were before it, text and gaps included.
    X : array, CSR matrix or frame of shape (n_samples, n_features), optional
        The training samples, whose values are shown. ``FullKernelKMeans`` needs them.
    command : str or sequence of str, optional
        What repeats the result: a line as it is, or the words of a command, which are quoted. If
        left out, the estimator as Python writes it.
    feature_names : sequence, optional
        Names of the columns of X; "feature 0" and so on, or those of a frame, if left out.
    ids : sequence, optional
        Names of the samples; row numbers from 0 if left out.
    truth : sequence, optional
        True labels, of any type, to compare with.
    source : str, optional
        Where the data came from, such as the name of a file.
    preparation : Preparation, optional
        How X was made from the data: rows left out, values filled in, columns standardized. Values
        are shown as they were before.
    overwrite : bool
        Whether an existing file may be replaced.
    random_state : int
        Seed of the choice of samples where there are many.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.report import write_report
    >>> iris = load_iris()
    >>> model = KernelKMeans(3, random_state=0).fit(iris.data)
    >>> write_report(  # doctest: +SKIP
    ...     "iris.html", model, iris.data, truth=iris.target, feature_names=iris.feature_names
    ... )
    """
    last = _checked(model)
    way_out = None if overwrite else "Choose another name, or give overwrite=True."
    if way_out is not None:
        refuse_existing(path, way_out=way_out)
    n = len(last.labels_)
    X, ids, truth = _rows(n, "X", X), _rows(n, "ids", ids), _rows(n, "truth", truth)
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    names = None if names is None else list(names)
    precomputed = isinstance(last.kernel, str) and last.kernel == "precomputed"
    # The values of a kernel matrix tell a reader nothing.
    table = None if X is None or precomputed else columns_of(X, names)
    samples = Samples(table, ids, preparation or Preparation())
    _, prepared = unpiped(model, X)
    steps = steps_of(model, names)
    with OneBlasThread():  # sums that BLAS splits among threads would have other bits
        found = Findings(last, samples, prepared, truth, command, source, random_state, steps)
        text = page(found)
    with whole_file(path, way_out=way_out) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def _checked(estimator: Any) -> Any:
    """Return the model, the last step of a Pipeline; refuse what has no clusters."""
    check_is_fitted(estimator)
    model, _ = unpiped(estimator)
    check_is_fitted(model)
    if not hasattr(model, "labels_"):
        raise ValueError(
            f"{type(model).__name__} has no clusters to report. Fit KernelKMeans or "
            "FullKernelKMeans."
        )
    return model


def _rows(n: int, name: str, values: Any) -> Any:
    """Return what was given as one can ask it for its third row by the number 2: n rows."""
    if values is None:
        return None
    if name == "X":
        if not (hasattr(values, "to_numpy") or sparse.issparse(values)):
            values = np.asarray(values)
    elif hasattr(values, "to_numpy"):  # a series, which is asked by label
        values = values.to_numpy()
    rows = values.shape[0] if hasattr(values, "shape") else len(values)
    if rows != n:
        raise ValueError(
            f"{name} has {rows} rows, but the model was fitted to {n} samples. Give one of each "
            "sample, in their order."
        )
    return values
