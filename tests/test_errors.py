"""Bad input: a clear error before any long work, naming the value, the limit and the way out."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.sketches import SKETCHES

X = np.random.default_rng(0).normal(size=(40, 3))


def spoiled(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


def kernel_matrix():
    return np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))


def changed(i, j, value):
    K = kernel_matrix()
    K[i, j] = value
    return K


MIXED = pd.DataFrame({"height": [1.0, 2, 3], "city": ["Bonn", "Oslo", "Rome"]})


def stable(value):
    """Name a case without the addresses of functions, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (spoiled(np.nan), "Input X contains NaN"),
        (spoiled(np.inf), "Input X contains infinity"),
        (np.empty((0, 3)), r"Found array with 0 sample\(s\)"),
        (np.empty((5, 0)), r"0 feature\(s\)"),
        (X[:, 0], "Expected 2D array, got 1D array instead"),
        (X.astype(complex), "Complex data not supported"),
        (MIXED, r"Column 'city' holds 'Bonn' in row 0: kernels need numbers. Leave such columns"),
        (MIXED.to_numpy(), r"Column 1 holds 'Bonn' in row 0: kernels need numbers"),
        (np.array([["1", "x"], ["2", "y"]]), r"Column 1 holds .*'x'.* in row 0"),
        (np.array([[1, {}], [2, {}]], dtype=object), r"Column 1 holds {} in row 0"),
    ],
    ids=["NaN", "inf", "empty", "no features", "1-D", "complex", "frame", "object", "str", "dict"],
)
@pytest.mark.parametrize(
    "estimator", [KernelKMeans(2, kernel="rbf"), KernelEmbedding(2)], ids=["K", "E"]
)
def test_bad_data_are_refused(estimator, bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": -1.0}, r"gamma=-1.0 must be a finite number, at least 0"),
        ({"gamma": np.inf}, r"gamma=inf must be a finite number"),
        ({"gamma": "wide"}, r"gamma='wide' is not understood.*\"4\*median\""),
        ({"gamma": "-2*median"}, r"gamma='-2\*median' is not understood"),
        ({"gamma": None}, r"gamma=None must be a number"),
        ({"rank": 0}, r"rank=0 is too small: it must be at least 1"),
        ({"rank": 50}, r"rank=50 exceeds n_samples=40.*Lower rank, or leave rank=\"auto\""),
        ({"rank": 1.5}, r"rank=1.5 must be a whole number from 1 to n_samples=40"),
        ({"rank": "all"}, r"rank='all' is not known. Known values of rank: 'auto'"),
        ({"rank": True}, r"rank=True must be"),
        ({"rank": 0.5, "truncation": "early"}, r"rank=0.5 .* needs truncation=\"late\""),
        ({"oversampling": -1}, r"oversampling=-1 is too small: it must be at least 0"),
        ({"oversampling": 2.5}, r"oversampling=2.5 must be a whole number"),
        ({"kernel": "gauss"}, r"kernel='gauss' is not known.*'rbf'.*'precomputed'"),
        ({"kernel": 7}, r"kernel=7 is not known"),
        (
            {"method": "svd"},
            r"method='svd' is not known. Known values of method: 'auto', 'one-pass', 'nystrom'",
        ),
        ({"sketch": "fourier"}, r"sketch='fourier' is not known.*'hadamard', 'gaussian'"),
        ({"truncation": "never"}, r"truncation='never' is not known.*'late', 'early'"),
        ({"precision": "half"}, r"precision='half' is not known.*'float32', 'float64'"),
        ({"n_passes": 0}, r"n_passes=0 is too small"),
        ({"n_jobs": 0}, r"n_jobs=0 is no number of threads"),
        ({"n_jobs": 1.5}, r"n_jobs=1.5 must be a whole number or None"),
        ({"kernel": "polynomial", "degree": 0}, r"degree=0 is too small"),
        ({"kernel": "polynomial", "degree": 1.5}, r"degree=1.5 must be a whole number"),
        ({"kernel": "sigmoid", "coef0": np.nan}, r"coef0=nan must be a finite number"),
        ({"kernel": "linear", "gamma": 2.0}, r"gamma=2.0 is not read with kernel='linear'"),
        ({"degree": 2}, r"degree=2 is not read with kernel='rbf'. Leave degree at its default, 3"),
        ({"coef0": 0}, r"coef0=0 is not read with kernel='rbf'"),
        ({"kernel_params": {"a": 1}}, r"kernel_params={'a': 1} is not read with kernel='rbf'"),
        ({"kernel": np.dot, "gamma": 1.0}, r"gamma=1.0 is not read with a callable kernel"),
        ({"kernel": np.dot, "kernel_params": [1]}, r"kernel_params=\[1\] must be a dict"),
    ],
    ids=stable,
)
@pytest.mark.parametrize(
    "estimator", [KernelKMeans(2, kernel="rbf"), KernelEmbedding()], ids=["K", "E"]
)
def test_bad_options_are_refused(estimator, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(estimator).set_params(**options).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, r"n_clusters=0 is too small"),
        ({"n_clusters": 2.0}, r"n_clusters=2.0 must be a whole number"),
        ({"n_clusters": 41}, r"n_clusters=41 exceeds n_samples=40.*Lower n_clusters"),
        ({"n_init": 0}, r"n_init=0 is too small"),
        ({"max_iter": 0}, r"max_iter=0 is too small"),
        ({"n_refine": -1}, r"n_refine=-1 is too small"),
        ({"tol": -1.0}, r"tol=-1.0 must be a finite number, at least 0"),
    ],
    ids=stable,
)
def test_bad_options_of_k_means_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelKMeans(**options).fit(X)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (kernel_matrix()[:30], r"must be square, not 30 × 40"),
        (
            changed(3, 5, 9.0) + np.triu(np.ones((40, 40))),
            r"must be symmetric, but K\[\d+, \d+\] =",
        ),
        (changed(7, 7, -0.5), r"K\[7, 7\] = -0.5 is negative.*non-negative diagonal"),
        (changed(3, 5, np.nan), r"the kernel gave NaN among rows 0:40"),
        (changed(3, 3, np.nan), r"NaN on the diagonal"),
        (changed(3, 5, np.inf), r"infinite or far too large"),
        (kernel_matrix().astype(complex), r"Complex data not supported|real numbers"),
        (kernel_matrix().astype(str), r"real numbers"),
    ],
    ids=["not square", "asymmetric", "diagonal", "NaN", "NaN diagonal", "inf", "complex", "text"],
)
def test_a_bad_precomputed_kernel_is_refused(K, message):
    for kernel in (K, np.asfortranarray(K)):
        with pytest.raises(ValueError, match=message):
            KernelKMeans(2, kernel="precomputed").fit(kernel)


