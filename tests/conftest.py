"""Data and oracles that several tests share."""

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """Scikit-learn's digits, scaled to [0, 1]; labels; median squared distance."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * X @ X.T
    return X, y, float(np.median(distances[np.triu_indices(len(X), 1)]))


@pytest.fixture
def points():
    return np.random.default_rng(7).normal(size=(300, 6)) + 2.0
