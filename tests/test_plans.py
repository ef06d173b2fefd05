"""A plan says what the fit will do, spend and hold, and fits nothing."""

import re
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, plan
from sketchmeans.estimators.memory import copied_bytes, parse_bytes
from sketchmeans.estimators.outline import LOOKED_AT, Kind
from sketchmeans.kernels import Gaussian
from sketchmeans.lowrank import METHODS
from sketchmeans.planning.result import STAGES

N = 300
SKETCHED = [(name, sketch) for name, m in METHODS.items() for sketch in (m.sketches or ("auto",))]
OPTIONS = [
    {},
    {"n_passes": 3},
    {"truncation": "early"},
    {"n_refine": 0},
    {"n_refine": 4},
    {"certificate": None, "n_refine": 0},
]
FITS = [
    (method, sketch, more)
    for method, sketch in SKETCHED
    for more in OPTIONS
    if set(more) <= {"certificate", "n_refine", *METHODS[method].reads}
]


def rows(n=N, p=3, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)).astype(dtype)


def gaussian(A, B):
    return Gaussian(0.2).of(cdist(A, B, "sqeuclidean"))


def ring(n):
    beside = sparse.diags_array([1.0, 0.5, 0.5], offsets=[0, 1, -1], shape=(n, n), format="csr")
    return sparse.csr_matrix(beside)


KERNELS = {
    "callable": lambda dtype: (rows(), {"kernel": gaussian}),
    "rbf": lambda dtype: (rows(dtype=dtype), {"kernel": "rbf", "gamma": 0.2}),
    "feature map": lambda dtype: (rows(dtype=dtype), {"kernel": "polynomial", "degree": 2}),
    "precomputed": lambda dtype: (gaussian(rows(), rows()), {"kernel": "precomputed"}),
    "graph": lambda dtype: (ring(N), {"kernel": "precomputed"}),
}


def agrees(planned, stats):
    """Whether a plan states what was spent: exactly, or where the data decide between bounds."""
    for name in ("passes", "kernel_entries", "distances"):
        least, most = getattr(planned, f"{name}_at_least"), getattr(planned, name)
        assert least <= stats[name] <= most, name
    assert planned.memory == stats["planned_bytes"]
    assert (planned.method, planned.why) == (stats["method"], stats["why"])
    assert planned.n_threads == stats["n_threads"]
    assert planned.precision == stats["precision"] or METHODS[planned.method].landmarks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_plan_states_what_every_method_spends_on_every_kernel(kernel):
    exact = 0
    for index, (method, sketch, more) in enumerate(FITS):
        if kernel != "rbf" and (index + list(KERNELS).index(kernel)) % 2:
            continue  # the other half is met with the kernels beside it
        X, options = KERNELS[kernel]("float32" if index % 2 else "float64")
        if kernel in ("precomputed", "graph") and sketch == "kmeans":
            continue
        weights = np.random.default_rng(1).integers(0, 3, N) if index % 3 == 0 else None
        if METHODS[method].sketches:
            more = {**more, "sketch": sketch}
        if METHODS[method].landmarks:
            more = {**more, "n_landmarks": 20}
        options = {"rank": 6, "n_refine": 1, "n_init": 2, "random_state": 0} | options | more
        model = KernelKMeans(3, method=method, **options)
        planned = plan(X, model, sample_weight=weights, measure=False)
        stats = model.fit(X, sample_weight=weights).stats_
        agrees(planned, stats)
        decided = planned.kernel_entries_at_least == planned.kernel_entries
        exact += decided
        pivots = kernel == "feature map" and "cholesky" in method  # it is used up before
        by_data = pivots or method == "rpcholesky" or options["n_refine"] == 4
        assert decided or by_data, (method, sketch, more)
    assert exact > len(FITS) // 6


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "zero weights"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": 4, "n_refine": 0},
        {"certificate": None, "n_refine": 0, "rank": 4},
        {"kernel_params": {"n_graphs": 2, "n_anchors": 60}},
    ],
    ids=str,
)
def test_a_plan_states_the_distances_of_the_neighbours_kernel(options, weighted):
    X = rows(1200)
    weights = np.random.default_rng(1).integers(0, 3, len(X)) if weighted else None
    model = KernelKMeans(3, n_init=2, random_state=0, **options)
    planned = plan(X, model, sample_weight=weights, measure=False)
    agrees(planned, model.fit(X, sample_weight=weights).stats_)
    assert planned.distances_at_least == planned.distances


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "zero weights"])
def test_a_plan_knows_that_a_limit_leaves_no_room_for_features(weighted):
    X = rows(9000)
    weights = np.random.default_rng(1).integers(0, 3, len(X)) if weighted else None
    params = {"n_graphs": 1, "n_anchors": 80, "n_neighbors": 60}
    model = KernelKMeans(3, n_init=2, kernel_params=params, memory_limit=1, random_state=0)
    with pytest.raises(MemoryError) as refused:
        plan(X, model, sample_weight=weights)
    least = parse_bytes(re.search(r"need ([0-9.]+ \w+) at the least", str(refused.value))[1])
    model.set_params(memory_limit=int(1.006 * least))
    planned = plan(X, model, sample_weight=weights, measure=False)
    agrees(planned, model.fit(X, sample_weight=weights).stats_)
    assert planned.distances > 4 * 9000 * 80


