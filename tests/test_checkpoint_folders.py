"""Folders of checkpoints: damaged, of another fit, in use, full, gone, or not to be had."""

import os
import resource
import shutil
import warnings

import numpy as np
import pytest
from scipy import sparse

import interruptions
import sketchmeans.dask
from interruptions import found_by, interrupted
from sketchmeans import (
    ColumnStream,
    KernelEmbedding,
    KernelKMeans,
    certify,
    load,
    save,
)
from sketchmeans.checkpoints import Checkpoint, CheckpointWarning, folder
from sketchmeans.checkpoints.fingerprint import described
from sketchmeans.container import read_header


@pytest.fixture(scope="module", autouse=True)
def often_saved():
    with interruptions.often_saved():
        yield


@pytest.fixture(scope="module")
def X():
    return interruptions.rows()


@pytest.fixture(scope="module")
def saved(X, tmp_path_factory):
    """Return a model, and the folder of its checkpoint, which has several parts."""
    folder = tmp_path_factory.mktemp("saved") / "kept"
    model = KernelKMeans(4, kernel="rbf", method="one-pass", n_passes=3, random_state=0)
    model.set_params(checkpoint=folder)
    with pytest.MonkeyPatch.context() as patch:
        interrupted(lambda: model.fit(X), 4, patch)
    assert len(os.listdir(folder)) > 3
    return model, folder


def damage(folder, seed):
    """Damage a checkpoint: flip a bit, cut a file, empty it, swap two, take one away."""
    random = np.random.default_rng(seed)
    files = sorted(folder.glob("*.skc"))
    file = files[random.integers(len(files))]
    content = bytearray(file.read_bytes())
    kind = seed % 5
    if kind == 0:
        content[random.integers(len(content))] ^= 1 << random.integers(8)
    elif kind == 1:
        del content[random.integers(len(content)) :]
    elif kind == 2:
        first = random.integers(len(content) - 1)
        content[first:] = bytes(len(content) - first)
        if content == file.read_bytes():
            content = bytearray()
    elif kind == 3:
        one, other = (folder / name for name in ("part-000001.skc", files[-1].name))
        one, other = (one, other) if one != other else (one, folder / "checkpoint.skc")
        content = bytearray(other.read_bytes())
        other.write_bytes(one.read_bytes())
        file = one
    else:
        part = sorted(folder.glob("part-*.skc"))
        part[random.integers(len(part))].unlink()
        return
    file.write_bytes(content)


def test_two_hundred_damaged_checkpoints_are_all_noticed(saved, tmp_path):
    _, folder = saved
    for seed in range(200):
        copy = tmp_path / f"copy{seed}"
        shutil.copytree(folder, copy)
        damage(copy, seed)
        with pytest.warns(CheckpointWarning, match="damaged and was not used") as told:
            checkpoint = Checkpoint(copy)
        assert not checkpoint.resumes, f"damage {seed} was not noticed"
        assert len(told) == 1
        checkpoint.close(finished=False)
        shutil.rmtree(copy)
    shutil.copytree(folder, tmp_path / "whole")
    whole = Checkpoint(tmp_path / "whole")
    assert whole.resumes
    whole.close(finished=False)


def test_a_fit_starts_anew_where_its_checkpoint_is_damaged(saved, X, tmp_path):
    model, folder = saved
    shutil.copytree(folder, tmp_path / "kept")
    (tmp_path / "kept" / "checkpoint.skc").write_bytes(b"")
    model = KernelKMeans(**model.get_params() | {"checkpoint": tmp_path / "kept"})
    with pytest.warns(CheckpointWarning, match=r"damaged and was not used: .* starts anew") as told:
        model.fit(X)
    assert len(told) == 1
    assert {name[:8] for name in os.listdir(tmp_path / "kept")} == {"damaged-"}
    np.testing.assert_array_equal(model.labels_, model.set_params(checkpoint=None).fit(X).labels_)


def test_a_checkpoint_of_another_version_is_refused_and_kept(saved, X, tmp_path, monkeypatch):
    model, folder = saved
    shutil.copytree(folder, tmp_path / "kept")
    model = KernelKMeans(**model.get_params() | {"checkpoint": tmp_path / "kept"})
    before = sorted(os.listdir(tmp_path / "kept"))
    with monkeypatch.context() as patch:
        patch.setattr("sketchmeans.checkpoints.folder.VERSION", 2)
        with pytest.raises(
            ValueError, match=r"has format 1, and this version .* delete the folder"
        ):
            model.fit(X)
    with monkeypatch.context() as patch:
        patch.setattr("sketchmeans.checkpoints.fingerprint.__version__", "9.9")
        with pytest.raises(ValueError, match=r"sketchmeans is 0.* there and 9.9 here"):
            model.fit(X)
    assert sorted(os.listdir(tmp_path / "kept")) == before


def test_a_checkpoint_of_another_fit_is_refused_with_what_differs(saved, X):
    model, folder = saved

    def refused(rows, match, **options):
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        with pytest.raises(ValueError, match=match):
            KernelKMeans(**model.get_params() | options).fit(rows)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before

    refused(X, r"n_clusters is 4 there and 5 here\. Call as before", n_clusters=5)
    refused(X, r"gamma is 'median' there and 0\.5 here", gamma=0.5)
    refused(X, r"random_state is 0 there and 1 here", random_state=1)
    changed = X.copy()
    changed[600, 2] = np.nextafter(changed[600, 2], 9)
    refused(changed, r"X is 700 × 4 numbers of float64 \(\w+\) there and 700 × 4 .* here")
    refused(X[:-1].astype(np.float32), r"699 × 4 numbers of float32")
    refused(X, "kernel is 'rbf' there and .*lambda", kernel=lambda A, B: A @ B.T, gamma="median")


