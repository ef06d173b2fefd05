"""Outputs and scratch files: whole or not at all, no litter, and memory that keeps its limit."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import shell
from sketchmeans import KernelEmbedding, KernelKMeans, choose, compare
from sketchmeans.disk.scratch import scratch_array
from sketchmeans.engine import Run
from sketchmeans.io.room import Growing, Room
from sketchmeans.lowrank import one_pass
from sketchmeans.operators import PrecomputedOperator
from sketchmeans.sketches import HadamardSketch
from test_disk import NEIGHBORS, Recorded, rows

LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="anonymous memory is read from Linux's /proc"
)


def test_labels_and_embedding_go_to_files_of_which_the_model_has_memory_maps(tmp_path):
    X = rows(dtype=np.float32)
    here = KernelKMeans(5, random_state=0, **NEIGHBORS).fit(X)
    for name, source in {"array": X, "source": Recorded(X)}.items():
        labels, embedding = tmp_path / f"{name}-labels.npy", tmp_path / f"{name}-embedding.npy"
        model = KernelKMeans(5, random_state=0, **NEIGHBORS)
        model.fit(source, out=labels, embedding_out=str(embedding))
        for found, file, wanted in (
            (model.labels_, labels, here.labels_),
            (model.embedding_, embedding, here.embedding_),
        ):
            assert isinstance(found, np.memmap)
            assert not found.flags.writeable
            assert np.array_equal(found, wanted)
            assert np.array_equal(np.load(file), wanted)
            assert np.load(file).dtype == wanted.dtype
        assert model.inertia_ == here.inertia_
        predicted = model.predict(source, out=tmp_path / f"{name}-new.npy")
        assert isinstance(predicted, np.memmap)
        assert np.array_equal(predicted, here.predict(X))
        new = model.transform(source, out=tmp_path / f"{name}-rows.npy")
        assert np.array_equal(new, here.transform(X))
    alone = KernelEmbedding(4, kernel="rbf", random_state=0)
    alone.fit(Recorded(X), embedding_out=tmp_path / "alone.npy")
    assert np.array_equal(np.load(tmp_path / "alone.npy"), alone.embedding_)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_files_that_cannot_be_written_are_refused_before_any_work(tmp_path):
    (tmp_path / "old.npy").write_text("precious")
    source = Recorded(rows())
    model = KernelKMeans(5)
    for options, error, said in (
        ({"out": tmp_path / "old.npy"}, FileExistsError, "exists already. Delete it, or choose"),
        ({"embedding_out": tmp_path / "old.npy"}, FileExistsError, "exists already"),
        ({"out": tmp_path / "labels.csv"}, ValueError, "must end in .npy"),
        ({"out": tmp_path / "no" / "labels.npy"}, FileNotFoundError, "no does not exist"),
        (
            {"out": tmp_path / "a.npy", "embedding_out": str(tmp_path / "a.npy")},
            ValueError,
            "out and embedding_out name one file",
        ),
    ):
        with pytest.raises(error, match=said):
            model.fit(source, **options)
    assert source.asked == []
    assert (tmp_path / "old.npy").read_text() == "precious"


def test_a_write_that_fails_leaves_no_file_and_the_former_fit(tmp_path, monkeypatch):
    X = rows(1000)
    model = KernelKMeans(3, random_state=0, **NEIGHBORS).fit(X)
    before = model.labels_
    given = []

    def full(array):
        given.append(array)
        if len(given) == 2:
            raise OSError(28, "No space left on device")
        return [array]

    monkeypatch.setattr("sketchmeans.disk.outputs.blocks_of", full)
    with pytest.raises(OSError, match="No space left"):
        model.fit(X[:900], out=tmp_path / "a.npy", embedding_out=tmp_path / "b.npy")
    assert os.listdir(tmp_path) == []
    assert model.labels_ is before


KILLED = """
import sys, time
import numpy as np
from sketchmeans import KernelKMeans
sys.path.insert(0, sys.argv[1])
from test_disk import NEIGHBORS, rows
X = rows(8000, np.float32)
class Slow:
    shape, dtype = X.shape, X.dtype
    reads = 0
    def __getitem__(self, rows):
        Slow.reads += 1
        if Slow.reads == 12:
            print("in the middle", flush=True)
            time.sleep(60)
        return X[rows]
options = {"out": sys.argv[2] + "/labels.npy", "embedding_out": sys.argv[2] + "/embedding.npy"}
KernelKMeans(5, random_state=0, **NEIGHBORS).fit(Slow(), **options)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_fit_that_is_killed_leaves_nothing_behind(how, tmp_path):
    here = os.path.dirname(__file__)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, here, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=shell.heeding,
    )
    assert process.stdout.readline() == "in the middle\n"
    start = time.perf_counter()
    process.send_signal(how)
    assert process.wait() != 0
    assert time.perf_counter() - start < 10  # the thread that reads would sleep for a minute
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_an_error_that_tells_what_to_do(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"there is no room for 800 kB of scratch in .*TMPDIR"):
            scratch_array(tmp_path, (1000, 100), np.float64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    array = scratch_array(tmp_path, (10, 3), np.float32)
    array[:] = 1
    assert os.listdir(tmp_path) == []
    assert array.sum() == 30


MEASURED = """
import json, sys, threading, time
import numpy as np
from sketchmeans import KernelKMeans
def anonymous():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines["RssAnon"].split()[0])
peak, done = 0, False
def look():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.002)
options = json.loads(sys.argv[2])
few = np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32)
KernelKMeans(4, random_state=0, **options).fit(few)
before = anonymous()
looking = threading.Thread(target=look, daemon=True)
looking.start()
limit = int(sys.argv[3])
model = KernelKMeans(4, random_state=0, memory_limit=limit, n_jobs=2, **options)
model.fit(sys.argv[1])
done = True
looking.join()
print(json.dumps([peak - before, model.stats_["planned_bytes"], type(model.embedding_).__name__]))
"""


@LINUX
@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"kernel": "rbf", "method": "nystrom", "n_landmarks": 40}, 120_000_000),
        (NEIGHBORS, 110_000_000),
    ],
    ids=["landmarks", "neighbours"],
)
def test_anonymous_memory_keeps_the_limit_and_holds_neither_rows_nor_features(
    options, limit, tmp_path
):
    n = 250_000
    X = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (n, 20))
    for start in range(0, n, 50_000):
        X[start : start + 50_000] = np.random.default_rng(start).normal(size=(50_000, 20))
    X.flush()
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / "rows.npy", json.dumps(options), str(limit)],
        capture_output=True,
        text=True,
        check=True,
    )
    peak, planned, kind = json.loads(ended.stdout)
    assert kind == "memmap"
    assert planned <= limit
    assert peak <= planned


