import inspect
import os
import pickle
import re
import subprocess
import sys
import threading
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_array_api_input, parametrize_with_checks

from oracles import EXAMPLES, dense_kernel, objective
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.engine import engine_name
from sketchmeans.kernels import ALIASES, KERNELS, make_kernel
from sketchmeans.lowrank import METHODS
from sketchmeans.lowrank.nystrom import SAMPLINGS
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import SKETCHES

ESTIMATORS = [KernelEmbedding(), KernelKMeans(), KernelKMeans(kernel="rbf"), FullKernelKMeans()]
REASON = (
    "as for scikit-learn's KMeans: the random start, and here the sketch, differ when samples are "
    "repeated instead of weighted"
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": REASON,
    "check_sample_weight_equivalence_on_sparse_data": REASON,
}


SKIPPED = "check_array_api_input"
"""The one check that is skipped, for want of SCIPY_ARRAY_API before SciPy is imported."""
TIMES = int("expect_only_array_outputs" in inspect.signature(check_array_api_input).parameters)
"""How often it comes: older scikit-learn asks it of those alone that say they take such arrays."""


def name_of(check):
    return getattr(check, "func", check).__name__


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learns_checks_pass(estimator, check):
    try:
        check(estimator)
    except SkipTest:
        assert name_of(check) == SKIPPED
        raise


