import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from oracles import EXAMPLES
from sketchmeans.kernels import (
    KERNELS,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    kernel_class,
    n_monomials,
)
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.operators import DataOperator
from sketchmeans.operators.monomials import Monomials, prefers_features


def reference(kernel, X, Y=None):
    names = {"polynomial": "poly"}
    options = {name: getattr(kernel, name) for name in kernel.options()}
    return pairwise_kernels(X, Y, metric=names.get(kernel.name, kernel.name), **options)


def test_every_kernel_of_the_registry_has_an_example():
    assert set(EXAMPLES) == set(KERNELS)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_tiles_match_scikit_learn(name, make, points):
    operator = DataOperator(make(points), EXAMPLES[name])
    K = reference(EXAMPLES[name], points)
    rows, columns = slice(20, 90), slice(60, 300)
    np.testing.assert_allclose(operator.tile(rows, columns), K[rows, columns], rtol=1e-11)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_diagonal_is_the_diagonal_of_the_tiles(name, points):
    operator = DataOperator(points, EXAMPLES[name])
    K = operator.tile(slice(0, 300), slice(0, 300))
    np.testing.assert_allclose(operator.diagonal(), np.diag(K), rtol=1e-12)


def test_a_sample_is_at_distance_zero_from_itself_even_far_from_the_origin():
    X = np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32) + 1e4
    operator = DataOperator(X, EXAMPLES["rbf"])
    assert (np.diag(operator.tile(slice(0, 100), slice(0, 100))) == 1).all()


def test_centring_saves_the_digits_of_distances_far_from_the_origin():
    X = np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)
    near = DataOperator(X, EXAMPLES["rbf"])
    far = DataOperator(np.float32(X + 1000), EXAMPLES["rbf"])
    whole = slice(0, 100)
    # The shift itself rounds X to 2^-14; uncentred dot products of 5e6 would lose 0.5 more.
    assert np.abs(near.tile(whole, whole) - far.tile(whole, whole)).max() < 1e-3


def test_a_zero_row_has_no_cosine_similarity():
    X = np.vstack([np.zeros(3), np.eye(3)])
    K = DataOperator(X, EXAMPLES["cosine"]).tile(slice(0, 4), slice(0, 4))
    np.testing.assert_array_equal(K, np.diag([0.0, 1, 1, 1]))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 7, 8])
def test_whole_powers_match_numpy(degree):
    values = np.linspace(-2, 2, 41)
    kernel = Polynomial(gamma=1.0, degree=degree, coef0=0.5)
    np.testing.assert_allclose(kernel.of(values.copy()), (values + 0.5) ** degree, rtol=1e-13)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_monomials_are_a_feature_map(degree, coef0, n_features):
    kernel = Polynomial(gamma=0.4, degree=degree, coef0=coef0)
    X = np.random.default_rng(1).normal(size=(40, n_features))
    Phi = Monomials(n_features, kernel).block(X)
    assert Phi.shape[1] == n_monomials(n_features, kernel)
    np.testing.assert_allclose(Phi @ Phi.T, reference(kernel, X), rtol=1e-10, atol=1e-12)


def test_only_kernels_with_few_monomials_take_the_feature_map():
    square = Polynomial(gamma=1.0, degree=2, coef0=0.0)
    assert prefers_features(4000, 2, square)
    assert not prefers_features(4000, 100, square)
    assert not prefers_features(10**7, 10**4, Linear())
    assert not prefers_features(10**6, 2, EXAMPLES["rbf"])
    assert not prefers_features(10**6, 2, Polynomial(gamma=1.0, degree=2, coef0=-1.0))


def test_poly_is_another_name_of_polynomial():
    assert kernel_class("poly") is Polynomial


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_gamma_of_sparse_rows_takes_little(kernel):
    """8 bytes for each of half a million pairs, twice, and a few rows of distances."""
    X = sparse.random(1000, 300, density=0.05, format="csr", random_state=0)
    resolve_gamma("median", kernel, X[:9], seed=0)  # what is imported once
    tracemalloc.start()
    try:
        gamma = resolve_gamma("median", kernel, X, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 11e6
    dense = resolve_gamma("median", kernel, X.toarray(), seed=0)
    assert gamma == pytest.approx(dense, rel=1e-12)
