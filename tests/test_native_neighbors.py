"""Native nearest anchors and Gram matrices against NumPy, scikit-learn and SciPy."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarded import guarded
from sketchmeans import KernelKMeans
from sketchmeans.engine import Crew, Run
from sketchmeans.engine.nearest import PackedAnchors
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.operators import NeighborOperator
from sketchmeans.operators.anchors import MORE, Anchors
from sketchmeans.operators.gram import add_counts, finished, span_pairs
from sketchmeans.operators.neighbor_features import regular_csr

native = pytest.importorskip("sketchmeans.engine._native", reason="the native engine was not built")

THREADS = (1, 2, 3, 8)
# Rows, anchors and features: single ones, whole vectors and panels, one more and one less. The
# last two have more features than are multiplied at a time; the first of them more rows than take
# turns.
SHAPES = [
    (1, 1, 1),
    (1, 9, 3),
    (7, 2, 1),
    (8, 8, 8),
    (9, 65, 3),
    (130, 63, 7),
    (33, 130, 17),
    (20, 500, 20),
    (75, 1030, 70),
    (17, 1030, 129),
]


@pytest.fixture(autouse=True)
def native_engine(monkeypatch):
    monkeypatch.setenv("SKETCHMEANS_ENGINE", "native")


@pytest.fixture
def at_level():
    """Return a function that chooses the level of the processor for the rest of a test."""
    before = native.use(native.levels()[0])
    yield native.use
    native.use(before)


def counts_up_to(m):
    return sorted({k for k in (1, 2, 5, 8, 13, m // 8, m // 2, m - 1, m) if 1 <= k <= m})


def by_definition(rows, points, k):
    """All squared distances, from differences; of equal ones the first."""
    squares = np.square(rows[:, None] - points).sum(axis=2)
    return np.sort(np.argsort(squares, axis=1, kind="stable")[:, :k], axis=1)


@pytest.mark.parametrize("level", native.levels())
@pytest.mark.parametrize("shape", SHAPES)
def test_nearest_anchors_are_those_of_scikit_learn(level, shape, at_level, monkeypatch):
    n, m, p = shape
    random = np.random.default_rng(shape)
    rows, points = random.normal(size=(n, p)), random.normal(size=(m, p))
    at_level(level)
    for k in counts_up_to(m):
        found = Anchors(points, k).nearest(rows)
        monkeypatch.setenv("SKETCHMEANS_ENGINE", "numpy")
        truth = Anchors(points, k).nearest(rows)
        monkeypatch.setenv("SKETCHMEANS_ENGINE", "native")
        assert found.dtype == truth.dtype == np.int32
        np.testing.assert_array_equal(found, truth)


@pytest.mark.parametrize("level", native.levels())
@pytest.mark.parametrize("shape", SHAPES)
def test_of_equally_far_anchors_the_first_are_taken(level, shape, at_level):
    n, m, p = shape
    random = np.random.default_rng(shape)
    at_level(level)
    # Whole numbers: products and differences are exact, and ties are ties.
    rows = random.integers(-1, 2, (n, p)).astype(float)
    points = random.integers(-1, 2, (m, p)).astype(float)
    for k in counts_up_to(m):
        found = Anchors(points, k).nearest(rows)
        np.testing.assert_array_equal(found, by_definition(rows, points, k))
    same = Anchors(np.ones((m, p)), min(m, 5)).nearest(rows)
    np.testing.assert_array_equal(same, np.tile(np.arange(min(m, 5)), (n, 1)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 90),
    p=st.integers(1, 20),
    levels=st.integers(1, 4),
    level=st.sampled_from(native.levels()),
    choice=st.data(),
)
def test_ties_of_any_shape_are_broken_as_by_the_definition(n, m, p, levels, level, choice):
    k = choice.draw(st.integers(1, m))
    looked_at = choice.draw(st.integers(k, m))
    random = np.random.default_rng([n, m, p])
    rows, points = (random.integers(0, levels, (size, p)).astype(float) for size in (n, m))
    before = native.use(level)
    try:
        found = PackedAnchors(points).nearest(rows, k, looked_at)
    finally:
        native.use(before)
    np.testing.assert_array_equal(found, by_definition(rows, points, k))


def test_differences_decide_where_products_cannot():
    random = np.random.default_rng(0)
    points = 1e7 + np.sort(random.normal(size=(200, 1)) * 1e-3, axis=0)
    rows = points[50:150] + 1e-9
    # ‖a‖² ≈ 1e14 has digits down to 0.02 only: four candidates would be as good as drawn.
    for looked_at in (4, 200):
        found = PackedAnchors(points).nearest(rows, 1, looked_at)
        np.testing.assert_array_equal(found, by_definition(rows, points, 1))


def test_a_row_keeps_its_bits_in_any_company_and_order_of_memory():
    random = np.random.default_rng(0)
    for m, p in ((130, 5), (1030, 70)):
        anchors = Anchors(random.integers(0, 3, (m, p)) + random.normal(size=(m, p)) * 1e-9, 5)
        rows = random.integers(0, 3, (140, p)) + random.normal(size=(140, p)) * 1e-9
        whole = anchors.nearest(rows)
        for size in (1, 3, 8, 64, 65):
            parts = [anchors.nearest(rows[i : i + size]) for i in range(0, 140, size)]
            np.testing.assert_array_equal(np.vstack(parts), whole)
        np.testing.assert_array_equal(anchors.nearest(np.asfortranarray(rows)), whole)
        np.testing.assert_array_equal(anchors.nearest(rows[::-1]), whole[::-1])
        with ThreadPoolExecutor(4) as pool:
            shared = list(pool.map(anchors.nearest, np.split(rows, 7)))
        np.testing.assert_array_equal(np.vstack(shared), whole)


@pytest.mark.parametrize("level", native.levels())
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300])
def test_rows_that_are_no_numbers_find_some_anchors_and_leave_others_theirs(level, wrong, at_level):
    at_level(level)
    random = np.random.default_rng(0)
    for m, p, k in ((1, 1, 1), (12, 3, 12), (70, 3, 4), (200, 9, 60)):
        points, rows = random.normal(size=(m, p)), random.normal(size=(21, p))
        truth = Anchors(points, k).nearest(rows)
        rows[[3, 20]] = wrong
        rows[5, 0] = wrong
        found = Anchors(points, k).nearest(rows)
        odd = [3, 5, 20]
        np.testing.assert_array_equal(np.delete(found, odd, axis=0), np.delete(truth, odd, axis=0))
        assert (found >= 0).all()
        assert (found < m).all()
        assert (np.diff(found, axis=1) > 0).all()
        points[0] = wrong
        with np.errstate(over="ignore"):
            assert (np.diff(Anchors(points, k).nearest(rows), axis=1) > 0).all()


def test_pickled_anchors_leave_out_what_is_made_again():
    random = np.random.default_rng(0)
    anchors = Anchors(random.normal(size=(100, 6)), 5)
    rows = random.normal(size=(50, 6))
    before, found = len(pickle.dumps(anchors)), anchors.nearest(rows)
    kept = pickle.dumps(anchors)
    assert len(kept) == before
    np.testing.assert_array_equal(pickle.loads(kept).nearest(rows), found)


def regular(n, stored, width, whole=False):
    """Columns that rise in every row, and their numbers."""
    random = np.random.default_rng([n, stored, width])
    columns = np.sort(random.random((n, width)).argsort(axis=1)[:, :stored], axis=1)
    values = random.integers(-4, 5, columns.shape) if whole else random.normal(size=columns.shape)
    return columns.astype(np.int32), values.astype(float)


def counts_of(parts, width, n_threads):
    with Crew(n_threads) as crew:
        G = np.zeros((width, width))
        add_counts([parts], G, crew)
        return finished(G, np.ones(width))


@pytest.mark.parametrize(
    ("n", "stored", "width"),
    [(1, 1, 1), (5, 1, 3), (40, 3, 3), (100, 7, 50), (2000, 20, 600), (30, 513, 513)],
)
def test_what_columns_share_is_that_of_scipy(n, stored, width):
    columns, values = regular(n, stored, width)
    ones = regular_csr(columns, np.ones(columns.shape), width)
    truth = (ones.T @ ones).toarray()
    cuts = [slice(i, i + 9) for i in range(0, n, 9)]
    for n_threads in (1, *THREADS):
        for parts in ([columns], [columns[cut] for cut in cuts]):
            np.testing.assert_array_equal(counts_of(parts, width, n_threads), truth)
    root, scales = (
        np.abs(values[:, 0]) + 0.1,
        np.abs(values.sum(axis=0)[:1]) + np.arange(1.0, width + 1),
    )
    F = regular_csr(columns, root[:, None] * scales[columns], width)
    found = finished(span_pairs(columns, root, width), scales)
    np.testing.assert_allclose(found, (F.T @ F).toarray(), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gram_matrix_of_samples_has_the_same_bits_for_any_threads_and_memory(
    weighted, monkeypatch
):
    random = np.random.default_rng(0)
    n = 5000
    X = random.normal(size=(n, 6)) + 4 * random.integers(0, 3, (n, 1))
    weights = random.uniform(0.5, 2, n) if weighted else None

    def gram(run):
        operator = NeighborOperator(X, NeighborOptions(n_anchors=40), weights=weights, seed=0)
        operator.build(run)
        return operator.gram_of_features(run), operator.diagonal()

    first, lengths = gram(Run(1))
    for n_threads in THREADS:
        for pack in (True, False):
            found, diagonal = gram(Run(n_threads, pack))
            assert found.tobytes() == first.tobytes()
            assert diagonal.tobytes() == lengths.tobytes()
    monkeypatch.setenv("SKETCHMEANS_ENGINE", "numpy")
    truth, diagonal = gram(Run(2))
    np.testing.assert_allclose(first, truth, rtol=1e-11, atol=1e-16)
    np.testing.assert_array_equal(lengths, diagonal)


def test_both_engines_cluster_alike(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 5)) + 6 * random.integers(0, 4, (3000, 1))
    models = []
    for engine in ("native", "numpy"):
        monkeypatch.setenv("SKETCHMEANS_ENGINE", engine)
        models.append(KernelKMeans(4, kernel="neighbors", random_state=0).fit(X))
    one, other = models
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, atol=1e-12)
    np.testing.assert_array_equal(one.predict(X[:100]), other.predict(X[:100]))


@pytest.mark.parametrize("level", native.levels())
def test_nothing_is_read_past_the_end_of_an_array(level, at_level):
    at_level(level)
    for n, m, p in ((1, 1, 1), (9, 65, 3), (66, 1030, 70)):
        random = np.random.default_rng([n, m, p])
        rows, points = random.normal(size=(n, p)), random.normal(size=(m, p))
        packed = PackedAnchors(points)
        for k in counts_up_to(m):
            looked_at = min(k + MORE, m)
            out = guarded(np.full((n, k), -1, np.int32))
            arrays = (packed._panels, packed._halves, packed._points)
            native.nearest(guarded(rows), *map(guarded, arrays), looked_at, out)
            np.testing.assert_array_equal(out, packed.nearest(rows, k, looked_at))
    for n, stored, width in ((1, 1, 1), (7, 3, 3), (11, 5, 9)):
        columns, values = regular(n, stored, width)
        G = guarded(np.zeros((width, width)))
        native.add_gram(guarded(columns), guarded(values), 0, width, G)
        F = regular_csr(columns, values, width)
        np.testing.assert_allclose(np.triu(G), np.triu((F.T @ F).toarray()), atol=1e-13)
        assert (np.tril(G, -1) == 0).all()


def test_anchors_that_do_not_fit_are_refused():
    fitting = [
        np.ones((4, 3)),
        np.ones((2, 3, 8)),
        np.ones(9),
        np.ones((9, 8)),
        5,
        np.zeros((4, 2), np.int32),
    ]
    native.nearest(*fitting)
    np.testing.assert_array_equal(fitting[5], [[0, 1]] * 4)
    for place, wrong in (
        (0, np.ones((4, 2))),
        (0, np.ones((4, 0))),
        (0, np.ones((3, 3))),
        (1, np.ones((1, 3, 8))),
        (1, np.ones((3, 3, 8))),
        (2, np.ones(8)),
        (2, np.ones(16)),
        (3, np.ones((8, 8))),
        (3, np.ones((9, 3))),
        (3, np.ones((9, 16))),
        (5, np.zeros((5, 2), np.int32)),
    ):
        with pytest.raises(ValueError, match="nearest: arrays do not fit each other"):
            native.nearest(*fitting[:place], wrong, *fitting[place + 1 :])
    for place, wrong in ((0, np.ones(12)), (3, np.ones(72)), (5, np.zeros(8, np.int32))):
        with pytest.raises(ValueError, match="must have two dimensions"):
            native.nearest(*fitting[:place], wrong, *fitting[place + 1 :])
    for looked_at, kept in ((1, 2), (10, 2), (-1, 2), (5, 0), (5, 6)):
        message = f"of 9 anchors {looked_at} are looked at and {kept} are kept"
        with pytest.raises(ValueError, match=message):
            native.nearest(*fitting[:4], looked_at, np.zeros((4, kept), np.int32))
    for place in range(4):
        wrong = fitting[place].astype(np.float32)
        with pytest.raises(TypeError, match="an array of format 'd' is needed, not 'f'"):
            native.nearest(*fitting[:place], wrong, *fitting[place + 1 :])
    with pytest.raises(TypeError, match="out: 32-bit integers are needed"):
        native.nearest(*fitting[:5], np.zeros((4, 2), np.int64))
    fitting[5].flags.writeable = False
    with pytest.raises((BufferError, ValueError), match=r"read-only|not writable"):
        native.nearest(*fitting)


def test_rows_that_do_not_fit_a_gram_matrix_are_refused():
    columns, values = np.array([[0, 2], [1, 3]], np.int32), np.ones((2, 2))
    native.add_gram(columns, values, 0, 4, np.zeros((4, 4)))
    for wrong in ([[0, 2], [1, 4]], [[-1, 2], [1, 3]], [[0, 0], [1, 3]], [[0, 2], [3, 1]]):
        with pytest.raises(ValueError, match="columns: an index is out of range or out of order"):
            native.add_gram(np.array(wrong, np.int32), values, 0, 4, np.zeros((4, 4)))
    for arguments in (
        (columns, np.ones((2, 3)), 0, 4, np.zeros((4, 4))),
        (columns, np.ones(4), 0, 4, np.zeros((4, 4))),
        (columns[:1], values, 0, 4, np.zeros((4, 4))),
        (columns, values, 0, 4, np.zeros((4, 5))),
        (columns, values, 0, 5, np.zeros((4, 4))),
        (columns, values, -1, 4, np.zeros((4, 4))),
        (columns, values, 3, 2, np.zeros((4, 4))),
    ):
        with pytest.raises(ValueError, match="add_gram: arrays do not fit each other"):
            native.add_gram(*arguments)
    with pytest.raises(TypeError, match="columns: 32-bit integers are needed"):
        native.add_gram(columns.astype(np.int64), values, 0, 4, np.zeros((4, 4)))
    with pytest.raises(TypeError, match="values: an array of format 'd' is needed, not 'f'"):
        native.add_gram(columns, values.astype(np.float32), 0, 4, np.zeros((4, 4)))
