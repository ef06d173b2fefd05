"""What Hypothesis draws for the properties: samples, weights, labels, kernels; and how often.

The same examples are drawn every time, so that a failure stays until it is mended. With
``SKETCHMEANS_PROPERTIES=drawn`` they are new ones, by pytest's ``--hypothesis-seed``:
``python -m soak seeds`` does that.
"""

import os
import warnings

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from sketchmeans import KernelKMeans
from sketchmeans.kernels import KERNELS
from sketchmeans.lowrank import METHODS

EXAMPLES = 100
property_test = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=os.environ.get("SKETCHMEANS_PROPERTIES") != "drawn",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

POSITIVE = [name for name in KERNELS if name != "sigmoid"]
kernels = st.sampled_from(list(KERNELS))
positive_kernels = st.sampled_from(POSITIVE)
methods = st.sampled_from(list(METHODS))
dtypes = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2**31 - 1)


@st.composite
def samples(draw, least=2, most=24, dtype=np.float64):
    """Rows of one of several kinds, some with outliers, duplicates or ties."""
    n, p = draw(st.integers(least, most)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["plain", "ties", "outlier", "duplicates", "unequal", "apart"]))
    X = random.normal(size=(n, p))
    if kind == "ties":
        X = random.integers(-3, 4, (n, p)).astype(float)
    elif kind == "outlier":
        X[random.integers(n)] *= 10 ** random.uniform(1, 4)
    elif kind == "duplicates":
        X = X[random.integers(0, max(n // 2, 1), n)]
    elif kind == "unequal":
        X *= 10 ** random.uniform(-3, 3, p)
    elif kind == "apart":
        X += 8 * random.integers(0, 3, (n, 1))
    return X.astype(dtype)


@st.composite
def weights_of(draw, n):
    """None, or weights of one or of many sizes, some of them zero."""
    kind = draw(st.sampled_from([None, "even", "uneven", "zeros"]))
    if kind is None:
        return None
    random = np.random.default_rng(draw(seeds))
    weights = random.uniform(0.3, 3, n) if kind == "even" else 10 ** random.uniform(-3, 3, n)
    if kind == "zeros":
        weights[random.random(n) < 0.3] = 0
        weights[random.integers(n)] = 1
    return weights


def labels_of(n, k, seed):
    return np.random.default_rng(seed).integers(0, k, n)


def quiet(fit, *given, **options):
    """Call a fit; that rows are equal, or a kernel is indefinite, is not what is asked here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        return fit(*given, **options)


def fitted(X, k, weights=None, **options):
    """Fit with one start and one thread, by "rbf" if nothing else is asked."""
    options = {"kernel": "rbf", "n_init": 1, "n_jobs": 1, "random_state": 0} | options
    if options["kernel"] == "neighbors":
        options["kernel_params"] = {"n_anchors": 8, "n_neighbors": 3, "n_graphs": 2}
    return quiet(KernelKMeans(k, **options).fit, X, sample_weight=weights)
