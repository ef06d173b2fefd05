"""Rules that decide by a number: what they say at the number, and just beside it."""

import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sketchmeans.engine import ALONE, Crew, Run, engine_name
from sketchmeans.engine.schedule import Turns
from sketchmeans.estimators.kmeans import inertia, move_centers, nearest_centers, starts_of
from sketchmeans.estimators.many_rows import (
    Lloyd,
    RowBlocks,
    draw,
    drawn_rows,
    farthest,
    finish_bytes,
    grid,
    more_seeds,
    spread,
    starts_on_some,
    step,
    walked_rows,
)
from sketchmeans.kernels import Linear, Polynomial
from sketchmeans.lowrank.core import (
    CUT,
    EPS,
    NOISE,
    Core,
    judge,
    judge_residual,
    measured_pass,
    noise_level,
)
from sketchmeans.operators import DataOperator
from sketchmeans.operators.monomials import prefers_features
from sketchmeans.sketches import (
    HadamardSketch,
    IdentitySketch,
    RademacherSketch,
    SparseSketch,
    make_sketch,
)


def test_noise_is_what_was_measured_but_not_below_what_rounding_makes():
    assert noise_level(np.dtype(np.float64), 0.0) == 256 * EPS
    assert noise_level(np.dtype(np.float32), 0.0) == 4 * float(np.finfo(np.float32).eps)
    assert noise_level(np.dtype(np.float32), 0.5) == 0.5


def test_a_value_below_zero_is_noise_up_to_the_cut_and_rounding_up_to_its_share():
    eta, size = 2.0**-40, 8.0
    cut, noise = CUT * eta * size, NOISE * size
    assert judge(cut, size, eta, None) == (eta, False)
    more = np.nextafter(cut, 1)
    assert judge(more, size, eta, None) == (more / size, False)
    less = np.nextafter(noise, 0)
    assert judge(less, size, eta, None) == (less / size, False)
    assert judge(noise, size, eta, None) == (eta, True)
    assert judge(noise, size, eta, False) == (eta, True)
    assert judge(noise, size, eta, True) == (noise / size, False)


def test_what_is_below_zero_in_the_residual_is_measured_by_the_diagonal():
    eta, diagonal = 2.0**-40, np.array([1.0, -4.0, 2.0])
    zero = np.zeros(3)
    assert judge_residual(1e-9, zero, 5.0, eta, None) == (eta, True)
    assert judge_residual(0.0, zero, 5.0, eta, None) == (eta, False)
    assert judge_residual(1e-9, zero, 5.0, eta, True) == (eta, False)
    # K̂ is known to η·size: 100 × the entries, so a hundred times as much is noise.
    assert judge_residual(CUT * eta * 400.0, diagonal, 400.0, eta, None) == (eta, False)
    assert judge_residual(1.0, diagonal, 400.0, eta, None) == (eta, True)
    found, indefinite = judge_residual(1e-5, diagonal, 400.0, eta, None)
    assert not indefinite
    assert found == pytest.approx(1e-5 / 400.0)
    # A K̂ that is smaller than the entries is measured by these.
    found, indefinite = judge_residual(1e-5, diagonal, 1.0, eta, None)
    assert not indefinite
    assert found == pytest.approx(1e-5 / 4.0)


def test_a_pass_says_how_long_it_took_and_what_it_met():
    operator = DataOperator(np.random.default_rng(0).normal(size=(50, 2)), Linear())
    begun = time.perf_counter()
    result, eta, cost = measured_pass(operator, RademacherSketch(50, 3, 0), 0, ALONE)
    assert 0 <= cost.seconds <= time.perf_counter() - begun
    assert (cost.passes, cost.entries) == (1, result.entries)
    assert 256 * EPS <= eta < 1e-12


