"""The parameters and attributes that estimators share, described once.

A line ``[name, name]`` in the docstring of a class that is ``documented`` stands for them.
"""

from __future__ import annotations

import re
from typing import TypeVar

Class = TypeVar("Class", bound=type)

SHARED = {
    "kernel": """kernel : str or callable
        "linear", "polynomial" ("poly"), "rbf", "laplacian", "cosine", "sigmoid", "precomputed",
        or a function of two blocks of rows, taken as symmetric and called from one thread unless
        ``n_jobs`` is set.""",
    "gamma": """gamma : float or str
        Of rbf, laplacian, polynomial and sigmoid. "median": 1 / median of the kernel's own
        distance on a seeded subsample; "4*median": four times that; "scale": as scikit-learn's.""",
    "degree": """degree : int
        Of polynomial.""",
    "coef0": """coef0 : float
        Of polynomial and sigmoid.""",
    "kernel_params": """kernel_params : dict, optional
        Keyword arguments of a callable kernel.""",
    "method": """method : {"one-pass", "nystrom", "rpcholesky", "greedy-cholesky", "exact"}
        How K is approximated: from a random sketch, which meets all of K (the paper's way); from
        columns of K, drawn by ``sketch``, by random pivots, or by the largest pivots; by its
        leading eigenvectors.""",
    "oversampling": """oversampling : int or "auto"
        Columns of the sketch, or landmarks, beyond ``rank``; "auto" is ``rank``.""",
    "sketch": """sketch : str
        For "one-pass" the distribution of Ω: "hadamard" ("auto"), "gaussian", "rademacher" or
        "sparse". For "nystrom" how landmarks are found: "uniform" ("auto"), "diagonal",
        "column-norm", "leverage" or "kmeans".""",
    "truncation": """truncation : {"late", "early"}
        When to cut to ``rank``: "late" is more accurate, "early" is the paper's algorithm as
        printed.""",
    "n_passes": """n_passes : int
        Passes of "one-pass" over K; a second one is nearly the exact eigendecomposition.""",
    "precision": """precision : {"auto", "float32", "float64"}
        Of the tiles; "auto" follows the data, and takes float64 for float32 data where rounding
        would show. Finite feature maps work in float64, unless "float32" asks for tiles.""",
    "memory_limit": """memory_limit : int, str or None
        Bytes, or "2GB", that ``fit`` may allocate beyond X; refused at once if too low.""",
    "n_jobs": """n_jobs : int or None
        Threads; None is what ``joblib.parallel_config`` says, or all cores, and one inside a
        joblib or Dask worker. Never changes results.""",
    "random_state": """random_state : int, RandomState or None
        Fixes the result, bit for bit.""",
    "verbose": """verbose : int
        Show progress on standard error.""",
    "embedding_": """embedding_ : array of shape (n_samples, rank_)
        Y, with K ≈ YYᵀ.""",
    "eigenvalues_": """eigenvalues_ : array of shape (rank_,)
        Of YYᵀ, falling: approximate leading eigenvalues of K.""",
    "rank_": """rank_, width_ : int
        Columns of the embedding and of the sketch.""",
    "gamma_": """gamma_ : float or None
        The γ that was used.""",
    "stats_": """stats_ : dict
        Passes, kernel entries, seconds by stage, bytes, engine, precision, threads.""",
    "n_features_in_": """n_features_in_ : int
        Features seen in ``fit``.""",
    "labels_": """labels_ : array of shape (n_samples,)
        The cluster of each sample.""",
    "certificate_": """certificate_ : Certificate
        How far the labels can be from the best possible; ``print`` it.""",
}


def documented(cls: Class) -> Class:
    """Write out the entries of SHARED that the docstring of a class names in brackets."""

    def entries(line: re.Match[str]) -> str:
        return "\n    ".join(SHARED[name] for name in line[1].split(", "))

    if cls.__doc__ is not None:  # as with python -OO
        cls.__doc__ = re.sub(r"(?<=    )\[(\w+(?:, \w+)*)\]$", entries, cls.__doc__, flags=re.M)
    return cls