def test_scikit_learns_checks_pass_with_nothing_skipped():
    """In a process of its own, what is skipped above; whatever else were, would fail there."""
    code = (
        "import test_estimators as t\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "for given in t.ESTIMATORS:\n"
        "    every = list(estimator_checks_generator(given))\n"
        "    chosen = [one for one in every if t.name_of(one[1]) == t.SKIPPED]\n"
        "    for estimator, check in chosen:\n"
        "        check(estimator)\n"
        "    print(len(chosen), len(every))\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=os.path.dirname(__file__),
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    counts = [list(map(int, line.split())) for line in result.stdout.splitlines()]
    assert len(counts) == len(ESTIMATORS)
    for skipped, every in counts:
        assert skipped == TIMES
        assert every > 50


@pytest.fixture
def blobs():
    return make_blobs(500, 4, centers=5, cluster_std=2.0, random_state=1)[0]


OPTIONS = [
    {"kernel": "rbf"},
    {"kernel": "neighbors"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
    {"kernel": "laplacian"},
    {"kernel": "cosine"},
    {"kernel": "sigmoid", "gamma": 0.001},
    {"kernel": "rbf", "gamma": "4*median", "n_passes": 2},
    {"kernel": "rbf", "truncation": "early"},
    {"kernel": "rbf", "sketch": "gaussian"},
    {"kernel": "rbf", "sketch": "sparse", "rank": 5, "oversampling": 3},
    {"kernel": "rbf", "rank": 0.7},
    {"kernel": "rbf", "rank": 500},
]


@pytest.mark.filterwarnings("ignore::sketchmeans.lowrank.IndefiniteKernelWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_new_points_meet_the_map_of_the_training_data(blobs, options, dtype, make):
    X = make(blobs.astype(dtype))
    for n_refine in (0, 2):
        model = KernelKMeans(5, random_state=0, n_refine=n_refine, **options).fit(X)
        size = np.linalg.norm(model.embedding_)
        off = np.linalg.norm(model.transform(X) - model.embedding_) / size
        assert off < (1e-8 if dtype == np.float64 else 1e-3)
        agree = (model.predict(X) == model.labels_).mean()
        assert agree >= (1.0 if dtype == np.float64 else 0.999)
        tolerance = 1e-8 if dtype == np.float64 else 1e-3
        np.testing.assert_allclose(model.score(X), -model.inertia_, rtol=tolerance)
        assert model.embedding_.dtype == model.transform(X).dtype == dtype
        assert model.embedding_.shape == (500, model.rank_)
        assert model.cluster_centers_.shape == (5, model.rank_)


def test_inertia_is_the_objective_on_the_embedding_and_after_refinement_the_exact_one(blobs):
    model = KernelKMeans(5, random_state=0, kernel="rbf").fit(blobs)
    Y = model.embedding_
    np.testing.assert_allclose(model.inertia_, objective(Y @ Y.T, model.labels_), rtol=1e-6)
    refined = KernelKMeans(5, random_state=0, n_refine=50, kernel="rbf").fit(blobs)
    kernel = make_kernel("rbf", gamma=refined.gamma_, degree=3, coef0=1.0)
    K = dense_kernel(DataOperator(blobs, kernel))
    np.testing.assert_allclose(refined.inertia_, objective(K, refined.labels_), rtol=1e-10)
    assert refined.stats_["passes"] < 30  # it stops when the labels do


def test_precomputed_gives_what_the_kernel_gives(blobs):
    direct = KernelKMeans(5, kernel="rbf", gamma=0.05, random_state=0, n_refine=1).fit(blobs)
    K = dense_kernel(DataOperator(blobs, make_kernel("rbf", gamma=0.05, degree=3, coef0=1)))
    for matrix in (K, np.asfortranarray(K), sparse.csr_matrix(K), pd.DataFrame(K)):
        model = KernelKMeans(5, kernel="precomputed", random_state=0, n_refine=1, n_passes=2)
        model.fit(matrix)
        np.testing.assert_array_equal(model.labels_, direct.labels_)
        np.testing.assert_allclose(model.inertia_, direct.inertia_, rtol=1e-9)
        np.testing.assert_array_equal(model.predict(matrix), model.labels_)
        np.testing.assert_allclose(model.score(K), -model.inertia_, rtol=1e-8)
    with pytest.raises(ValueError, match=r"need κ\(x, x\), which rows of a precomputed kernel"):
        model.score(K[:10])


def test_a_memory_map_can_be_clustered(tmp_path, blobs):
    K = dense_kernel(DataOperator(blobs, EXAMPLES["rbf"]))
    np.save(tmp_path / "K.npy", K)
    mapped = np.load(tmp_path / "K.npy", mmap_mode="r")
    one = KernelKMeans(5, kernel="precomputed", random_state=0).fit(mapped)
    other = KernelKMeans(5, kernel="precomputed", random_state=0).fit(K)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def test_a_callable_gives_what_the_kernel_gives_and_gets_its_parameters(blobs):
    def kernel(A, B, scale):
        return np.exp(-scale * np.square(A[:, None] - B[None]).sum(axis=2))

    options = {"rank": 8, "random_state": 0, "n_refine": 1}
    one = KernelKMeans(5, kernel=kernel, kernel_params={"scale": 0.05}, **options).fit(blobs)
    other = KernelKMeans(5, kernel="rbf", gamma=0.05, **options).fit(blobs)
    np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)
    np.testing.assert_array_equal(one.predict(blobs), one.labels_)
    np.testing.assert_allclose(one.score(blobs), -one.inertia_, rtol=1e-8)


@pytest.mark.parametrize(("n_jobs", "most"), [(None, 1), (2, 2)])
def test_a_callable_is_called_from_one_thread_unless_n_jobs_is_set(blobs, n_jobs, most):
    inside, worst, lock = 0, 0, threading.Lock()
    barrier = threading.Event()

    def kernel(A, B):
        nonlocal inside, worst
        with lock:
            inside += 1
            worst = max(worst, inside)
        barrier.wait(0.002)
        with lock:
            inside -= 1
        return A @ B.T

    KernelKMeans(3, kernel=kernel, n_jobs=n_jobs, random_state=0).fit(blobs).predict(blobs)
    assert worst == most


def test_the_diagonal_of_a_callable_costs_no_entry_in_a_fit(blobs):
    asked = 0

    def kernel(A, B):
        nonlocal asked
        asked += len(A) * len(B)
        return A @ B.T

    model = KernelEmbedding(rank=4, kernel=kernel, n_passes=1, random_state=0).fit(blobs)
    assert asked == model.stats_["kernel_entries"] + model.stats_["audit_entries"]
    assert asked <= 500 * 501 / 2 + 500 * 32 + 2 * 32**2  # two small blocks are looked at


def test_weights_act_like_repetition_where_nothing_is_random(blobs):
    """With the width of the whole kernel nothing is sketched, and the two must agree."""
    random = np.random.default_rng(0)
    counts = random.integers(0, 4, size=60)
    X = blobs[:60]
    options = {"kernel": "rbf", "gamma": 0.05, "rank": 10, "oversampling": 500}
    weighted = KernelEmbedding(**options).fit(X, sample_weight=counts)
    repeated = KernelEmbedding(**options).fit(np.repeat(X, counts, axis=0))
    one, other = weighted.transform(X), repeated.transform(X)
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-10)
    np.testing.assert_allclose(weighted.embedding_, one, atol=1e-10)
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-10)


