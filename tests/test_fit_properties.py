"""Properties of fits, files and outputs that hold for whatever Hypothesis draws."""

import os
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from drawn import (
    dtypes,
    fitted,
    kernels,
    methods,
    positive_kernels,
    property_test,
    quiet,
    samples,
    seeds,
    weights_of,
)
from oracles import EXAMPLES, dense_kernel, objective
from sketchmeans import FullKernelKMeans, KernelEmbedding, load, save
from sketchmeans.atomic import whole_file
from sketchmeans.io import FORMATS, read_table
from sketchmeans.kernels import make_kernel
from sketchmeans.operators import DataOperator
from tables import write_numbers


def kernel_matrix(model, X):
    options = {"degree": model.degree, "coef0": model.coef0}
    kernel = make_kernel(model.kernel, gamma=model.gamma_, **options)
    return dense_kernel(DataOperator(X.astype(float), kernel))


def slack_of(model, X, K, weights=None):
    """What rounding may add to an objective; distances of tiles have that of the squares."""
    far = model.gamma_ * np.square(X).sum(axis=1).max() if model.kernel == "rbf" else 0.0
    trace = float(np.diag(K) @ (np.ones(len(X)) if weights is None else weights))
    return (1e-12 + 8 * np.finfo(float).eps * far) * trace


def same_fit(one, two):
    """Whether two fits have the same bits."""
    names = ("labels_", "embedding_", "inertia_", "cluster_centers_", "eigenvalues_")
    return (
        all(
            np.asarray(getattr(one, name)).tobytes() == np.asarray(getattr(two, name)).tobytes()
            for name in names
            if hasattr(one, name)
        )
        and one.certificate_ == two.certificate_
    )


@property_test
@given(samples(least=3), kernels, methods, dtypes, st.data())
def test_predict_gives_the_training_rows_a_cluster_as_near_as_theirs(
    X, kernel, method, dtype, data
):
    X = X.astype(dtype)
    k = data.draw(st.integers(1, min(3, len(X))))
    model = fitted(X, k, kernel=kernel, method=method, n_refine=0)
    predicted = model.predict(X)
    Y, centers = model.embedding_.astype(float), model.cluster_centers_.astype(float)
    squares = np.square(Y[:, None] - centers).sum(axis=2)
    rows = np.arange(len(X))
    size = float(np.square(Y).sum(axis=1).max())
    tolerance = 1e-9 if model.stats_["precision"] == "float64" and dtype == np.float64 else 1e-3
    assert (squares[rows, predicted] <= squares[rows, model.labels_] + tolerance * size).all()


@property_test
@given(samples(least=3), positive_kernels, st.data())
def test_equal_rows_are_predicted_alike(X, kernel, data):
    X = np.concatenate([X, X])
    method = data.draw(methods)
    model = fitted(X, 2, kernel=kernel, method=method)
    half = len(X) // 2
    found = model.predict(X)
    np.testing.assert_array_equal(found[:half], found[half:])


@property_test
@given(samples(least=3), positive_kernels, st.data())
def test_lloyd_never_raises_the_objective_that_it_states(X, kernel, data):
    k = data.draw(st.integers(1, min(4, len(X))))
    weights = data.draw(weights_of(len(X)))
    if weights is not None and (weights > 0).sum() < k:
        weights = None
    options = {"kernel": kernel, "n_init": 1, "n_jobs": 1, "random_state": 0}
    init = data.draw(st.sampled_from(["k-means++", "random", "sketch"]))
    model = quiet(FullKernelKMeans(k, init=init, **options).fit, X, sample_weight=weights)
    path = np.array(model.objectives_)
    K = kernel_matrix(model, X)
    slack = slack_of(model, X, K, weights)
    assert (np.diff(path) <= slack).all()
    assert objective(K, model.labels_, weights) <= path[-1] + slack


@property_test
@given(samples(least=4), positive_kernels, st.data())
def test_refinement_never_raises_the_objective(X, kernel, data):
    k = data.draw(st.integers(2, 3))
    method = data.draw(st.sampled_from(["one-pass", "exact"]))
    before, after = (fitted(X, k, kernel=kernel, method=method, n_refine=count) for count in (0, 3))
    K = kernel_matrix(before, X)
    slack = slack_of(after, X, K)
    assert objective(K, after.labels_) <= objective(K, before.labels_) + slack
    assert objective(K, after.labels_) <= after.inertia_ + slack


@property_test
@given(samples(least=3), positive_kernels, seeds)
def test_the_exact_method_does_not_see_the_order_of_samples(X, kernel, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    options = {"kernel": kernel, "method": "exact", "rank": 2, "n_jobs": 1}
    if kernel not in ("linear", "cosine"):
        options["gamma"] = 0.3
    one, two = (quiet(KernelEmbedding(**options).fit, rows) for rows in (X, X[order]))
    size = float(one.eigenvalues_[0])
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, atol=1e-10 * size)
    gap = np.diff(one._sketch_eigenvalues[::-1])
    if len(one._sketch_eigenvalues) == 2 and (gap > 1e-3 * size).all():
        whole = np.linalg.eigvalsh(kernel_matrix(one, X))[::-1]
        if len(whole) == 2 or whole[1] - whole[2] > 1e-3 * size:
            Y, Z = one.embedding_[order], two.embedding_
            np.testing.assert_allclose(Y @ Y.T, Z @ Z.T, atol=1e-9 * size)


