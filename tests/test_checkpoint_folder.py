"""The folder of a checkpoint: others' files stay, damage is told, and nothing leaks."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from sketchmeans import KernelEmbedding
from sketchmeans.checkpoints import Checkpoint, CheckpointWarning, Stage, kept_in
from sketchmeans.checkpoints.folder import LIST, LOCK, MAGIC, Folder, part_name
from sketchmeans.checkpoints.lock import remove_folder
from sketchmeans.container import ModelFileError, read_header, write


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(300, 3))


def keep(folder, count=2, of=None):
    """Leave a checkpoint of some stages behind, as a process that was killed does."""
    checkpoint = Checkpoint(folder)
    checkpoint.belongs_to(lambda: of or {"the work": "test"})
    for _ in range(count):
        with checkpoint.stage("pass") as stage:
            stage.save(lambda: {"W": np.arange(3.0)})
    checkpoint.close(finished=False)
    return folder


FOREIGN = {
    "part-mine.skc": b"mine",
    "part-000001.skc": b"mine, though it is called like a part",
    "part-1.skc": MAGIC + b"of a copy",
    ".unfinished-mine.skc": b"mine",
    ".unfinished-0123456789abcdef.skc": b"mine",
    "damaged-part-000001.skc": b"older",
}


def test_files_of_others_stay_as_they_are(X, tmp_path):
    for name, content in FOREIGN.items():
        (tmp_path / name).write_bytes(content)
    keep(tmp_path)
    assert Checkpoint(tmp_path).close(finished=True) is None
    model = KernelEmbedding(2, kernel="rbf", random_state=0, checkpoint=tmp_path)
    model.fit(X)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == FOREIGN


def test_what_somebody_who_was_killed_left_is_removed(tmp_path):
    keep(tmp_path)
    left = [f".unfinished-{digit * 16}.skc" for digit in "0123"]
    for name, content in zip(left, (b"", MAGIC, bytes(20), MAGIC + b"..."), strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / part_name(7)).write_bytes((tmp_path / part_name(1)).read_bytes())
    checkpoint = Checkpoint(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [
        "checkpoint.lock",
        LIST,
        part_name(1),
        part_name(2),
    ]
    checkpoint.close(finished=True)
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_being_written_shows_whose_it_is(tmp_path):
    seen = []
    with (tmp_path / "part").open("wb", buffering=0) as file:

        class Watched:
            tell, seek = file.tell, file.seek

            def write(self, content):
                file.write(content)
                seen.append((tmp_path / "part").read_bytes()[:8])

        write(Watched(), {}, {"W": np.zeros(3)}, magic=MAGIC)
    assert set(seen) == {MAGIC}


@pytest.mark.parametrize(
    "of",
    [
        {"kernel_params": "[" * 5_000},
        {f"parameter {i}": "[{" * 100 for i in range(20)},
        {"kernel_params": '"[\\"[' * 500},
    ],
)
def test_brackets_in_texts_are_no_damage(of, tmp_path):
    keep(tmp_path, of=of)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint = Checkpoint(tmp_path)
    assert checkpoint.resumes
    checkpoint.close(finished=True)


def test_long_parameters_are_no_damage_and_their_difference_is_told(X, tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHMEANS_CHECKPOINT_SECONDS", "0")

    def model(text):
        def kernel(A, B, text=None, table=None):
            return A @ B.T

        given = {"text": text, "table": [[i] for i in range(2_000)]}
        return KernelEmbedding(
            2,
            kernel=kernel,
            kernel_params=given,
            method="one-pass",
            random_state=0,
            checkpoint=tmp_path / "kept",
        )

    plain = Checkpoint.save
    with monkeypatch.context() as patch:

        def save_and_stop(self, *given):
            plain(self, *given)
            raise KeyboardInterrupt

        patch.setattr(Checkpoint, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            model("x" * 1_100_000).fit(X)
    with pytest.raises(ValueError, match=r"kernel_params is {'table': .*characters, \w+\) there"):
        model("y" * 1_100_000).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        model("x" * 1_100_000).fit(X)
    assert os.listdir(tmp_path) == []


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    for header in ({"text": "x" * 2_000_000}, {"lists": [[]] * 1_000}):
        with (tmp_path / "part").open("wb") as file, pytest.raises(ModelFileError, match="again"):
            write(file, header, {}, magic=MAGIC)
    with (tmp_path / "part").open("wb") as file:
        write(file, {"text": "[" * 1_000}, {}, magic=MAGIC)
    with (tmp_path / "part").open("rb") as file:
        assert read_header(file, magic=MAGIC)[1] == {"text": "[" * 1_000}


@pytest.mark.parametrize("given", ["abc", "", "nan", "inf", "-1"])
def test_seconds_that_are_none_are_refused_before_the_folder_is_taken(
    given, X, tmp_path, monkeypatch
):
    monkeypatch.setenv("SKETCHMEANS_CHECKPOINT_SECONDS", given)
    model = KernelEmbedding(2, kernel="rbf", random_state=0, checkpoint=tmp_path / "kept")
    match = f"SKETCHMEANS_CHECKPOINT_SECONDS={given!r} must be a number of seconds, .* unset it"
    with pytest.raises(ValueError, match=match):
        model.fit(X)
    assert os.listdir(tmp_path) == []
    monkeypatch.delenv("SKETCHMEANS_CHECKPOINT_SECONDS")
    model.fit(X)


def test_nothing_leaks_where_opening_fails(tmp_path):
    keep(tmp_path / "kept")
    (tmp_path / "kept" / LIST).write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        with pytest.raises(CheckpointWarning):
            Checkpoint(tmp_path / "kept")
    Checkpoint(tmp_path / "kept").close(finished=True)
    (tmp_path / "locked" / "checkpoint.lock").mkdir(parents=True)
    with pytest.raises(IsADirectoryError, match="where the lock of a checkpoint would be"):
        Checkpoint(tmp_path / "locked")


def test_parts_whose_list_is_lost_are_set_aside_with_a_warning(tmp_path):
    keep(tmp_path)
    (tmp_path / LIST).unlink()
    with pytest.warns(CheckpointWarning, match=f"damaged and was not used: {LIST} is missing"):
        Checkpoint(tmp_path).close(finished=False)
    assert sorted(os.listdir(tmp_path)) == [f"damaged-{part_name(n)}" for n in (1, 2)]


@pytest.mark.parametrize("when", ["before the first list", "while it is cleared"])
def test_a_kill_leaves_no_damage(when, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    folder = tmp_path / "kept"
    if when == "while it is cleared":
        keep(folder)
        opened = Folder(folder)
        opened.read()
        monkeypatch.setattr(Folder, "remove_others", kill)
        with pytest.raises(Killed):
            opened.clear()
    else:
        plain = Folder.write_part
        monkeypatch.setattr(Folder, "write_part", lambda self, *it: kill(plain(self, *it)))
        with pytest.raises(Killed), kept_in(folder) as checkpoint:
            checkpoint.save(Stage(checkpoint, "/0:pass"), {"W": np.arange(3.0)})
    monkeypatch.undo()
    (folder / "checkpoint.lock").unlink(missing_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint = Checkpoint(folder)
    assert not checkpoint.resumes
    checkpoint.close(finished=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [LIST, part_name(1)])
def test_a_folder_in_the_place_of_a_file_is_damage(name, tmp_path):
    keep(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.warns(CheckpointWarning, match=f"not used: {name} is a folder"):
        checkpoint = Checkpoint(tmp_path)
    checkpoint.close(finished=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Checkpoint(tmp_path).close(finished=True)


@pytest.mark.parametrize(
    "damage", [lambda one: b"", lambda one: one[:60], lambda one: bytes(60), lambda one: one + b"1"]
)
@pytest.mark.parametrize("name", [LIST, part_name(1)])
def test_damage_is_told_in_words_of_checkpoints(name, damage, tmp_path):
    keep(tmp_path)
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    with pytest.warns(CheckpointWarning, match=f"not used: of {name}, ") as told:
        Checkpoint(tmp_path).close(finished=False)
    assert "model" not in str(told[0].message)
    assert ".." not in str(told[0].message)


def test_files_that_were_damaged_before_are_not_replaced(tmp_path):
    for content in (b"first", b"second", b"third"):
        (tmp_path / LIST).write_bytes(content)
        with pytest.warns(CheckpointWarning, match="damaged"):
            Checkpoint(tmp_path).close(finished=True)
    assert sorted(file.read_bytes() for file in tmp_path.iterdir()) == [
        b"first",
        b"second",
        b"third",
    ]


def test_ctrl_c_right_after_the_list_was_written_tells_that_it_was(tmp_path, monkeypatch):
    plain = Folder.write_list

    def list_then_ctrl_c(self, header):
        plain(self, header)
        if header["parts"]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "write_list", list_then_ctrl_c)
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        kept_in(tmp_path) as checkpoint,
        checkpoint.stage("pass") as stage,
    ):
        stage.save(lambda: {"W": np.arange(3.0)})
    assert "has saved what was done until" in caught.value.__notes__[0]


def test_ctrl_c_before_anything_was_saved_tells_that(tmp_path):
    with pytest.raises(KeyboardInterrupt) as caught, kept_in(tmp_path):
        raise KeyboardInterrupt
    assert "had saved nothing yet" in caught.value.__notes__[0]


def test_three_processes_that_open_and_close_one_folder_leave_none_behind(tmp_path):
    program = (
        "import sys, time\n"
        "from sketchmeans.checkpoints.folder import Folder\n"
        "end = time.time() + 1\n"
        "while time.time() < end:\n"
        "    try: one = Folder('kept')\n"
        "    except BlockingIOError: continue\n"
        "    one.read(); one.clear(); one.close()\n"
    )
    command = [sys.executable, "-c", program]
    processes = [subprocess.Popen(command, cwd=tmp_path) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert os.listdir(tmp_path) == []


def test_one_who_came_while_another_went_is_told_to_remove_the_folder(tmp_path, monkeypatch):
    """Of three processes on a busy machine, the folder was left behind."""
    (tmp_path / "kept").mkdir()
    third = Folder(tmp_path / "kept")  # who has not made it
    plain, turns = os.open, iter([True])

    def opened(*given):
        if next(turns, False):
            raise FileNotFoundError  # the lock of the second, which has just gone
        return plain(*given)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        remove_folder(tmp_path / "kept", LOCK)
    third.close()
    assert os.listdir(tmp_path) == []
