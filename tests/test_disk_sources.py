"""Files that rows are read from: what becomes of them after a fit, chunks, batches, messages."""

import copy
import pickle

import numpy as np
import pytest

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, save
from sketchmeans.disk import as_source
from sketchmeans.disk.files import FileRows
from sketchmeans.disk.parquet import ParquetSource
from sketchmeans.disk.streams import Desk
from test_disk import Recorded, rows

KEEPING = {
    "one pass": KernelKMeans(3, kernel="rbf", method="one-pass", random_state=0),
    "refined": KernelKMeans(3, kernel="rbf", method="one-pass", n_refine=2, random_state=0),
    "exact": KernelKMeans(3, kernel="rbf", method="exact", random_state=0),
    "full": FullKernelKMeans(3, n_init=1, random_state=0),
    "embedding": KernelEmbedding(3, kernel="cosine", method="one-pass", random_state=0),
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_model_whose_samples_lie_in_a_file_that_was_written_anew_says_so(name, tmp_path):
    X, path = rows(300), tmp_path / "rows.npy"
    np.save(path, X)
    model = copy.deepcopy(KEEPING[name]).fit(str(path))
    new = model.transform if name == "embedding" else model.predict
    before = new(X[:50])
    np.save(tmp_path / "other.npy", -X)
    (tmp_path / "other.npy").replace(path)  # another file with that name: ours is as it was
    assert np.array_equal(new(X[:50]), before)
    model.fit(str(path))
    new(X[:50])
    asked = [
        lambda: new(X[:50]),
        lambda: new(Recorded(X)) if name != "full" else new(X),
        lambda: pickle.dumps(model),
        lambda: save(model, tmp_path / "model.skm"),
    ]
    for changed in (2 * X, X[:40]):  # of the second, the map reaches beyond the end
        np.save(path, changed)
        for ask in asked:
            with pytest.raises(ValueError, match=r"rows\.npy' was written to since it was opened"):
                ask()
    assert model.fit(X) is model
    new(X[:50])


def test_a_model_of_a_file_is_pickled_with_its_samples(tmp_path):
    X, path = rows(300), tmp_path / "rows.npy"
    np.save(path, X)
    model = copy.deepcopy(KEEPING["one pass"]).fit(path)
    other = pickle.loads(pickle.dumps(model))
    np.save(path, X[:20])
    assert np.array_equal(other.predict(X), KEEPING["one pass"].fit(X).predict(X))


@pytest.mark.parametrize("method", ["one-pass", "nystrom", "exact"])
def test_a_file_that_is_written_to_while_a_fit_reads_it_is_refused(method, tmp_path):
    X, path = rows(400), tmp_path / "rows.npy"
    np.save(path, X)
    written = []

    def kernel(A, B):
        if not written:
            written.append(True)
            np.save(path, 2 * X)
        return A @ B.T

    model = KernelKMeans(3, kernel=kernel, method=method)
    with pytest.raises(ValueError, match="was written to since it was opened"):
        model.fit(path)
    assert not hasattr(model, "labels_")


def test_files_that_hold_no_rows_are_refused_by_what_is_wrong_with_them(tmp_path):
    X = rows(40)
    np.save(tmp_path / "good.npy", X)
    good = (tmp_path / "good.npy").read_bytes()
    np.save(tmp_path / "one.npy", X[:, 0])
    np.save(tmp_path / "three.npy", X[None])
    np.save(tmp_path / "object.npy", X.astype(object))
    np.save(tmp_path / "text.npy", X.astype("U5"))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "words.npy").write_bytes(b"hello world" * 100)
    (tmp_path / "header.npy").write_bytes(good[:50])
    (tmp_path / "cut.npy").write_bytes(good[:-1000])
    for name, said in {
        "one": r"holds an array of 1 dimensions, \(40,\), where rows and columns are needed",
        "three": r"holds an array of 3 dimensions, \(1, 40, 6\)",
        "object": "holds values of dtype object, and kernels need real numbers",
        "text": "holds values of dtype <U5, and kernels need real numbers",
        "empty": "is empty. It is damaged or cut off: write it again with np.save",
        "words": "is no file of NumPy, whatever its name",
        "header": "begins as a file of NumPy, and has no header that can be read",
        "cut": r"declares 40 × 6 numbers, 1,920 bytes, and holds 920",
    }.items():
        for ask in (KernelKMeans(3).fit, KernelKMeans(3).fit(X).predict):
            with pytest.raises(ValueError, match=rf"{name}\.npy' {said}"):
                ask(tmp_path / f"{name}.npy")


class Chunked(Recorded):
    """Rows in chunks; remembers which of these were decoded, and how often."""

    def __init__(self, X, chunks):
        super().__init__(X)
        self.chunks, self.decoded = chunks, []

    def __getitem__(self, rows):
        first, last = rows.start // self.chunks[0], (rows.stop - 1) // self.chunks[0]
        self.decoded += range(first, last + 1)
        return super().__getitem__(rows)


@pytest.mark.parametrize("size", [7, 900, 50_000])
@pytest.mark.parametrize("method", ["nystrom", "rpcholesky"])
def test_chunks_are_decoded_once_a_stream_and_rows_are_the_same(size, method, monkeypatch):
    monkeypatch.setattr("sketchmeans.disk.chunks.BLOCK_BYTES", 1 << 16)
    X = rows(30_000, np.float32)
    options = {"kernel": "rbf", "method": method, "n_landmarks": 20, "random_state": 0}
    here = KernelKMeans(3, **options).fit(X)
    plain, source = Recorded(X), Chunked(X, (size, 3))
    KernelKMeans(3, **options).fit(plain)
    away = KernelKMeans(3, **options).fit(source)
    assert np.array_equal(here.labels_, away.labels_)
    assert np.array_equal(here.embedding_, away.embedding_)
    looks = sum(stop - start for start, stop in plain.asked) / len(X)
    n_chunks = -(-len(X) // size)
    assert sum(stop - start for start, stop in source.asked) / len(X) <= looks + 1
    assert len(source.decoded) <= 1.1 * (looks + 1) * n_chunks
    if n_chunks == 1:
        assert source.decoded == [0]  # what is decoded already is not decoded again


def test_some_rows_of_chunks_are_those_that_were_asked_for():
    X = rows(5000)
    for size in (3, 700, 4000):
        source = as_source(Chunked(X, (size, 6)))
        for wanted in ([4999, 0, 17, 17, 2500], [], range(100, 300)):
            assert np.array_equal(source.take(np.array(wanted, int)), X[list(wanted)])
        for start, stop in ((0, 5000), (699, 701), (4999, 5000), (0, 1)):
            assert np.array_equal(source.read(start, stop), X[start:stop])


def test_what_chunks_take_is_planned_and_a_limit_that_they_break_is_refused():
    X = rows(40_000, np.float32)
    wide = np.broadcast_to(np.float32(1), (100_000, 1000))
    model = KernelKMeans(3, kernel="rbf", gamma=1.0, method="nystrom", memory_limit="500MB")
    source = Chunked(wide, (100_000, 100))
    with pytest.raises(
        MemoryError, match=r"1\.62 GB to decode rows of the file: chunks or row gro"
    ):
        model.fit(source)
    assert source.asked == []
    options = {"kernel": "rbf", "method": "nystrom", "n_landmarks": 20, "random_state": 0}
    taken = [
        KernelKMeans(3, **options).fit(one).stats_["planned_bytes"]
        for one in (Recorded(X), Chunked(X, (40_000, 6)))
    ]
    assert taken[1] - taken[0] > 4 * X.nbytes


def test_chunks_of_whole_columns_are_told_of():
    huge = np.broadcast_to(np.float64(1), (1_000_000, 1000))
    with pytest.warns(UserWarning, match=r"chunks of 1,000,000 rows, and these take 8 GB to"):
        source = as_source(Chunked(huge, (1_000_000, 1)))
    assert source.read(0, 10).shape == (10, 1000)


def test_parquet_of_many_columns_is_decoded_in_batches_of_few_rows(tmp_path, monkeypatch):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = np.random.default_rng(0).random((9000, 400), dtype=np.float32)
    table = pa.table({f"c{place}": column for place, column in enumerate(X.T)})
    scratch, sizes, rows_of = {}, [], ParquetSource._rows_of

    def counted(self, batch):
        sizes.append(batch.nbytes)
        return rows_of(self, batch)

    for name, options in {
        "plain": {"compression": "none", "use_dictionary": False},
        "packed": {"compression": "zstd", "use_dictionary": False},
        "dictionary": {},
    }.items():
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(table, path, **options)
        source = as_source(path)
        monkeypatch.setattr(type(source), "_rows_of", counted)
        assert np.array_equal(source.read(100, 8000), X[100:8000])
        assert max(sizes) <= 5 << 20
        scratch[name] = source.scratch_bytes
    # One page of each column is open at a time, and its dictionary.
    assert scratch["plain"] < 90e6
    assert scratch["packed"] > scratch["plain"] + X.nbytes
    assert scratch["dictionary"] > scratch["plain"] + 2 * X.nbytes


def test_folders_of_parquet_files_are_read_as_they_look(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = rows(50)
    for name, part in {"b": X[30:], "a": X[:30], ".hidden": X, "._a": X, "_part": X}.items():
        table = pa.table({f"c{place}": column for place, column in enumerate(part.T)})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    source = as_source(tmp_path)
    assert np.array_equal(source.read(0, len(X)), X)
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"c\.parquet' cannot be read as Parquet: .* is damaged"):
        as_source(tmp_path)
    (tmp_path / "c.parquet").unlink()
    (tmp_path / "year=2024").mkdir()
    with pytest.raises(ValueError, match="holds folders, such as 'year=2024', and the files"):
        as_source(tmp_path)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_groups_of_rows_in_a_file_are_worked_on_until_the_time_is_over(n_threads):
    X = rows(300)
    there = FileRows(as_source(Recorded(X)), Desk(n_threads))
    groups = [np.arange(first, 300, 7) for first in range(7)]
    given = [(float(factor),) for factor in range(7)]

    def work(few, factor):
        return factor * few.sum(axis=0)

    found = dict(there.of_groups(work, groups, given))
    assert sorted(found) == list(range(7))
    for place, group in enumerate(groups):
        np.testing.assert_array_equal(found[place], place * X[group].sum(axis=0))
    assert list(there.of_groups(work, groups, given, seconds=-1)) == []


def test_columns_and_rows_by_steps_are_those_of_the_array(tmp_path):
    np.save(tmp_path / "rows.npy", rows(300))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    there = FileRows(as_source(X), Desk())
    np.testing.assert_array_equal(there[10:200:7], X[10:200:7])
    np.testing.assert_array_equal(there[:, 1:3][5:90], X[5:90, 1:3])