@property_test
@given(samples(least=3), kernels, methods, st.integers(2, 4))
def test_any_number_of_threads_gives_the_same_bits(X, kernel, method, n_jobs):
    one, other = (fitted(X, 2, kernel=kernel, method=method, n_jobs=jobs) for jobs in (1, n_jobs))
    assert same_fit(one, other)


@property_test
@given(samples(least=3), methods, st.sampled_from(["30MB", "80MB"]))
def test_a_memory_limit_changes_no_bit(X, method, limit):
    one, other = (fitted(X, 2, method=method, memory_limit=given) for given in (None, limit))
    assert same_fit(one, other)


@property_test
@given(samples(least=3), kernels, methods, st.sampled_from(["F", "strided", "swapped", "readonly"]))
def test_how_samples_lie_in_memory_changes_no_bit(X, kernel, method, layout):
    other = {
        "F": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "swapped": lambda: X.astype(X.dtype.newbyteorder()),
        "readonly": lambda: np.frombuffer(X.tobytes()).reshape(X.shape),
    }[layout]()
    assert same_fit(*(fitted(rows, 2, kernel=kernel, method=method) for rows in (X, other)))


@property_test
@given(samples(least=3), positive_kernels, methods, st.integers(-20, 20), seeds)
def test_the_scale_of_weights_changes_no_label(X, kernel, method, power, seed):
    weights = np.random.default_rng(seed).uniform(0.3, 3, len(X))
    one, other = (
        fitted(X, 2, these, kernel=kernel, method=method)
        for these in (weights, weights * 4.0**power)
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert other.inertia_ == pytest.approx(one.inertia_ * 4.0**power, rel=1e-9, abs=1e-12)


@property_test
@given(samples(least=4), positive_kernels, seeds)
def test_float32_finds_an_objective_near_that_of_float64(X, kernel, seed):
    X = X.astype(np.float32)
    options = {"kernel": kernel, "method": "exact", "rank": 2, "n_init": 10}
    single, double = (fitted(rows, 2, **options) for rows in (X, X.astype(float)))
    K = kernel_matrix(double, X)
    size = float(np.trace(K))
    assert np.abs(single.eigenvalues_ - double.eigenvalues_).max() <= 1e-4 * size
    values = np.linalg.eigvalsh(K)
    assume(values[-2] - values[-3] > 0.01 * size)  # else any of their eigenvectors are two leading
    assert single.inertia_ == pytest.approx(double.inertia_, rel=1e-3, abs=1e-3 * size)


@property_test
@given(samples(least=4), st.sampled_from(["rbf", "laplacian", "cosine"]), st.data())
def test_landmarks_that_are_streamed_find_what_those_held_find(X, kernel, data):
    method = data.draw(st.sampled_from(["nystrom", "rpcholesky", "greedy-cholesky"]))
    models = []
    for held in (1 << 22, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", held)
            models.append(fitted(X, 2, kernel=kernel, method=method, rank=2))
    one, two = models
    size = float(one.eigenvalues_.max())
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, atol=1e-9 * size)
    assert one.inertia_ == pytest.approx(two.inertia_, rel=1e-6, abs=1e-9 * size)


@property_test
@given(samples(least=4), st.sampled_from([*EXAMPLES, "neighbors"]), methods, dtypes, st.data())
def test_a_saved_model_does_what_it_did(X, kernel, method, dtype, data):
    X = X.astype(dtype)
    weights = data.draw(weights_of(len(X)))
    if weights is not None and (weights > 0).sum() < 2:
        weights = None
    method = "auto" if kernel == "neighbors" else method
    model = fitted(X, 2, weights, kernel=kernel, method=method)
    new = np.concatenate([X[:3] + dtype(0.5), X[:2]])
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.skm")
        loaded = load(Path(folder) / "model.skm")
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert same_fit(model, other)
        np.testing.assert_array_equal(model.predict(new), other.predict(new))
        np.testing.assert_array_equal(model.transform(new), other.transform(new))
        assert other.get_params() == clone(model).get_params()


KINDS = [name for name in FORMATS if name not in ("xlsx", "arrow")]


@property_test
@given(
    samples(least=2, most=12), st.sampled_from(KINDS), st.sampled_from(KINDS), st.integers(-9, 9)
)
def test_every_reader_finds_the_same_table(X, one, other, power):
    X = X * 10.0**power
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in (one, other):
            X_found = read_table(write_numbers(Path(folder) / f"data.{kind}", X)).X
            found.append(X_found.toarray() if sparse.issparse(X_found) else X_found)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], X)


@property_test
@given(st.binary(max_size=400), st.integers(0, 400), st.booleans(), st.booleans())
def test_a_file_appears_whole_or_not_at_all(content, cut, fails, there_before):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.bin"
        if there_before:
            path.write_bytes(b"before")
        try:
            with whole_file(path) as temporary, temporary.open("wb") as file:
                file.write(content[:cut])
                if fails:
                    raise KeyboardInterrupt
                file.write(content[cut:])
        except KeyboardInterrupt:
            assert fails
        wanted = content if not fails else b"before" if there_before else None
        assert (path.read_bytes() if path.exists() else None) == wanted
        assert os.listdir(folder) == (["out.bin"] if wanted is not None else [])
