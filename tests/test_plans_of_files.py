"""Plans of rows in files are those of their fits, and nothing is read that need not be."""

import time
import tracemalloc

import numpy as np
import pytest

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, plan
from sketchmeans.blocks import first_distinct
from test_disk import Recorded, rows

WAYS = {
    "exact": {"kernel": "rbf", "method": "exact"},
    "leverage": {"kernel": "rbf", "method": "nystrom", "sketch": "leverage"},
    "column norms": {"kernel": "rbf", "method": "nystrom", "sketch": "column-norm"},
    "callable": {"kernel": lambda A, B: A @ B.T, "method": "one-pass"},
    "proof": {"kernel": "rbf", "certificate": "blocks"},
    "landmarks": {"kernel": "rbf", "method": "nystrom"},
    "neighbours": {},
    "passes": {"kernel": "rbf", "method": "one-pass"},
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("way", WAYS)
def test_the_plan_of_a_file_is_what_its_fit_states(way, dtype, tmp_path):
    np.save(tmp_path / "rows.npy", rows(600, dtype))
    model = KernelKMeans(3, random_state=0, n_init=1, **WAYS[way])
    for X in (tmp_path / "rows.npy", Recorded(rows(600, dtype))):
        planned = plan(X, model, measure=False)
        fitted = model.fit(X).stats_
        assert planned.memory == fitted["planned_bytes"]
        assert planned.precision == fitted["precision"]
        limit = fitted["planned_bytes"]
        again = KernelKMeans(3, random_state=0, n_init=1, memory_limit=limit, **WAYS[way])
        assert plan(X, again, measure=False).memory == again.fit(X).stats_["planned_bytes"] <= limit


def test_alternatives_of_a_file_are_planned_as_they_would_be_fitted(tmp_path):
    np.save(tmp_path / "rows.npy", rows(3000))
    for X in (tmp_path / "rows.npy", np.load(tmp_path / "rows.npy", mmap_mode="r")):
        for method in ("exact", "nystrom"):
            options = {"kernel": "rbf", "memory_limit": "300MB"}
            for other in plan(X, 3, method=method, measure=False, **options).alternatives:
                there = plan(X, 3, measure=False, **options, **{"method": method, **other.change})
                assert there.memory == other.memory, other


def _limited(**options):
    return KernelKMeans(8, memory_limit="20MB", **options)


REFUSED = {
    "exact": (_limited(kernel="rbf", method="exact"), MemoryError, None),
    "proof": (_limited(kernel="rbf", certificate="blocks"), MemoryError, None),
    "full": (FullKernelKMeans(8, memory_limit="20MB"), MemoryError, None),
    "leverage": (_limited(kernel="rbf", method="nystrom", sketch="leverage"), MemoryError, None),
    "streamed": (_limited(kernel="rbf", method="nystrom"), MemoryError, None),
    "embedding": (KernelEmbedding(memory_limit="20MB", method="exact"), MemoryError, None),
    "clusters": (KernelKMeans(500_000), ValueError, None),
    "weights": (KernelKMeans(8), ValueError, np.ones(3)),
    "weights of all": (FullKernelKMeans(8), ValueError, np.full(400_000, -1.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_shape_decides_is_refused_before_a_row_is_read(name):
    model, error, weights = REFUSED[name]
    source = Recorded(np.broadcast_to(np.float32(1), (400_000, 50)))
    start = time.process_time()
    with pytest.raises(error):
        model.fit(source, sample_weight=weights)
    assert source.asked == []
    assert time.process_time() - start < 1


def test_a_kernel_matrix_is_refused_before_a_row_of_it_is_read():
    K = Recorded(np.broadcast_to(np.float32(1), (5000, 5000)))
    model = KernelKMeans(8, kernel="precomputed", method="one-pass", memory_limit="1MB")
    with pytest.raises(MemoryError):
        model.fit(K)
    K.shape = (5000, 4000)
    for ask in (model.fit, lambda K: plan(K, model)):
        with pytest.raises(ValueError, match="must be square, not 5000 × 4000"):
            ask(K)
    assert K.asked == []


class Looked(np.ndarray):
    """Rows in memory that count how many of them were looked at."""

    seen = 0

    def __getitem__(self, places):
        found = super().__getitem__(places)
        if isinstance(places, slice):
            Looked.seen += len(np.asarray(found))
        return np.asarray(found)


@pytest.mark.parametrize("limit", [None, "15MB"])
def test_a_plan_looks_at_data_once_however_many_ways_it_compares(limit):
    X = rows(20_000, np.float32).view(Looked)
    Looked.seen = 0
    options = {"kernel": "rbf", "method": "exact", "memory_limit": limit, "measure": False}
    if limit is None:
        assert len(plan(X, 3, **options).alternatives) >= 3
    else:
        with pytest.raises(MemoryError):
            plan(X, 3, **options)
    assert Looked.seen <= 4 * len(X)  # sizes, norms and a median: each once


def test_equal_rows_are_told_at_once():
    X = np.zeros((400_000, 20), np.float32)
    start = time.process_time()
    assert list(first_distinct(X, 8)) == [0]
    X[[7, 390_000], 3] = 1, -1
    X[9] = -0.0
    assert list(first_distinct(X, 8)) == [0, 7, 390_000]
    assert list(first_distinct(X, 2)) == [0, 7]
    assert time.process_time() - start < 3
    start = time.process_time()
    source = Recorded(np.broadcast_to(np.float32(0), (400_000, 50)))
    plan(source, 8, kernel="rbf", measure=False)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("n", [12, 30, 40, 41])
def test_few_rows_of_a_file_have_their_distances_foretold(n, tmp_path):
    np.save(tmp_path / "rows.npy", rows(n))
    planned = plan(tmp_path / "rows.npy", 3, measure=False)
    found = KernelKMeans(3, random_state=0).fit(tmp_path / "rows.npy").stats_["distances"]
    assert planned.distances_at_least <= found <= planned.distances


@pytest.mark.parametrize("method", ["rpcholesky", "greedy-cholesky"])
@pytest.mark.parametrize("rank", [5, 0.5])
def test_a_plan_states_the_precision_of_pivots(method, rank):
    X = rows(500, np.float32)
    model = KernelKMeans(3, kernel="rbf", method=method, rank=rank, random_state=0)
    assert plan(X, model, measure=False).precision == model.fit(X).stats_["precision"]


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i8"])
def test_data_of_the_other_order_of_bytes_and_of_axes_are_copied_once(dtype):
    X = np.asfortranarray((100 * np.random.default_rng(0).random((20_000, 50))).astype(dtype))
    model = KernelKMeans(3, kernel="rbf", random_state=0)
    size = len(X) * 50 * (4 if dtype == ">f4" else 8)
    model._check_data(X[:100], reset=True, given_rows=False)
    tracemalloc.start()
    try:
        checked = model._check_data(X, reset=True, given_rows=False)
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert checked.flags.c_contiguous
    assert np.array_equal(checked, X)
    assert highest < 1.3 * size
    assert plan(X, model, measure=False).copied == size


def test_a_kernel_matrix_that_lies_by_columns_is_read_as_it_lies(tmp_path, monkeypatch):
    X = rows(400)
    K = X @ X.T
    K = (K + K.T) / 2
    np.save(tmp_path / "K.npy", np.asfortranarray(K))
    model = KernelKMeans(3, kernel="precomputed", method="one-pass", random_state=0)
    here = model.fit(K).labels_

    def copied(*_):
        raise AssertionError("the file is mapped, and not copied")

    monkeypatch.setattr("sketchmeans.disk.files.scratch_array", copied)
    seen = []
    make = type(model)._make_operator
    monkeypatch.setattr(
        type(model), "_make_operator", lambda self, X, *rest: seen.append(X) or make(self, X, *rest)
    )
    for given in (tmp_path / "K.npy", np.load(tmp_path / "K.npy", mmap_mode="r")):
        assert np.array_equal(model.fit(given).labels_, here)
        assert seen[-1].flags.c_contiguous
        assert np.array_equal(seen[-1], K)
