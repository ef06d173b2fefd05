"""Files that appear whole or not at all: many writers at once, and signals at any moment."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import shell
from shell import sketchmeans as run
from sketchmeans import KernelKMeans, load, save
from sketchmeans import atomic as files
from sketchmeans.cli.demo import write_examples
from sketchmeans.io import read_table, write_labels
from sketchmeans.report import write_report
from sketchmeans.reproduce import drawing

X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture(scope="module")
def model():
    return KernelKMeans(2, rank=2, random_state=0, kernel="rbf").fit(X)


@pytest.fixture(params=["hard links", "no hard links"])
def links(request, monkeypatch):
    """Folders with and without hard links, such as those of FAT."""
    if request.param == "no hard links":

        def refused(*paths):
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refused)


def labels(path):
    np.save(path.parent / "data.npy", X)
    write_labels(path, read_table(path.parent / "data.npy"), np.zeros(40, int), force=False)


def figure(path):
    from matplotlib.figure import Figure

    drawing.save(Figure(), files.Folder(path.parent, "Give --force."), path.stem)


WRITERS = {
    "save": ("model.skm", lambda model, path: save(model, path)),
    "report": ("report.html", lambda model, path: write_report(path, model, X, command="python")),
    "labels": ("labels.csv", lambda model, path: labels(path)),
    "examples": ("rings.csv", lambda model, path: write_examples(path.parent)),
    "figure": ("figure.png", lambda model, path: figure(path)),
    "text": ("table.md", lambda model, path: files.Folder(path.parent, "No.").write(path.name, "")),
}


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_came_at_the_last_moment_is_kept(writer, model, tmp_path, monkeypatch):
    name, write = WRITERS[writer]
    path, flush = tmp_path / name, os.fsync

    def slow(handle):
        flush(handle)
        path.write_text("precious")

    monkeypatch.setattr(files.os, "fsync", slow)
    with pytest.raises(FileExistsError, match=rf"{name} exists already\. "):
        write(model, path)
    assert path.read_text() == "precious"
    assert {item.name for item in tmp_path.iterdir()} <= {name, "data.npy"}


@pytest.mark.parametrize("option", ["-o", "--report", "--save"])
def test_the_command_line_keeps_such_a_file_and_names_its_own_way_out(option, rings, monkeypatch):
    path, flush = rings.parent / "late.csv", os.fsync
    before = sorted(os.listdir(rings.parent))

    def slow(handle):
        flush(handle)
        path.write_text("precious")

    monkeypatch.setattr(files.os, "fsync", slow)
    shown = run("cluster", rings, "-k", 2, "--columns", "x,y", option, path, code=1)
    assert "late.csv exists already. Say --force to overwrite it" in shown.stderr
    assert path.read_text() == "precious"
    assert sorted(os.listdir(rings.parent)) == sorted([*before, "late.csv"])


@pytest.mark.usefixtures("links")
def test_of_many_that_save_at_once_one_wins(model, tmp_path):
    crew, start = 8, Barrier(8)

    def attempt(path):
        start.wait()
        try:
            save(model, path)
        except FileExistsError as error:
            return str(error)
        return "won"

    with ThreadPoolExecutor(crew) as pool:
        for number in range(20):
            path = tmp_path / f"{number}.skm"
            lost = f"{path} exists already. Choose another path, or pass overwrite=True."
            assert sorted(pool.map(attempt, [path] * crew)) == [lost] * (crew - 1) + ["won"]
            np.testing.assert_array_equal(load(path).labels_, model.labels_)
    assert len(os.listdir(tmp_path)) == 20


def test_of_two_processes_that_save_at_once_one_wins(model, tmp_path):
    save(model, tmp_path / "model.skm")
    code = (
        "import sys; from sketchmeans import load, save; model = load('model.skm')\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for i in range(50):\n"
        "    try: save(model, f'{i}.skm'); print(i)\n"
        "    except FileExistsError: pass\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    both = [subprocess.Popen([sys.executable, "-c", code], **pipes) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [line for process in both for line in process.communicate(timeout=60)[0].split()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(map(int, won)) == list(range(50))


def test_a_name_that_was_taken_in_vain_is_given_back(tmp_path, monkeypatch):
    def refused(*paths):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(files.Path, "replace", refused)
    with pytest.raises(PermissionError):
        files.write_whole(tmp_path / "labels.csv", "id,label", way_out="Give --force.")
    assert os.listdir(tmp_path) == []


def test_files_have_the_permissions_of_any_other_new_file(tmp_path):
    files.write_whole(tmp_path / "text.md", "text")
    (tmp_path / "other.md").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("text.md", "other.md")]
    assert modes[0] == modes[1]


STOP = """
import json, os, sys, time
import sketchmeans.advice, sketchmeans.cli.cluster, sketchmeans.estimators, sketchmeans.io
import sketchmeans.models
from sketchmeans import atomic as files
from sketchmeans.models import saving
from sketchmeans.cli import main

