"""Native tiles against NumPy tiles and a finer oracle, and what an engine must do beside."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import hadamard

from oracles import EXAMPLES
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.engine import fwht, native_tile_rows
from sketchmeans.engine.run import Run
from sketchmeans.kernels import KERNELS, Gaussian, Polynomial, Statistic
from sketchmeans.operators import DataOperator
from sketchmeans.operators.tiles import DIAGONAL_ROWS, WIDE, PackedPoints

native = pytest.importorskip("sketchmeans.engine._native", reason="the native engine was not built")

ENGINES = ("numpy", "native")
FEATURES = [1, 2, 3, 15, 16, 17, 64, 300]
WIDTHS = [1, 7, 12, 16, 17, 33, 100]
SAMPLES = [1, 15, 16, 17, 255, 256, 257, 1000]
FINER = {np.float32: np.float64, np.float64: np.longdouble}


@pytest.fixture
def engine(monkeypatch):
    """Return a function that chooses the engine for the rest of a test."""
    return lambda name: monkeypatch.setenv("SKETCHMEANS_ENGINE", name)


@pytest.fixture
def at_level():
    """Return a function that chooses the level of the processor for the rest of a test."""
    before = native.use(native.levels()[0])
    yield native.use
    native.use(before)


@pytest.fixture
def shared(monkeypatch):
    """Let threads share even the smallest transforms."""
    monkeypatch.setattr("sketchmeans.engine.hadamard.SHARED", 1)


@cache
def sample(n, p, dtype):
    """Return points of squared norm about one, and Ω of the widest width."""
    random = np.random.default_rng([n, p])
    X = (random.normal(size=(n, p)) / np.sqrt(p)).astype(dtype)
    return X, random.normal(size=(n, max(WIDTHS))).astype(dtype)


@cache
def exact_statistic(statistic, n, p, dtype, chosen):
    """Return the statistic of the chosen rows with all, in the finer precision."""
    X = sample(n, p, dtype)[0].astype(FINER[dtype])
    ours = X[list(chosen)]
    result = np.zeros((len(ours), n), X.dtype)
    for k in range(p):
        if statistic is Statistic.DOT:
            result += ours[:, k, None] * X[:, k]
        else:
            difference = np.abs(ours[:, k, None] - X[:, k])
            result += difference if statistic is Statistic.MANHATTAN else difference**2
    return result


def rows_to_check(n):
    """Return all rows of few samples, and the ends and some between of many.

    Every seventeenth: they have every place in vectors of sixteen.
    """
    return tuple(range(n)) if n <= 32 else (*range(0, n, 17), n - 1)


def exact_rows(kernel, n, p, dtype, weights=None):
    """Return some rows of K in the finer precision, from the definition of the kernel."""
    chosen = rows_to_check(n)
    S = exact_statistic(kernel.statistic, n, p, dtype, chosen).copy()
    if kernel.unit_rows:
        norms = np.sqrt(np.square(sample(n, p, dtype)[0].astype(S.dtype)).sum(axis=1))
        S /= norms[list(chosen), None] * norms
    K = kernel.map(S * S.dtype.type(kernel.scale) + S.dtype.type(kernel.shift))
    if weights is not None:
        roots = np.sqrt(weights.astype(S.dtype))
        K *= roots[list(chosen), None] * roots
    return K, list(chosen)


@cache
def exact_product(kernel, n, p, dtype, weights):
    """Return some rows of KΩ, for the widest Ω; and which."""
    K, chosen = exact_rows(kernel, n, p, dtype, None if weights is None else np.array(weights))
    return (K @ sample(n, p, dtype)[1].astype(K.dtype)).astype(np.float64), chosen


def relative_error(W, truth, chosen):
    return float(np.linalg.norm(W[chosen] - truth) / np.linalg.norm(truth))


def product(kernel, n, p, width, dtype, weights=None, n_threads=1):
    """Return KΩ and what goes with it, by the engine that is chosen."""
    X, Omega = sample(n, p, dtype)
    operator = DataOperator(X, kernel, weights=weights)
    right = np.ascontiguousarray(Omega[:, :width])
    return operator.engine, operator.multiply(right, Run(n_threads))


@cache
def widest_product(kernel, n, p, dtype):
    """Return what NumPy tiles give for the widest Ω: the columns of any other are among it."""
    return product(kernel, n, p, max(WIDTHS), dtype)


def assert_as_exact_as_numpy(kernel, n, p, width, dtype, engine, weights=None, n_threads=1):
    """The error in W of native tiles is at most twice that of NumPy tiles, and 8 eps.

    That is of some rows; all are near those of NumPy tiles.
    """
    truth, chosen = exact_product(kernel, n, p, dtype, None if weights is None else tuple(weights))
    truth = truth[:, :width]
    errors, results = [], []
    for name in ENGINES:
        engine(name)
        if name == "numpy" and weights is None and n_threads == 1:
            by, result = widest_product(kernel, n, p, dtype)
        else:
            by, result = product(kernel, n, p, width, dtype, weights, n_threads)
        assert by == name
        results.append(result)
        errors.append(relative_error(result.W[:, :width], truth, chosen))
    eps = float(np.finfo(dtype).eps)
    assert errors[1] <= 2 * errors[0] + 8 * eps, (n, width)
    for field in ("W", "row_sums", "diagonal"):
        one, other = (getattr(result, field) for result in results)
        one = one[:, :width] if field == "W" else one
        assert np.linalg.norm(one - other) <= 64 * eps * np.linalg.norm(one), field
    one, other = (result.sum_of_squares for result in results)
    assert abs(one - other) <= 64 * eps * one


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", FEATURES)
def test_native_tiles_are_as_exact_as_numpy_tiles(name, dtype, p, engine):
    """Of every kernel and precision: all pairs of features, samples and widths, by every other."""
    for index, n in enumerate(SAMPLES, FEATURES.index(p)):
        for width in WIDTHS[index % 2 :: 2]:
            assert_as_exact_as_numpy(EXAMPLES[name], n, p, width, dtype, engine)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("level", native.levels()[1:])
def test_lower_levels_of_the_processor_are_as_exact(name, dtype, level, engine, at_level):
    at_level(level)
    for n in SAMPLES:
        assert_as_exact_as_numpy(EXAMPLES[name], n, 17, 33, dtype, engine)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_data_are_as_exact_by_way_of_blas(name, dtype, engine):
    p = WIDE[np.dtype(dtype).itemsize]
    assert_as_exact_as_numpy(EXAMPLES[name], 100, p, 7, dtype, engine)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_on_the_diagonal_that_go_in_parts_are_as_exact_and_count_their_entries(dtype, engine):
    n, side = 5200, native_tile_rows(5200)
    assert side > DIAGONAL_ROWS
    assert_as_exact_as_numpy(EXAMPLES["rbf"], n, 2, 7, dtype, engine, n_threads=2)
    engine("native")
    entries = (
        DataOperator(sample(n, 2, dtype)[0], EXAMPLES["rbf"]).multiply(np.ones((n, 1))).entries
    )
    assert n * (n + 1) // 2 <= entries <= n * (n + DIAGONAL_ROWS) // 2


@pytest.mark.parametrize("level", native.levels())
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(KERNELS)),
    dtype=st.sampled_from([np.float32, np.float64]),
    n=st.integers(1, 400),
    p=st.integers(1, 150),
    width=st.integers(1, 50),
    weighted=st.booleans(),
    n_threads=st.integers(1, 3),
)
def test_native_tiles_of_any_shape_are_as_exact_as_numpy_tiles(
    level, name, dtype, n, p, width, weighted, n_threads
):
    weights = np.random.default_rng(n).uniform(0.5, 2, n) if weighted else None

    def engine(name):
        os.environ["SKETCHMEANS_ENGINE"] = name

    before = native.use(level)
    try:
        assert_as_exact_as_numpy(EXAMPLES[name], n, p, width, dtype, engine, weights, n_threads)
    finally:
        native.use(before)
        del os.environ["SKETCHMEANS_ENGINE"]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "weighted", "wide", "sparse", "tight"])
def test_native_tiles_have_the_same_bits_for_any_number_of_threads(name, dtype, form, engine):
    engine("native")
    n, p = (300, max(WIDE.values())) if form == "wide" else (1500, 9)
    random = np.random.default_rng(0)
    X = (random.normal(size=(n, p)) / 10).astype(dtype)
    if form == "sparse":
        X[np.abs(X) < 0.1] = 0
        X = sparse.csr_matrix(X)
    weights = random.uniform(0.5, 2, n) if form == "weighted" else None
    operator = DataOperator(X, EXAMPLES[name], weights=weights)
    Omega = random.normal(size=(n, 11))
    first = operator.multiply(Omega)
    predicted = operator.against(X[:700]).multiply(Omega)
    for n_threads in (2, 3, 8):
        result = operator.multiply(Omega, Run(n_threads, pack=form != "tight"))
        for field in ("W", "row_sums", "sum_of_squares", "diagonal"):
            np.testing.assert_array_equal(getattr(result, field), getattr(first, field))
        again = operator.against(X[:700]).multiply(Omega, Run(n_threads))
        np.testing.assert_array_equal(again, predicted)


def with_long_indices(X):
    """Return a sparse matrix with indices of 64 bits, as very large ones have."""
    X = sparse.csr_matrix(X)
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    return X


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, with_long_indices])
def test_sparse_data_and_new_points_give_what_numpy_tiles_give(name, make, engine):
    random = np.random.default_rng(1)
    X = random.normal(size=(900, 30)) / 5
    X[np.abs(X) < 0.2] = 0
    X, Omega = make(X), random.normal(size=(900, 6))
    found = []
    for choice in ENGINES:
        engine(choice)
        operator = DataOperator(X, EXAMPLES[name])
        found.append((operator.multiply(Omega).W, operator.against(X[100:403]).multiply(Omega)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12 * np.abs(one).max())


def test_nothing_is_read_past_the_end_of_an_array():
    script = Path(__file__).parent / "guarded.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "nothing was read past an end\n"


def test_an_overflow_is_found_and_located(engine):
    engine("native")
    X = np.random.default_rng(0).uniform(1, 2, (300, 2)).astype(np.float32)
    X[70] = 1e20
    operator = DataOperator(X, Polynomial(gamma=1.0, degree=3, coef0=1.0))
    with pytest.raises(ValueError, match=r"infinite or far too large .* rows 0:192 and columns"):
        operator.multiply(np.ones((300, 2)))


def test_squares_that_float32_cannot_hold_are_summed_in_float64(engine):
    engine("native")
    X = np.full((200, 1), 1e10, np.float32)
    result = DataOperator(X, EXAMPLES["linear"]).multiply(np.ones((200, 1)))
    np.testing.assert_allclose(result.sum_of_squares, 200**2 * 1e40, rtol=1e-6)
    np.testing.assert_allclose(result.W, 200 * 1e20, rtol=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 1e33])
def test_outliers_and_a_huge_gamma_go_the_careful_way(gamma, engine):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    X[[3, 77]] = 1e9
    X[[200, 201]] += 3e8
    Omega, found = random.normal(size=(400, 3)), []
    for choice in ENGINES:
        engine(choice)
        found.append(DataOperator(X, Gaussian(gamma)).multiply(Omega).W)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[1][3], Omega[3] + Omega[77], rtol=1e-12)


@pytest.mark.parametrize("choice", ENGINES)
def test_the_engine_that_was_asked_for_runs_and_is_reported(choice, engine):
    engine(choice)
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert KernelKMeans(3, random_state=0, kernel="rbf").fit(X).stats_["engine"] == choice
    assert FullKernelKMeans(3, random_state=0).fit(X).stats_["engine"] == choice


def test_the_native_engine_runs_where_nothing_was_asked_for(monkeypatch):
    monkeypatch.delenv("SKETCHMEANS_ENGINE", raising=False)
    assert KernelKMeans(2, kernel="rbf").fit(np.eye(5)).stats_["engine"] == "native"


def test_both_engines_find_the_same_clusters(digits, engine):
    X, _, median = digits
    models = []
    for choice in ENGINES:
        engine(choice)
        model = KernelKMeans(
            10, gamma=4 / median, n_refine=2, n_passes=2, random_state=0, kernel="rbf"
        )
        models.append(model.fit(X.astype(np.float32)))
    one, other = models
    assert np.mean(one.labels_ == other.labels_) > 0.99
    assert np.mean(one.predict(X[:300]) == other.predict(X[:300])) > 0.99
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-4)


def test_an_unknown_engine_is_refused(engine):
    engine("fortran")
    with pytest.raises(ValueError, match=r"SKETCHMEANS_ENGINE='fortran' .* numpy or native"):
        KernelKMeans(2, kernel="rbf").fit(np.eye(4))


@cache
def hadamard_matrix(bits, dtype):
    return hadamard(1 << bits).astype(dtype)


@pytest.mark.parametrize("level", native.levels())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 100])
def test_the_native_transform_is_the_product_with_the_hadamard_matrix(
    level, dtype, columns, engine, at_level, shared
):
    engine("native")
    at_level(level)
    for bits in (0, 1, 2, 3, 4, 5, 6, 7, 11):
        X = np.random.default_rng(bits).integers(-50, 50, (1 << bits, columns)).astype(dtype)
        expected = hadamard_matrix(bits, dtype) @ X  # whole numbers: exact in any order
        for n_threads in (1, 3):
            np.testing.assert_array_equal(fwht(X, n_threads=n_threads), expected)
        np.testing.assert_array_equal(fwht(np.asfortranarray(X)), expected)
        np.testing.assert_array_equal(fwht(X, overwrite=True), expected)
        np.testing.assert_array_equal(X, expected)


LARGE = [(1 << bits, columns) for bits, columns in [(20, 1), (15, 2), (16, 3), (15, 4), (14, 70)]]


@pytest.mark.parametrize("shape", [*LARGE, (4, 20_000)])
def test_a_large_transform_agrees_with_numpy_and_has_the_same_bits_on_any_threads(
    shape, engine, shared
):
    X = np.random.default_rng(0).integers(-8, 8, shape).astype(np.float64)
    engine("numpy")
    expected = fwht(X)
    engine("native")
    np.testing.assert_array_equal(fwht(X), expected)  # whole numbers: exact in any order
    np.testing.assert_array_equal(fwht(fwht(X)), X * shape[0])
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for n_threads in (2, 3, 20):
        np.testing.assert_array_equal(fwht(X, n_threads=n_threads), fwht(X))
    off_a_line = np.empty(X.size + 1, X.dtype)[1:].reshape(shape)
    off_a_line[:] = X
    assert fwht(off_a_line, n_threads=3, overwrite=True) is off_a_line
    np.testing.assert_array_equal(off_a_line, fwht(X))


def test_arrays_that_do_not_fit_each_other_are_refused():
    ones = np.ones(32)
    fitting = {
        "statistic": native.GIVEN,
        "left": np.ones((32, 32)),
        "left_shift": ones,
        "right_shift": ones,
        "right_omega": np.ones((4, 2, 8)),
        "left_W": np.zeros((32, 2)),
    }
    assert native.tile(**fitting) == 9 * 32**2  # every entry is 1 + 1 + 1
    for changes, message in (
        ({"left": np.ones((31, 32))}, "left holds 992 numbers where 1024 are needed"),
        ({"right_omega": np.ones((3, 2, 8))}, "right_omega holds 48 numbers where 64"),
        ({"left_W": np.zeros(33)}, "left_W must have a row for every left_shift"),
        ({"right_W": np.zeros((32, 2))}, "contradict each other"),
        ({"statistic": 3}, "contradict each other"),
        ({"statistic": native.DOT}, "the points are missing"),
    ):
        with pytest.raises(ValueError, match=message):
            native.tile(**fitting | changes)
    with pytest.raises(TypeError, match="left: an array of format 'd' is needed, not 'f'"):
        native.tile(**fitting | {"left": np.ones((32, 32), np.float32)})
    with pytest.raises(ValueError, match="a matrix of 2\\^k rows"):
        native.transform(np.ones((3, 2)))
    for rows, progress in ((4, np.zeros(2, np.uint32)), (8, np.zeros(3, np.uint32))):
        with pytest.raises(ValueError, match="eight rows and a progress of two 32-bit numbers"):
            native.transform(np.ones((rows, 2)), progress)
    huge = {"statistic": native.DOT, "features": 1 << 62, "left": ones, "right": ones}
    with pytest.raises(ValueError, match="left holds 32 numbers where 18446744073709551615"):
        native.tile(**fitting | huge)


def test_sparse_matrices_that_are_none_are_refused():
    X = sparse.csr_matrix(np.eye(4))
    fitting = [X.indptr, X.indices, X.data] * 2
    out = np.empty((4, 4))
    native.sparse_dots(*fitting, out)
    np.testing.assert_array_equal(out, np.eye(4))
    for place, wrong, message in (
        (0, np.array([0, 1, 2, 3, 5], np.int32), "left: an index is out of range"),
        (0, np.array([0, 2, 1, 3, 4], np.int32), "left: an index is .* out of order"),
        (0, np.array([-1, 1, 2, 3, 4], np.int32), "left: an index is out of range"),
        (1, np.array([0, 1, 2, 4], np.int32), "left: an index is out of range"),
        (1, np.array([0, 1, 2], np.int32), "left: its arrays do not fit"),
        (4, np.array([0, 1, -2, 3], np.int32), "right: an index is out of range"),
        (0, np.array([0, 4], np.int32), "out has 4 rows where left has 1"),
    ):
        with pytest.raises(ValueError, match=message):
            native.sparse_dots(*fitting[:place], wrong, *fitting[place + 1 :], out)
    with pytest.raises(TypeError, match="right: 32-bit integers are needed"):
        native.sparse_dots(*fitting[:4], X.indices.astype(np.int64), fitting[5], out)


def test_no_copy_of_the_samples_is_packed_where_that_is_not_allowed(monkeypatch, engine):
    engine("native")
    packed = []
    real = PackedPoints.__init__

    def record(self, points, argument, *, pack, **options):
        packed.append(pack)
        real(self, points, argument, pack=pack, **options)

    monkeypatch.setattr(PackedPoints, "__init__", record)
    X = np.random.default_rng(0).normal(size=(400, 3))
    operator, right = DataOperator(X, Gaussian(0.5)), np.ones((400, 2))
    for run, expected in ((Run(pack=False), False), (Run(), True)):
        packed.clear()
        operator.against(X[:50]).multiply(right, run)
        operator.multiply(right, run)
        assert any(packed) == expected