def test_asymmetry_is_found_before_the_pass(monkeypatch):
    monkeypatch.setattr(
        "sketchmeans.estimators.sketched.approximate", lambda *a, **k: pytest.fail("a pass")
    )
    K = kernel_matrix()
    K[np.triu_indices(40, 1)] *= 1.01
    with pytest.raises(ValueError, match="symmetric"):
        KernelKMeans(2, kernel="precomputed").fit(K)
    with pytest.raises(ValueError, match="symmetric"):
        KernelKMeans(2, kernel="precomputed").fit(sparse.csr_matrix(K))


def bad_callables():
    def raises(A, B):
        raise RuntimeError("no such metric")

    yield raises, r"callable raises raised RuntimeError on blocks of 40 and 40 rows: no such metric"
    yield (lambda A, B: np.ones(len(A))), r"returned shape \(40,\).*where \(40, 40\) is needed"
    yield (lambda A, B: np.ones((40, 3))), r"returned shape \(40, 3\)"
    yield (lambda A, B: A @ B.T + 1j), r"returned dtype complex128, where real numbers are needed"
    yield (lambda A, B: np.full((len(A), len(B)), np.nan)), r"the kernel gave NaN among rows 0:40"


@pytest.mark.parametrize(("kernel", "message"), list(bad_callables()))
def test_a_bad_callable_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeans(2, kernel=kernel).fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(40), r"sample_weight\[0\] = -1 is negative.*Use 0 to leave a sample out"),
        (np.zeros(40), r"sample_weight is zero for all samples"),
        (np.ones(39), r"sample_weight has shape \(39,\), where \(40,\) is needed"),
        (np.full(40, np.nan), r"sample_weight contains NaN"),
    ],
    ids=["negative", "zero", "length", "NaN"],
)
def test_bad_weights_are_refused(weights, message):
    for estimator in (KernelKMeans(2, kernel="rbf"), KernelEmbedding(2)):
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, sample_weight=weights)


def test_new_points_must_have_the_features_of_the_training_data():
    model = KernelKMeans(2, random_state=0, kernel="rbf").fit(X)
    for method in ("predict", "transform", "score"):
        with pytest.raises(ValueError, match="X has 2 features, but KernelKMeans is expecting 3"):
            getattr(model, method)(X[:, :2])
    K = kernel_matrix()
    model = KernelKMeans(2, kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match="X has 30 features, but KernelKMeans is expecting 40"):
        model.predict(K[:, :30])


def test_a_new_point_whose_kernel_overflows_is_refused():
    wide = np.random.default_rng(0).normal(size=(60, 30))
    model = KernelKMeans(2, kernel="poly", random_state=0).fit(wide)
    far = wide[:3].copy()
    far[1] = 1e200
    with pytest.raises(ValueError, match="kernel of point 1 with the training samples is not fin"):
        model.predict(far)


def test_float32_that_cannot_hold_the_kernel_is_refused():
    wide = 1e9 * np.random.default_rng(0).normal(size=(60, 30))
    with pytest.raises(ValueError, match=r'precision="float32" cannot hold.*precision="float64"'):
        KernelKMeans(2, kernel="linear", precision="float32").fit(wide)


def test_a_refused_fit_leaves_the_fitted_model_alone():
    model = KernelKMeans(2, random_state=0, kernel="rbf").fit(X)
    labels = model.labels_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(spoiled(np.nan))
    with pytest.raises(ValueError, match="rank=1000"):
        model.set_params(rank=1000).fit(np.ones((50, 7)))
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.predict(X), labels)


def test_every_sketch_is_offered_by_the_estimators():
    for name in SKETCHES:
        assert KernelEmbedding(3, sketch=name, random_state=0).fit(X).rank_ == 3


@pytest.mark.parametrize("kernel", ["rbf", "neighbors", "precomputed"])
def test_masked_values_are_refused_and_not_read_behind_their_mask(kernel):
    X = np.eye(6) + 1
    fit = KernelKMeans(2, kernel=kernel, random_state=0).fit
    with pytest.raises(ValueError, match=r"with 2 masked values: .* X\.filled"):
        fit(np.ma.masked_array(X, (X > 1) & (np.arange(6) < 2)))
    np.testing.assert_array_equal(fit(np.ma.masked_array(X)).labels_, fit(X).labels_)
    with pytest.raises(ValueError, match="1 masked value: "):
        fit(X).predict(np.ma.masked_array(X[:1], X[:1] > 1))