def stop(*args, **options):
    print("now", flush=True)
    time.sleep(60)

def half(file, header, arrays, **options):
    file.write(b"half")
    stop()

def run(moment, folder, said, arguments):
    os.chdir(folder)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    sys.argv = ["sketchmeans", *arguments]
    if moment == "before a byte":
        saving.write = stop
    elif moment == "half written":
        saving.write = half
    elif moment == "written":
        files.os.fsync = stop
    elif moment == "reading":
        sketchmeans.io.read_table = stop
    elif moment == "between files":
        sketchmeans.models.save = stop
    main()

print("ready", flush=True)
while line := sys.stdin.readline():
    child = os.fork()
    if child == 0:
        run(*json.loads(line))
        sys.exit()
    print(child, flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def commands():
    """Return a process that runs commands, each in a child that has nothing left to import."""
    with shell.start(["-c", STOP], None, stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


MOMENTS = ("reading", "before a byte", "half written", "written", "between files")


@pytest.mark.parametrize(
    ("moment", "sent"),
    [
        *((moment, signal.SIGTERM) for moment in MOMENTS),
        ("half written", signal.SIGHUP),
        ("half written", signal.SIGINT),
    ],
)
def test_a_signal_at_any_moment_leaves_whole_files_only(moment, sent, commands, tmp_path):
    said, folder = tmp_path / "said.txt", tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "data.npy", X)
    arguments = ["cluster", "data.npy", "-k", "2", "--save", "model.skm"]
    if moment == "between files":
        arguments += ["-o", "labels.csv"]
    print(json.dumps([moment, str(folder), str(said), arguments]), file=commands.stdin, flush=True)
    child = int(commands.stdout.readline())
    assert commands.stdout.readline() == "now\n"
    if moment != "reading":
        waiting = [name for name in os.listdir(folder) if name.startswith(".unfinished-")]
        assert len(waiting) == (moment != "between files")
    os.kill(child, sent)
    begin = time.monotonic()
    assert commands.stdout.readline() == f"ended {128 + sent}\n"  # and no results before
    assert time.monotonic() - begin < 30  # it would have slept for a minute
    assert "Traceback" not in said.read_text()
    whole = {"data.npy", "labels.csv"} if moment == "between files" else {"data.npy"}
    assert set(os.listdir(folder)) == whole


def test_sigterm_during_the_fit_ends_it_and_a_second_one_does_not_disturb(tmp_path):
    options = ["-o", "l.csv"]
    code, _ = shell.end_during_fit(tmp_path, options, signal.SIGTERM, signal.SIGTERM)
    assert code == 143
    assert os.listdir(tmp_path) == ["data.npy"]


def test_the_library_leaves_the_signals_of_a_program_alone():
    code = (
        "import signal, sketchmeans, sketchmeans.cli, sketchmeans.models, sketchmeans.report\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "try: sketchmeans.cli.main()\n"
        "except SystemExit: pass\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", code, "--version"], check=True, stdout=subprocess.DEVNULL)
