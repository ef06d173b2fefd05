"""Damaged and hostile data files end in a clear error: no traceback, little memory, nothing run."""

import json
import os
import re
import subprocess
import sys

import pytest

import hostile_files
import shell

RUN = """
import json, re, sys, warnings
from pathlib import Path
from click.testing import CliRunner
from sketchmeans.cli import cli
import sketchmeans.estimators, sketchmeans.advice, sketchmeans.io, pyarrow.csv, pyarrow.parquet
import pyarrow.feather, sklearn.datasets

watched = ("pickle.find_class", "os.system", "subprocess.Popen", "os.exec", "socket.connect")
watched += ("socket.getaddrinfo", "urllib.Request")
run = []
sys.addaudithook(lambda event, arguments: run.append(event) if event in watched else None)

def memory(name):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(name + r":\\s+(\\d+)", status)[1])

names = json.loads(sys.stdin.read())
runner = CliRunner(**names["apart"])
for name in names["good"]:
    assert runner.invoke(cli, ["cluster", name, "-k", "2"]).exit_code == 0, name
run.clear()
found = {}
for name in names["bad"]:
    Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is that of this file
    before = memory("VmRSS")
    result = runner.invoke(cli, ["cluster", name, "-k", "2"])
    ended = result.exception is None or isinstance(result.exception, SystemExit)
    found[name] = {
        "code": result.exit_code, "out": result.stdout, "err": result.stderr, "ended": ended,
        "error": repr(result.exception), "above": memory("VmHWM") - before,
    }
json.dump({"found": found, "run": run}, sys.stdout)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def outcome(folder):
    """Run all files through ``cluster`` in one process, and return what became of them."""
    for name, (content, _) in hostile_files.damaged(folder / "marker").items():
        (folder / name).write_bytes(content() if callable(content) else content)
    for name, content in hostile_files.mutations().items():
        (folder / name).write_bytes(content)
    for kind, content in hostile_files.good().items():
        (folder / f"good.{kind}").write_bytes(content)
    (folder / "folder.csv").mkdir()
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    before = sorted(os.listdir(folder))
    outcome = run_through(folder)
    assert sorted(os.listdir(folder)) == before  # nothing was run, unpacked or left behind
    return outcome


def run_through(folder):
    """Run the files of a folder through ``cluster`` in a process, those that are good first."""
    there = sorted(os.listdir(folder))
    names = {
        "good": [name for name in there if name.startswith("good.")],
        "bad": [name for name in there if not name.startswith("good.")],
        "apart": shell.APART,
    }
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout)


def is_read_or_refused(found):
    """Whether a file that may be good or bad came to clusters, or to one clear error."""
    if found["code"] == 0:
        return found["ended"] and "rows of" in found["out"]
    error = re.fullmatch(r"((Warning|Note): .*\n)*Error: .+\n", found["err"])
    return found["ended"] and found["code"] == 1 and error is not None


def test_there_are_fifty_files_and_more(outcome):
    assert len(outcome["found"]) > 100 + 14 * hostile_files.MUTATIONS


MESSAGES = {name: message for name, (_, message) in hostile_files.damaged("marker").items()}


@pytest.mark.parametrize(("name", "message"), MESSAGES.items(), ids=MESSAGES)
def test_a_damaged_or_hostile_file_ends_in_a_clear_error(name, message, outcome):
    found = outcome["found"][name]
    assert found["ended"], found["error"]
    assert found["code"] == 1
    assert found["out"] == ""
    assert re.fullmatch(r"(Note: .*\n)*Error: .+\n", found["err"]), found["err"]
    assert re.search(message, found["err"]), found["err"]
    assert name in found["err"]
    assert len(found["err"]) < 800
    assert "Traceback" not in found["err"]


def test_tricks_with_paths_end_in_a_clear_error(outcome):
    assert "folder.csv is a folder" in outcome["found"]["folder.csv"]["err"]
    assert "zero.csv is a device" in outcome["found"]["zero.csv"]["err"]
    assert outcome["found"]["loop.csv"]["err"].startswith("Error: ")
    for name in ("folder.csv", "zero.csv", "loop.csv"):
        assert outcome["found"][name]["code"] == 1


def test_a_mutated_file_is_read_or_ends_in_a_clear_error(outcome):
    mutated = {name: outcome["found"][name] for name in hostile_files.mutations()}
    assert {name: one for name, one in mutated.items() if not is_read_or_refused(one)} == {}
    codes = [one["code"] for one in mutated.values()]
    assert codes.count(1) > len(codes) / 3
    assert 0 in codes


def test_no_file_takes_a_hundred_megabytes(outcome):
    above = {name: found["above"] for name, found in outcome["found"].items()}
    assert max(above.values()) < 100_000_000, {n: v for n, v in above.items() if v > 50_000_000}


def test_nothing_is_unpickled_or_run(outcome, folder):
    assert outcome["run"] == []
    assert not (folder / "marker").exists()


def test_members_of_an_archive_are_never_written_to_disk(tmp_path):
    from sketchmeans.io import read_table

    inside = tmp_path / "inside"
    inside.mkdir()
    content = hostile_files.npz_bytes(
        [("../outside.npy", hostile_files.npy_bytes(hostile_files.X))]
    )
    (inside / "data.npz").write_bytes(content)
    assert read_table(inside / "data.npz").X.shape == (40, 3)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["data.npz", "inside"]
