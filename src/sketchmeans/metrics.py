"""How good labels are, by the rows alone: what can be compared across kernels and their widths."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d

from sketchmeans._arrays import IntArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import near_one, subsample
from sketchmeans.text import counted, setting

__all__ = ["neighbor_agreement", "neighbor_agreement_scorer"]

NEIGHBORS = 10
ROWS = 5_000
"""Rows whose neighbours are asked for, at most."""


def neighbor_agreement(
    X: Any, labels: Any, *, n_neighbors: int = NEIGHBORS, random_state: int = 0
) -> float:
    """Return how often near rows are in the same cluster, corrected for chance.

    Of all pairs of a row and one of its nearest neighbours, the share in one cluster, as
    (share − chance) / (1 − chance): chance is what random labels of the same sizes would have. So
    1 means that no neighbours are torn apart, 0 no better than chance, as one cluster of all rows
    is. No kernel is in it, so it can be compared across kernels, widths and methods. It says
    nothing of scales: standardize columns before, as for a fit.

    Kernel entries: none. Distances: from ``ROWS`` rows, a seeded choice if there are more, to all
    n, at most ROWS · n of them, a part at a time; memory n_neighbors numbers for each such row.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    labels : array of shape (n_samples,)
    n_neighbors : int
        Neighbours of each row, by Euclidean distance, without the row itself.
    random_state : int
        Of the choice among more than ``ROWS`` rows.

    Examples
    --------
    >>> from sketchmeans.metrics import neighbor_agreement
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> neighbor_agreement(X, [0, 0, 0, 1, 1, 1], n_neighbors=2)
    1.0
    >>> neighbor_agreement(X, [0, 0, 0, 0, 0, 0], n_neighbors=2)
    0.0
    """
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    given = column_or_1d(labels)
    if given.dtype.kind in "fO" and any(one is None or one != one for one in given.tolist()):
        raise ValueError("labels hold None or NaN: every row needs a cluster. Leave such rows out.")
    labels = np.unique(given, return_inverse=True)[1]
    n = X.shape[0]
    if len(labels) != n:
        raise ValueError(f"labels has {len(labels)} entries, and X has {n} rows. Give one a row.")
    if not 1 <= n_neighbors < n:
        raise ValueError(
            f"{setting('n_neighbors', n_neighbors)} is not from 1 to {n - 1}: each of "
            f"{counted(n, 'row')} has {counted(n - 1, 'neighbour')}. Ask for fewer."
        )
    sizes = np.bincount(labels).astype(np.float64)
    chance = float(sizes @ (sizes - 1)) / (n * (n - 1.0))
    if len(sizes) == 1:
        return 0.0
    rows = subsample(np.arange(n), ROWS, random_state)
    near = _neighbors(X, rows, n_neighbors)
    share = float(np.mean(labels[near] == labels[rows, None]))
    return (share - chance) / (1.0 - chance)


def neighbor_agreement_scorer(
    estimator: Any, X: Any, y: Any = None, *, n_neighbors: int | None = None
) -> float:
    """Return the ``neighbor_agreement`` of what a fitted estimator predicts for X.

    With scikit-learn's signature of a scorer, for ``GridSearchCV`` and ``cross_val_score``. Unlike
    ``KernelKMeans.score``, it can be compared across kernels and their widths; across numbers of
    clusters it prefers few. Folds must be shuffled where the rows are in the order of something,
    which scikit-learn's are not by themselves.

    Parameters
    ----------
    estimator : object with ``predict``
        Of a ``Pipeline`` the neighbours are those of the rows that reach its last step.
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows, not a kernel matrix.
    y : ignored
    n_neighbors : int, optional
        10 if left out, but at most a quarter of the rows: folds can be small. Another number goes
        in by ``functools.partial``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.metrics import normalized_mutual_info_score
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.metrics import neighbor_agreement_scorer
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> widths = ["0.25*median", "median", "4*median", "16*median", "64*median"]
    >>> search = GridSearchCV(
    ...     KernelKMeans(3, kernel="rbf", random_state=0),
    ...     {"gamma": widths},
    ...     scoring=neighbor_agreement_scorer,
    ...     cv=KFold(5, shuffle=True, random_state=0),
    ... ).fit(X)
    >>> bool(normalized_mutual_info_score(y, search.best_estimator_.labels_) > 0.8)
    True
    """
    last, seen = estimator, X
    if isinstance(estimator, Pipeline):
        last, seen = estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    kernel = getattr(last, "kernel", None)
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' leaves no rows to find neighbours among: X is the kernel matrix. "
            "Give the rows themselves to neighbor_agreement(rows, labels)."
        )
    labels = estimator.predict(X)
    count = usual_neighbors(len(labels)) if n_neighbors is None else n_neighbors
    return neighbor_agreement(seen, labels, n_neighbors=count)


def usual_neighbors(n: int) -> int:
    """Return how many neighbours are asked for among n rows, unless that is said."""
    return min(NEIGHBORS, max(n // 4, 1))


def _neighbors(X: Any, rows: IntArray, count: int) -> IntArray:
    """Return the nearest rows of X to some of them, without themselves."""
    scaled, _ = near_one(X)
    with OneBlasThread():
        # One more than asked for: a row is its own neighbour, unless enough others equal it.
        found = NearestNeighbors(n_neighbors=count + 1).fit(scaled)
        near: IntArray = found.kneighbors(scaled[rows], return_distance=False)
    others = near != rows[:, None]
    others[others.all(axis=1), -1] = False
    return near[others].reshape(len(rows), count)
