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
from sketchmeans.report.content import Preparation, Samples
from sketchmeans.report.findings import Findings
from sketchmeans.report.page import page


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    X: Any = None,
    *,
    command: str | Sequence[str],
    feature_names: Sequence[Any] | None = None,
    ids: Sequence[Any] | None = None,
    truth: Sequence[Any] | None = None,
    source: str | None = None,
    preparation: Preparation | None = None,
    overwrite: bool = False,
    random_state: int = 0,
) -> Path:
    """Write the report of a fitted model as one HTML file of less than 2 MB.

    Passes over K: none; one for ``FullKernelKMeans``, which has no embedding to show. Memory: a few
    numbers per sample, and what 2,000 samples against each other need.

    Parameters
    ----------
    path : path
        Appears whole or not at all.
    model : KernelKMeans or FullKernelKMeans
        Fitted.
    X : array, CSR matrix or frame of shape (n_samples, n_features), optional
        The training samples, whose values are shown. ``FullKernelKMeans`` needs them.
    command : str or sequence of str
        What repeats the result: a line as it is, or the words of a command, which are quoted.
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
    ...     "iris.html", model, iris.data, command="python iris.py", truth=iris.target,
    ...     feature_names=iris.feature_names,
    ... )
    """
    _check_clusters(model)
    way_out = None if overwrite else "Choose another name, or give overwrite=True."
    if way_out is not None:
        refuse_existing(path, way_out=way_out)
    names = X.columns if feature_names is None and hasattr(X, "to_numpy") else feature_names
    X, ids, truth = _checked_rows(len(model.labels_), X=X, ids=ids, truth=truth)
    samples = _samples(model, X, names, ids, preparation or Preparation())
    with OneBlasThread():  # sums that BLAS splits among threads would have other bits
        text = page(Findings(model, samples, X, truth, command, source, random_state))
    with whole_file(path, way_out=way_out) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def _check_clusters(model: Any) -> None:
    check_is_fitted(model)
    if not hasattr(model, "labels_"):
        raise ValueError(
            f"{type(model).__name__} has no clusters to report. Fit KernelKMeans or "
            "FullKernelKMeans."
        )


def _checked_rows(n: int, **given: Any) -> list[Any]:
    """Return what was given as one can ask it for its third row by the number 2: n rows each."""
    found = []
    for name, values in given.items():
        if hasattr(values, "to_numpy"):  # a frame or a series, which is asked by label
            values = values.to_numpy()
        elif name == "X" and values is not None:
            values = sparse.csr_matrix(values) if sparse.issparse(values) else np.asarray(values)
        if values is not None:
            rows = values.shape[0] if hasattr(values, "shape") else len(values)
            if rows != n:
                raise ValueError(
                    f"{name} has {rows} rows, but the model was fitted to {n} samples. Give one "
                    "of each sample, in their order."
                )
        found.append(values)
    return found


def _samples(model: Any, X: Any, names: Any, ids: Any, preparation: Preparation) -> Samples:
    """Return the samples with the names of their columns."""
    if model.kernel == "precomputed":
        X = None  # the values of a kernel matrix tell a reader nothing
    p = 0 if X is None else X.shape[1]
    given = names is not None and X is not None
    names = list(names) if given else [f"feature {column}" for column in range(p)]
    if len(names) != p:
        raise ValueError(
            f"feature_names has {len(names)} names, but X has {p} columns. Give a name per column."
        )
    return Samples(X, names, ids, preparation)
