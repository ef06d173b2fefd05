"""Rules of operators: what they say that they take, and small parts against their definitions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import KernelKMeans
from sketchmeans.engine import engine_name, native_tile_rows
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from sketchmeans.kernels.rounding import LEAST, entry_rounding
from sketchmeans.operators import (
    CallableOperator,
    DataOperator,
    FeatureMapOperator,
    PrecomputedOperator,
)
from sketchmeans.operators.base import THREAD_BYTES, audited_rows, rows_at_once
from sketchmeans.operators.gram import _mirrored, _stripes, finished, span_pairs
from sketchmeans.operators.neighbor_features import regular_csr
from sketchmeans.operators.neighbor_features import rows_at_once as rows_of_neighbors
from sketchmeans.operators.tiles import NativeTiles, PlainTiles, by_panels, diagonal_parts

native = pytest.mark.skipif(engine_name() != "native", reason="of the native engine")
EPS = float(np.finfo(np.float64).eps)
QUADRATIC = Polynomial(gamma=0.2, degree=2, coef0=1.0)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(100, 6))


def thinned(count):
    """Return 100 sparse rows of six features with so many numbers in all."""
    whole = np.zeros(600)
    whole[:count] = 1.0
    return sparse.csr_matrix(whole.reshape(100, 6))


def test_blocks_of_columns_have_a_million_numbers_and_some_rows():
    assert rows_at_once(256, 1) == rows_at_once(1, 256) == 4096
    assert rows_at_once(257, 1) == rows_at_once(1, 257) == 4080
    assert rows_at_once(0, 0) == 4096
    assert rows_at_once(1 << 14, 1) == 64
    assert rows_at_once(1 << 20, 1) == 64
    assert rows_of_neighbors(1, 5) == 4096
    assert rows_of_neighbors(1 << 20, 5) == 64


def test_rows_that_are_computed_again_are_some_or_all():
    assert audited_rows(7, 0).tolist() == list(range(7))
    few = audited_rows(1000, 0)
    assert len(np.unique(few)) == 32
    assert (np.diff(few) > 0).all()
    assert not np.array_equal(few, audited_rows(1000, 1))


def test_an_operator_tells_what_computes_it_and_whether_samples_are_left_out(rows):
    def given(weights=None):
        return CallableOperator(rows, lambda A, B: A @ B.T, weights=weights)

    assert given().engine == "numpy"
    assert FeatureMapOperator(rows, QUADRATIC).engine == "feature map"
    assert given().leaves_out is False
    assert not given(np.ones(100)).leaves_out
    assert given(np.arange(100.0)).leaves_out
    assert given().diagonal_entries == 6 * 16**2 + 4**2


def test_the_rounding_of_a_matrix_is_twice_what_its_halves_differ_by():
    K = np.eye(5)
    assert PrecomputedOperator(K).rounding() == (LEAST, 25)
    K[0, 1] = 1e-3
    assert PrecomputedOperator(K).rounding()[0] == pytest.approx(2e-3)
    coarse = PrecomputedOperator(np.eye(5), dtype=np.float32)
    assert coarse.rounding()[0] == 16 * float(np.finfo(np.float32).eps)
    assert coarse.rounding(fine=True)[0] == LEAST
    assert (coarse._unit(True), coarse._unit(False)) == (16 * EPS, coarse.rounding()[0])
    written = PrecomputedOperator(np.eye(5, dtype=np.float32))
    assert written._unit(True) == 4 * float(np.finfo(np.float32).eps)
    assert PrecomputedOperator(np.eye(5, dtype=np.int64))._unit(True) == 16 * EPS


def test_the_rounding_of_rows_follows_the_formula_and_what_some_entries_show(rows):
    # 32 rows, and up to 32 columns from each of 0, 14, 28, 42, 56, 70, 84 and 99 on, twice.
    spent = 2 * 32 * (5 * 32 + 30 + 16 + 1)
    fine = DataOperator(rows, Gaussian(0.1))
    norm = fine.points.largest_norm
    expected = entry_rounding(Gaussian(0.1), np.dtype(np.float64), 6, norm, 0.0)
    assert fine.rounding() == (pytest.approx(expected, rel=1e-12), spent)
    coarse = DataOperator(rows, Gaussian(0.1), dtype=np.float32)
    norm, largest = coarse.points.largest_norm, np.abs(rows).sum(axis=1).max()
    expected = entry_rounding(Gaussian(0.1), np.dtype(np.float32), 6, norm, largest)
    assert coarse.rounding()[0] == pytest.approx(expected, rel=1e-6)
    expected = entry_rounding(Gaussian(0.1), np.dtype(np.float64), 6, 4 * norm, 0.0)
    assert coarse.rounding(fine=True)[0] == pytest.approx(expected, rel=1e-6)
    # Only rows that were narrowed are off themselves, which distances of sums show.
    steep, single = Laplacian(100.0), np.dtype(np.float32)
    for X, narrowed in ((rows, largest), (rows.astype(np.float32), 0.0)):
        operator = DataOperator(X, steep, dtype=np.float32)
        expected = entry_rounding(steep, single, 6, operator.points.largest_norm, narrowed)
        assert operator.rounding()[0] == pytest.approx(expected, rel=1e-6)
    for operator in (fine, coarse):
        M = np.eye(100, 3)
        error, entries = operator.relative_error(M, operator.multiply(M), 0)
        assert entries == 3200
        assert 0 <= error <= 50 * float(np.finfo(operator.dtype).eps)
    nothing = DataOperator(0 * rows, Linear())
    assert nothing.relative_error(M, nothing.multiply(M), 0)[0] == 0


def test_the_rounding_of_rows_is_twice_the_worst_that_entries_show(rows, monkeypatch):
    shown = iter([1e-3, 5e-3, *[2e-3] * 6])
    monkeypatch.setattr("sketchmeans.operators.data.largest_deviation", lambda *some: next(shown))
    assert DataOperator(rows, Gaussian(0.1)).rounding()[0] == 1e-2


def test_rows_take_their_numbers_and_sparse_ones_their_indices(rows):
    assert DataOperator(rows, Linear()).row_bytes(10) == 480
    assert DataOperator(thinned(250), Linear()).row_bytes(10) == 25 * 16
    assert DataOperator(thinned(251), Linear()).row_bytes(10) == 26 * 16
    assert PrecomputedOperator(np.eye(100)).row_bytes(10) == 0


def test_columns_take_blocks_of_rows_a_thread(rows):
    given = CallableOperator(rows, lambda A, B: A @ B.T)
    blocks = 3 * 4096 * 7 * 8 + 4 * 4096 * 48 + THREAD_BYTES
    for threads in (1, 2):
        expected = threads * blocks + 10 * 48 + 500
        assert given.columns_bytes(5, Run(threads)) == expected
    for dtype, size in ((np.float32, 9), (np.float64, 9), (np.longdouble, 17)):
        K = PrecomputedOperator(np.eye(100, dtype=dtype))
        assert K.columns_bytes(5, Run(2)) == 500 * size + THREAD_BYTES


def test_a_pass_of_plain_tiles_takes_a_tile_a_thread_and_the_packed_sketch(rows):
    given = CallableOperator(rows, lambda A, B: A @ B.T, dtype=np.float32)
    tile = (64 * 64 + 4 * 64 * 10) * 4 + 64 * 10 * 8 + 2 * 64 * 10 * 8 + THREAD_BYTES
    assert given.scratch_bytes(9, Run(3)) == 3 * tile + 100 * 10 * 4
    assert given.scratch_bytes(9, Run(3, pack=False)) == 3 * tile
    assert given.tile_entries == given.pass_entries == 64**2 + 36**2 + 64 * 36


def test_new_points_take_the_matrix_and_two_tiles_a_thread(rows):
    given = CallableOperator(rows, lambda A, B: A @ B.T)
    new = rows[:7] + 0.5
    np.testing.assert_allclose(given.multiplier(np.eye(100, 3))(new), new @ rows[:3].T, atol=1e-12)
    plain = 100 * 9 * 8 + 3 * (2 * 256 * 265 * 8 + THREAD_BYTES)
    assert given.cross_bytes(9, Run(3)) == plain
    panels = 100 * 11 * 8 + 3 * 4096 * 48
    packed = DataOperator(rows, Gaussian(1.0))._packed_bytes
    assert packed > 0
    assert DataOperator(rows, Gaussian(1.0)).cross_bytes(9, Run(3)) == plain + panels + packed
    loose = Run(3, pack=False)
    assert DataOperator(rows, Gaussian(1.0)).cross_bytes(9, loose) == plain + panels


@native
def test_a_pass_of_native_tiles_takes_panels_strips_and_packed_copies(rows):
    operator = DataOperator(rows, Gaussian(1.0))
    packed = 115 * 6 * 8
    own = 512 * 10 * 8 + (1 << 16)
    strips = 2 * 192 * 10 * 8
    assert NativeTiles.scratch_bytes(operator.points, 10, packed=True) == own
    whole = 2 * (own + strips + THREAD_BYTES) + 115 * 10 * 8 + packed + 800
    assert operator.scratch_bytes(9, Run(2)) == whole
    more = 2 * 192 * 16 * 16
    assert NativeTiles.scratch_bytes(operator.points, 10, packed=False) == own + more
    loose = 2 * (own + more + strips + THREAD_BYTES) + 800
    assert operator.scratch_bytes(9, Run(2, pack=False)) == loose
    # Copies are made where they take no more than twice W: 1600 · (width + 1).
    assert [operator._worth_packing(width) for width in (1, 2, 3)] == [False, False, True]
    # The sparse rows of a block by features: 3 numbers a row, and room for their products.
    few = DataOperator(thinned(250), Gaussian(1.0))
    row = 12
    own += 6 * 8 + 192 * row * 12 + 192 * 192 * 8 + 2 * 192 * (10 + row) * 16
    assert NativeTiles.scratch_bytes(few.points, 10, packed=False) == own
    assert few._packed_bytes == 0
    assert not few._worth_packing(9)


def test_a_pass_of_numpy_tiles_takes_augmented_rows_besides(rows, monkeypatch):
    monkeypatch.setattr("sketchmeans.operators.data.engine_name", lambda: "numpy")
    plain = CallableOperator(rows, lambda A, B: A @ B.T).scratch_bytes(9, Run(2))
    dense = DataOperator(rows, Gaussian(1.0))
    assert dense.engine == "numpy"
    augmented = 2 * 4 * 64 * 8 * 8
    assert dense.scratch_bytes(9, Run(2)) == plain + augmented + 2 * 100 * 8 * 8 + 800
    few = DataOperator(thinned(250), Gaussian(1.0))
    assert few.scratch_bytes(9, Run(2)) == plain + 2 * 4 * 64 * 12 * 8 + 800
    assert dense.pass_entries == 64**2 + 36**2 + 64 * 36


def test_a_pass_of_features_takes_sums_and_blocks_a_thread(rows):
    operator = FeatureMapOperator(rows[:, :3], QUADRATIC)
    assert operator.map.count == 10
    sums, block = 10 * (9 + 1 + 10), 1024 * (30 + 10 + 9 + 1)
    expected = 8 * (sums * 4 + block * 3 + 300) + 3 * THREAD_BYTES
    assert operator.scratch_bytes(9, Run(3)) == expected
    assert operator.pass_entries == operator.stream_entries == operator.stream_distances == 0


def test_a_pass_over_a_matrix_takes_strips_of_it():
    strips = 256 * 100 * 4 * 6
    given = PrecomputedOperator(np.eye(100), dtype=np.float32)
    assert given.scratch_bytes(9, Run(3)) == 3 * (strips + THREAD_BYTES) + 5 * 100 * 8
    assert given.pass_entries == 10_000


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(Linear(), 6), (Cosine(), 6), (QUADRATIC, 28), (Gaussian(1.0), 100), (Sigmoid(1.0, 0.0), 100)],
)
def test_the_rank_is_at_most_the_features_of_a_finite_map(kernel, expected, rows):
    assert DataOperator(rows, kernel).rank_at_most == expected
    assert DataOperator(rows[:5], kernel).rank_at_most == 5


def test_wide_and_sparse_rows_are_not_multiplied_by_panels():
    def panels(p, dtype, kernel=None):
        return by_panels(DataOperator(np.ones((3, p), dtype), kernel or Gaussian(1.0)).points)

    assert [panels(p, np.float32) for p in (2047, 2048)] == [True, False]
    assert [panels(p, np.float64) for p in (4095, 4096)] == [True, False]
    assert panels(4096, np.float64, Laplacian(1.0))
    assert by_panels(DataOperator(thinned(9), Laplacian(1.0)).points) is False


def test_parts_of_a_tile_on_the_diagonal_have_up_to_320_rows():
    found = [(part.start, part.stop) for part in diagonal_parts(slice(100, 741))]
    assert found == [(100, 420), (420, 740), (740, 741)]
    assert NativeTiles.diagonal_entries(320) == 320 * 320
    assert NativeTiles.diagonal_entries(640) == 3 * 320 * 320


def test_a_scale_is_folded_into_products_while_numbers_stay_finite():
    def folds(gamma, size):
        points = DataOperator(np.array([[-size], [size]]), Gaussian(gamma)).points
        return PlainTiles(Gaussian(gamma), points, points).folds

    assert folds(0.9e30, 0.1)
    assert not folds(1e30, 0.1)
    assert folds(1e28, 9.0)
    assert not folds(1e28, 11.0)


def test_a_huge_scale_leaves_numbers_between_points_near_and_far():
    X = np.array([[9e-19], [-9e-19], [1e19], [-1e19]], np.float32)
    points = DataOperator(X, Gaussian(1e38)).points
    tiles, near, far = PlainTiles(Gaussian(1e38), points, points), slice(0, 2), slice(2, 4)
    assert not tiles.folds
    assert not tiles.are_far(near, far)
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(tiles(near, far), np.zeros((2, 2)))


@pytest.mark.parametrize("gamma", [1e38, 1e39, 1e300])
def test_a_scale_beyond_float32_leaves_equal_rows_alike(gamma):
    X = np.array([[0, 0], [0, 0], [1, 1]], np.float32)
    K = DataOperator(X, Gaussian(gamma)) @ np.eye(3, dtype=np.float32)
    np.testing.assert_array_equal(K, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    labels = KernelKMeans(2, kernel="rbf", gamma=gamma, random_state=0).fit_predict(X)
    assert labels[0] == labels[1] != labels[2]


@pytest.mark.parametrize("gamma", [0.1, 1e31], ids=["folded", "not folded"])
def test_rows_that_are_packed_are_not_scaled_again_for_a_tile(gamma, monkeypatch):
    monkeypatch.setattr("sketchmeans.operators.data.engine_name", lambda: "numpy")
    operator = DataOperator(np.zeros((100, 6)), Gaussian(gamma))
    points, taken = operator.points, []
    operator.tiles(np.eye(100, 3), 64, pack=True, pack_right=True)
    whole = points.augmented
    monkeypatch.setattr(points, "augmented", lambda some: taken.append(some) or whole(some))
    operator.tile(slice(0, 64), slice(64, 100))
    assert taken == [slice(64, 100)]  # those of the columns alone


@native
@pytest.mark.parametrize("rows_each", [64, 704])
def test_tiles_of_a_part_of_the_samples_have_the_rows_of_the_whole(rows_each, rows):
    operator = DataOperator(rows, Gaussian(0.1))
    tiles = operator.tiles(np.eye(100, 3), rows_each, pack=False, pack_right=False)
    assert tiles.tile_rows == rows_each
    alone = NativeTiles(tiles.plain, tiles.left, tiles.right, tiles.omega)
    assert alone.tile_rows == native_tile_rows(100)


def test_points_are_far_where_rounding_would_show_in_their_distances():
    X = np.array([[1.0], [2.0], [1e6], [-1e6]])
    points = DataOperator(X, Gaussian(1e-3)).points
    tiles = PlainTiles(Gaussian(1e-3), points, points)
    # 10⁻⁹ over 10⁻³ · 2⁻⁵² is a ‖x‖² of 4.5 · 10⁹.
    assert not tiles.are_far(slice(0, 2), slice(0, 2))
    assert not tiles.are_far(slice(0, 2), slice(2, 4))
    assert tiles.are_far(slice(2, 4), slice(2, 4))


@pytest.mark.parametrize("width", [1, 5, 600])
def test_stripes_of_a_triangle_have_about_as_many_numbers_each(width):
    ends = _stripes(width, 4)
    assert ends[0] == 0
    assert ends[-1] == width
    assert ends == sorted(set(ends))
    if width == 600:
        areas = [sum(width - row for row in range(*pair)) for pair in pairwise(ends)]
        assert len(areas) == 4
        assert max(areas) - min(areas) < 2 * width


def test_what_two_columns_share_is_the_gram_matrix_of_sparse_rows():
    random = np.random.default_rng(0)
    width, columns = 600, np.sort(random.random((40, 600)).argsort(axis=1)[:, :7], axis=1)
    root, scales = random.uniform(0.5, 2, 40), random.uniform(0.5, 2, 600)
    F = np.zeros((40, width))
    np.put_along_axis(F, columns, 1.0, axis=1)
    expected = (F * root[:, None]).T @ (F * root[:, None])
    shared = span_pairs(columns.astype(np.int32), root, width)
    np.testing.assert_allclose(finished(shared, scales), expected * np.outer(scales, scales))
    upper = random.normal(size=(600, 600))
    np.testing.assert_array_equal(_mirrored(np.triu(upper)), np.triu(upper) + np.triu(upper, 1).T)
    M = regular_csr(columns, np.ones(columns.shape), width)
    np.testing.assert_array_equal(M.toarray(), F)
    assert M.indices.dtype == np.int32


@native
@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_tile_on_the_diagonal_gives_what_its_parts_give(weighted):
    random = np.random.default_rng(0)
    X, Omega = random.normal(size=(700, 3)), random.normal(size=(700, 2))
    root = np.sqrt(random.uniform(0.5, 2, 700)) if weighted else np.ones(700)
    operator = DataOperator(X, Gaussian(0.1), weights=root**2 if weighted else None)
    tiles = operator.tiles(Omega, 704, pack=False, pack_right=False)
    W, diagonal, whole = np.zeros((700, 3)), np.zeros(700), slice(0, 700)
    squares = tiles.add(whole, whole, W, diagonal)
    K = Gaussian(0.1).of(np.square(X[:, None] - X[None]).sum(axis=2)) * np.outer(root, root)
    assert squares == pytest.approx(np.square(K).sum())
    np.testing.assert_allclose(W, np.column_stack([K @ Omega, K @ root]), atol=1e-9)
    np.testing.assert_allclose(diagonal, K.diagonal())


def test_products_with_a_matrix_and_with_a_vector_have_their_shapes(rows):
    operator, M = DataOperator(rows, Linear()), np.eye(100, 3)
    np.testing.assert_allclose(operator @ M, rows @ rows[:3].T, atol=1e-12)
    np.testing.assert_allclose(operator @ M[:, 0], rows @ rows[0], atol=1e-12)
    exact = FeatureMapOperator(rows, Linear())
    assert exact.relative_error(M, exact.multiply(M), 0) == (0.0, 0)
    given = CallableOperator(rows, lambda A, B: A @ B.T)
    assert given.relative_error(M, given.multiply(M), 0)[1] == 0


def test_the_error_of_a_pass_over_a_matrix_is_what_the_pass_saw_and_takes_no_entries(rows):
    K, M = rows @ rows.T, np.random.default_rng(1).normal(size=(100, 3))
    given = PrecomputedOperator(K, dtype=np.float32)
    found = given.multiply(M)
    assert 1e-9 < found.relative_error < 1e-5
    assert given.relative_error(M, found, 0) == (found.relative_error, 0)


@native
def test_what_multiplies_new_points_prepares_the_samples_once(rows, monkeypatch):
    operator = DataOperator(rows, Gaussian(0.1))
    taken, whole = [], operator.points.rows
    monkeypatch.setattr(operator.points, "rows", lambda some: taken.append(some) or whole(some))
    multiply = operator.multiplier(np.eye(100, 3))
    assert taken
    taken.clear()
    expected = Gaussian(0.1).of(np.square(rows[:, None] - rows[None, :3]).sum(axis=2))
    np.testing.assert_allclose(multiply(rows), expected, atol=1e-12)
    assert not taken


def test_a_product_with_sparse_rows_of_a_matrix_reads_those_that_are_stored():
    K = sparse.csr_matrix(np.triu(np.ones((4, 4))))
    given = PrecomputedOperator(sparse.csr_matrix(np.eye(4)))
    assert given.against(K).entries == 10
    few = given.landmarks(np.array([1, 3])).against(K)
    assert few.entries == 8
    np.testing.assert_array_equal(few.multiply(np.eye(2)), K.toarray()[:, [1, 3]])


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 100)])
def test_what_a_stream_gives_can_be_turned_and_cut_as_the_features_can(weights, rows):
    operator = FeatureMapOperator(rows, Linear(), weights=weights)
    found = operator.gram(rows.mean(axis=0))
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    root = np.ones(100) if weights is None else np.sqrt(weights)
    u, F = root / np.linalg.norm(root), operator.features(slice(0, 100))
    for part, G in ((found, F), (found.leading(4), F[:, :4]), (found.rotated(V), F @ V)):
        centred = G - np.outer(u, u @ G)
        np.testing.assert_allclose(part.squared, G.T @ G, atol=1e-10)
        np.testing.assert_allclose(part.centred, centred.T @ centred, atol=1e-10)
        np.testing.assert_allclose(part.along, u @ G, atol=1e-10)
        np.testing.assert_allclose(part.lengths, np.square(F).sum(axis=1))


@native
@pytest.mark.parametrize("weights", [None, np.array([1.0, 4.0, 1.0, 9.0, 1.0])])
def test_squares_beyond_the_range_of_float32_are_added_up(weights):
    X = np.full((5, 2), 1e12, np.float32)
    root = np.ones(5) if weights is None else np.sqrt(weights)
    found = DataOperator(X, Linear(), weights=weights).multiply(np.eye(5, 2))
    assert found.sum_of_squares == pytest.approx(np.square(2e24 * np.outer(root, root)).sum(), 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_rows_give_what_narrow_ones_give(dtype):
    X = np.zeros((30, 4096), dtype)
    X[:, ::1024] = np.random.default_rng(0).normal(size=(30, 4))
    M = np.eye(30, 3)
    for kernel in (Gaussian(0.1), Linear()):
        narrow = DataOperator(np.ascontiguousarray(X[:, ::1024]), kernel)
        np.testing.assert_allclose(DataOperator(X, kernel) @ M, narrow @ M, atol=1e-5)


def test_new_points_meet_the_samples_without_the_native_engine_too(rows, monkeypatch):
    new, M = rows[:7] + 0.5, np.eye(100, 3)
    expected = DataOperator(rows, Gaussian(0.1)).against(new).multiply(M)
    monkeypatch.setattr("sketchmeans.operators.data.engine_name", lambda: "numpy")
    found = DataOperator(rows, Gaussian(0.1)).against(new)
    assert found.shape == (7, 100)
    squares = np.square(rows[:, None] - rows[None, :3]).sum(axis=2)
    np.testing.assert_allclose(
        DataOperator(rows, Gaussian(0.1)) @ M, Gaussian(0.1).of(squares), atol=1e-12
    )
    np.testing.assert_allclose(found.multiply(M), expected, atol=1e-12)


def test_the_kernel_of_some_samples_is_that_part_of_the_whole(rows):
    operator = DataOperator(rows, Gaussian(0.1))
    part = operator.on(rows[3:8])
    assert part.shape == (5, 5)
    assert operator.on(None).shape == (0, 0)
    whole, few = slice(0, 100), slice(0, 5)
    expected = operator.tile(whole, whole)[3:8, 3:8]
    np.testing.assert_allclose(part.tile(few, few), expected, atol=1e-12)


def test_features_of_new_points_are_multiplied_without_their_kernel(rows):
    def no_tile(*given):
        raise AssertionError

    found = FeatureMapOperator(rows, Linear()).against(rows[:7] + 0.5)
    found.tile = no_tile
    np.testing.assert_allclose(found.multiply(np.eye(100, 3)), (rows[:7] + 0.5) @ rows[:3].T)


@native
def test_a_pass_meets_as_many_entries_as_it_says():
    operator = DataOperator(np.zeros((700, 2)), Gaussian(0.1))
    assert operator.multiply(np.zeros((700, 1))).entries == operator.pass_entries
    # Eight blocks of 640 rows; of tiles on the diagonal, three quarters.
    many = DataOperator(np.zeros((5120, 2)), Gaussian(0.1))
    assert many.pass_entries == 28 * 640**2 + 8 * 3 * 320**2