def test_commands_put_rows_that_do_not_fit_in_a_scratch_file(tmp_path, monkeypatch):
    from sketchmeans.disk import scratch

    X = rows(60_000, np.float32)  # 1.44 MB
    made = []
    original = scratch.scratch_array

    def counted(folder, shape, dtype):
        made.append((folder, shape, np.dtype(dtype).name))
        return original(folder, shape, dtype)

    def run(command, data, output, *more):
        limit = ("--memory-limit", "110MB", "--quiet", "-o", tmp_path / output)
        shell.sketchmeans(*command.split(), tmp_path / data, *limit, *more)
        return np.load(tmp_path / output)

    monkeypatch.setattr(scratch, "scratch_array", counted)
    np.save(tmp_path / "rows.npy", X)
    np.savetxt(tmp_path / "rows.csv", X.astype(np.float64), fmt="%.17g", delimiter=",")
    cluster = "cluster -k 5 --kernel rbf --landmarks 20"
    here = run(cluster, "rows.npy", "here.npy", "--save", tmp_path / "m.skm")
    by_text = run(cluster, "rows.csv", "text.npy", "--standardize")
    assert made == []
    monkeypatch.setattr("sketchmeans.estimators.streaming.SHARE", 1000)
    assert np.array_equal(here, run(cluster, "rows.npy", "away.npy"))
    assert made == [(tmp_path, (60_000,), "int64")]  # numbers of rows: the file itself is mapped
    assert np.array_equal(by_text, run(cluster, "rows.csv", "away-text.npy", "--standardize"))
    predict = f"predict {tmp_path / 'm.skm'}"
    assert np.array_equal(here, run(predict, "rows.npy", "new.npy"))
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_rows_that_grow_are_spilled_where_memory_is_too_small():
    X = rows(1000)
    for room in (Room(), Room(20_000, lambda shape, dtype: None)):
        growing = Growing(room, X.shape[1])
        for start in range(0, 1000, 90):
            growing.add(X[start : start + 90])
        found = growing.whole()
        assert isinstance(found, np.memmap) == (room.most is not None)
        assert np.array_equal(found, X)


class Counted(np.ndarray):
    """A matrix that remembers which of its rows were read."""

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if isinstance(key, slice) and self.shape == (N, N):
            ASKED.append((key.start, key.stop))
        return found


N, ASKED = 1500, []


def test_a_precomputed_kernel_in_a_file_is_read_once_a_pass_and_in_order(tmp_path):
    X = rows(N)
    np.save(tmp_path / "K.npy", np.exp(-0.01 * ((X[:, None] - X) ** 2).sum(-1)).astype(np.float32))
    K = np.load(tmp_path / "K.npy", mmap_mode="r").view(Counted)
    ASKED.clear()
    operator = PrecomputedOperator(K, dtype=np.float32)
    found = one_pass(operator, HadamardSketch(N, 10, 0), rank=5, n_passes=3, run=Run(2))
    assert found.cost.passes == 3
    assert [start for start, _ in ASKED] == [*range(0, N, 256)] * 3
    assert sum(stop - start for start, stop in ASKED) == 3 * N
    by_path = KernelEmbedding(5, kernel="precomputed", method="one-pass", random_state=0)
    here = by_path.fit(np.load(tmp_path / "K.npy")).embedding_
    assert np.array_equal(here, by_path.fit(tmp_path / "K.npy").embedding_)


def test_compare_and_choose_draw_rows_where_there_are_very_many(monkeypatch):
    monkeypatch.setattr("sketchmeans.advice.comparing.COMPARED", 300)
    monkeypatch.setattr("sketchmeans.advice.choosing.CHOSEN", 400)
    X, y = rows(2000), np.arange(2000) % 5
    options = {"y": y, "variants": ["one-pass"], "n_seeds": 1, "random_state": 0}
    found = compare(Recorded(X), 5, **options)
    assert "300 of 2,000 rows, drawn by the seed, stand for all" in found.caption
    assert found["kernel entries"][0] < 300 * 300
    assert found["NMI"] == compare(X, 5, **options)["NMI"]
    chosen = choose(Recorded(X), n_clusters=range(4, 6), kernel="rbf", random_state=0)
    assert "400 of 2,000 rows, drawn by the seed, stand for all" in chosen.table.caption
    few = compare(X[:300], 5, variants=["one-pass"], n_seeds=1, random_state=0)
    assert "drawn" not in few.caption
