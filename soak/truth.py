"""The objective of kernel K-means in exact arithmetic, for a handful of samples.

Numbers of floating point are fractions; here they are decimals of 120 digits, so that nothing is
lost however far from the origin the samples lie. Distances in feature space,
‖φ(x) − φ(y)‖² = κ(x, x) + κ(y, y) − 2κ(x, y), are rounded to float64 only when they are known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

DIGITS = 120


@cache
def partitions(n: int, k: int) -> np.ndarray:
    """Return all partitions of n samples into at most k clusters, as rows of labels."""
    found = []
    for rest in itertools.product(range(k), repeat=n - 1):
        labels = (0, *rest)
        if all(label <= max(labels[:place]) + 1 for place, label in enumerate(labels) if place):
            found.append(labels)
    return np.array(found)


def objectives(distances: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the objective of each row of labels, from squared distances in feature space.

    Σ_c Σ_{i < j in c} w_i w_j d²_ij / w_c: terms that are not negative, so nothing cancels.
    """
    total = np.zeros(len(labels))
    for cluster in range(int(labels.max()) + 1):
        inside = (labels == cluster) * weights
        sums = np.einsum("pi,ij,pj->p", inside, distances, inside) / 2
        sizes = inside.sum(axis=1)
        total += np.divide(sums, sizes, out=np.zeros(len(labels)), where=sizes > 0)
    return total


def _rows(X: Any) -> list[list[Decimal]]:
    return [[Decimal(float(value)) for value in row] for row in X]


def _dot(x: list[Decimal], y: list[Decimal]) -> Decimal:
    return sum((a * b for a, b in zip(x, y, strict=True)), Decimal(0))


def _power(base: Decimal, degree: int) -> Decimal:
    return base**degree if base else Decimal(0)


def _tanh(value: Decimal) -> Decimal:
    if abs(value) > 200:
        return Decimal(1 if value > 0 else -1)
    twice = (2 * value).exp()
    return (twice - 1) / (twice + 1)


def kernel_function(model: Any) -> Callable[[list[Decimal], list[Decimal]], Decimal]:
    """Return κ of a fitted estimator as a function of two rows of decimals."""
    gamma = None if model.gamma_ is None else Decimal(float(model.gamma_))
    coef0 = Decimal(float(model.coef0))

    def squared(x: list[Decimal], y: list[Decimal]) -> Decimal:
        return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Decimal(0))

    def manhattan(x: list[Decimal], y: list[Decimal]) -> Decimal:
        return sum((abs(a - b) for a, b in zip(x, y, strict=True)), Decimal(0))

    def cosine(x: list[Decimal], y: list[Decimal]) -> Decimal:
        size = (_dot(x, x) * _dot(y, y)).sqrt()
        return _dot(x, y) / size if size else Decimal(0)

    functions: dict[str, Callable[[list[Decimal], list[Decimal]], Decimal]] = {
        "linear": _dot,
        "polynomial": lambda x, y: _power(gamma * _dot(x, y) + coef0, model.degree),
        "rbf": lambda x, y: (-gamma * squared(x, y)).exp(),
        "laplacian": lambda x, y: (-gamma * manhattan(x, y)).exp(),
        "cosine": cosine,
        "sigmoid": lambda x, y: _tanh(gamma * _dot(x, y) + coef0),
    }
    return functions[model.kernel]


def feature_distances(model: Any, X: Any) -> np.ndarray:
    """Return ‖φ(x) − φ(y)‖² of every pair of rows; for "precomputed", X is the kernel matrix."""
    n = len(X)
    with localcontext() as context:
        context.prec = DIGITS
        rows = _rows(X)
        given = model.kernel == "precomputed"
        exact = given or model.kernel == "sigmoid"  # squares of lengths may be negative
        if given:
            K = [[(rows[i][j] + rows[j][i]) / 2 for j in range(n)] for i in range(n)]
        else:
            kernel = kernel_function(model)
            K = [[kernel(rows[i], rows[j]) for j in range(n)] for i in range(n)]
        distances = [[K[i][i] + K[j][j] - 2 * K[i][j] for j in range(n)] for i in range(n)]
    found = np.array(distances, dtype=float)
    return found if exact else np.maximum(found, 0.0)  # the last of the digits may be below zero