@pytest.mark.parametrize("n_refine", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"method": "nystrom"},
        {"method": "rpcholesky"},
        {"method": "greedy-cholesky"},
        {"method": "exact"},
        {"method": "nystrom", "certificate": None},
    ],
    ids=str,
)
def test_a_plan_knows_what_is_streamed_and_what_takes_passes(options, n_refine, monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.exact"], "DENSE_LIMIT", 50)
    if options["method"] != "exact":
        options = {"n_landmarks": 30, **options}
    model = KernelKMeans(
        3, kernel="rbf", gamma=0.2, rank=5, n_refine=n_refine, random_state=0, **options
    )
    X = rows(700)
    agrees(plan(X, model, measure=False), model.fit(X).stats_)


@pytest.mark.parametrize("method", ["rpcholesky", "greedy-cholesky"])
def test_a_plan_knows_that_a_kernel_of_few_features_is_used_up(method, monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)
    X = rows(900, 6)
    model = KernelKMeans(3, kernel="cosine", method=method, rank=5, n_init=1, random_state=0)
    planned = plan(X, model, measure=False)
    agrees(planned, model.fit(X).stats_)
    assert planned.kernel_entries < 30 * 900


def test_an_embedding_is_planned_too():
    X = rows(900)
    model = KernelEmbedding(rank=6, kernel="rbf", method="nystrom", random_state=0)
    planned = plan(X, model, measure=False)
    agrees(planned, model.fit(X).stats_)
    assert planned.n_clusters is None


COPIES = {
    "as it is": lambda: rows(),
    "float32": lambda: rows(dtype=np.float32),
    "whole numbers": lambda: rows().astype(int),
    "half precision": lambda: rows(dtype=np.float16),
    "by columns": lambda: np.asfortranarray(rows()),
    "every other row": lambda: rows(2 * N)[::2],
    "the other order of bytes": lambda: rows().astype(rows().dtype.newbyteorder()),
    "sparse": lambda: sparse.csr_matrix(rows()),
    "sparse whole numbers": lambda: sparse.csr_matrix(np.rint(rows()).astype(int)),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_plan_knows_whether_the_data_are_copied(name):
    X = COPIES[name]()
    checked = KernelKMeans()._check_data(X, reset=True, given_rows=False)
    kind = Kind.of(X, given_rows=False)
    assert kind.copied == copied_bytes(X, checked)
    assert kind.dtype == checked.dtype
    model = KernelKMeans(3, kernel="rbf", n_init=1, random_state=0)
    planned = plan(X, model, measure=False)
    agrees(planned, model.fit(X).stats_)
    assert ("copied, " in str(planned)) == (kind.copied > 0)


def test_lists_and_frames_are_planned_as_they_are_fitted():
    pd = pytest.importorskip("pandas")
    for X in (rows(50).tolist(), pd.DataFrame(rows(50))):
        model = KernelKMeans(3, kernel="rbf", random_state=0)
        agrees(plan(X, model, measure=False), model.fit(X).stats_)
        assert plan(X, model, measure=False).copied == 50 * 3 * 8


class Source:
    """Rows that are somewhere else: a shape, a kind, and slices."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.read = X, X.shape, X.dtype, 0

    def __getitem__(self, places):
        assert isinstance(places, slice)
        self.read += len(self.X[places])
        return self.X[places]


def test_a_source_is_planned_from_its_shape_and_a_few_rows():
    X = rows(50_000, dtype=np.float32)
    source = Source(X)
    for options in ({}, {"kernel": "rbf"}, {"kernel": "rbf", "method": "one-pass"}):
        source.read = 0
        planned = plan(source, 4, measure=False, random_state=0, **options)
        assert 0 < source.read <= LOOKED_AT
        there = plan(X, 4, measure=False, random_state=0, **options)
        assert planned.kernel_entries == there.kernel_entries
        assert planned.memory != there.memory  # rows are read in blocks, and what is made spills
    fitted = KernelKMeans(4, random_state=0).fit(source)
    assert plan(source, 4, measure=False, random_state=0).memory == fitted.stats_["planned_bytes"]
    big = np.broadcast_to(np.float32(0), (10**9, 20))
    assert plan(Source(big), 4, measure=False).memory > 1e9 * 4


def test_a_plan_leaves_data_and_estimator_alone():
    X = rows()
    before, model = X.copy(), KernelKMeans(3, random_state=np.random.RandomState(0))
    state = model.random_state.get_state()[1].copy()
    names = set(vars(model))
    plan(X, model, measure=False)
    assert set(vars(model)) == names
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(model.random_state.get_state()[1], state)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_params": {"n_graphs": 2, "n_anchors": 100}},
        {"kernel": "rbf", "n_refine": 1},
        {"kernel": "rbf", "method": "nystrom"},
        {"kernel": "rbf", "method": "rpcholesky"},
        {"kernel": "polynomial", "degree": 2, "method": "exact"},
    ],
    ids=str,
)
def test_every_stage_has_a_time_and_the_plan_reads_well(options, monkeypatch):
    # One is enough to time other ways for, however long that takes.
    patience = 60.0 if options.get("method") == "nystrom" else 0.0
    monkeypatch.setattr("sketchmeans.planning.planning.PATIENCE", patience)
    X = rows(6000)
    model = KernelKMeans(4, random_state=0, n_init=2, **options)
    planned = plan(X, model)
    seconds = planned.seconds_by_stage
    assert set(seconds) <= set(STAGES)
    assert set(model.fit(X).stats_["seconds"]) - set(seconds) <= {"embed"}
    assert all(0 <= one < 60 for one in seconds.values())
    assert planned.seconds > 0.01
    assert 0 < planned.calibration < 30
    said = str(planned)
    assert "6,000 rows of 3 columns into 4 clusters" in said
    assert f"with {planned.n_threads} thread" in said
    assert "Memory limit: none." in said
    assert planned.alternatives
    assert planned.as_dict()["alternatives"][0]["asked_by"] in said
    assert {one.method for one in planned.cheaper} <= set(METHODS)
    timed = [one.seconds for one in planned.alternatives if one.seconds is not None]
    assert bool(timed) == (options.get("method") == "nystrom")
    assert timed == sorted(timed)


def test_a_longer_fit_has_a_longer_estimate(monkeypatch):
    monkeypatch.setattr("sketchmeans.planning.planning.PATIENCE", 0.0)
    options = {"kernel": "rbf", "method": "one-pass", "n_passes": 1, "n_init": 1}
    short, long = (plan(rows(n), 3, **options).seconds_by_stage for n in (5_000, 50_000))
    assert 20 < long["kernel passes"] / short["kernel passes"] < 500


def test_notes_say_what_is_not_known():
    X = rows()
    (note,) = plan(X, 3, kernel="rbf", rank=0.9, measure=False).notes
    assert "share of the trace" in note
    (note,) = plan(X, 3, kernel="rbf", certificate="lifted", measure=False).notes
    assert "certificate='lifted', is not in the estimate" in note
    (note,) = plan(ring(1000), 3, kernel="precomputed", method="exact", measure=False).notes
    assert "depends on the spectrum" in note


def test_a_plan_refuses_what_it_cannot_plan():
    X = rows()
    with pytest.raises(TypeError, match="kernel cannot be given with an estimator"):
        plan(X, KernelKMeans(3), kernel="rbf")
    with pytest.raises(TypeError, match="FullKernelKMeans cannot be planned: give a KernelKMeans"):
        plan(X, FullKernelKMeans(3))
    with pytest.raises(ValueError, match="n_clusters=500 exceeds n_samples=300"):
        plan(X, 500)


@pytest.mark.parametrize("measure", [True, False])
def test_landmarks_that_need_data_are_refused_as_by_the_fit_where_there_are_none(measure):
    K = np.eye(40)
    model = KernelKMeans(2, kernel="precomputed", method="nystrom", sketch="kmeans")
    with pytest.raises(ValueError, match=r"needs data .* a precomputed kernel has none") as fitted:
        model.fit(K)
    with pytest.raises(ValueError) as planned:
        plan(K, model, measure=measure)
    assert str(planned.value) == str(fitted.value)


def test_a_limit_that_cannot_be_kept_is_refused_with_the_cheapest_change():
    X = rows(60_000, 5)
    with pytest.raises(MemoryError) as refused:
        plan(X, 8, kernel="rbf", method="nystrom", memory_limit="60MB")
    said = str(refused.value)
    assert "memory_limit=60 MB cannot be kept: 60,000 samples with 320 landmarks need" in said
    assert "The cheapest change that keeps memory_limit: n_landmarks=" in said
    with pytest.raises(MemoryError, match=r"No other method keeps it either\. With no limit it "):
        plan(X, 8, kernel="rbf", memory_limit="1MB")
