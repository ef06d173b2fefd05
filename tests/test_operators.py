import numpy as np
import pytest
from scipy import sparse

from oracles import EXAMPLES, dense_kernel
from sketchmeans import KernelEmbedding
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Gaussian, Linear, Polynomial
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    PrecomputedOperator,
    SparseOperator,
)
from sketchmeans.sketches import SKETCHES, HadamardSketch


def operators(X, weights=None):
    """One operator of every kind."""
    K = EXAMPLES["rbf"].of(np.square(X[:, None] - X[None]).sum(axis=2))
    square = Polynomial(gamma=0.2, degree=2, coef0=1.0)
    return {
        **{name: DataOperator(X, kernel, weights=weights) for name, kernel in EXAMPLES.items()},
        "sparse rbf": DataOperator(sparse.csr_matrix(X), EXAMPLES["rbf"], weights=weights),
        "sparse cosine": DataOperator(sparse.csr_matrix(X), EXAMPLES["cosine"], weights=weights),
        "feature map": FeatureMapOperator(X, square, weights=weights),
        "sparse linear map": FeatureMapOperator(sparse.csr_matrix(X), Linear(), weights=weights),
        "callable": CallableOperator(X, lambda A, B: np.tanh(A @ B.T) + 1, weights=weights),
        "precomputed": PrecomputedOperator(K, weights=weights),
        "precomputed, by columns": PrecomputedOperator(np.asfortranarray(K), weights=weights),
        "precomputed sparse": SparseOperator(sparse.csr_matrix(K), weights=weights),
    }


