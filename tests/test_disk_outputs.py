"""Outputs: refused before any work where they cannot be, and all of them or none in the end."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.disk import naming
from test_disk import NEIGHBORS, Recorded, rows


@pytest.fixture(params=["without a name", "with a name"])
def temporaries(request, monkeypatch):
    """Both ways to write a file that nobody sees before it is whole."""
    if request.param == "with a name":
        monkeypatch.setattr(naming, "unnamed_file", lambda *_: None)


class Appearing(Recorded):
    """Rows, and somebody else who writes a file while they are read."""

    def __init__(self, X, path):
        super().__init__(X)
        self.path = path

    def __getitem__(self, rows):
        self.path.write_text("somebody else's")
        return super().__getitem__(rows)


@pytest.mark.parametrize("taken", ["a.npy", "b.npy"])
def test_a_name_that_is_taken_during_the_fit_keeps_all_outputs_away(taken, tmp_path, temporaries):
    X = rows(900)
    model = KernelKMeans(3, random_state=0, **NEIGHBORS).fit(X)
    before = dict(vars(model))
    with pytest.raises(FileExistsError, match=rf"{taken} exists already"):
        model.fit(
            Appearing(X[:800], tmp_path / taken),
            out=tmp_path / "a.npy",
            embedding_out=tmp_path / "b.npy",
        )
    assert os.listdir(tmp_path) == [taken]
    assert (tmp_path / taken).read_text() == "somebody else's"
    assert vars(model) == before


@pytest.mark.parametrize("cls", [KernelKMeans, KernelEmbedding])
def test_a_fit_that_fails_at_its_end_writes_nothing_and_keeps_fit_and_checkpoint(
    cls, tmp_path, monkeypatch
):
    """Samples that new points need go to a scratch file, and the disk may be full by then."""
    X = rows(3000)
    options = {"kernel": "rbf", "method": "one-pass", "random_state": 0}
    model = cls(3, **options).fit(X[:500])
    former = dict(vars(model))
    model.checkpoint = str(tmp_path / "kept")
    out = {"embedding_out": tmp_path / "b.npy"}
    if cls is KernelKMeans:
        out["out"] = tmp_path / "a.npy"

    def full(self):
        if self.shape[1] == X.shape[1]:
            raise OSError(28, "there is no room for scratch")
        return np.concatenate([self[slice(0, len(self))]])

    closed = []
    monkeypatch.setattr("sketchmeans.disk.FileRows.whole", full)
    from sketchmeans.checkpoints import Checkpoint

    close = Checkpoint.close
    monkeypatch.setattr(
        Checkpoint,
        "close",
        lambda self, *, finished: (closed.append(finished), close(self, finished=finished)),
    )
    with pytest.raises(OSError, match="no room for scratch"):
        model.fit(Recorded(X), **out)
    assert [name for name in os.listdir(tmp_path) if name != "kept"] == []
    assert closed == [False]
    assert {**vars(model), "checkpoint": None} == former


def test_files_that_the_system_will_refuse_are_refused_before_any_work(tmp_path):
    source = Recorded(rows(300))
    model = KernelKMeans(3, random_state=0).fit(rows(300))
    long = tmp_path / ("a" * 260 + ".npy")
    asked = [lambda path: model.fit(source, out=path), lambda path: model.predict(source, out=path)]
    for ask in asked:
        with pytest.raises(OSError, match=r"out='.*aaa\.npy' cannot be written: File name too lo"):
            ask(long)
    if os.path.isdir("/proc/self") and sys.platform.startswith("linux"):
        for ask in asked:  # nobody can write there, not even root
            with pytest.raises(OSError, match=r"out='/proc/labels\.npy' cannot be written: .*"):
                ask("/proc/labels.npy")
    assert source.asked == []


def test_outputs_are_files_of_the_rights_that_files_have_here(tmp_path, temporaries):
    model = KernelKMeans(3, random_state=0, **NEIGHBORS)
    model.fit(rows(900), out=tmp_path / "a.npy", embedding_out=tmp_path / "b.npy")
    (tmp_path / "plain").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy", "plain"]
    assert os.fspath(model.labels_.filename) == os.path.realpath(tmp_path / "a.npy")


KILLED = """
import os, signal, sys
import numpy as np
from sketchmeans.disk import Outputs, outputs
def dying(array):
    yield array[:10]
    os.kill(os.getpid(), signal.SIGKILL)
outputs.blocks_of = dying
Outputs({"out": sys.argv[1] + "/a.npy"}).write(out=np.zeros(20))
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
def test_a_process_that_is_killed_while_it_writes_leaves_no_file(tmp_path):
    if naming.unnamed_file(tmp_path, tmp_path / "probe") is None:
        pytest.skip("this file system has no files without a name")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == []
