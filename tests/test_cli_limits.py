"""``--memory-limit`` on the command line: kept while files are read, and refused before that."""

import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shell import sketchmeans as run
from sketchmeans import KernelKMeans
from sketchmeans.disk.scratch import scratch_array
from sketchmeans.io import read_table
from sketchmeans.io.room import Room
from sketchmeans.io.texts import GrowingTexts, held_bytes

LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="anonymous memory is read from Linux's /proc"
)
SMALL = Room(1000, lambda shape, dtype: scratch_array(None, shape, dtype))
"""Nothing of a table fits."""

READING = """
import sys, threading, time
import numpy as np, pyarrow.csv, pyarrow as pa
pa.array([1.0]).to_numpy(zero_copy_only=False)  # imports pandas
from sketchmeans.io import read_table
sys.path.insert(0, sys.argv[2])
from benchmarks.out_of_core import anonymous_bytes
from test_cli_limits import SMALL
peak, done, before = 0, False, anonymous_bytes()
def look():
    global peak
    while not done:
        peak = max(peak, anonymous_bytes())
        time.sleep(0.002)
looking = threading.Thread(target=look, daemon=True)
looking.start()
table = read_table(sys.argv[1], id_column="id", room=SMALL)
done = True
looking.join()
print(peak - before, len(table.X), table.held)
"""


@LINUX
def test_memory_of_reading_text_does_not_grow_with_the_file(tmp_path):
    some = np.random.default_rng(0).normal(size=(5000, 10))
    lines = [",".join(f"{one:.6f}" for one in row) + f",row-{row[0]:.8f}\n" for row in some]
    times = 100
    with (tmp_path / "rows.csv").open("w") as file:
        file.write(",".join(f"x{index}" for index in range(10)) + ",id\n")
        for _ in range(times):
            file.writelines(lines)
    here = __file__.rpartition("/")[0]
    ended = subprocess.run(
        [sys.executable, "-c", READING, tmp_path / "rows.csv", here],
        capture_output=True,
        text=True,
        check=True,
    )
    peak, n, held = map(int, ended.stdout.split())
    assert n == times * 5000
    assert held == 0
    assert (tmp_path / "rows.csv").stat().st_size > 50_000_000
    assert peak < 45_000_000  # pyarrow reads forty blocks ahead


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_ids_that_do_not_fit_are_written_as_they_were(format, tmp_path):
    ids = ["ä", "", "a,b", 'a "quoted" one', "🙂 x", *(f"row {index}" for index in range(995))]
    X = np.random.default_rng(0).normal(size=(1000, 2))
    frame = pa.table({"x": X[:, 0], "y": X[:, 1], "id": ids})
    if format == "parquet":
        parquet.write_table(frame, tmp_path / "rows.parquet")
    else:
        from pyarrow import csv

        csv.write_csv(frame, tmp_path / "rows.csv")
    found = read_table(tmp_path / f"rows.{format}", id_column="id", room=SMALL)
    assert list(found.ids) == ids
    assert found.held == 0
    kept = np.arange(1000) % 3 == 0
    found.keep_rows(kept)
    assert found.ids.tolist() == ids[::3]
    assert found.ids[1] == ids[3]
    assert found.ids[2:5].tolist() == ids[6:15:3]
    assert pa.array(found.ids).to_pylist() == ids[::3]