NAMES = list(operators(np.random.default_rng(0).normal(size=(5, 6))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_products_match_the_dense_matrix(name, weighted, points):
    random = np.random.default_rng(1)
    d = random.uniform(0.5, 2, size=len(points)) if weighted else None
    operator = operators(points, d)[name]
    root = np.ones(len(points)) if d is None else np.sqrt(d)
    K = dense_kernel(operators(points)[name]) * root[:, None] * root
    M = random.normal(size=(len(points), 5))
    size = np.abs(K).max()
    result = operator.multiply(M, Run(2))
    np.testing.assert_allclose(result.W, K @ M, atol=1e-11 * size * len(points))
    np.testing.assert_allclose(operator @ M[:, 0], K @ M[:, 0], atol=1e-11 * size * len(points))
    np.testing.assert_allclose(result.row_sums, K @ root, rtol=1e-10, atol=1e-10 * size)
    np.testing.assert_allclose(result.sum_of_squares, np.square(K).sum(), rtol=1e-10)
    np.testing.assert_allclose(operator.diagonal(), np.diag(K), rtol=1e-10)
    np.testing.assert_allclose(result.diagonal, np.diag(K), rtol=1e-10)
    assert operator.shape == (300, 300)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_columns_and_rectangles_are_those_of_the_matrix(name, weighted, points):
    random = np.random.default_rng(1)
    d = random.uniform(0.5, 2, size=len(points)) if weighted else None
    operator = operators(points, d)[name]
    root = np.ones(len(points)) if d is None else np.sqrt(d)
    K = dense_kernel(operators(points)[name]) * root[:, None] * root
    rows, columns = random.permutation(300)[:140], random.permutation(300)[:30]
    close = {"rtol": 1e-10, "atol": 1e-12 * np.abs(K).max()}
    expected = K[np.ix_(rows, columns)]
    np.testing.assert_allclose(operator.rectangle(rows, columns, Run(2)), expected, **close)
    np.testing.assert_allclose(operator.columns(columns, Run(2)), K[:, columns], **close)
    np.testing.assert_allclose(operator.square(columns), K[np.ix_(columns, columns)], **close)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sketch", SKETCHES)
def test_a_sketch_and_its_matrix_give_the_same_product(name, sketch, points):
    operator = operators(points)[name]
    Omega = SKETCHES[sketch](len(points), 90, seed=2)
    one = operator.multiply(Omega).W
    other = operator.multiply(Omega.matrix.astype(float)).W
    np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(one).max())


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_against_the_samples_themselves_is_the_matrix(name, points):
    operator = operators(points)[name]
    K = dense_kernel(operator)
    M = np.random.default_rng(1).normal(size=(len(points), 3))
    X = K if name.startswith("precomputed") else points
    product = operator.against(X).multiply(M, Run(2))
    np.testing.assert_allclose(product, K @ M, atol=1e-10 * np.abs(K).max())
    np.testing.assert_allclose(operator.diagonal_of(X), np.diag(K), rtol=1e-10)


def test_new_points_may_be_sparse_where_the_samples_are_not_and_the_other_way(points):
    for ours, theirs in [(points, sparse.csr_matrix(points)), (sparse.csr_matrix(points), points)]:
        operator = DataOperator(ours, Gaussian(0.1))
        M = np.eye(300)[:, :4]
        np.testing.assert_allclose(
            operator.against(theirs).multiply(M), operator.against(ours).multiply(M), atol=1e-12
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packing_the_data_changes_no_bit(dtype):
    X = np.random.default_rng(0).normal(size=(1000, 5)).astype(dtype) + 3
    operator = DataOperator(X, Gaussian(0.1))
    assert operator._worth_packing(12)
    M = HadamardSketch(1000, 12, 0)
    np.testing.assert_array_equal(operator.multiply(M).W, operator.multiply(M, Run(pack=False)).W)


def test_the_data_are_not_copied():
    for X in (np.ones((100, 4), np.float32), sparse.csr_matrix(np.eye(100))):
        assert DataOperator(X, Gaussian(1.0)).points.X is X


def test_a_callable_is_asked_for_each_pair_of_blocks_once(points):
    X = np.random.default_rng(0).normal(size=(700, 2))
    asked = 0

    def kernel(A, B, power):
        nonlocal asked
        asked += len(A) * len(B)
        return (A @ B.T) ** power

    operator = CallableOperator(X, kernel, params={"power": 2})
    result = operator.multiply(HadamardSketch(700, 5, 0))
    assert asked == result.entries
    assert asked <= 700 * 701 / 2 + 700 * 32


class Recorder:
    """Stands before a matrix and writes down which rows are read."""

    def __init__(self, K):
        self.K, self.shape, self.dtype, self.reads = K, K.shape, K.dtype, []

    def __getitem__(self, rows):
        self.reads.append((rows.start, rows.stop))
        return self.K[rows]

    def diagonal(self):
        return self.K.diagonal()


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("width", [10, 400])
def test_a_memory_map_is_read_once_per_pass_and_in_order(tmp_path, n_threads, width):
    n = 6000
    random = np.random.default_rng(0)
    factor = random.normal(size=(n, 3)).astype(np.float32)
    K = np.memmap(tmp_path / "kernel.bin", np.float32, "w+", shape=(n, n))
    K[:] = factor @ factor.T
    recorder = Recorder(K)
    operator = PrecomputedOperator(recorder, dtype=np.float32)
    sketch = HadamardSketch(n, width, 0)
    result = operator.multiply(sketch, Run(n_threads))
    assert recorder.reads[0][0] == 0
    assert recorder.reads[-1][1] == n
    assert all(
        one[1] == two[0] for one, two in zip(recorder.reads, recorder.reads[1:], strict=False)
    )
    assert result.entries == n * n
    expected = factor.astype(float) @ (factor.T.astype(float) @ sketch.matrix)
    assert np.linalg.norm(result.W - expected) < 2e-6 * np.linalg.norm(expected)
    assert 0 < result.relative_error < 2e-6


def test_the_error_of_float32_tiles_is_measured():
    X = np.random.default_rng(0).normal(size=(2000, 10))
    kernel = Gaussian(0.05)
    sketch = HadamardSketch(2000, 20, 0)
    exact = DataOperator(X, kernel).multiply(sketch).W
    operator = DataOperator(X.astype(np.float32), kernel)
    result = operator.multiply(sketch)
    measured, entries = operator.relative_error(sketch.matrix, result, seed=0)
    true = np.linalg.norm(result.W - exact) / np.linalg.norm(exact)
    # The truth includes the rounding of X itself, which the operator cannot see.
    assert 0.2 * true < measured < 2 * true
    assert entries == 32 * 2000


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_close_pairs_far_out_keep_their_digits(make):
    """‖x‖² + ‖y‖² − 2⟨x, y⟩ would lose what the difference x − y keeps."""
    random = np.random.default_rng(0)
    X = np.repeat(1e4 * random.normal(size=(250, 3)), 2, axis=0)
    X += 1e-2 * random.normal(size=X.shape)
    sketch = HadamardSketch(500, 10, 0)
    operator = DataOperator(make(X), Gaussian(1e4))
    exact = np.exp(-1e4 * np.square(X[:, None] - X[None]).sum(axis=2)) @ sketch.matrix
    W = operator.multiply(sketch).W
    assert np.linalg.norm(W - exact) < 1e-9 * np.linalg.norm(exact)


@pytest.mark.parametrize("size", [1e5, 1e7, 1e9, 1e11])
def test_an_outlier_spoils_neither_the_tiles_nor_the_map(size):
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:150] += 6
    X[5] = size
    model = KernelEmbedding(rank=10, random_state=0).fit(X)
    off = np.linalg.norm(model.transform(X) - model.embedding_)
    assert off < 1e-8 * np.linalg.norm(model.embedding_)
    assert model.stats_["eta"] < 1e-9


def test_float64_tiles_of_float32_data_are_centred_in_float64():
    X = (np.random.default_rng(0).normal(size=(500, 3)) + 7).astype(np.float32)
    sketch = HadamardSketch(500, 10, 0)
    for gamma in (0.1, 20.0):
        operator = DataOperator(X, Gaussian(gamma), dtype=np.float64)
        result = operator.multiply(sketch)
        assert operator.relative_error(sketch.matrix, result, seed=0)[0] < 1e-12


def test_huge_gamma_gives_the_identity_and_no_nan(points):
    for dtype in (np.float32, np.float64):
        operator = DataOperator(
            points.astype(dtype), Gaussian(1e300 if dtype is np.float64 else 1e36)
        )
        np.testing.assert_array_equal(dense_kernel(operator), np.eye(300))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_samples", [7, 1500])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_whole_kernel_of_new_points_is_that_of_its_tiles(kind, n_samples, dtype):
    """Also where the samples are more than a native tile has columns."""
    random = np.random.default_rng(0)
    X, new = random.normal(size=(n_samples, 4)), random.normal(size=(37, 4))
    for make in (np.asarray, sparse.csr_matrix):
        operator = DataOperator(make(X.astype(dtype)), EXAMPLES[kind])
        cross = operator.against(make(new.astype(dtype)))
        values = cross.values()
        assert values.dtype == dtype
        tolerance = 3e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(values, cross.dense(), rtol=tolerance, atol=tolerance)


def test_a_whole_kernel_that_is_not_finite_is_refused_with_the_point():
    kernel = Polynomial(gamma=1.0, degree=9, coef0=0.0)
    operator = DataOperator(np.full((5, 2), 1e3, np.float32), kernel)
    new = np.ones((40, 2), np.float32)
    new[23] = 1e4
    with pytest.raises(ValueError, match="kernel of point 23 with"):
        operator.against(new).values()
