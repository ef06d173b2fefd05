"""One warning where samples do not differ enough for the clusters that were asked for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sketchmeans._arrays import IntArray
from sketchmeans.blocks import first_distinct
from sketchmeans.estimators.progress import WRAPPED
from sketchmeans.text import called, counted, setting


def warn_of_equal_samples(X: Any, labels: IntArray, n_clusters: int) -> None:
    """Warn once, as scikit-learn's K-means does, where fewer samples differ than clusters.

    Rounding can tell equal samples apart in the embedding: the samples themselves are looked at,
    where there are some. To be called by ``fit`` itself: the warning points to who called that.

    Parameters
    ----------
    X : array or CSR matrix, or None
        None for a kernel without samples.
    labels : array of shape (n,)
        What K-means found.
    n_clusters : int
    """
    found, n = len(np.unique(labels)), len(labels)
    differing = n_clusters if X is None else len(first_distinct(X, n_clusters))
    if min(found, differing) >= n_clusters:
        return
    asked, fewer = setting("n_clusters", n_clusters), f"Lower {called('n_clusters')}."
    if differing == 1:
        said = f"all {n:,} samples are equal: they are one cluster, and {n_clusters} cannot be told"
        said += " apart."
    elif differing < n_clusters:
        said = (
            f"the {n:,} samples have {differing} distinct rows, and {asked} was asked for: some "
            f"clusters are empty, or equal to others. {fewer}"
        )
    else:
        said = (
            f"{asked} was asked for, and {counted(found, 'cluster')} found: to this kernel too few "
            f"samples differ, or have a weight. {fewer}"
        )
    warnings.warn(said, ConvergenceWarning, stacklevel=3 + WRAPPED)