@pytest.mark.parametrize("output", ["labels.csv", "labels.parquet"])
def test_files_of_labels_are_the_same_bytes_with_and_without_a_limit(output, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2)).round(3).astype(str)
    rows = [",".join([*row, f"id {index}"]) for index, row in enumerate(X)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y,name", *rows]))
    cluster = ["cluster", tmp_path / "rows.csv", "-k", 2, "--id-column", "name", "--quiet"]
    run(*cluster, "-o", tmp_path / f"free-{output}")
    monkeypatch.setattr("sketchmeans.cli.reading.HELD", 10**6)
    run(*cluster, "-o", tmp_path / output, "--memory-limit", "150MB")
    assert (tmp_path / output).read_bytes() == (tmp_path / f"free-{output}").read_bytes()


def test_what_a_table_takes_is_not_left_to_the_fit(tmp_path, monkeypatch):
    np.savetxt(tmp_path / "rows.csv", np.random.default_rng(0).normal(size=(1000, 3)))
    given = []
    fit = KernelKMeans.fit
    monkeypatch.setattr(
        KernelKMeans, "fit", lambda self, X: given.append(self.memory_limit) or fit(self, X)
    )
    cluster = ["cluster", tmp_path / "rows.csv", "-k", 2, "--kernel", "linear", "--quiet"]
    run(*cluster, "--memory-limit", "150MB", "--delimiter", "space")
    assert given == [150_000_000 - 1000 * (3 + 1) * 8]
    (tmp_path / "rows.jsonl").write_text("[1, 2, 3]\n[4, 5, 6]\n" * 500)  # read into memory
    cluster[1] = tmp_path / "rows.jsonl"
    shown = run(*cluster, "--memory-limit", "20kB", code=1)
    assert "--memory-limit=20 kB cannot be kept: the table itself takes" in shown.stderr


def test_a_row_that_is_longer_than_any_block_is_read(tmp_path):
    notes = ["short"] * 3000 + ["long " * 150_000] + ["short"] * 10
    lines = [f"{2 * index},{note}" for index, note in enumerate(notes)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,note", *lines]))
    for room in (None, SMALL):
        found = read_table(tmp_path / "rows.csv", columns="x", id_column="note", room=room)
        assert np.array_equal(found.X[:, 0], 2 * np.arange(len(notes)))
        assert list(found.ids) == notes


def huge(path, n):
    """Write rows of which the disk holds none."""
    if path.suffix == ".npy":
        np.lib.format.open_memmap(path, "w+", np.float32, (n, 20))
        return
    column = pa.array(np.zeros(n, np.float32))
    frame = pa.table([column] * 4, names=list("abcd"))
    if path.suffix == ".parquet":
        parquet.write_table(frame, path, use_dictionary=False, compression="none")
    else:
        feather.write_feather(frame, path, compression="uncompressed")


@pytest.mark.parametrize(
    ("name", "n"), [("rows.npy", 10_000_000), ("rows.parquet", 10**6), ("rows.feather", 10**6)]
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["fit", "dry-run"])
def test_a_limit_that_cannot_be_kept_is_refused_before_the_rows_are_read(
    name, n, more, tmp_path, monkeypatch
):
    def read(*_):
        raise AssertionError("rows were read")

    huge(tmp_path / name, n)
    run("cluster", tmp_path / name, "-k", 8, "--memory-limit", "1MB", code=1)  # imports
    monkeypatch.setattr("sketchmeans.io.reading.complete", read)
    monkeypatch.setattr(Room, "empty", read)
    start = time.process_time()
    shown = run("cluster", tmp_path / name, "-k", 8, "--memory-limit", "20MB", *more, code=1)
    assert time.process_time() - start < 1
    assert f"--memory-limit=20 MB cannot be kept: {n:,} samples" in shown.stderr


def test_rows_that_may_be_left_out_are_read_before_a_limit_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(200_000, 4))
    X[1000:, 0] = np.nan
    np.save(tmp_path / "rows.npy", X)
    cluster = ["cluster", tmp_path / "rows.npy", "-k", 2, "--kernel", "rbf", "--landmarks", 20]
    cluster += ["--memory-limit", "30MB", "--json"]
    refused = run(*cluster, code=1).stderr
    assert "cannot be kept: 200,000 samples" in refused
    assert '"rows": 1000' in run(*cluster, "--drop-missing").stdout


def test_an_array_in_a_file_is_mapped_and_never_written_to(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    X[7, 1] = np.nan
    path = tmp_path / "rows.npy"
    np.save(path, X)
    before = path.read_bytes()
    mapped = read_table(path, room=SMALL, keep_missing=True).X
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    for options in (
        {"impute": "mean"},
        {"drop_missing": True, "standardize": True},
        {"na_values": [str(X[0, 0])], "impute": 0.0},
        {"columns": "1,3"},
    ):
        here, away = (read_table(path, room=room, **options) for room in (None, SMALL))
        assert np.array_equal(here.X, away.X)
        assert here.X.dtype == away.X.dtype == np.float32
        assert np.array_equal(here.rows, away.rows)
        assert held_bytes(away.X) == 0
    assert path.read_bytes() == before
    for other in (np.asfortranarray(X), X.astype(">f4"), X.astype(np.float16)):
        np.save(path, other[:5])
        assert np.array_equal(read_table(path, room=Room(10, SMALL.scratch)).X, other[:5])


def test_texts_are_held_or_in_a_file_by_their_size():
    for room, most in ((Room(), 1 << 20), (SMALL, 0)):
        growing = GrowingTexts(room)
        for start in range(0, 1000, 300):
            growing.add([str(row) for row in range(start, min(start + 300, 1000))])
        found = growing.whole()
        assert found.tolist() == [str(row) for row in range(1000)]
        assert (0 < held_bytes(found) < most) if most else held_bytes(found) == 0


@pytest.mark.parametrize("gamma", ["0", "-1"])
def test_a_width_that_is_none_is_refused_in_the_same_words_with_a_limit(gamma, tmp_path):
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(30, 2)))
    command = ["cluster", tmp_path / "data.npy", "-k", 2, "--kernel", "rbf", f"--gamma={gamma}"]
    plain = run(*command, code=1).stderr
    assert f"gamma={gamma}" in plain
    assert run(*command, "--memory-limit", "1GB", code=1).stderr == plain