def test_a_core_tells_how_negative_it_is_and_how_coarse():
    eta = 2.0**-45
    values = np.array([4.0, 2.0, -1.0])
    core = Core(None, np.diag(values), eta)
    assert core.size == 4
    assert core.eta == eta
    assert core.negative_mass == pytest.approx(1 / 7)
    assert core.coarseness == 0
    # What is noise by its size, below 10 · η · 4, is not counted as negative.
    assert Core(None, np.diag([4.0, 2.0, 0.03, -1.0]), 1e-3).negative_mass == pytest.approx(
        1 / 7.03
    )
    assert Core(None, np.diag([4.0, 2.0, -0.03, -1]), 1e-3).negative_mass == pytest.approx(1 / 7.03)
    known = Core(None, np.diag([4.0, 2.0, 0.0]), eta)
    assert (known.negative_mass, known.coarseness, known.eta) == (0, 0, eta)
    coarse = Core(None, np.diag([4.0, 2.0, -1e-6]), eta)
    assert coarse.negative_mass == 0
    assert coarse.coarseness == pytest.approx(1e-6)
    assert coarse.eta == pytest.approx(1e-6 / 4)
    diagonal = np.full(10, 2.0)
    assert coarse.rounding(1e-16, diagonal) == pytest.approx(10 * 1e-6 / 20)
    assert coarse.rounding(1.0, diagonal) == 1.0
    assert coarse.rounding(1e-16, diagonal / 100) == pytest.approx(10 * 1e-6 / 0.2)
    assert coarse.rounding(1e-16, np.zeros(10)) == 1e-16


def test_a_core_divides_the_scale_and_the_repeated_columns_of_the_sketch_out():
    random = np.random.default_rng(0)
    F = random.normal(size=(20, 6))
    K = F @ F.T
    Omega = random.normal(size=(20, 4))
    expected = Core(Omega.T @ Omega, Omega.T @ K @ Omega, 1e-13)
    twice = 1000 * np.hstack([Omega, Omega[:, :1]])
    found = Core(twice.T @ twice, twice.T @ K @ twice, 1e-13)
    assert found.whiten.shape == (5, 4)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-8)


def test_what_exceeds_the_diagonal_widens_eta_or_shows_an_indefinite_kernel():
    def core(is_psd=None):
        return Core(None, np.diag([4.0, 2.0]), 2.0**-45, is_psd)

    diagonal = np.array([1.0, 1.0, 2.0])
    below = core()
    below.judge_excess(np.array([-1.0, -0.5, 0.0]), diagonal, 4.0)
    assert (below.eta, below.negative_mass) == (2.0**-45, 0)
    rounded = core()
    rounded.judge_excess(np.array([1e-7, -1.0, 3e-7]), diagonal, 4.0)
    assert rounded.eta == pytest.approx(4e-7 / 4)
    assert rounded.negative_mass == 0
    broken = core()
    broken.judge_excess(np.array([1.0, -1.0, 3.0]), diagonal, 4.0)
    assert broken.negative_mass == pytest.approx(4 / (4 + 4))
    nothing = core()
    nothing.judge_excess(np.array([1.0, 1.0, 1.0]), diagonal, 0.0)
    assert (nothing.eta, nothing.negative_mass) == (2.0**-45, 0)


@pytest.mark.parametrize(
    ("n", "p", "kernel", "expected"),
    [
        (60, 20, Linear(), True),  # 2 · 20 · 120 = 60 · 80
        (59, 20, Linear(), False),
        (460, 200, Linear(), False),  # 2 · 200 · 300 = 461.5 · 260
        (462, 200, Linear(), True),
        (10**9, 2048, Linear(), True),
        (10**9, 2049, Linear(), False),
        (
            125,
            3,
            Polynomial(gamma=1.0, degree=2, coef0=1.0),
            True,
        ),  # 10 monomials: 2200 / 63 = 34.9
        (35, 3, Polynomial(gamma=1.0, degree=2, coef0=1.0), True),
        (34, 3, Polynomial(gamma=1.0, degree=2, coef0=1.0), False),
    ],
)
def test_monomials_are_preferred_where_they_are_the_cheaper_way(n, p, kernel, expected):
    assert prefers_features(n, p, kernel) is expected


def test_starts_see_some_of_many_rows():
    assert drawn_rows(39_999, 8) is None
    assert drawn_rows(40_000, 8) == 20_000
    assert drawn_rows(10**6, 400) == 20_000
    assert drawn_rows(10**6, 401) == 20_050
    assert drawn_rows(2 * 50 * 500, 500) == 25_000
    assert drawn_rows(2 * 50 * 500 - 1, 500) is None
    assert [walked_rows(n, 3) for n in (4999, 5000, 5001)] == [4999, 5000, 5000]
    assert walked_rows(10**6, 200) == 10_000
    assert [starts_on_some(n) for n in (1, 9, 10, 11, 20, 30)] == [2, 18, 20, 20, 20, 30]


