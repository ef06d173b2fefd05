"""Every difficult input through every method × kernel × dtype: residuals below one threshold.

As in LAPACK's tests, a residual is divided by n·eps·‖K‖₂, eps being that of the numbers that were
computed with, and must stay below THRESHOLD. The exponent of rbf is known to eps·γ·max‖x − c‖², by
which its entries are then off. Bounds have no tolerance but the truth's own rounding.
"""

import itertools
import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from soak.truth import objectives

from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.kernels import KERNELS, Statistic, kernel_class
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.lowrank import METHODS
from sketchmeans.operators import NeighborOperator
from zoo import INDEFINITE, LATER, MATRICES, SAMPLES, ZOO

THRESHOLD = 30.0
"""LAPACK's own."""
DTYPES = (np.float32, np.float64)
ANCHORS = {"n_anchors": 12, "n_neighbors": 3, "n_graphs": 2}


def true_kernel(X, model):
    """The kernel of the rows in long double, distances from differences."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X).astype(np.longdouble)
    if model.kernel == "precomputed":
        return (X + X.T) / 2
    cls = kernel_class(model.kernel)
    gamma = None if model.gamma_ is None else np.longdouble(model.gamma_)
    if cls.unit_rows:
        sizes = np.sqrt(np.square(X / np.abs(X).max(initial=1e-300)).sum(axis=1))
        sizes *= np.abs(X).max(initial=1e-300)
        X = X / np.where(sizes > 0, sizes, 1)[:, None]
    if cls.statistic is Statistic.DOT:
        S = X @ X.T
    else:
        apart = np.abs(X[:, None] - X[None])
        S = (apart if cls.statistic is Statistic.MANHATTAN else np.square(apart)).sum(axis=2)
    values = {
        "linear": lambda: S,
        "cosine": lambda: S,
        "polynomial": lambda: (gamma * S + model.coef0) ** model.degree,
        "sigmoid": lambda: np.tanh(gamma * S + model.coef0),
        "rbf": lambda: np.exp(-gamma * S),
        "laplacian": lambda: np.exp(-gamma * S),
    }
    return values[model.kernel]()


def neighbors_kernel(X, weights):
    """The kernel "neighbors" has no other definition than its operator."""
    seed = int(np.random.RandomState(0).randint(2**31 - 1, size=2)[1])
    operator = NeighborOperator(X, NeighborOptions(**ANCHORS), weights=weights, seed=seed)
    operator.build()
    n = X.shape[0]
    return operator.unweighted().tile(slice(0, n), slice(0, n)).astype(np.longdouble)


def fitted(animal, X, weights, kernel, method, **more):
    """Fit as the names say; a kernel that is indefinite, or rows that are equal, may be told."""
    options = {"kernel": kernel, "n_init": 1, "n_jobs": 1, "random_state": 0} | more
    if method == "full":
        model = FullKernelKMeans(animal.n_clusters, **options)
    elif kernel == "neighbors":
        model = KernelKMeans(animal.n_clusters, kernel_params=ANCHORS, **options)
    else:
        model = KernelKMeans(animal.n_clusters, method=method, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        return model.fit(X, sample_weight=weights)


def condition(model, X):
    """What γ makes of rounding in squared distances."""
    if model.kernel != "rbf":
        return 1.0
    X = np.asarray(X.toarray() if sparse.issparse(X) else X).astype(float)
    return 1 + model.gamma_ * float(np.square(X - np.median(X, axis=0)).sum(axis=1).max())


def residuals(model, X, K, weights):
    """Return what rounding alone may make, in units of n·eps·‖K‖₂."""
    n = len(K)
    d = np.ones(n) if weights is None else weights
    root = np.sqrt(d)
    weighted = (root[:, None] * K * root).astype(float)
    spectrum = np.linalg.eigvalsh(weighted)
    size = float(np.abs(spectrum).max())
    positive = spectrum[0] >= -n * float(np.finfo(float).eps) * size
    found = {"trace": abs(model.certificate_.trace_kernel - float(np.trace(weighted)))}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found["score"] = abs(model.score(X, sample_weight=weights) + model.inertia_)
        predicted = model.predict(X)
    assert predicted.shape == model.labels_.shape == (n,)
    assert set(np.unique(np.r_[predicted, model.labels_])) <= set(range(model.n_clusters))
    precision = np.dtype(model.stats_["precision"])
    if hasattr(model, "embedding_"):
        stored = model.embedding_, model.transform(X)
        precision = min(precision, *(rows.dtype for rows in stored), key=lambda one: one.itemsize)
        Y, T = (root[:, None] * rows.astype(float) for rows in stored)
        found["new rows"] = np.linalg.norm(T @ T.T - Y @ Y.T, 2)
        if model.kernel != "neighbors" and (model.method == "exact" or positive):
            own = np.linalg.eigvalsh(Y.T @ Y)[::-1]
            found["eigenvalues_"] = np.abs(own - model.eigenvalues_).max()
        as_printed = model.truncation == "early" and model.method == "one-pass"
        if positive and model.kernel != "sigmoid" and not as_printed:
            found["below K"] = -min(np.linalg.eigvalsh(weighted - Y @ Y.T)[0], 0.0)
        if model.method == "exact":
            best = np.maximum(spectrum[::-1][: Y.shape[1]], 0)
            found["eigenvalues of K"] = np.abs(best - model.eigenvalues_[: len(best)]).max()
    unit = n * float(np.finfo(precision).eps) * size * condition(model, X)
    return {name: float(size) / unit if size else 0.0 for name, size in found.items()}


def broken_bounds(model, objective):
    """Return the bounds on the objective of these labels that do not hold."""
    certificate, ulps = model.certificate_, 1e-15
    if certificate.objective_upper is None:
        return [] if certificate.reason else ["neither a bound nor a reason"]
    bounds = [
        ("objective_lower", certificate.objective_lower, objective),
        ("objective_upper", objective, certificate.objective_upper),
        ("optimum_lower", certificate.optimum_lower, certificate.objective_upper),
    ]
    return [
        f"{name}: {low:.17g} > {high:.17g}"
        for name, low, high in bounds
        if low is not None and low > high + ulps * max(abs(low), abs(high))
    ]


def examine(animal, kernel, dtype, methods, **options):
    """Fit by every method, with options of one; return what does not hold."""
    X = animal.make(np.dtype(dtype))
    weights = None if animal.weights is None else animal.weights(X.shape[0])
    allowed = animal.refused.get(kernel, animal.refused.get("*"))
    wrong, values, bounds, K = [], [], [], None
    for method in methods:
        try:
            model = fitted(animal, X, weights, kernel, method, **options)
        except ValueError as error:
            if allowed is None or not re.search(allowed, str(error)):
                wrong.append(f"{method}: ValueError: {error}")
            continue
        if K is None:
            K = neighbors_kernel(X, weights) if kernel == "neighbors" else true_kernel(X, model)
        wrong += [
            f"{method}: {name} is {size:.3g}"
            for name, size in residuals(model, X, K, weights).items()
            if not size <= THRESHOLD
        ]
        diagonal = np.diag(K)
        apart = (diagonal[:, None] + diagonal - 2 * K).astype(float)
        if kernel != "precomputed":
            apart = np.maximum(apart, 0.0)
        d = np.ones(len(K)) if weights is None else weights
        values.append(float(objectives(apart, d, model.labels_[None])[0]))
        wrong += [f"{method}: {text}" for text in broken_bounds(model, values[-1])]
        bounds.append((method, model.certificate_.optimum_lower))
    best = min(values, default=np.inf)
    return wrong + [
        f"{method}: optimum_lower {bound:.17g}, and {best:.17g} was found"
        for method, bound in bounds
        if bound is not None and bound > best * (1 + 1e-15)
    ]


EVERY = [*METHODS, "full"]


@pytest.mark.parametrize("kernel", [*KERNELS, "neighbors"])
@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in LATER])
def test_every_method_survives_samples(name, kernel):
    methods = ["auto"] if kernel == "neighbors" else EVERY
    for dtype in DTYPES:
        assert examine(SAMPLES[name], kernel, dtype, methods) == [], np.dtype(dtype)


@pytest.mark.parametrize("name", MATRICES)
def test_every_method_survives_a_kernel_matrix(name):
    for dtype in DTYPES:
        assert examine(MATRICES[name], "precomputed", dtype, EVERY) == [], np.dtype(dtype)


@pytest.mark.parametrize("name", INDEFINITE)
def test_no_bound_is_stated_for_a_matrix_that_is_not_positive_semidefinite(name):
    animal = INDEFINITE[name]
    for dtype, method in itertools.product(DTYPES, EVERY):
        model = fitted(animal, animal.make(np.dtype(dtype)), None, "precomputed", method)
        assert model.certificate_.objective_upper is None, (method, dtype)


def test_the_zoo_is_large():
    assert len(ZOO) - len(LATER) >= 30
    assert set(SAMPLES) > LATER
