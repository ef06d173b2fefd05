"""Landmarks whose columns are streamed: the same as if they were stored, linear in n."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from oracles import EXAMPLES, dense_kernel, objective
from sketchmeans import KernelEmbedding, KernelKMeans, load, save
from sketchmeans.certificate.objective import cluster_sums
from sketchmeans.engine.run import Run
from sketchmeans.estimators.deciding import prefers_landmarks
from sketchmeans.estimators.landmark_lloyd import refine_by_landmarks
from sketchmeans.kernels import Gaussian
from sketchmeans.lowrank import METHODS, Request, approximate
from sketchmeans.lowrank.nystrom import nystrom
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    PrecomputedOperator,
)

N, M, RANK = 400, 40, 5


@pytest.fixture(params=["streamed", "held"])
def kept(request, monkeypatch):
    """Columns that are streamed, as for many samples, and columns that are held."""
    if request.param == "streamed":
        monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)
    return request.param


@pytest.fixture
def streamed(monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)


def data(dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 5)) + 3 * random.integers(0, 2, (N, 1))
    return X.astype(dtype)


def operators(weights=None):
    """An operator of every kind that has landmarks."""
    X = data()
    K = EXAMPLES["rbf"].of(cdist(X, X, "sqeuclidean"))
    thin = sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))

    def function(A, B):
        return np.exp(-0.1 * cdist(A, B, "cityblock"))

    return {
        **{name: DataOperator(X, kernel, weights=weights) for name, kernel in EXAMPLES.items()},
        "sparse": DataOperator(thin, EXAMPLES["rbf"], weights=weights),
        "feature map": FeatureMapOperator(X, EXAMPLES["polynomial"], weights=weights),
        "callable": CallableOperator(X, function, weights=weights),
        "precomputed": PrecomputedOperator(K, weights=weights),
    }


KINDS = [name for name in operators() if name != "sigmoid"]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_factor_is_the_leading_part_of_the_nystrom_matrix(kept, kind, weighted):
    weights = np.random.default_rng(1).uniform(0.2, 3, N) if weighted else None
    operator = operators(weights)[kind]
    low = nystrom(operator, columns=M, rank=RANK, seed=3, sampling="uniform")
    assert low.factor.shape == (N, RANK)
    assert (low.whole.operator.held is None) == (kept == "streamed")
    indices = np.sort(np.random.default_rng(3).choice(N, M, replace=False))
    K = dense_kernel(operators()[kind])
    K = K if weights is None else K * np.sqrt(np.outer(weights, weights))
    values, V = np.linalg.eigh(K[np.ix_(indices, indices)])
    keep = values > 1e-11 * values[-1]
    F = K[:, indices] @ (V[:, keep] / np.sqrt(values[keep]))
    U, sizes, _ = np.linalg.svd(F, full_matrices=False)
    size = sizes[0] ** 2
    best = (U[:, :RANK] * sizes[:RANK] ** 2) @ U[:, :RANK].T
    np.testing.assert_allclose(low.factor @ low.factor.T, best, atol=1e-7 * size)
    np.testing.assert_allclose(low.leading, sizes[:RANK] ** 2, rtol=1e-7)
    gram = low.whole.gram
    count = len(gram.squared)
    np.testing.assert_allclose(np.diag(gram.squared), sizes[:count] ** 2, atol=1e-7 * size)
    u = np.ones(N) if weights is None else np.sqrt(weights)
    u = u / np.linalg.norm(u)
    centred = np.linalg.eigvalsh(gram.centred)[::-1]
    truth = np.linalg.eigvalsh(F.T @ F - np.outer(F.T @ u, F.T @ u))[::-1]
    np.testing.assert_allclose(centred[:8], truth[:8], atol=1e-7 * size)


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].landmarks])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_are_streamed_give_what_held_ones_give(kind, method, monkeypatch):
    ask = Request(rank=RANK, width=M, seed=0)
    held = approximate(operators()[kind], method, ask)
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)
    streamed = approximate(operators()[kind], method, ask)
    size = held.leading[0]
    F, Y = held.factor[:, :RANK], streamed.factor
    # Pivots come from all samples here, which are fewer than would be drawn.
    np.testing.assert_allclose(Y @ Y.T, F @ F.T, atol=1e-6 * size)


def test_a_large_nearly_constant_kernel_keeps_its_centred_gram_matrix(streamed):
    """FᵀF − (Fᵀu)(Fᵀu)ᵀ would have no digit left."""
    X = data()
    operator = DataOperator(X, Gaussian(1e-9))
    low = nystrom(operator, columns=M, rank=5, seed=0)
    squares = cdist(X, X, "sqeuclidean")
    J = np.eye(N) - 1 / N
    K = J @ (-1e-9 * squares + 0.5e-18 * squares**2) @ J  # e^t − 1, centred: ones vanish
    truth = np.linalg.eigvalsh(K)[::-1][:4]
    found = np.linalg.eigvalsh(low.whole.gram.centred)[::-1][:4]
    np.testing.assert_allclose(found, truth, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_iterations_never_raise_the_upper_bound_and_it_is_one(kept, dtype, weighted):
    X = data(dtype)
    weights = np.random.default_rng(2).integers(0, 4, N) * 1.0 if weighted else None
    operator = DataOperator(X, Gaussian(0.2), weights=weights)
    low = nystrom(operator, columns=M, rank=RANK, seed=0)
    labels = np.random.default_rng(0).integers(0, 4, N).astype(np.int32)
    diagonal = operator.unweighted().diagonal()
    found = refine_by_landmarks(
        low.whole.operator, labels, 4, n_iter=30, diagonal=diagonal, weights=weights
    )
    assert (np.diff(found.objectives) <= 1e-6 * found.objectives[0]).all()
    K = Gaussian(0.2).of(cdist(X.astype(float), X.astype(float), "sqeuclidean"))
    exact = objective(K, found.labels, weights)
    assert exact <= found.inertia * (1 + 1e-6)
    again = cluster_sums(low.whole.operator, found.labels, weights)
    np.testing.assert_allclose(found.sums, again, atol=1e-6 * np.abs(again).max())
    stopped = len(found.objectives)
    assert stopped < 30  # nothing moves any more
    assert found.cost.entries in (0, (stopped + 1) * N * M)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["points", "sparse", "callable", "precomputed"])
def test_predictions_take_an_entry_per_landmark_and_agree_with_the_fit(kept, dtype, kind, tmp_path):
    X = data(dtype)
    asked = 0

    def kernel(A, B):
        nonlocal asked
        asked += len(A) * len(B)
        return np.exp(-0.1 * cdist(A, B, "sqeuclidean"))

    options = {
        "points": {"kernel": "rbf"},
        "sparse": {"kernel": "rbf"},
        "callable": {"kernel": kernel},
    }
    options["precomputed"] = {"kernel": "precomputed"}
    X = sparse.csr_matrix(X) if kind == "sparse" else X
    X = kernel(X, X) if kind == "precomputed" else X
    model = KernelKMeans(
        3, method="nystrom", n_landmarks=M, n_refine=4, random_state=0, **options[kind]
    ).fit(X)
    asked = 0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert asked == (N * M if kind == "callable" else 0)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-5)
    assert "upper bound" in model.stats_["objective"]
    if kind != "callable":
        save(model, tmp_path / "model.skm")
        loaded = load(tmp_path / "model.skm")
        np.testing.assert_array_equal(loaded.predict(X), model.labels_)
        assert loaded.score(X) == model.score(X)
        samples = N * X.shape[1] * X.dtype.itemsize
        if kind == "points":
            assert loaded._new_points.points.X.shape == (M, 5)
        assert samples > 0


def same_bits(models):
    names = ("labels_", "embedding_", "cluster_centers_", "eigenvalues_", "inertia_")
    for model in models[1:]:
        for name in names:
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name))
        assert model.certificate_ == models[0].certificate_


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].landmarks])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_landmarks_have_the_same_bits_on_any_threads_and_under_a_limit(kept, method, dtype, make):
    X = np.random.default_rng(0).normal(size=(5000, 6)).astype(dtype)
    X[np.abs(X) < 0.3] = 0
    X = make(X)
    options = {
        "kernel": "rbf",
        "method": method,
        "n_landmarks": 60,
        "rank": 8,
        "n_init": 2,
        "random_state": 0,
    }
    models = [KernelKMeans(4, n_jobs=jobs, **options).fit(X) for jobs in (1, 3)]
    with pytest.raises(MemoryError, match="landmarks") as refused:
        KernelKMeans(4, n_jobs=8, memory_limit=1000, **options).fit(X)
    needed, unit = str(refused.value).split(" need ")[1].split(" at the least")[0].split()
    limit = f"{1.01 * float(needed)}{unit}"
    models.append(KernelKMeans(4, n_jobs=8, memory_limit=limit, **options).fit(X))
    same_bits(models)


def test_matrices_of_landmarks_that_do_not_fit_the_limit_are_refused_with_numbers():
    X = np.zeros((5000, 2), np.float32)
    X[:, 0] = np.arange(5000)
    with pytest.raises(MemoryError, match=r"2000 landmarks need .*2000 × 2000 matrices of 32 MB"):
        KernelEmbedding(5, method="nystrom", n_landmarks=2000, memory_limit="60MB").fit(X)


HARD = {
    "fewer samples than landmarks": np.random.default_rng(0).normal(size=(15, 3)),
    "all rows equal": np.ones((60, 3)),
    "two distinct rows": np.repeat(np.eye(2, 3), 30, axis=0),
    "one sample": np.ones((1, 3)),
    "duplicates": np.repeat(np.random.default_rng(0).normal(size=(12, 3)), 5, axis=0),
}


@pytest.mark.parametrize("sketch", METHODS["nystrom"].sketches)
@pytest.mark.parametrize("name", HARD)
def test_hard_data_pass_through_landmarks(kept, name, sketch):
    X = HARD[name]
    k = min(2, len(np.unique(X, axis=0)))
    model = KernelKMeans(
        k,
        method="nystrom",
        n_landmarks=30,
        rank=min(4, len(X)),
        sketch=sketch,
        random_state=0,
        kernel="rbf",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    K = Gaussian(model.gamma_).of(cdist(X, X, "sqeuclidean"))
    exact = objective(K, model.labels_)
    certificate = model.certificate_
    slack = 1e-9 * len(X)
    assert certificate.objective_lower - slack <= exact <= certificate.objective_upper + slack


def test_samples_of_weight_zero_are_labelled_and_count_nothing(kept):
    X = data()
    weights = np.random.default_rng(5).integers(0, 2, N) * 1.0
    options = {
        "kernel": "rbf",
        "method": "nystrom",
        "n_landmarks": M,
        "gamma": 0.2,
        "random_state": 0,
    }
    model = KernelKMeans(3, **options).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    few = KernelKMeans(3, **options).fit(X[weights > 0])
    assert model.inertia_ == pytest.approx(few.inertia_, rel=0.02)


def test_the_method_follows_from_samples_features_clusters_and_kernel_alone():
    random = np.random.default_rng(0)
    assert not prefers_landmarks(2000, 20, 8)
    assert prefers_landmarks(50_000, 20, 8)
    X = random.normal(size=(30_000, 3)).astype(np.float32)
    for options in ({"n_jobs": 1}, {"memory_limit": "1GB"}, {"rank": 5}, {"truncation": "early"}):
        model = KernelEmbedding(random_state=0, **options).fit(X)
        assert model.stats_["method"] == "nystrom"
        assert "linear in n" in model.stats_["why"]
    for options in ({"kernel": "linear"}, {"kernel": "polynomial", "degree": 2}):
        model = KernelEmbedding(random_state=0, **options).fit(X)
        assert model.stats_["method"] == "one-pass"
        assert "feature map" in model.stats_["why"]
    few = X[:300]
    chosen = KernelEmbedding(random_state=0).fit(few)
    assert (chosen.stats_["method"], chosen.stats_["passes"]) == ("one-pass", 2)
    for options in ({"n_landmarks": 50}, {"sketch": "leverage"}):
        model = KernelEmbedding(random_state=0, **options).fit(few)
        assert model.stats_["method"] == "nystrom"
    for options in ({"n_passes": 1}, {"oversampling": 4}, {"sketch": "gaussian"}):
        model = KernelEmbedding(random_state=0, **options).fit(few)
        assert model.stats_["method"] == "one-pass"
    K = np.exp(-cdist(few, few, "sqeuclidean"))
    given = KernelEmbedding(kernel="precomputed", random_state=0).fit(K)
    assert (given.stats_["method"], given.stats_["passes"]) == ("one-pass", 2)


def test_one_pass_named_is_the_paper_as_before():
    X = data()
    model = KernelKMeans(3, method="one-pass", random_state=0, kernel="rbf").fit(X)
    assert model.stats_["passes"] == 1
    assert model.stats_["objective"] == "of the embedding"
    assert model.n_landmarks_ is None


def test_more_landmarks_than_samples_are_all_samples():
    X = data()[:50]
    model = KernelEmbedding(5, method="nystrom", n_landmarks=10**6, random_state=0).fit(X)
    assert model.n_landmarks_ == 50
    exact = KernelEmbedding(5, method="exact", random_state=0).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)


def test_the_peak_of_a_streamed_fit_is_far_below_its_columns():
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(60_000, 10)).astype(np.float32)
    options = {
        "kernel": "rbf",
        "rank": 12,
        "n_landmarks": 400,
        "n_init": 1,
        "n_jobs": 2,
        "random_state": 0,
    }
    KernelKMeans(4, **options).fit(X[:1000])
    tracemalloc.start()
    model = KernelKMeans(4, **options).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= model.stats_["planned_bytes"]
    assert peak < 0.5 * len(X) * 400 * 8
    assert model.width_ == 12


def test_a_share_of_the_trace_cuts_the_embedding_and_adds_landmarks(kept):
    X = data()
    model = KernelEmbedding(0.8, method="nystrom", gamma=0.3, random_state=0).fit(X)
    held = model.eigenvalues_.sum() / N
    assert held + 1e-9 >= 0.8
    assert held - model.eigenvalues_[-1] / N < 0.8
    with pytest.raises(ValueError, match=r"12 landmarks hold .* Raise n_landmarks"):
        KernelEmbedding(0.9, method="nystrom", gamma=0.3, n_landmarks=12).fit(X)


def test_streams_run_on_any_executor_in_the_order_of_blocks(streamed):
    operator = DataOperator(np.random.default_rng(0).normal(size=(70_000, 3)), Gaussian(0.3))
    features = nystrom(operator, columns=30, rank=4, seed=0, run=Run(2)).whole.operator
    near = np.zeros(features.map.count)
    first = features.gram(near, Run(1))
    for threads in (2, 5):
        other = features.gram(near, Run(threads))
        np.testing.assert_array_equal(first.squared, other.squared)
        np.testing.assert_array_equal(first.centred, other.centred)


def test_few_distinct_rows_are_the_landmarks_dense_or_sparse():
    X = np.zeros((600, 40))
    X[:500, 0] = 1
    X[np.arange(500, 600), 1 + np.arange(100) % 5] = 1
    options = {
        "kernel": "rbf",
        "gamma": 1.0,
        "method": "nystrom",
        "n_landmarks": 50,
        "random_state": 0,
    }
    for rows in (X, sparse.csr_matrix(X)):
        model = KernelKMeans(6, **options).fit(rows)
        assert model.n_landmarks_ == 6
        assert model.inertia_ < 1e-9
        assert len(np.unique(model.labels_)) == 6


@pytest.mark.parametrize("sketch", METHODS["nystrom"].sketches)
def test_no_landmark_is_spent_on_a_sample_that_counts_nothing(kept, sketch):
    X = data()[:200]
    weights = np.zeros(200)
    weights[np.random.default_rng(0).choice(200, 30, replace=False)] = 1
    options = {
        "kernel": "rbf",
        "method": "nystrom",
        "n_landmarks": 30,
        "rank": 5,
        "gamma": 2.0,
        "random_state": 0,
    }
    model = KernelEmbedding(sketch=sketch, **options).fit(X, sample_weight=weights)
    counted = KernelEmbedding(5, method="exact", gamma=2.0).fit(X[weights > 0])
    np.testing.assert_allclose(model.eigenvalues_, counted.eigenvalues_, rtol=1e-9)


def test_wide_sparse_rows_are_not_reckoned_as_if_they_became_dense():
    random = np.random.default_rng(0)
    places = np.repeat(np.arange(3000), 90), random.integers(0, 300_000, 270_000)
    X = sparse.csr_matrix((random.random(270_000), places), shape=(3000, 300_000))
    options = {
        "kernel": "rbf",
        "n_init": 1,
        "n_jobs": 1,
        "memory_limit": "100MB",
        "random_state": 0,
    }
    model = KernelKMeans(4, method="nystrom", **options).fit(X)
    assert model.stats_["planned_bytes"] < 1e8


def test_samples_at_equal_distance_keep_their_labels_in_predict():
    random = np.random.default_rng(1)
    X = random.normal(size=(90, 4)) + 5 * random.integers(0, 3, (90, 1))
    X = np.vstack([X, np.full((1, 4), 1e9)])
    options = {
        "kernel": "rbf",
        "gamma": 1e-12,
        "method": "nystrom",
        "n_landmarks": 91,
        "random_state": 0,
    }
    model = KernelKMeans(4, **options).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