def test_blocks_of_rows_are_cut_by_numbers_and_hold_some_rows_per_cluster():
    def rows(n_clusters, columns):
        return grid(10**6, n_clusters, columns)[0].stop

    assert rows(8, 8) == 16_384
    assert rows(32, 32) == 16_384
    assert rows(33, 32) == (1 << 20) // 65
    assert rows(2000, 100) == 8000
    assert rows(8000, 100) == 16_384
    few = finish_bytes(10**6, 8, 8, 8, 2)
    working = 16_384 * (8 * 16 + 8 * 2 * 8 + 64)
    assert few == 3 * 10**6 * 4 + (62 + 4) * 8 * 9 * 8 + 2 * working


LINE = np.array([[0.0], [1.0], [10.0], [14.0], [30.0]])
"""Five rows, of which the centers 1 and 12 have two and three."""


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 3.0, 0.0, 1.0])])
def test_a_block_of_rows_gives_its_sums_masses_squares_and_farthest_rows(weights):
    mass = np.ones(5) if weights is None else weights
    centers, middle = np.array([[-9.0], [2.0]]), np.array([10.0])
    found = step(LINE, weights, centers=centers, middle=middle)
    assert found.labels.tolist() == [0, 0, 1, 1, 1]
    rows = LINE[:, 0] - 10
    expected = [(mass * rows)[:2].sum(), (mass * rows)[2:].sum()]
    np.testing.assert_allclose(found.sums[:, 0], expected)
    np.testing.assert_allclose(found.masses, [mass[:2].sum(), mass[2:].sum()])
    whole = spread(LINE, weights, middle=middle)
    assert whole.mass == mass.sum()
    np.testing.assert_allclose(whole.sums, [(mass * rows).sum()])
    np.testing.assert_allclose(whole.squares, [(mass * rows**2).sum()])
    far = farthest(LINE, weights, centers=centers, middle=middle, count=3)
    expected = [(324, 20, 1), (4, 0, 1), (4, 4, 1)]
    if weights is not None:
        expected = [(324, 20, 1), (4, 0, 1), (1, -10, 0)]  # a row of weight zero is none of them
    assert list(zip(far.squares, far.rows[:, 0], far.labels, strict=True)) == expected


def test_neither_rows_on_their_center_nor_rows_without_weight_are_far_from_it():
    Y, centers = np.array([[0.0], [3.0], [9.0], [9.0]]), np.array([[0.0], [9.0]])
    for weights, expected in ((None, [3.0]), (np.array([1.0, 0.0, 1.0, 1.0]), [])):
        far = farthest(Y, weights, centers=centers, middle=np.zeros(1), count=4)
        assert far.rows[:, 0].tolist() == expected


def test_centers_are_means_of_their_rows_and_the_nearest_is_found():
    labels, weights = np.array([0, 0, 1, 1, 1]), np.array([1.0, 3.0, 1.0, 1.0, 2.0])
    centers = np.array([[5.0], [5.0], [7.0]])
    move_centers(LINE, centers, labels, weights)
    np.testing.assert_allclose(centers, [[0.75], [21.0], [7.0]])
    assert inertia(LINE, centers, labels, weights) == pytest.approx(
        0.75**2 + 3 * 0.25**2 + 121 + 49 + 2 * 81
    )
    assert inertia(LINE, centers, labels, None) == pytest.approx(0.75**2 + 0.25**2 + 121 + 49 + 81)
    move_centers(LINE, centers, labels, None)
    np.testing.assert_allclose(centers, [[0.5], [18.0], [7.0]])
    found, squares = nearest_centers(LINE, centers)
    assert found.tolist() == [0, 0, 2, 1, 1]
    np.testing.assert_allclose(squares, [0.25, 0.25, 9, 16, 144])