@pytest.mark.parametrize("n_refine", [0, 2])
def test_weighted_labels_minimise_the_weighted_objective(blobs, n_refine):
    d = np.random.default_rng(0).uniform(0, 3, size=500)
    d[:20] = 0
    options = {"kernel": "rbf", "gamma": 0.02, "n_refine": n_refine, "random_state": 0}
    model = KernelKMeans(5, **options).fit(blobs, sample_weight=d)
    K = dense_kernel(DataOperator(blobs, make_kernel("rbf", gamma=0.02, degree=3, coef0=1)))
    plain = KernelKMeans(5, **options).fit(blobs)
    assert objective(K, model.labels_, d) <= 1.01 * objective(K, plain.labels_, d)
    np.testing.assert_array_equal(model.predict(blobs), model.labels_)
    np.testing.assert_allclose(model.score(blobs, sample_weight=d), -model.inertia_, rtol=1e-8)


def test_frames_go_in_and_come_out(blobs):
    names = ["a", "b", "c", "d"]
    for frame, kind in [
        (pd.DataFrame(blobs, columns=names), "pandas"),
        (pl.DataFrame(blobs, schema=names), "polars"),
    ]:
        model = KernelKMeans(5, rank=3, random_state=0, kernel="rbf").set_output(transform=kind)
        out = model.fit_transform(frame)
        assert type(out) is type(frame)
        assert list(out.columns) == [f"kernelkmeans{i}" for i in range(3)]
        assert list(model.feature_names_in_) == names
        assert isinstance(model.embedding_, np.ndarray)
        plain = KernelKMeans(5, rank=3, random_state=0, kernel="rbf").fit(blobs)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(blobs, columns=list("wxyz")))


def test_stats_tell_what_the_fit_cost(blobs):
    model = KernelKMeans(5, n_passes=2, n_refine=1, n_jobs=2, random_state=0, kernel="rbf").fit(
        blobs
    )
    stats = model.stats_
    assert stats["passes"] == 3
    diagonal = {"native": 2 * 192**2 + 116**2, "numpy": 7 * 64**2 + 52**2}
    one = (500 * 500 + diagonal[engine_name()]) // 2
    assert stats["kernel_entries"] == 3 * one
    # Rows of two passes, and for the embedding and the refinement 32 rows against eight blocks.
    assert 2 * 32 * 500 < stats["audit_entries"] <= 2 * 32 * 500 + 2 * 2 * 32 * 8 * 32
    stages = {"prepare", "kernel passes", "recover", "embed", "K-means", "refine", "certify"}
    assert set(stats["seconds"]) == stages
    assert min(stats["seconds"].values()) > 0
    assert stats["sketch_bytes"] == 500 * model.width_ * 8
    assert (stats["engine"], stats["precision"], stats["n_threads"]) == (
        engine_name(),
        "float64",
        2,
    )


def test_few_monomials_cost_no_kernel_entry(blobs):
    model = KernelKMeans(5, kernel="polynomial", degree=2, random_state=0).fit(blobs)
    assert model.stats_["engine"] == "feature map"
    assert model.stats_["kernel_entries"] == 0


def test_precision_follows_the_data_and_their_spread(blobs):
    def precision(X, **options):
        return KernelEmbedding(rank=3, **options).fit(X).stats_["precision"]

    single = blobs.astype(np.float32)
    assert precision(blobs) == "float64"
    assert precision(single) == "float32"
    assert precision(single + np.float32(1e3), gamma=0.01) == "float32"  # the spread is what counts
    assert precision(single, gamma=100.0) == "float64"
    assert precision(single, precision="float64") == "float64"
    assert precision(blobs, precision="float32") == "float32"
    assert precision(single * np.float32(1e10), kernel="laplacian") == "float32"
    wide = np.random.default_rng(0).normal(size=(500, 300)).astype(np.float32)
    assert precision(wide, kernel="linear") == "float32"
    assert precision(wide * np.float32(1e10), kernel="linear") == "float64"


def test_gamma_comes_from_the_data(blobs):
    def gamma(X=blobs, **options):
        return KernelEmbedding(rank=3, random_state=0, **options).fit(X).gamma_

    pairs = np.triu_indices(500, 1)
    squared = np.square(blobs[:, None] - blobs[None]).sum(axis=2)[pairs]
    manhattan = np.abs(blobs[:, None] - blobs[None]).sum(axis=2)[pairs]
    norms = np.square(blobs).sum(axis=1)
    np.testing.assert_allclose(gamma(), 1 / np.median(squared))
    np.testing.assert_allclose(gamma(sparse.csr_matrix(blobs)), 1 / np.median(squared))
    np.testing.assert_allclose(gamma(gamma="4*median"), 4 / np.median(squared))
    np.testing.assert_allclose(gamma(kernel="laplacian"), 1 / np.median(manhattan))
    np.testing.assert_allclose(gamma(kernel="poly"), 1 / np.median(norms))
    np.testing.assert_allclose(gamma(gamma="scale"), 1 / (4 * blobs.var()))
    np.testing.assert_allclose(
        gamma(sparse.csr_matrix(blobs), gamma="scale"), 1 / (4 * blobs.var())
    )
    assert gamma(gamma=0.3) == 0.3
    assert gamma(kernel="linear") is None
    assert gamma(np.ones((50, 2))) == 1
    mostly = np.zeros((100, 2))
    mostly[:10] = 3
    assert gamma(mostly) == 1 / 18
    big = np.random.default_rng(0).normal(size=(5000, 3))
    true = np.median(np.square(big[:, None, :] - big[None, ::7]).sum(axis=2))
    np.testing.assert_allclose(gamma(big), 1 / true, rtol=0.1)


