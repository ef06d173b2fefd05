"""Every method of the registry, against dense oracles."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import chisquare
from sklearn.kernel_approximation import Nystroem

from oracles import EXAMPLES, dense_kernel, lloyd, objective
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Gaussian, Linear, Polynomial, Sigmoid
from sketchmeans.lowrank import (
    METHODS,
    IndefiniteKernelWarning,
    Request,
    approximate,
    exact,
    greedy_cholesky,
    nystrom,
    rp_cholesky,
)
from sketchmeans.lowrank.eigen import leading_eigenvectors
from sketchmeans.lowrank.landmarks import Landmarks, _probabilities, column_norms
from sketchmeans.lowrank.nystrom import from_landmarks
from sketchmeans.lowrank.result import Cost
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    PrecomputedOperator,
)

SKETCHED = [(name, sketch) for name, m in METHODS.items() for sketch in (m.sketches or ("auto",))]


@pytest.fixture
def X():
    return np.random.default_rng(5).normal(size=(120, 3))


def operators(X, weights=None):
    K = dense_kernel(DataOperator(X, Gaussian(0.3)))
    return {
        "data": DataOperator(X, Gaussian(0.3), weights=weights),
        "callable": CallableOperator(X, lambda A, B: (A @ B.T + 1) ** 3, weights=weights),
        "precomputed": PrecomputedOperator(K, weights=weights),
        "feature map": FeatureMapOperator(X, Polynomial(0.5, 2, 1.0), weights=weights),
    }


@pytest.mark.parametrize(("method", "sketch"), SKETCHED)
@pytest.mark.parametrize("kind", ["data", "callable", "precomputed", "feature map"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_method_at_full_width_is_the_kernel(X, method, sketch, kind, weighted):
    if (sketch, kind) == ("kmeans", "precomputed"):
        pytest.skip("a precomputed kernel has no points to put landmarks among")
    d = np.random.default_rng(0).uniform(0.5, 2, 120) if weighted else None
    operator = operators(X, d)[kind]
    root = np.ones(120) if d is None else np.sqrt(d)
    K = dense_kernel(operators(X)[kind]) * root[:, None] * root
    low = approximate(operator, method, Request(rank=120, width=120, seed=0, sketch=sketch))
    assert np.linalg.norm(K - low.factor @ low.factor.T) < 1e-6 * np.linalg.norm(K)


@pytest.mark.parametrize(("method", "sketch"), SKETCHED)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("truncation", ["late", "early"])
def test_every_method_keeps_below_the_kernel_and_its_trace_error_is_exact(
    X, method, sketch, weighted, truncation
):
    if truncation == "early" and "truncation" not in METHODS[method].reads:
        pytest.skip("the method does not read truncation")
    d = np.random.default_rng(0).uniform(0.5, 2, 120) if weighted else None
    operator = DataOperator(X, Gaussian(0.3), weights=d)
    K = dense_kernel(operator)
    ask = Request(rank=6, width=15, seed=1, sketch=sketch, truncation=truncation)
    low = approximate(operator, method, ask)
    assert np.linalg.eigvalsh(K - low.factor @ low.factor.T)[0] > -1e-10 * np.trace(K)
    Y = low.embedding
    assert abs(low.trace_error - np.trace(K - Y @ Y.T)) < 1e-8 * np.trace(K)
    best = np.linalg.eigvalsh(K)[:-6].sum()
    assert low.trace_error > 0.999 * best
    new = (low.new_points or operator).against(X).multiply(low.dual)
    root = 1 if d is None else np.sqrt(d)[:, None]
    np.testing.assert_allclose(new, Y / root, atol=1e-7)


@pytest.mark.parametrize("kind", ["data", "callable", "precomputed", "feature map"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_column_norms_are_those_of_the_matrix_for_any_number_of_threads(X, kind, weighted):
    d = np.random.default_rng(0).uniform(0.5, 2, 120) if weighted else None
    operator = operators(X, d)[kind]
    diagonal = operator.diagonal()
    squares, _ = column_norms(operator, diagonal, Run(1))
    expected = np.square(dense_kernel(operator) / diagonal.max()).sum(axis=0)
    np.testing.assert_allclose(squares, expected, rtol=1e-10)
    np.testing.assert_array_equal(column_norms(operator, diagonal, Run(3))[0], squares)


@pytest.mark.parametrize("kind", ["data", "callable", "precomputed", "feature map"])
def test_leverage_scores_take_few_samples_of_the_many_that_are_alike(kind, seeds):
    """Of 990 samples at one place and ten far from it and each other, all ten are landmarks."""
    X = np.zeros((1000, 10))
    X[::100] = 30 * np.eye(10)
    K = np.exp(-0.1 * np.square(X[:, None] - X[None]).sum(axis=2))
    operator = {
        "data": DataOperator(X, Gaussian(0.1)),
        "callable": CallableOperator(X, lambda A, B: Gaussian(0.1).of(cdist(A, B, "sqeuclidean"))),
        "precomputed": PrecomputedOperator(K),
        "feature map": FeatureMapOperator(X, Linear()),
    }[kind]
    for seed in seeds(12):
        low = nystrom(operator, columns=40, rank=11, seed=seed, sampling="leverage", run=Run(2))
        assert low.trace_error < 1e-6 * low.facts.trace
    again = nystrom(operator, columns=40, rank=11, seed=seed, sampling="leverage")
    np.testing.assert_array_equal(low.factor, again.factor)


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_probabilities_of_being_drawn_sum_to_the_number_of_draws(count):
    scores = np.array([1e14, 5.0, 5.0, 1.0, 0.5, 0.2, 0.1, 0.1, 0.05, 0.0])
    found = _probabilities(scores, count)
    raised = int((found == 0.1).sum())  # none is below a tenth here
    assert count - 0.1 * raised <= found[scores > 0].sum() <= count + 0.1 * raised + 1e-9
    assert (np.diff(found[:-1]) <= 1e-12).all()
    assert found[0] == pytest.approx(1)
    assert (_probabilities(scores, 10) == 1).all()


def test_late_nystrom_is_scikit_learns_up_to_rotation(X):
    theirs = Nystroem(kernel="rbf", gamma=0.3, n_components=15, random_state=0).fit(X)
    indices = theirs.component_indices_
    operator = DataOperator(X, Gaussian(0.3))
    low = from_landmarks(
        operator, Landmarks(indices), rank=15, seed=0, diagonal=np.ones(120), cost=Cost()
    )
    Z = theirs.transform(X)
    np.testing.assert_allclose(low.factor @ low.factor.T, Z @ Z.T, atol=1e-8)


def textbook_cholesky(K, pivots):
    """Partial Cholesky with given pivots, one column at a time."""
    F = np.zeros((len(K), 0))
    left = np.diag(K).copy()
    diagonals = [left.copy()]
    for pivot in pivots:
        column = K[:, pivot] - F @ F[pivot]
        column = column / np.sqrt(column[pivot])
        F = np.column_stack([F, column])
        left = left - column**2
        diagonals.append(left.copy())
    return F, diagonals


def test_rpcholesky_is_the_textbook_factorisation_of_its_pivots(X):
    K = dense_kernel(DataOperator(X, Gaussian(0.3)))
    low = rp_cholesky(PrecomputedOperator(K), columns=12, rank=12, seed=3, batch=5)
    pivots = low.new_points.chosen
    assert len(set(pivots)) == 12
    F, diagonals = textbook_cholesky(K, pivots)
    np.testing.assert_allclose(low.factor @ low.factor.T, F @ F.T, atol=1e-10)
    left = np.diag(K) - np.square(low.factor).sum(axis=1)
    np.testing.assert_allclose(left, diagonals[-1], atol=1e-10)
    for pivot, before in zip(pivots, diagonals, strict=False):
        assert before[pivot] > 0


def test_greedy_pivots_are_the_largest_that_are_left(X):
    K = dense_kernel(DataOperator(X, Polynomial(0.5, 2, 1.0)))
    low = greedy_cholesky(PrecomputedOperator(K), columns=6, rank=6)
    pivots = low.new_points.chosen
    _, diagonals = textbook_cholesky(K, pivots)
    for pivot, before in zip(pivots, diagonals, strict=False):
        assert before[pivot] == pytest.approx(before.max())


@pytest.mark.parametrize("batch", [1, 5, 32])
def test_the_law_of_the_random_pivots_does_not_depend_on_the_batch(batch, seeds):
    """Ordered pairs of pivots of a 5 × 5 kernel against the law of RPCholesky, by chi-square."""
    A = np.random.default_rng(0).normal(size=(5, 3))
    K = A @ A.T + 0.1 * np.eye(5)
    law = np.zeros((5, 5))
    for i in range(5):
        left = np.diag(K) - K[:, i] ** 2 / K[i, i]
        left[i] = 0
        law[i] = K[i, i] / np.trace(K) * left / left.sum()
    operator = PrecomputedOperator(K)
    seen = np.zeros((5, 5))
    trials = 1500
    for seed in seeds(trials):
        i, j = rp_cholesky(operator, columns=2, rank=2, seed=seed, batch=batch).new_points.chosen
        seen[i, j] += 1
    possible = law > 0
    assert seen[~possible].sum() == 0
    # `make soak PART=seeds` asks this 300 times: all of that fails by chance once in a thousand.
    assert chisquare(seen[possible], trials * law[possible]).pvalue > 1e-3 / 300


def test_cholesky_stops_at_the_tolerance(X):
    K = dense_kernel(DataOperator(X, Gaussian(0.3)))
    for run in (greedy_cholesky, lambda *a, **k: rp_cholesky(*a, **k, seed=0)):
        low = run(PrecomputedOperator(K), columns=120, rank=120, tolerance=0.1)
        assert low.eigenvalues.sum() >= 0.9 * 120
        assert low.factor.shape[1] < 60
    model = KernelEmbedding(rank=0.9, method="greedy-cholesky", gamma=0.3).fit(X)
    assert model.eigenvalues_.sum() >= 0.9 * 120
    assert model.stats_["kernel_entries"] < 61 * 120


@pytest.mark.parametrize("kind", ["data", "callable", "precomputed", "feature map"])
def test_exact_is_the_eigendecomposition(X, kind):
    operator = operators(X)[kind]
    values = np.linalg.eigvalsh(dense_kernel(operator))[::-1]
    low = exact(operator, rank=5)
    np.testing.assert_allclose(low.eigenvalues, values[:5], rtol=1e-9)


def test_exact_without_the_matrix_is_the_eigendecomposition(X, monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.exact"], "DENSE_LIMIT", 50)
    operator = DataOperator(X, Gaussian(0.3))
    low = exact(operator, rank=5, run=Run(2))
    values = np.linalg.eigvalsh(dense_kernel(operator))[::-1]
    np.testing.assert_allclose(low.eigenvalues, values[:5], rtol=1e-9)
    assert low.cost.passes > 1
    np.testing.assert_allclose(low.facts.sum_of_squares, np.square(values).sum())


def hard_cases():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    yield "constant", X, Gaussian(0.0)
    yield "zero", np.zeros((60, 3)), Linear()
    yield "duplicated", np.repeat(X[:4], 15, axis=0), Gaussian(1.0)
    yield "rank one", X[:, :1] * np.ones(3), Linear()
    yield "indefinite", X, Sigmoid(0.5, -0.5)


@pytest.mark.parametrize(("name", "X", "kernel"), list(hard_cases()))
@pytest.mark.parametrize(("method", "sketch"), SKETCHED)
def test_hard_kernels_pass_through_every_method_without_a_nan(name, X, kernel, method, sketch):
    operator = DataOperator(X, kernel)
    ask = Request(rank=8, width=16, seed=0, sketch=sketch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        low = approximate(operator, method, ask)
    assert np.isfinite(low.factor).all()
    assert np.isfinite(low.dual).all()
    K = dense_kernel(operator)
    if kernel.is_psd or not METHODS[method].landmarks:  # columns alone say little of the rest
        assert np.linalg.norm(K - low.embedding @ low.embedding.T) <= 1.5 * np.linalg.norm(K)
    said = [w for w in caught if issubclass(w.category, IndefiniteKernelWarning)]
    assert bool(said) == (name == "indefinite")
    if said:
        assert "% of its sketched core is negative" in str(said[0].message)
        assert 0 < low.negative_mass < 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_offer_every_method(method, dtype, X):
    model = KernelKMeans(4, method=method, rank=8, random_state=0, n_refine=1, kernel="rbf")
    model.fit(X.astype(dtype))
    np.testing.assert_array_equal(model.predict(X.astype(dtype)), model.labels_)
    off = np.abs(model.transform(X.astype(dtype)) - model.embedding_).max()
    assert off < (1e-7 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("method", [m for m in METHODS if METHODS[m].landmarks])
def test_a_landmark_model_does_not_hold_the_data(method):
    X = np.random.default_rng(0).normal(size=(3000, 50))
    model = KernelEmbedding(method=method, rank=5, n_landmarks=10, random_state=0).fit(X)
    assert model._new_points.points.X.shape == (10, 50)
    del model.embedding_
    assert len(pickle.dumps(model)) < 0.05 * X.nbytes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nystrom", "n_passes": 2}, "n_passes=2 is not read with method='nystrom'"),
        ({"method": "rpcholesky", "sketch": "uniform"}, "sketch='uniform' is not read with"),
        ({"method": "exact", "oversampling": 3}, "oversampling=3 is not read"),
        ({"method": "nystrom", "sketch": "hadamard"}, "sketch='hadamard' is not known.*'uniform'"),
        ({"method": "nystrom", "oversampling": 3}, "oversampling=3 is not read"),
        ({"method": "one-pass", "n_landmarks": 30}, "n_landmarks=30 is not read"),
        ({"n_landmarks": 30, "n_passes": 2}, "n_passes=2 belongs to .*n_landmarks=30 to"),
        ({"sketch": "uniform", "oversampling": 2}, "oversampling=2 belongs to .*'uniform' to"),
        ({"method": "nystrom", "rank": 9, "n_landmarks": 8}, "n_landmarks=8 is less than rank=9"),
    ],
)
def test_options_that_a_method_does_not_read_are_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeans(2, kernel="rbf", **options).fit(X)


def test_full_kernel_k_means_is_the_dense_iteration(X, monkeypatch):
    K = dense_kernel(DataOperator(X, Gaussian(0.3)))
    for cache in (10, 3000):
        monkeypatch.setattr("sketchmeans.estimators.full.CACHE_LIMIT", cache)
        for init in ("k-means++", "random", "sketch"):
            options = {"gamma": 0.3, "init": init, "n_init": 1, "random_state": 0}
            one = FullKernelKMeans(4, max_iter=1, **options).fit(X)
            for n_iter in (2, 3, 50):
                more = FullKernelKMeans(4, max_iter=n_iter, **options).fit(X)
                expected = lloyd(K, one.labels_.astype(int), 4, n_iter=n_iter - 1)
                np.testing.assert_array_equal(more.labels_, expected)
            assert (np.diff(more.objectives_) <= 1e-9).all()
            np.testing.assert_allclose(more.inertia_, objective(K, more.labels_), rtol=1e-9)
            np.testing.assert_array_equal(more.predict(X), more.labels_)
            np.testing.assert_allclose(more.score(X), -more.inertia_, rtol=1e-9)
            assert more.certificate_.objective == pytest.approx(more.inertia_)
            assert more.certificate_.optimum_lower <= more.inertia_


def test_full_kernel_k_means_with_weights_counts_repeated_samples(X):
    counts = np.random.default_rng(0).integers(1, 4, 120)
    start = {"gamma": 0.3, "n_init": 20, "random_state": 0}
    one = FullKernelKMeans(3, **start).fit(X, sample_weight=counts)
    other = FullKernelKMeans(3, **start).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=0.01)


def test_full_kernel_k_means_repairs_empty_clusters(seeds):
    X = np.concatenate([np.zeros((30, 2)), np.ones((30, 2)), [[9.0, 9.0]]])
    for seed in seeds(10):
        model = FullKernelKMeans(3, init="random", n_init=1, gamma=1.0, random_state=seed).fit(X)
        assert len(np.unique(model.labels_)) == 3


def test_every_kernel_has_an_exact_decomposition(X):
    for kernel in EXAMPLES.values():
        if kernel.is_psd:
            operator = DataOperator(X, kernel)
            low = exact(operator, rank=120)
            K = dense_kernel(operator)
            assert np.linalg.norm(K - low.factor @ low.factor.T) < 1e-10 * np.linalg.norm(K)


@pytest.mark.parametrize("kernel", ["linear", "cosine", "polynomial"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_points_of_exact_eigenvectors_are_as_fine_as_these(kernel, dtype):
    """Eigenvalues down to rounding: what embeds new points divides by their roots.

    With entries of float32 beside a matrix of float64, and from the eigenvalues of a feature map's
    Gram matrix, rows were off by 3 % of the largest number of the embedding, and by 0.03 %.
    """
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.normal(size=(n, 8)))[0] for n in (60, 8))
    X = (left * np.repeat([1, 1e-3, 1e-6], [3, 3, 2]) @ right).astype(dtype)
    options = {"kernel": kernel, "gamma": 1.0, "degree": 2, "coef0": 0.0}
    if kernel != "polynomial":
        options = {"kernel": kernel}
    model = KernelEmbedding(8, method="exact", **options).fit(X)
    Y, T = model.embedding_.astype(float), model.transform(X).astype(float)
    off = np.linalg.norm(T @ T.T - Y @ Y.T, 2) / model.eigenvalues_[0]
    assert off <= 60 * 30 * np.finfo(dtype).eps


def test_a_model_of_exact_eigenvectors_of_float32_can_be_saved_and_refined(tmp_path):
    from sketchmeans import load, save

    X = np.random.default_rng(0).normal(size=(80, 5)).astype(np.float32)
    weights = np.random.default_rng(1).uniform(0.5, 2, 80)
    options = {"kernel": "rbf", "method": "exact", "random_state": 0}
    for n_refine in (0, 2):
        model = KernelKMeans(3, n_refine=n_refine, **options).fit(X, sample_weight=weights)
        assert model.stats_["precision"] == "float64"  # that of K, and of new points
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        save(model, tmp_path / f"{n_refine}.skm")
        again = load(tmp_path / f"{n_refine}.skm")
        np.testing.assert_array_equal(again.predict(X + 1), model.predict(X + 1))
        assert again.score(X) == model.score(X)


@pytest.mark.parametrize("count", [3, 12, 20])
def test_leading_eigenvectors_are_orthonormal_to_rounding(count, seeds):
    """Some eigenvalues are close, some equal: LAPACK's own vectors are 40 to 300 n·eps off."""
    for seed in seeds(20):
        random = np.random.default_rng(seed)
        Q, _ = np.linalg.qr(random.standard_normal((20, 20)))
        values = random.choice([1, 1 - 1e-3, 0.5, 1e-3, 1e-8, 0], 20)
        A = (Q * (values + 1e-6 * random.random(20))) @ Q.T
        A = (A + A.T) / 2
        found, V = leading_eigenvectors(A, count)
        unit = 20 * np.finfo(float).eps
        assert np.abs(V.T @ V - np.eye(count)).max() < unit
        assert np.abs(A @ V - V * found).max() < 10 * unit
        np.testing.assert_allclose(found, np.linalg.eigvalsh(A)[-count:], atol=10 * unit)
