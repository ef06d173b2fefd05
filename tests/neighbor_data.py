"""Data and operators for tests of the neighbours kernel."""

import numpy as np
from scipy import sparse

from sketchmeans.engine import Run
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.operators import NeighborOperator

N = 300


def data(kind="dense", dtype=np.float64, n=N):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5)) + 3 * random.integers(0, 3, (n, 1))
    X = X.astype(dtype)
    return sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X)) if kind == "sparse" else X


def weights_of(kind, n=N):
    random = np.random.default_rng(1)
    found = {"none": None, "some": random.uniform(0.1, 3, n), "zeros": random.integers(0, 3, n)}
    return None if found[kind] is None else found[kind].astype(float)


def built(X, weights=None, pack=True, **options):
    operator = NeighborOperator(X, NeighborOptions(**options), weights=weights, seed=3)
    operator.build(Run(2, pack))
    return operator