def test_rank_may_be_a_fraction_of_the_trace(blobs):
    for fraction in (0.3, 0.8, 0.99):
        model = KernelEmbedding(rank=fraction, random_state=0).fit(blobs)
        held = np.cumsum(model.eigenvalues_) / 500
        assert held[-1] >= fraction
        assert model.rank_ == 1 or held[-2] < fraction
    wide = KernelEmbedding(rank=0.999, gamma=1.0, random_state=0).fit(blobs)
    assert wide.stats_["passes"] > 1
    assert wide.width_ > 36


def test_a_fraction_that_no_narrow_sketch_holds_is_refused(monkeypatch):
    monkeypatch.setattr("sketchmeans.estimators.sizing.WIDEST", 100)
    X = np.random.default_rng(0).normal(size=(300, 5))
    with pytest.raises(ValueError, match=r"rank=0.9 asks for 90.0% .* 100 columns holds 33"):
        KernelEmbedding(rank=0.9, gamma=1e6, random_state=0).fit(X)


def test_defaults_of_rank_and_width(blobs):
    model = KernelKMeans(5, random_state=0, kernel="rbf").fit(blobs)
    assert (model.rank_, model.width_) == (15, 30)
    assert KernelEmbedding(random_state=0).fit(blobs).rank_ == 18
    assert (
        KernelKMeans(5, rank=7, oversampling=4, random_state=0, kernel="rbf").fit(blobs).width_
        == 11
    )
    small = KernelKMeans(5, random_state=0, kernel="rbf").fit(blobs[:12])
    assert small.rank_ <= 12
    assert small.width_ == 12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_data_can_be_clustered(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = KernelKMeans(n, random_state=0, kernel="rbf").fit(X)
    assert sorted(model.labels_) == list(range(n))


@pytest.mark.parametrize("method", METHODS)
def test_a_model_of_a_zero_kernel_predicts(method):
    model = KernelKMeans(1, kernel="linear", method=method).fit(np.zeros((9, 2)))
    np.testing.assert_array_equal(model.predict(np.ones((3, 2))), [0, 0, 0])
    np.testing.assert_array_equal(model.transform(np.ones((3, 2))), np.zeros((3, 1)))


def test_a_zero_kernel_is_one_cluster():
    with pytest.warns(ConvergenceWarning, match="all 30 samples are equal: they are one cluster"):
        model = KernelKMeans(2, kernel="linear", random_state=0).fit(np.zeros((30, 3)))
    assert (model.labels_ == model.labels_[0]).all()
    assert (model.embedding_ == 0).all()
    assert (model.transform(np.zeros((4, 3))) == 0).all()


def test_more_clusters_than_distinct_points_give_a_warning_of_scikit_learns_kind():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 10, axis=0)
    for make in (np.asarray, sparse.csr_matrix, pd.DataFrame, list):
        with pytest.warns(ConvergenceWarning, match=r"the 30 samples have 3 distinct rows, and"):
            KernelKMeans(5, random_state=0, kernel="rbf").fit(make(X))


def test_models_survive_pickle_and_clone(blobs):
    model = KernelKMeans(5, n_passes=2, n_refine=1, random_state=0, kernel="rbf").fit(blobs)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(blobs), model.labels_)
    assert not hasattr(clone(model), "labels_")


def test_the_estimators_compose(blobs):
    pipe = make_pipeline(StandardScaler(), KernelEmbedding(rank=5, random_state=0))
    assert pipe.fit_transform(blobs).shape == (500, 5)
    search = GridSearchCV(
        KernelKMeans(random_state=0, n_init=2, kernel="rbf"), {"n_clusters": [2, 5]}, cv=2, n_jobs=2
    ).fit(blobs)
    assert search.best_params_ == {"n_clusters": 5}


def test_an_unfitted_model_says_so(blobs):
    for method in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError):
            getattr(KernelKMeans(kernel="rbf"), method)(blobs)