def test_an_empty_cluster_takes_the_farthest_row_of_one_that_keeps_others():
    Y = np.array([[0.0], [1.0], [50.0]])
    with Crew(1) as crew:
        lloyd = Lloyd(RowBlocks(Y, None, [slice(0, 2), slice(2, 3)], crew), np.zeros(1), 9, 0.0)
        # 50 is farthest from its center, and all that this center has.
        centers = np.array([[0.25], [40.0], [99.0]])
        sums, mass = lloyd._filled(centers, np.array([[1.0], [50], [0]]), np.array([2.0, 1, 0]))
    np.testing.assert_allclose(sums, [[0], [50], [1]])
    np.testing.assert_allclose(mass, [1, 1, 1])


def test_every_empty_cluster_is_filled_though_the_farthest_rows_stay():
    Y = np.array([[0.0], [0.5], [1.0], [50.0], [90.0]])
    centers = np.array([[0.0], [40.0], [80.0], [500.0], [600.0]])
    with Crew(1) as crew:
        lloyd = Lloyd(RowBlocks(Y, None, [slice(0, 5)], crew), np.zeros(1), 9, 0.0)
        sums, mass = lloyd._filled(
            centers, np.array([[1.5], [50], [90], [0], [0]]), np.array([3.0, 1, 1, 0, 0])
        )
    np.testing.assert_allclose(mass, 1)
    np.testing.assert_allclose(sums[:, 0], [0, 50, 90, 1, 0.5])


def test_rows_without_a_hit_are_drawn_only_where_there_are_fewer_than_clusters():
    Y = np.arange(100.0)[:, None]
    assert draw(Y, None, 20, 3, [0]).hits.sum() == 20
    assert draw(Y, None, 20, 3, [0]).hits.all()
    few = draw(Y, np.eye(100)[7], 20, 3, [0])
    assert len(few.rows) == 3
    assert few.hits[few.rows == 7] == 21  # and once as the first distinct one


def test_the_best_of_several_starts_goes_on():
    Y = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    good, bad = np.array([[0.5], [10.5], [20.5]]), np.array([[0.0], [1.0], [15.0]])
    with Crew(1) as crew:
        lloyd = Lloyd(RowBlocks(Y, None, [slice(0, 6)], crew), np.zeros(1), 9, 0.0)
        for starts, best in (([bad, good], 1), ([good, bad], 0), ([bad, good, bad], 1)):
            end, index = lloyd.finish(starts)
            assert index == best
            assert end.inertia == pytest.approx(1.5)


def test_options_that_k_means_does_not_know_are_refused_by_the_first_start():
    with pytest.raises(ValueError, match="algorithm"):
        starts_of(KMeans(2, algorithm="none"), [0], LINE, None, 1)


def test_starts_on_some_rows_have_the_seeds_given_and_more():
    assert more_seeds([3, 4])[:2] == [3, 4]
    assert len(more_seeds([3, 4])) == 4
    assert len(set(more_seeds(range(10)))) == 20
    assert more_seeds(range(30)) == list(range(30))


def test_sketches_as_wide_as_the_kernel_are_the_identity_and_no_wider_than_their_matrix():
    assert isinstance(make_sketch("hadamard", 9, 9, 0), IdentitySketch)
    assert isinstance(make_sketch("hadamard", 9, 8, 0), HadamardSketch)
    assert HadamardSketch(9, 16, 0).order == 16
    assert HadamardSketch(8, 8, 0).order == 8
    assert HadamardSketch(1, 1, 0).order == 1
    with pytest.raises(ValueError, match="width=17 exceeds the 16 columns"):
        HadamardSketch(9, 17, 0)
    for shape in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="at least one row and column"):
            SparseSketch(*shape, 0)


def test_the_fast_transform_gives_what_explicit_rows_give_over_several_chunks():
    sketch = HadamardSketch(2500, 20, 3)
    columns = np.random.default_rng(0).normal(size=(2500, 3))
    expected = columns.T @ sketch.rows(0, 2500)
    np.testing.assert_allclose(sketch.apply_by_transform(columns), expected, atol=1e-9)


def test_tiles_that_have_had_their_turn_are_counted_for_both_of_their_blocks():
    with Crew(1) as crew:
        turns = Turns(4, crew, played=[(0, 1), (2, 2), (0, 2)])
        assert turns._played == [2, 1, 2, 0]


