"""Where results go, and which files are kept, replaced or never written."""

import os
import signal

import pytest
from pyarrow import parquet

import shell
from shell import sketchmeans as run
from sketchmeans import KernelKMeans

QUADRATIC = ("--kernel", "polynomial", "--degree", 2, "--coef0", 0, "--rank", 2)


def test_results_go_to_standard_output_and_nothing_else(rings, tmp_path):
    arguments = ["cluster", rings, "-k", 2, "--id-column", "point", "--label-column", "ring"]
    shown = run(*arguments, *QUADRATIC)
    assert shown.stderr == ""
    assert "300 rows of 2 columns in 2 clusters: polynomial kernel" in shown.stdout
    assert "Agreement with 'ring': accuracy 0." in shown.stdout
    assert "at most" in shown.stdout
    shown = run(*arguments, *QUADRATIC, "--quiet", "-o", tmp_path / "labels.csv")
    assert shown.stdout == shown.stderr == ""
    shown = run(*arguments, *QUADRATIC, "-o", "-")
    assert shown.stdout == (tmp_path / "labels.csv").read_text()
    assert "300 rows of 2 columns" in shown.stderr
    shown = run(*arguments, *QUADRATIC, "-v")
    assert "kernel passes: done at" in shown.stderr
    assert "passes over the kernel: 2; kernel entries:" in shown.stdout


@pytest.mark.parametrize("option", ["-o", "--report", "--save"])
def test_an_existing_file_is_refused_before_the_work_and_kept(option, rings, monkeypatch):
    names = {"-o": "labels.csv", "--report": "report.html", "--save": "model.skm"}
    path = rings.parent / names[option]
    path.write_text("precious")
    arguments = ["cluster", rings, "-k", 2, "--columns", "x,y", option, path]
    fit = KernelKMeans.fit
    monkeypatch.setattr(KernelKMeans, "fit", lambda *args: pytest.fail("work began"))
    shown = run(*arguments, code=1)
    assert f"{path.name} exists already. Say --force to overwrite it" in shown.stderr
    assert path.read_text() == "precious"
    monkeypatch.setattr(KernelKMeans, "fit", fit)
    run(*arguments, "--force")
    assert path.read_bytes()[:8] != b"precious"


@pytest.mark.parametrize("option", ["-o", "--report", "--save"])
def test_a_pipe_is_not_replaced_even_by_force(option, rings, monkeypatch):
    pipe = rings.parent / "pipe.csv"
    os.mkfifo(pipe)
    monkeypatch.setattr(KernelKMeans, "fit", lambda *args: pytest.fail("work began"))
    shown = run("cluster", rings, "-k", 2, "--columns", "x,y", option, pipe, "--force", code=1)
    assert "pipe.csv is a device or a pipe" in shown.stderr
    assert pipe.is_fifo()


@pytest.mark.parametrize("option", ["-o", "--report", "--save"])
def test_a_link_stays_and_leads_to_the_new_file(option, rings):
    folder = rings.parent / "elsewhere"
    folder.mkdir()
    (folder / "real.csv").write_text("precious")
    link = rings.parent / "link.csv"
    link.symlink_to(folder / "real.csv")
    arguments = ["cluster", rings, "-k", 2, "--columns", "x,y", option, link]
    assert "link.csv exists already. Say --force" in run(*arguments, code=1).stderr
    run(*arguments, "--force")
    assert link.is_symlink()
    assert (folder / "real.csv").read_bytes()[:8] != b"precious"
    assert [path.name for path in folder.iterdir()] == ["real.csv"]


@pytest.mark.parametrize("option", ["-o", "--report", "--save"])
def test_a_file_that_came_during_the_work_is_kept(option, rings, monkeypatch):
    path, fit = rings.parent / "late.csv", KernelKMeans.fit

    def slow(*args):
        path.write_text("precious")
        return fit(*args)

    monkeypatch.setattr(KernelKMeans, "fit", slow)
    shown = run("cluster", rings, "-k", 2, "--columns", "x,y", option, path, code=1)
    assert "late.csv exists already. Say --force to overwrite it" in shown.stderr
    assert path.read_text() == "precious"


def test_ctrl_c_stops_the_work_and_leaves_no_file(tmp_path):
    (tmp_path / "old.csv").write_text("precious")
    options = ["-o", "old.csv", "--force", "--save", "model.skm", "--report", "report.html"]
    code, said = shell.end_during_fit(tmp_path, options, signal.SIGINT)
    assert code == 130
    assert "Interrupted." in said
    assert sorted(os.listdir(tmp_path)) == ["data.npy", "old.csv"]
    assert (tmp_path / "old.csv").read_text() == "precious"


def test_an_interrupted_write_leaves_the_old_file_and_no_other(rings, monkeypatch):
    folder = rings.parent
    (folder / "labels.parquet").write_text("precious")
    before = sorted(os.listdir(folder))

    def interrupted(frame, path):
        path.write_bytes(b"PAR1 and half of the rest")
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write_table", interrupted)
    arguments = ["cluster", rings, "-k", 2, "--columns", "x,y", "--force"]
    shown = run(*arguments, "-o", folder / "labels.parquet", code=1)
    assert "Aborted!" in shown.stderr
    assert sorted(os.listdir(folder)) == before
    assert (folder / "labels.parquet").read_text() == "precious"
