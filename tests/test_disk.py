"""Rows in files: the same bits as in memory, read in order and once a stream, from any file."""

import threading
from itertools import pairwise

import numpy as np
import pytest

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.disk import FileRows, as_source, is_source
from sketchmeans.estimators.streaming import to_stream

N, P = 5000, 6


class Recorded:
    """Rows with a shape, a dtype and slices, and nothing else; remembers what was asked for."""

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype
        self.asked, self.readers = [], set()

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.asked.append((rows.start, rows.stop))
        self.readers.add(threading.current_thread().name)
        return self._X[rows]


def rows(n=N, dtype=np.float64):
    random = np.random.default_rng(0)
    centers = 4 * random.normal(size=(5, P))
    X = centers[random.integers(5, size=n)] + random.normal(size=(n, P))
    return (8 * X).astype(dtype) if np.dtype(dtype).kind == "i" else X.astype(dtype)


def weights(n=N):
    found = np.random.default_rng(1).random(n)
    found[:40] = 0
    return found


NEIGHBORS = {"kernel_params": {"n_anchors": 60, "n_graphs": 2}}
CASES = {
    "neighbours": (NEIGHBORS, np.float32, False),
    "neighbours of whole numbers": (NEIGHBORS, np.int16, False),
    "neighbours, weighted": (NEIGHBORS, np.float64, True),
    "landmarks": ({"kernel": "rbf", "method": "nystrom", "n_landmarks": 300}, np.float32, False),
    "landmarks, weighted": (
        {"kernel": "laplacian", "method": "nystrom", "n_landmarks": 50},
        np.float64,
        True,
    ),
    "landmarks, held": (
        {"kernel": "linear", "method": "nystrom", "n_landmarks": 6, "rank": 5},
        np.float16,
        False,
    ),
    "pivots": ({"kernel": "cosine", "method": "rpcholesky", "n_landmarks": 20}, np.float32, False),
    "passes": (
        {"kernel": "rbf", "method": "one-pass", "n_passes": 2, "n_refine": 1},
        np.float32,
        False,
    ),
    "one pass, weighted": ({"kernel": "cosine", "method": "one-pass"}, np.float64, True),
    "monomials": ({"kernel": "polynomial", "degree": 2}, np.int16, True),
}


def same(one, other, X):
    assert np.array_equal(one.labels_, other.labels_)
    assert one.embedding_.dtype == other.embedding_.dtype
    assert np.array_equal(one.embedding_, other.embedding_)
    assert np.array_equal(one.cluster_centers_, other.cluster_centers_)
    assert one.inertia_ == other.inertia_
    assert one.certificate_ == other.certificate_
    assert np.array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("case", CASES)
def test_a_streamed_fit_has_the_bits_of_a_fit_in_memory(case):
    options, dtype, weighted = CASES[case]
    X, mass = rows(dtype=dtype), weights() if weighted else None
    here = KernelKMeans(5, random_state=0, **options).fit(X, sample_weight=mass)
    model = KernelKMeans(5, random_state=0, n_jobs=3, **options)
    source = Recorded(X)
    assert isinstance(to_stream(model, source), FileRows)
    same(here, model.fit(source, sample_weight=mass), X[:500])
    assert np.array_equal(here.predict(X), model.predict(source))
    assert np.array_equal(here.transform(X), model.transform(source))


def test_many_rows_are_clustered_as_in_memory_by_any_number_of_threads():
    """From 40,000 rows on, K-means goes over blocks of the embedding, in a scratch file."""
    X = rows(41_000, np.float32)
    options = {"kernel": "rbf", "method": "nystrom", "n_landmarks": 40, "random_state": 0}
    here = KernelKMeans(5, **options).fit(X)
    for threads in (1, 4):
        away = KernelKMeans(5, n_jobs=threads, **options).fit(Recorded(X))
        assert isinstance(away.embedding_, np.memmap)
        assert not away.embedding_.flags.writeable
        same(here, away, X[:500])


@pytest.mark.parametrize("options", [NEIGHBORS, CASES["landmarks"][0]], ids=["neighbors", "rbf"])
def test_rows_are_read_in_order_and_once_a_stream_by_one_thread_that_reads_ahead(options):
    X = rows(30_000, np.float32)
    source = Recorded(X)
    KernelKMeans(5, n_jobs=2, random_state=0, **options).fit(source)
    runs, fetched = [], 0  # streams begin at the first row, and go on where they were
    for start, stop in source.asked:
        if start == 0 and stop < len(X):
            runs.append(stop)
        elif runs and start == runs[-1]:
            runs[-1] = stop
        else:
            fetched += 1
    whole = [stop for stop in runs if stop == len(X)]
    streamed = sum(stop == len(X) or stop - start == len(X) for start, stop in source.asked)
    assert 5 <= len(whole) <= 14, runs
    assert streamed <= 16  # those of a map over all rows in one block, too
    assert fetched <= 40
    assert "sketchmeans-read" in source.readers


def test_what_is_read_ahead_stays_bounded(monkeypatch):
    from sketchmeans.disk import Desk
    from sketchmeans.rows import Part

    X = rows(4000)
    source, seen = as_source(Recorded(X)), []
    read = source.read
    waiting = threading.Semaphore(0)

    def counted(start, stop):
        seen.append(start)
        return read(start, stop)

    def work(block):
        if block[0, 0] == X[0, 0]:
            waiting.acquire(timeout=0.5)  # nobody releases: the first block takes long
            assert len(seen) <= 4
        return Part((block[:, 0].copy(),), block.sum(axis=0))

    monkeypatch.setattr(source, "read", counted)
    kept, total = FileRows(source, Desk(n_threads=2)).run(work, size=100)
    assert np.array_equal(kept[0], X[:, 0])
    assert np.allclose(total, X.sum(axis=0))
    assert seen == list(range(0, 4000, 100))