class HalfWay:
    """A checkpoint that ends work after two tasks, and then goes on from what it has kept."""

    state = None

    @contextmanager
    def stage(self, *name):
        yield self

    def each(self, crew, work, total, make, report=None):
        if self.state is not None:
            crew.each(work, range(self.state["done"], total))
            return
        crew.each(work, range(2))
        self.state = {**make(2), "done": 2}
        raise KeyboardInterrupt


def test_starts_go_on_from_a_checkpoint():
    Y, model = np.random.default_rng(0).normal(size=(60, 2)), KMeans(3)
    whole = starts_of(model, [0, 1, 2, 3], Y, None, 1)
    half = HalfWay()
    with pytest.raises(KeyboardInterrupt):
        starts_of(model, [0, 1, 2, 3], Y, None, 1, half)
    for one, other in zip(starts_of(model, [0, 1, 2, 3], Y, None, 1, half), whole, strict=True):
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
        assert (one.n_iter_, one.inertia_) == (other.n_iter_, other.inertia_)
    assert [one.inertia_ for one in whole] == sorted(one.inertia_ for one in whole)


def test_a_start_is_one_run_from_its_seed():
    Y, model = np.random.default_rng(0).normal(size=(60, 2)), KMeans(8)
    for seed in range(4):
        (found,) = starts_of(model, [seed], Y, None, 1)
        alone = KMeans(8, n_init=1, random_state=seed).fit(Y)
        assert found.inertia_ == pytest.approx(alone.inertia_, rel=1e-12)


def test_columns_go_on_from_the_blocks_that_a_checkpoint_has(monkeypatch):
    monkeypatch.setattr("sketchmeans.operators.base.BLOCK", 64)
    X = np.random.default_rng(0).normal(size=(150, 2))  # three blocks
    half = HalfWay()
    with pytest.raises(KeyboardInterrupt):
        DataOperator(X, Linear()).columns(np.arange(3), Run(checkpoint=half))
    np.testing.assert_allclose(half.state["R"], X[:128] @ X[:3].T, atol=1e-12)
    assert half.state["room"] == {"R": 150}


@pytest.mark.parametrize("n", [1, 2, 7, 64, 65, 1000])
def test_samples_sit_at_places_of_their_own(n):
    sketch = HadamardSketch(n, 1, 3)
    places = sketch.positions(0, n)
    assert len(set(places.tolist())) == n
    assert places.max() < sketch.order


def test_a_sparse_sketch_has_eight_signs_in_a_row_or_as_many_as_are_wide():
    for width, count in ((20, 8), (8, 8), (5, 5)):
        rows = SparseSketch(50, width, 0).matrix
        assert (np.count_nonzero(rows, axis=1) == count).all()
        assert set(np.unique(rows)) <= {-1, 0, 1}


def test_a_seed_gives_the_numbers_that_it_always_gave():
    found = HadamardSketch(2048, 6, 7).rows(1022, 1027)
    assert found.tolist() == [
        [1, 1, 1, -1, 1, -1],
        [-1, -1, -1, 1, 1, 1],
        [1, 1, 1, -1, 1, 1],
        [1, -1, 1, 1, 1, -1],
        [1, -1, 1, -1, -1, 1],
    ]
    found = SparseSketch(2048, 10, 7).rows(1023, 1025)
    assert found.tolist() == [[1, -1, 1, 1, 0, -1, 1, 0, 1, 1], [1, 0, 1, 1, -1, -1, -1, 1, 0, -1]]
    found = RademacherSketch(2048, 6, 7).rows(1023, 1026)
    assert found.tolist() == [[1, 1, 1, 1, -1, -1], [1, 1, 1, 1, -1, -1], [-1, -1, -1, -1, -1, 1]]


@pytest.mark.skipif(engine_name() != "native", reason="of the native engine")
def test_the_fast_transform_takes_one_copy_of_the_columns():
    sketch, columns = HadamardSketch(4096, 16, 0), np.ones((4096, 32))
    sketch.apply_by_transform(columns)
    tracemalloc.start()
    sketch.apply_by_transform(columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * columns.nbytes
