import warnings

import numpy as np
import pytest

from oracles import EXAMPLES, algorithm_1, dense_kernel
from sketchmeans.kernels import Gaussian, Linear, Polynomial, Sigmoid
from sketchmeans.lowrank import IndefiniteKernelWarning, one_pass
from sketchmeans.lowrank.core import noise_level
from sketchmeans.lowrank.one_pass import orthonormalise
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    PrecomputedOperator,
)
from sketchmeans.sketches import SKETCHES, make_sketch

EPS = np.finfo(float).eps
PSD = [name for name, kernel in EXAMPLES.items() if kernel.is_psd]


def relative(K, F):
    return np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)


def spectrum(values, n=300, seed=0):
    """A positive semidefinite matrix with these leading eigenvalues."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, len(values))))
    return (Q * values) @ Q.T


@pytest.mark.parametrize("name", PSD)
@pytest.mark.parametrize("sketch", SKETCHES)
def test_late_recovery_with_all_columns_is_algorithm_1(name, sketch, points):
    operator = DataOperator(points, EXAMPLES[name])
    Omega = make_sketch(sketch, 300, 20, seed=1)
    low = one_pass(operator, Omega, rank=20)
    expected = algorithm_1(dense_kernel(operator), Omega.matrix.astype(float))
    size = np.linalg.norm(expected)
    assert np.linalg.norm(low.factor @ low.factor.T - expected) < 1e-8 * size


@pytest.mark.parametrize("rank", [2, 10])
def test_early_recovery_is_algorithm_1_as_printed(rank, points):
    operator = DataOperator(points, Gaussian(0.1))
    Omega = make_sketch("hadamard", 300, 20, seed=1)
    Y = one_pass(operator, Omega, rank=rank, truncation="early").embedding
    expected = algorithm_1(dense_kernel(operator), Omega.matrix.astype(float), rank=rank)
    values, vectors = np.linalg.eigh(expected)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    assert np.linalg.norm(Y @ Y.T - expected) < 1e-8 * np.linalg.norm(expected)


@pytest.mark.parametrize("rank", [1, 3, 12])
@pytest.mark.parametrize("n_passes", [1, 2])
def test_recovery_is_exact_when_the_width_reaches_the_rank(rank, n_passes, seeds):
    K = spectrum(np.logspace(0, -3, rank))
    Q = np.linalg.eigh(K)[1][:, -rank:]
    for seed in seeds(5):
        Omega = make_sketch("hadamard", 300, 12, seed)
        low = one_pass(PrecomputedOperator(K), Omega, rank=12, n_passes=n_passes)
        # Where the two are equal a square system is solved, which chance may condition badly.
        condition = 1 if n_passes > 1 else np.linalg.cond(Q.T @ Omega.matrix)
        assert relative(K, low.factor) < 50 * EPS * condition**2
        assert low.rank == rank


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_recovery_does_not_depend_on_the_scale_of_the_kernel(scale):
    K = spectrum(np.logspace(0, -3, 40))
    Omega = make_sketch("hadamard", 300, 20, 0)
    plain = one_pass(PrecomputedOperator(K), Omega, rank=20).factor
    scaled = one_pass(PrecomputedOperator(K * scale), Omega, rank=20).factor
    np.testing.assert_allclose(scaled @ scaled.T / scale, plain @ plain.T, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_passes", [1, 2, 3])
@pytest.mark.parametrize("gamma", [0.001, 0.05, 1.0])
def test_the_approximation_lies_between_zero_and_the_kernel(dtype, n_passes, gamma):
    X = np.random.default_rng(0).normal(size=(400, 4))
    X = X.astype(np.float32).astype(np.float64)
    operator = DataOperator(X.astype(dtype), Gaussian(gamma))
    low = one_pass(operator, make_sketch("hadamard", 400, 20, 0), rank=20, n_passes=n_passes)
    K = dense_kernel(DataOperator(X, Gaussian(gamma)))
    E = np.linalg.eigvalsh(K - low.factor @ low.factor.T)
    assert E[0] > -10 * low.eta * low.eigenvalues[0]
    np.testing.assert_allclose(
        low.trace_error, np.trace(K - low.embedding @ low.embedding.T), atol=1e-5 * low.facts.trace
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_embedding_is_the_kernel_times_the_dual(dtype, points):
    d = np.random.default_rng(0).uniform(0.5, 2, 300)
    for weights in (None, d):
        for truncation in ("late", "early"):
            for n_passes in (1, 2):
                operator = DataOperator(points.astype(dtype), Gaussian(0.1), weights=weights)
                Omega = make_sketch("hadamard", 300, 20, 0)
                low = one_pass(operator, Omega, rank=8, truncation=truncation, n_passes=n_passes)
                K = dense_kernel(DataOperator(points, Gaussian(0.1)))
                Y = low.embedding if weights is None else low.embedding / np.sqrt(d)[:, None]
                tolerance = 1e-8 if dtype == np.float64 else 1e-4
                np.testing.assert_allclose(K @ low.dual, Y, atol=tolerance)


def test_columns_of_the_factor_are_orthogonal_and_in_falling_order(points):
    low = one_pass(DataOperator(points, Gaussian(0.1)), make_sketch("sparse", 300, 30, 0), rank=9)
    gram = low.factor.T @ low.factor
    np.testing.assert_allclose(gram, np.diag(low.eigenvalues), atol=1e-10 * low.eigenvalues[0])
    assert (np.diff(low.eigenvalues) <= 0).all()
    assert low.embedding.shape == (300, 9)
    assert low.truncate(4).embedding.shape == (300, 4)
    assert low.truncate(4).dual.shape == (300, 4)


def cases():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    yield "constant kernel", X, Gaussian(0.0)
    yield "one point many times", np.ones((80, 3)), Gaussian(1.0)
    yield "zero kernel", np.zeros((80, 3)), Linear()
    yield "duplicated points", np.repeat(X[:5], 16, axis=0), Gaussian(1.0)
    yield "rank-one data", X[:, :1] * np.ones(3), Linear()
    yield "sigmoid", X, Sigmoid(0.5, -1.0)
    yield "huge gamma", X, Gaussian(1e30)
    yield "tiny gamma", X, Gaussian(1e-30)
    yield "huge data", X * 1e6, Gaussian(1.0)
    yield "n = 1", X[:1], Gaussian(1.0)
    yield "n = 2", X[:2], Gaussian(1.0)
    yield "n = 3", X[:3], Polynomial(1.0, 2, 1.0)
    yield "n = 2^k", X[:64], Gaussian(1.0)


CASES = list(cases())


@pytest.mark.parametrize(("name", "X", "kernel"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("truncation", ["late", "early"])
@pytest.mark.parametrize("n_passes", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "width > n"])
def test_recovery_stays_finite(name, X, kernel, truncation, n_passes, dtype, wide, seeds):
    n = len(X)
    rank = n if wide else max(1, n // 8)
    width = 2 * n if wide else max(1, n // 4)
    for seed in seeds(3):
        operator = DataOperator(X.astype(dtype), kernel)
        sketch = make_sketch("hadamard", n, width, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndefiniteKernelWarning)
            low = one_pass(operator, sketch, rank=rank, truncation=truncation, n_passes=n_passes)
        assert np.isfinite(low.factor).all()
        assert np.isfinite(low.dual).all()
        K = dense_kernel(DataOperator(X.astype(np.float64), kernel))
        size = np.linalg.norm(K)
        error = np.linalg.norm(K - low.embedding @ low.embedding.T)
        assert error <= 1.5 * size, name
        if wide and kernel.is_psd and size:
            assert error <= (1e-9 if dtype == np.float64 else 1e-4) * size


def test_polynomial_overflow_is_a_clear_error():
    X = np.full((100, 30), 1e60)
    for operator in (
        DataOperator(X, Polynomial(1.0, 3, 1.0)),
        FeatureMapOperator(X[:, :3], Polynomial(1.0, 3, 1.0)),
    ):
        with pytest.raises(ValueError, match="overflows"):
            one_pass(operator, make_sketch("hadamard", 100, 10, 0), rank=5)


@pytest.mark.parametrize(("gamma", "coef0"), [(0.5, -3), (0.2, -1), (0.05, 0)])
@pytest.mark.parametrize("n_passes", [1, 2])
def test_an_indefinite_kernel_is_detected_warned_of_and_does_not_explode(
    gamma, coef0, n_passes, seeds
):
    X = np.abs(np.random.default_rng(0).normal(size=(600, 5)))
    operator = DataOperator(X, Sigmoid(gamma, coef0))
    K = dense_kernel(operator)
    values, vectors = np.linalg.eigh(K)
    positive = np.maximum(values[-10:], 0)
    best = np.linalg.norm(K - (vectors[:, -10:] * positive) @ vectors[:, -10:].T)
    errors = []
    for seed in seeds(40):
        with pytest.warns(IndefiniteKernelWarning, match=r"% of its sketched core is negative"):
            low = one_pass(
                operator, make_sketch("hadamard", 600, 20, seed), rank=10, n_passes=n_passes
            )
        assert low.negative_mass > 0
        errors.append(np.linalg.norm(K - low.embedding @ low.embedding.T))
    assert max(errors) < (1.35 if n_passes == 2 else 2.5) * best


def test_a_second_pass_on_an_indefinite_kernel_is_no_worse_than_rayleigh_ritz(seeds):
    """The early form keeps the map to new points, Y = WT; Rayleigh–Ritz would lose it."""
    X = np.abs(np.random.default_rng(0).normal(size=(600, 5)))
    operator = DataOperator(X, Sigmoid(0.2, -1.0))
    K = dense_kernel(operator)
    ours, ritz = [], []
    for seed in seeds(10):
        sketch = make_sketch("hadamard", 600, 20, seed)
        with pytest.warns(IndefiniteKernelWarning):
            Y = one_pass(operator, sketch, rank=10, n_passes=2).embedding
        ours.append(np.linalg.norm(K - Y @ Y.T))
        Q, _ = np.linalg.qr(K @ sketch.matrix)
        values, V = np.linalg.eigh(Q.T @ K @ Q)
        P = Q @ V[:, -10:]
        ritz.append(np.linalg.norm(K - (P * np.maximum(values[-10:], 0)) @ P.T))
    assert np.mean(ours) <= np.mean(ritz)


def test_positive_semidefinite_kernels_raise_no_alarm(seeds):
    X = np.random.default_rng(0).normal(size=(500, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for gamma in (1e-3, 0.1, 10.0):
            for dtype in (np.float32, np.float64):
                for seed in seeds(5):
                    operator = DataOperator(X.astype(dtype), Gaussian(gamma))
                    one_pass(operator, make_sketch("hadamard", 500, 60, seed), rank=30)


def test_more_passes_survive_rank_deficiency():
    K = spectrum([1.0, 0.5, 0.25])
    for n_passes in (2, 3, 4):
        low = one_pass(
            PrecomputedOperator(K), make_sketch("hadamard", 300, 20, 0), rank=10, n_passes=n_passes
        )
        assert relative(K, low.factor) < 1e-10
        assert low.cost.passes == n_passes


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_basis_for_the_next_pass_is_orthonormal_and_without_noise_at_any_scale(scale):
    random = np.random.default_rng(0)
    U, V = (np.linalg.qr(random.normal(size=(n, 3)))[0] for n in (300, 3))
    W = scale * (U * [1, 1e-7, 1e-12]) @ V.T
    Q = orthonormalise(W.copy(), 1e-10)
    assert Q.shape == (300, 2)
    np.testing.assert_allclose(Q.T @ Q, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(Q @ (Q.T @ W), W, atol=1e-11 * scale)
    assert orthonormalise(W.copy(), 1e-14).shape == (300, 3)
    assert orthonormalise(0 * W, 1e-10).shape == (300, 0)


def test_rank_for_a_fraction_of_the_trace():
    K = spectrum([4.0, 3.0, 2.0, 1.0])
    low = one_pass(PrecomputedOperator(K), make_sketch("hadamard", 300, 20, 0), rank=10)
    assert [low.rank_for(share) for share in (0.3, 0.5, 0.69, 0.95)] == [1, 2, 2, 4]
    assert low.rank_for(1.1) is None


def test_the_measured_error_decides_what_counts_as_noise():
    """A float32 sketch of a kernel with a fast spectrum keeps only what its own error allows."""
    X = 5 * np.random.default_rng(0).normal(size=(800, 1))
    kernel = Gaussian(0.05)
    sketch = make_sketch("hadamard", 800, 40, 0)
    fine = one_pass(DataOperator(X, kernel), sketch, rank=40)
    coarse = one_pass(DataOperator(X.astype(np.float32), kernel), sketch, rank=40)
    assert fine.eta < 1e-12
    assert coarse.eta > 4e-7
    assert coarse.rank < fine.rank
    K = dense_kernel(DataOperator(X.astype(np.float32).astype(float), kernel))
    lowest = np.linalg.eigvalsh(K - coarse.factor @ coarse.factor.T)[0]
    assert lowest > -10 * coarse.eta * coarse.eigenvalues[0]


def test_eta_follows_the_measurement_and_not_only_the_dtype():
    assert noise_level(np.dtype(np.float64), 1e-3) == 1e-3
    assert noise_level(np.dtype(np.float32), 0.0) == 4 * np.finfo(np.float32).eps
    assert noise_level(np.dtype(np.float64), 0.0) == 256 * np.finfo(np.float64).eps


@pytest.mark.parametrize("rounded", ["six digits", "float32"])
def test_a_rounded_positive_semidefinite_kernel_is_not_taken_for_an_indefinite_one(rounded):
    X = 5 * np.random.default_rng(0).normal(size=(500, 1))
    K = dense_kernel(DataOperator(X, Gaussian(0.3)))
    given = K.round(6) if rounded == "six digits" else K.astype(np.float32).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low = one_pass(PrecomputedOperator(given), make_sketch("hadamard", 500, 50, 0), rank=10)
    best = np.sqrt(np.square(np.linalg.eigvalsh(K)[:-10]).sum())
    assert np.linalg.norm(K - low.embedding @ low.embedding.T) < 1.001 * best
    assert low.eta > 1e-12


def test_a_callable_of_float32_is_known_to_be_coarse():
    X = (5 * np.random.default_rng(0).normal(size=(500, 1))).astype(np.float32)

    def kernel(A, B):
        return np.exp(np.float32(-0.3) * np.square(A - B.T))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low = one_pass(CallableOperator(X, kernel), make_sketch("hadamard", 500, 50, 0), rank=10)
    assert low.eta >= 4 * np.finfo(np.float32).eps


@pytest.mark.parametrize("n_passes", [1, 2])
@pytest.mark.parametrize("sketch", SKETCHES)
def test_eigenvalues_of_the_early_form_are_those_of_its_embedding(sketch, n_passes):
    """Eigenvalues that fall to 1e-12: a Gram matrix of W does not see the last ones."""
    K = spectrum(np.repeat([1, 1e-3, 1e-6, 1e-9, 1e-12], 3), n=40)
    low = one_pass(
        PrecomputedOperator(K),
        make_sketch(sketch, 40, 20, seed=3),
        rank=9,
        truncation="early",
        n_passes=n_passes,
    )
    Y = low.embedding
    own = np.linalg.eigvalsh(Y.T @ Y)[::-1]
    assert np.abs(own - low.leading).max() < 40 * np.finfo(float).eps