def test_an_error_in_the_file_or_in_the_work_ends_the_stream():
    from sketchmeans.disk import Desk

    X = rows(4000)

    class Broken(Recorded):
        def __getitem__(self, rows):
            if rows.start >= 2000:
                raise OSError("the disk is gone")
            return super().__getitem__(rows)

    for n_threads in (1, 3):
        with pytest.raises(OSError, match="the disk is gone"):
            FileRows(as_source(Broken(X)), Desk(n_threads)).map(np.sum, size=100)
        with pytest.raises(ZeroDivisionError):
            FileRows(as_source(Recorded(X)), Desk(n_threads)).map(lambda block: 1 // 0, size=100)
    assert not [one for one in threading.enumerate() if one.name == "sketchmeans-read"]


def test_each_kind_of_file_gives_the_same_fit(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = rows(dtype=np.float32)
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    hdf5 = h5py.File(tmp_path / "rows.h5", "w")
    hdf5.create_dataset("X", data=X, chunks=(700, 3), compression="gzip")
    packed = zarr.open(str(tmp_path / "rows.zarr"), mode="w", shape=X.shape, dtype=X.dtype)
    packed[:] = X
    table = pa.table({f"x{index}": column for index, column in enumerate(X.T)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=999)
    (tmp_path / "parts").mkdir()
    parquet.write_table(table[:2500], tmp_path / "parts" / "a.parquet")
    parquet.write_table(table[2500:], tmp_path / "parts" / "b.parquet", row_group_size=800)
    sources = {
        "memory map": mapped,
        "by columns": np.load(tmp_path / "columns.npy", mmap_mode="r"),
        "npy": tmp_path / "rows.npy",
        "hdf5": hdf5["X"],
        "zarr": packed,
        "parquet": tmp_path / "rows.parquet",
        "folder": str(tmp_path / "parts"),
    }
    options = {**NEIGHBORS, "random_state": 0}
    here = KernelKMeans(5, **options).fit(X)
    few = np.array([4999, 3, 2501, 0, 3])
    for name, source in sources.items():
        reader = as_source(source)
        assert reader.shape == X.shape, name
        assert reader.dtype == np.float32, name
        assert np.array_equal(reader.take(few), X[few]), name
        assert np.array_equal(reader.read(998, 2600), X[998:2600]), name
        assert np.array_equal(reader.read(5, 9), X[5:9]), name  # back again
        away = KernelKMeans(5, **options).fit(reader)
        assert np.array_equal(here.labels_, away.labels_), name
        assert np.array_equal(here.embedding_, away.embedding_), name
    assert list(away.feature_names_in_) == table.column_names
    assert np.array_equal(away.predict(tmp_path / "rows.parquet"), here.predict(X))
    renamed = table.rename_columns([f"y{index}" for index in range(P)])
    parquet.write_table(renamed, tmp_path / "renamed.parquet")
    with pytest.raises(ValueError, match="the columns of X are not those of the fit"):
        away.predict(tmp_path / "renamed.parquet")


def test_large_memory_maps_are_streamed_and_small_ones_are_arrays(tmp_path):
    X = rows(20_000, np.float32)  # 0.48 MB
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for limit, type_ in (("1.9MB", FileRows), ("2MB", np.memmap), (None, np.memmap)):
        assert type(to_stream(KernelKMeans(memory_limit=limit), mapped)) is type_
    # What wants whole columns of K, or a function of blocks, gets the map itself.
    for options in ({"kernel": "rbf", "method": "exact"}, {"certificate": "lifted"}):
        assert to_stream(KernelKMeans(memory_limit="1MB", **options), mapped) is mapped
    assert not is_source(X)
    assert not is_source(X.tolist())


def test_what_cannot_be_streamed_is_put_in_a_scratch_file():
    X = rows(300)

    def kernel(x, y):
        return np.exp(-0.01 * ((x[:, None] - y[None]) ** 2).sum(-1))

    for options in ({"kernel": kernel}, {"kernel": "rbf", "method": "exact"}):
        here = KernelKMeans(5, random_state=0, **options).fit(X)
        away = KernelKMeans(5, random_state=0, **options).fit(Recorded(X))
        assert np.array_equal(here.labels_, away.labels_)


@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_a_bad_number_is_named_by_its_row_among_all(bad, name):
    X = rows(50_000, np.float32)
    model = KernelKMeans(5, random_state=0, **NEIGHBORS).fit(X[:1000])
    X[43_210, 2] = bad
    for method in (model.fit, model.predict, model.transform):
        with pytest.raises(ValueError, match=rf"row 43210 of X holds {name} in column 2"):
            method(Recorded(X))
    assert len(model.labels_) == 1000


def test_sources_that_make_no_sense_are_refused(tmp_path):
    model = KernelEmbedding(3, kernel="rbf")
    with pytest.raises(FileNotFoundError, match=r"X='.*nothing.npy' is no file"):
        model.fit(tmp_path / "nothing.npy")
    (tmp_path / "rows.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"is neither a \.npy nor a Parquet file"):
        model.fit(tmp_path / "rows.csv")
    with pytest.raises(FileNotFoundError, match=r"holds no \.parquet file"):
        model.fit(tmp_path)
    with pytest.raises(ValueError, match="there are no samples to work on"):
        model.fit(Recorded(rows(0)))
    with pytest.raises(ValueError, match="X has 6 features, but KernelEmbedding is expecting 2"):
        model.fit(rows(100)[:, :2]).transform(Recorded(rows(100)))


def test_new_points_after_one_pass_have_their_samples_in_the_file(tmp_path):
    X = rows(2000)
    np.save(tmp_path / "rows.npy", X)
    options = {"kernel": "rbf", "method": "one-pass", "random_state": 0}
    here = KernelKMeans(5, **options).fit(X)
    away = KernelKMeans(5, **options).fit(tmp_path / "rows.npy")
    assert np.array_equal(here.predict(X[::7]), away.predict(X[::7]))
    assert here.score(X) == away.score(Recorded(X))


def test_results_come_in_the_order_of_their_numbers():
    from sketchmeans.disk.ahead import InOrder

    found = []
    ordered = InOrder(lambda index, value: found.append((index, value)))
    for index in (2, 0, 1, 4, 3):
        ordered.put(index, str(index))
    assert found == [(index, str(index)) for index in range(5)]
    assert all(a < b for a, b in pairwise(found))