def test_two_fits_do_not_share_a_folder(X, tmp_path):
    first = Checkpoint(tmp_path / "kept")
    model = KernelEmbedding(checkpoint=tmp_path / "kept")
    with pytest.raises(BlockingIOError, match=f"in use by process {os.getpid()}: two fits cannot"):
        model.fit(X)
    first.close(finished=True)
    model.fit(X)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "checkpoint.lock").write_text("1 made\n")  # by one that was killed
    model.fit(X)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_was_there_stays_with_what_is_not_ours(X, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine")
    model = KernelEmbedding(3, random_state=0, checkpoint=str(tmp_path)).fit(X)
    assert os.listdir(tmp_path) == ["notes.txt"]
    interrupted(lambda: model.fit(X), 1, monkeypatch)
    (tmp_path / ".unfinished-0123456789abcdef.skc").write_bytes(folder.MAGIC)  # by one that
    (tmp_path / "part-000099.skc").write_bytes(folder.MAGIC)  # was killed
    model.fit(X)
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize(
    ("folder", "error", "match"),
    [
        (5, TypeError, "checkpoint=5 must be the path of a folder"),
        ("", TypeError, "checkpoint='' must be the path of a folder"),
        ("file.txt", NotADirectoryError, "is a file, and checkpoints are kept in a folder"),
        ("a/b", FileNotFoundError, r"the folder .*a does not exist, so none can be made in it"),
    ],
)
def test_what_is_no_folder_is_refused(folder, error, match, X, tmp_path):
    (tmp_path / "file.txt").write_text("")
    folder = str(tmp_path / folder) if isinstance(folder, str) and folder else folder
    with pytest.raises(error, match=match):
        KernelKMeans(3, checkpoint=folder).fit(X)


def test_a_fit_that_fails_leaves_no_empty_folder(X, tmp_path):
    with pytest.raises(ValueError, match="n_clusters"):
        KernelKMeans(-3, checkpoint=tmp_path / "kept").fit(X)
    assert os.listdir(tmp_path) == []


def test_what_has_nothing_to_go_on_from_refuses_a_checkpoint(X, tmp_path):
    stream = ColumnStream(50, width=8, random_state=0)
    stream.add_columns(0, X[:50] @ X[:50].T)
    with pytest.raises(ValueError, match="checkpoint"):
        KernelKMeans(3, kernel="precomputed", checkpoint=tmp_path / "kept").fit(stream)
    with pytest.raises(ValueError, match="seconds=5 ends it for good"):
        certify(X, np.zeros(len(X), int), kernel="rbf", seconds=5, checkpoint=tmp_path / "kept")
    with pytest.raises(ValueError, match=r"is not offered on a cluster: .* fit on one machine"):
        sketchmeans.dask.KernelKMeans(3, checkpoint="kept").fit(X)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_said_once_and_the_fit_goes_on(X, tmp_path):
    model = KernelKMeans(4, kernel="rbf", method="one-pass", n_refine=3, random_state=0)
    expected = found_by(model.fit(X))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.warns(
            CheckpointWarning, match=r"could not be written: File too large\. The fit"
        ) as told:
            model.set_params(checkpoint=tmp_path / "kept").fit(X)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(told) == 1
    assert found_by(model) == expected
    assert os.listdir(tmp_path) == []


def test_a_disk_that_becomes_full_keeps_what_was_saved_before(X, tmp_path, monkeypatch):
    model = KernelKMeans(4, kernel="rbf", method="one-pass", n_refine=3, random_state=0)
    expected = found_by(model.fit(X))
    model.set_params(checkpoint=tmp_path / "kept")
    interrupted(lambda: model.fit(X), 2, monkeypatch)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.warns(CheckpointWarning, match="what was saved before is kept"):
            interrupted(lambda: model.fit(X), 3, monkeypatch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        assert found_by(model.fit(X)) == expected


def test_a_folder_that_is_taken_away_does_not_end_the_fit(X, tmp_path, monkeypatch):
    model = KernelKMeans(4, kernel="rbf", method="one-pass", n_refine=3, random_state=0)
    expected = found_by(model.fit(X))
    plain = Checkpoint.save

    def taken_away_then_saved(self, *given):
        shutil.rmtree(tmp_path / "kept", ignore_errors=True)
        plain(self, *given)

    monkeypatch.setattr(Checkpoint, "save", taken_away_then_saved)
    with pytest.warns(CheckpointWarning, match="could not be written: the folder .* not exist"):
        model.set_params(checkpoint=tmp_path / "kept").fit(X)
    assert found_by(model) == expected


def test_a_model_does_not_keep_the_folder(X, tmp_path):
    model = KernelKMeans(3, random_state=0, checkpoint=tmp_path / "kept").fit(X)
    save(model, tmp_path / "model.skm")
    assert load(tmp_path / "model.skm").checkpoint is None
    with (tmp_path / "model.skm").open("rb") as file:
        assert "checkpoint" not in read_header(file)[1]["parameters"]


def test_values_are_described_alike_in_any_process(X):
    assert described(X) == described(X.copy(order="F"))
    assert described(X) != described(X.astype(np.float32))
    thin = sparse.csr_matrix(X)
    other = thin.copy()
    other.data[7] += 1
    assert described(thin) != described(other)
    assert described({"b": [1], "a": None}) == "{'a': None, 'b': [1]}"
    assert described(np.dot) == described(np.dot)
    assert " at 0x" not in described(lambda A, B: A @ B.T)