def test_fit_leaves_the_data_alone(blobs):
    for X in (blobs.copy(), blobs.astype(np.float32)):
        X.flags.writeable = False
        before = X.copy()
        model = KernelKMeans(5, n_passes=2, n_refine=1, random_state=0, kernel="rbf").fit(X)
        np.testing.assert_array_equal(X, before)
        assert np.shares_memory(model._new_points.points.X, X)


def test_numbers_written_as_text_are_taken_as_numbers(blobs):
    plain = KernelKMeans(5, random_state=0, kernel="rbf").fit(blobs)
    for text in (blobs.astype(str), blobs.astype(str).astype(object)):
        np.testing.assert_array_equal(
            KernelKMeans(5, random_state=0, kernel="rbf").fit(text).labels_, plain.labels_
        )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine"])
def test_a_sparse_matrix_with_split_entries_is_read_right_and_left_alone(kernel, blobs):
    dense = np.where(np.abs(blobs) < 2, 0, blobs)[:60]
    half = sparse.csr_matrix(dense / 2)
    split = sparse.csr_matrix(
        (np.repeat(half.data, 2), np.repeat(half.indices, 2), half.indptr * 2), shape=half.shape
    )
    data = split.data.copy()
    one = KernelEmbedding(rank=5, kernel=kernel, random_state=0).fit(split)
    other = KernelEmbedding(rank=5, kernel=kernel, random_state=0).fit(sparse.csr_matrix(dense))
    np.testing.assert_allclose(one.embedding_, other.embedding_, atol=1e-9)
    np.testing.assert_array_equal(split.data, data)


def test_nearly_constant_kernels_are_not_left_to_float32(blobs):
    X = blobs.astype(np.float32)
    for options in (
        {"kernel": "rbf", "gamma": "1e-7*median"},
        {"kernel": "cosine"},
        {"kernel": "linear"},
    ):
        offset = 0 if "gamma" in options else 3000
        wide = np.tile(X, (1, 100)) + np.float32(offset)
        model = KernelKMeans(5, random_state=0, **options).fit(wide)
        assert model.stats_["precision"] == "float64"
        assert (model.predict(wide) == model.labels_).mean() >= 0.999


def test_one_large_sparse_row_does_not_decide_gamma(blobs):
    X = blobs.copy()
    X[7] = 1e8
    dense = KernelEmbedding(rank=3, random_state=0).fit(X).gamma_
    thin = KernelEmbedding(rank=3, random_state=0).fit(sparse.csr_matrix(X)).gamma_
    np.testing.assert_allclose(thin, dense, rtol=1e-6)


def test_a_fraction_of_a_zero_kernel_is_all_of_it():
    model = KernelEmbedding(rank=0.5, kernel="linear", random_state=0).fit(np.zeros((50, 3)))
    assert (model.embedding_ == 0).all()


def test_samples_of_weight_zero_are_counted_in_the_entries(blobs):
    asked = 0

    def kernel(A, B):
        nonlocal asked
        asked += len(A) * len(B)
        return A @ B.T

    d = np.ones(500)
    d[:300] = 0
    model = KernelEmbedding(rank=3, kernel=kernel, random_state=0).fit(blobs, sample_weight=d)
    assert asked == model.stats_["kernel_entries"] + model.stats_["audit_entries"]


def test_prediction_with_a_feature_map_needs_no_kernel_entry(blobs):
    model = KernelKMeans(5, kernel="polynomial", degree=2, random_state=0).fit(blobs)
    tiles = KernelKMeans(5, kernel="polynomial", degree=2, random_state=0, precision="float32")
    assert tiles.fit(blobs).stats_["engine"] == engine_name()
    cross = model._new_points.against(blobs)
    M = np.random.default_rng(0).normal(size=(500, 3))
    K = (model.gamma_ * blobs @ blobs.T + 1) ** 2
    np.testing.assert_allclose(cross.multiply(M), K @ M, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("cls", [KernelEmbedding, KernelKMeans, FullKernelKMeans])
def test_help_describes_every_parameter_kernel_and_method(cls):
    for name in inspect.signature(cls).parameters:
        described = rf"^(\w+, )*{name}(, \w+)*( : .*)?\n {{4}}\S"
        assert re.search(described, inspect.getdoc(cls), re.MULTILINE), name
    shown = set(re.findall(r'"([\w-]+)"', cls.__doc__))
    assert {*KERNELS, *ALIASES, "precomputed"} <= shown
    if cls is not FullKernelKMeans:
        assert {*METHODS, *SKETCHES, *SAMPLINGS} <= shown
