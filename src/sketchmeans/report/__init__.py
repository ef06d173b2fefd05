"""The report: one HTML file that tells a person what was found, and how far to trust it.

It is readable offline, in light and dark, and printed. ``content`` computes what it says, ``page``
says it, ``charts`` draws what needs no script, and ``scatter.js`` the picture of the embedding.
Nothing in it is larger for more samples: of many it shows a seeded choice, and says so.

Whatever comes from the data is text. ``html.tag`` escapes every child that it has not made itself;
the script puts text into text nodes only; and the page's Content-Security-Policy allows this style
and this script, by their hashes, and no request to any host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sketchmeans.atomic import refuse_existing, whole_file
from sketchmeans.engine import Crew
from sketchmeans.report.content import Preparation, Samples
from sketchmeans.report.page import page

__all__ = ["Preparation", "write_report"]


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
    numbers a sample, and what 2,000 samples against each other need.

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
    check_is_fitted(model)
    if not hasattr(model, "labels_"):
        raise ValueError(
            f"{type(model).__name__} has no clusters to report. Fit KernelKMeans or "
            "FullKernelKMeans."
        )
    way_out = None if overwrite else "Choose another name, or give overwrite=True."
    if way_out is not None:
        refuse_existing(path, way_out=way_out)
    n = len(model.labels_)
    if X is not None and hasattr(X, "to_numpy"):
        feature_names = list(X.columns) if feature_names is None else feature_names
        X = X.to_numpy()
    elif X is not None:
        X = sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)
    ids, truth = _indexed(ids), _indexed(truth)
    for name, rows in (("X", _rows(X)), ("ids", _rows(ids)), ("truth", _rows(truth))):
        if rows is not None and rows != n:
            raise ValueError(
                f"{name} has {rows} rows, but the model was fitted to {n} samples. Give one of "
                "each sample, in their order."
            )
    given = X
    if model.kernel == "precomputed":
        X = None  # the values of a kernel matrix tell a reader nothing
    p = 0 if X is None else X.shape[1]
    names: list[Any] = [f"feature {column}" for column in range(p)]
    if feature_names is not None and X is not None:
        names = list(feature_names)
    if len(names) != p:
        raise ValueError(
            f"feature_names has {len(names)} names, but X has {p} columns. Give a name a column."
        )
    with Crew(1):  # sums that BLAS splits among threads would have other bits
        text = page(
            model,
            Samples(X, names, ids, preparation or Preparation()),
            fitted_to=given,
            command=command,
            truth=truth,
            source=source,
            random_state=random_state,
        )
    with whole_file(path, way_out=way_out) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def _indexed(values: Any) -> Any:
    """Return what can be asked for its third value by the number 2; a series is asked by label."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def _rows(values: Any) -> int | None:
    if values is None:
        return None
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)
