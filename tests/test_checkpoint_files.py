"""Checkpoints of fits to rows in files: streams and passes go on where they were, bit for bit."""

import mmap
import os

import numpy as np
import pytest

import interruptions
from interruptions import found_by, interrupted
from sketchmeans import KernelEmbedding, KernelKMeans, certify
from sketchmeans.checkpoints import Checkpoint, CheckpointWarning, stages
from sketchmeans.checkpoints.folder import Folder
from sketchmeans.container import check_arrays
from sketchmeans.disk import Desk, FileRows, as_source
from sketchmeans.disk.streams import Stream
from sketchmeans.rows import Part

LONG = 4_000
"""Rows, of which a stream has several blocks."""


@pytest.fixture(autouse=True)
def often_saved():
    with interruptions.often_saved(turns=3):
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    random = np.random.default_rng(0)
    X = random.normal(size=(LONG, 4)) + 2 * random.integers(0, 2, size=(LONG, 4))
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, X.astype(np.float32))
    return path


FITS = {
    "neighbors": {"n_init": 1},
    "nystrom": {"kernel": "rbf", "method": "nystrom", "n_landmarks": 60, "n_init": 2},
    "one-pass": {"kernel": "rbf", "method": "one-pass", "n_init": 2},
    "two passes": {"kernel": "rbf", "method": "one-pass", "n_passes": 2, "n_init": 1},
    "monomials": {"kernel": "polynomial", "degree": 2, "n_init": 1},
    "linear": {"kernel": "linear", "n_init": 1},
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_to_a_file_goes_on_with_the_same_bits_wherever_it_was_interrupted(
    name, weighted, file, tmp_path, monkeypatch
):
    weights = np.random.default_rng(1).uniform(0.5, 2, LONG) if weighted else None
    model = KernelKMeans(4, random_state=0, **FITS[name])
    expected = found_by(model.fit(str(file), sample_weight=weights))
    model.set_params(checkpoint=tmp_path / "kept", n_jobs=1)

    def fit():
        model.fit(str(file), sample_weight=weights)

    places = interrupted(fit, 0, monkeypatch)
    assert found_by(model) == expected
    before = [place for place, _ in places if "start" not in place]
    assert before, "nothing was saved before K-means"
    for saves in sorted({1, 2, 2 * len(before) // 3} - {0}):
        assert interrupted(fit, saves, monkeypatch) is None
        assert (tmp_path / "kept" / "checkpoint.skc").exists()
        model.set_params(n_jobs=2)
        more = interrupted(fit, 0, monkeypatch)
        assert len(more) < len(places) + 2
        assert found_by(model) == expected
        assert os.listdir(tmp_path) == []


def test_a_fit_to_a_file_goes_on_in_memory_and_the_other_way_round(file, tmp_path, monkeypatch):
    X = np.load(file)
    model = KernelKMeans(4, random_state=0, **FITS["nystrom"]).fit(X)
    expected = found_by(model)
    model.set_params(checkpoint=tmp_path / "kept")
    for first, second in ((str(file), X), (X, str(file))):
        interrupted(lambda: model.fit(first), 3, monkeypatch)  # noqa: B023 - called at once
        assert found_by(model.fit(second)) == expected


def halves(rows):
    """Keep two things of a block of rows, one of an odd type, and add up a third."""
    odd = (rows[:, :3] > 0).astype(np.int16)
    return Part(
        (rows * 2, odd, rows.sum(axis=1, keepdims=True) > 1), rows.sum(axis=0, keepdims=True)
    )


def counted(take, taken):
    """Return a way to take blocks that counts them."""

    def take_and_count(self, part):
        taken.append(1)
        take(self, part)

    return take_and_count


@pytest.mark.parametrize("stay", [False, True])
def test_a_stream_goes_on_with_rows_that_it_has_kept(stay, file, tmp_path, monkeypatch):
    def streamed(checkpoint, threads=1):
        rows = FileRows(as_source(file), Desk(threads, tmp_path, checkpoint))
        kept, total = rows.run(halves, size=100, stay=stay)
        return [np.asarray(one[:]) for one in kept], total

    expected, total = streamed(Checkpoint())
    for saves in (1, 5, 10):
        first = Checkpoint(tmp_path / "kept")
        interrupted(lambda: streamed(first), saves, monkeypatch)  # noqa: B023
        first.close(finished=False)
        second = Checkpoint(tmp_path / "kept")
        assert second.resumes
        taken = []
        with monkeypatch.context() as patch:
            patch.setattr(Stream, "take", counted(Stream.take, taken))
            kept, again = streamed(second, threads=2)
        assert len(taken) < LONG / 100
        for one, other in zip(kept, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(again, total)
        second.close(finished=True)
    assert os.listdir(tmp_path) == []


def lies_in_a_file(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def test_rows_that_stay_are_read_into_scratch_files_and_not_into_memory(
    file, tmp_path, monkeypatch
):
    def streamed(checkpoint):
        rows = FileRows(as_source(file), Desk(1, tmp_path, checkpoint))
        return rows.run(halves, size=100, stay=True).kept

    first = Checkpoint(tmp_path / "kept")
    interrupted(lambda: streamed(first), 3, monkeypatch)
    first.close(finished=False)
    second = Checkpoint(tmp_path / "kept")
    kept = streamed(second)
    assert all(lies_in_a_file(one.source._array) for one in kept)
    second.close(finished=True)


def test_a_state_that_takes_too_long_to_save_is_left_out(file, tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "SHARE", 0.0)
    checkpoint = Checkpoint(tmp_path / "kept")
    rows = FileRows(as_source(file), Desk(1, tmp_path, checkpoint))
    assert interrupted(lambda: rows.run(halves, size=100, stay=True), 0, monkeypatch) == []
    checkpoint.close(finished=True)


def test_parts_are_checked_without_room_for_them(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "kept")
    with checkpoint.stage("pass") as stage:
        stage.save(lambda: {"W": np.arange(500_000.0), "none": np.zeros((0, 3))})
    checkpoint.close(finished=False)
    folder = Folder(tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr("sketchmeans.checkpoints.folder.read_arrays", lambda *_: iter(()))
        assert folder.read()["parts"]
    folder.close()
    part = next((tmp_path / "kept").glob("part-*"))
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    with pytest.warns(CheckpointWarning, match="checksum of its array W is wrong"):
        Checkpoint(tmp_path / "kept").close(finished=True)
    assert check_arrays.__doc__


def test_a_proof_of_rows_in_a_file_goes_on(file, tmp_path, monkeypatch):
    labels = (np.load(file)[:, 0] > 1).astype(int)

    def proof(folder=None):
        return certify(
            str(file), labels, kernel="rbf", effort="free", random_state=0, checkpoint=folder
        )

    expected = proof()
    interrupted(lambda: proof(tmp_path / "kept"), 1, monkeypatch)
    assert proof(tmp_path / "kept") == expected
    assert os.listdir(tmp_path) == []


def test_an_embedding_in_a_file_goes_on(file, tmp_path, monkeypatch):
    def fit(out, folder=None):
        options = {"kernel": "rbf", "method": "nystrom", "n_landmarks": 60, "random_state": 0}
        KernelEmbedding(5, checkpoint=folder, **options).fit(str(file), embedding_out=out)
        return out.read_bytes()

    expected = fit(tmp_path / "expected.npy")
    places = interrupted(lambda: fit(tmp_path / "whole.npy", tmp_path / "kept"), 0, monkeypatch)
    assert (tmp_path / "whole.npy").read_bytes() == expected
    for saves in range(1, len(places)):
        out = tmp_path / f"{saves}.npy"
        interrupted(lambda: fit(out, tmp_path / "kept"), saves, monkeypatch)  # noqa: B023
        assert fit(out, tmp_path / "kept") == expected
