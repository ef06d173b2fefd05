"""Checkpoints: interrupted fits go on with the same bits, and what is not theirs is refused."""

import importlib
import itertools
import os
import re
import resource
import shutil
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from soak.resume import SLACK, WORK, killed_and_resumed

import shell
import sketchmeans.dask
from sketchmeans import (
    ColumnStream,
    FullKernelKMeans,
    KernelEmbedding,
    KernelKMeans,
    certify,
    load,
    save,
)
from sketchmeans.checkpoints import Checkpoint, CheckpointWarning, folder, stages
from sketchmeans.checkpoints.fingerprint import described
from sketchmeans.container import read_header
from sketchmeans.estimators import many_rows
from sketchmeans.lowrank import METHODS
from sketchmeans.rows import TreeSum


@pytest.fixture(scope="module", autouse=True)
def often_saved():
    """Save at the end of all stages, after all iterations, and after some tasks."""
    asked = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKETCHMEANS_CHECKPOINT_SECONDS", "0")
        patch.setattr(stages, "SHARE", np.inf)
        patch.setattr(
            Checkpoint, "is_due", lambda self, stage=None: stage is not None or not next(asked) % 40
        )
        yield


class Interrupted(Exception):
    """Stands for whatever ends a process, right after something was saved."""


def interrupted(work, saves, monkeypatch):
    """Do some work until it has saved so many times; return how often it did where it ended."""
    counted, plain = [], Checkpoint.save

    def save_and_count(self, *given):
        plain(self, *given)
        counted.append(1)
        if len(counted) == saves:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_count)
        try:
            work()
        except Interrupted:
            return None
    return len(counted)


@pytest.fixture(scope="module")
def X():
    random = np.random.default_rng(0)
    return random.normal(size=(700, 4)) + 2 * random.integers(0, 2, size=(700, 4))


def found_by(model):
    """Return all that a fit has found but for times and threads."""
    arrays = {k: v for k, v in vars(model).items() if isinstance(v, np.ndarray)}
    bits = {name: (one.dtype.str, one.shape, one.tobytes()) for name, one in arrays.items()}
    costs = ("passes", "kernel_entries", "distances")
    stats = [model.stats_[name] for name in costs]
    return bits, repr(getattr(model, "certificate_", None)), stats


def fits():
    """Return every kind of fit, by name."""
    rbf = {"kernel": "rbf", "n_clusters": 4, "n_init": 3}
    for name, method in METHODS.items():
        few = {"n_landmarks": 15} if method.landmarks else {}
        yield name, KernelKMeans(method=name, **few, **rbf)
    yield "neighbors", KernelKMeans(4, n_init=2)
    yield "two passes, refined", KernelKMeans(method="one-pass", n_passes=2, n_refine=3, **rbf)
    yield "streamed landmarks", KernelKMeans(method="nystrom", n_landmarks=60, rank=5, **rbf)
    yield "leverage", KernelKMeans(method="nystrom", sketch="leverage", n_landmarks=50, **rbf)
    yield "a share of the trace", KernelEmbedding(0.8, method="rpcholesky")
    yield "monomials", KernelKMeans(4, kernel="polynomial", degree=2, n_refine=2, n_init=2)
    yield "precomputed", KernelKMeans(4, kernel="precomputed", method="one-pass", n_refine=2)
    yield "a proof", KernelKMeans(certificate="lifted", **rbf)
    yield "full", FullKernelKMeans(4, n_init=2, max_iter=4)
    yield "full, sketched", FullKernelKMeans(4, n_init=2, max_iter=4, init="sketch")


@pytest.mark.parametrize("name", dict(fits()))
def test_a_fit_that_is_interrupted_goes_on_with_the_same_bits(name, X, tmp_path, monkeypatch):
    model = dict(fits())[name].set_params(random_state=0)
    for module, constant in (
        ("estimators.full", "CACHE_LIMIT"),
        ("lowrank.exact", "DENSE_LIMIT"),
        ("lowrank.nystrom", "HELD"),
    ):  # all of it as for many samples
        monkeypatch.setattr(importlib.import_module(f"sketchmeans.{module}"), constant, 100)
    X = X[:200] if name in ("a proof", "exact") else X
    X = X @ X.T if name == "precomputed" else X
    expected = found_by(model.fit(X))
    kept = model.set_params(checkpoint=tmp_path / "kept", n_jobs=1)
    saves = interrupted(lambda: kept.fit(X), 0, monkeypatch)
    assert found_by(kept) == expected
    assert saves > 1
    interrupted(lambda: kept.fit(X), 2 * saves // 3, monkeypatch)
    assert (tmp_path / "kept" / "checkpoint.skc").exists()
    kept.set_params(n_jobs=2, memory_limit="1GB")
    more = interrupted(lambda: kept.fit(X), 0, monkeypatch)
    assert more < saves, "nothing was read from the checkpoint"
    assert found_by(kept) == expected
    assert os.listdir(tmp_path) == []


def test_many_rows_sparse_rows_and_weights_go_on_with_the_same_bits(X, tmp_path, monkeypatch):
    monkeypatch.setattr(many_rows, "MANY", 600)
    monkeypatch.setattr(many_rows, "SOME", 300)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    weights[:5] = 0
    thin = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    for rows, kernel in ((X, "rbf"), (thin, "rbf"), (X, "neighbors"), (thin, "linear")):
        model = KernelKMeans(4, kernel=kernel, n_init=2, random_state=0)
        expected = found_by(model.fit(rows, sample_weight=weights))
        model.set_params(checkpoint=tmp_path / "kept")
        interrupted(lambda: model.fit(rows, sample_weight=weights), 4, monkeypatch)  # noqa: B023
        assert found_by(model.fit(rows, sample_weight=weights)) == expected


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (40, {"effort": "triangles"}),
        (200, {"effort": "lifted"}),
        (600, {"effort": "blocks", "block_size": 10}),
        (600, {"effort": "free", "failure_probability": 1e-3}),
    ],
)
def test_a_proof_that_is_interrupted_goes_on_with_the_same_bits(
    n, options, X, tmp_path, monkeypatch
):
    X, labels = X[:n], (X[:n, 0] > 1) + 2 * (X[:n, 1] > 1)

    def proof(folder=None):
        return certify(X, labels, kernel="rbf", random_state=0, checkpoint=folder, **options)

    expected = proof()
    saves = interrupted(lambda: proof(tmp_path / "kept"), 0, monkeypatch)
    interrupted(lambda: proof(tmp_path / "kept"), (saves + 1) // 2, monkeypatch)
    assert proof(tmp_path / "kept") == expected
    assert os.listdir(tmp_path) == []


def test_a_process_that_is_killed_five_times_loses_no_more_than_an_interval(tmp_path):
    waits = np.random.default_rng().uniform(0, 0.15, 5).tolist()
    found = killed_and_resumed("many passes", tmp_path / "kept", waits, 0.2, saved_before=True)
    assert found.kills == found.resumed == 5
    assert found.lost <= 0.2 + SLACK
    assert os.listdir(tmp_path) == []
    assert found.result == WORK["many passes"](None)


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


def test_a_seed_that_was_not_given_is_kept(X, tmp_path, monkeypatch):
    options = {"kernel": "rbf", "method": "one-pass", "rank": 4, "checkpoint": tmp_path / "kept"}
    np.random.seed(3)  # noqa: NPY002 - what random_state=None reads
    expected = KernelEmbedding(**options).fit(X).embedding_
    np.random.seed(3)  # noqa: NPY002
    interrupted(lambda: KernelEmbedding(**options).fit(X), 1, monkeypatch)
    np.testing.assert_array_equal(KernelEmbedding(**options).fit(X).embedding_, expected)

    options["random_state"] = np.random.RandomState(5)
    expected = KernelEmbedding(**options | {"checkpoint": None}).fit(X).embedding_
    options["random_state"] = np.random.RandomState(5)
    interrupted(lambda: KernelEmbedding(**options).fit(X), 1, monkeypatch)
    with pytest.raises(ValueError, match=r"random_state is a RandomState \(\w+\) there and a Rand"):
        KernelEmbedding(**options).fit(X)  # numbers have been drawn from it
    options["random_state"] = np.random.RandomState(5)
    np.testing.assert_array_equal(KernelEmbedding(**options).fit(X).embedding_, expected)


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


def test_ctrl_c_passes_and_tells_what_was_saved(X, tmp_path, monkeypatch):
    model = KernelKMeans(4, kernel="rbf", method="one-pass", checkpoint=tmp_path / "kept")
    plain = Checkpoint.save

    def save_then_ctrl_c(self, *given):
        plain(self, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", save_then_ctrl_c)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X)
    (note,) = caught.value.__notes__
    assert re.search(r"kept has saved what was done until \d\d:\d\d:\d\d, .* the same call", note)


def test_ctrl_c_on_a_command_tells_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setenv("SKETCHMEANS_CHECKPOINT_SECONDS", "0.1")
    np.save(tmp_path / "many.npy", np.random.default_rng(0).normal(size=(30_000, 20)))
    command = "sketchmeans cluster many.npy -k 5 --kernel rbf --method one-pass --checkpoint kept"
    code, shown = shell.ctrl_c_on_a_terminal(command, tmp_path)
    assert code == 128 + signal.SIGINT
    assert "Interrupted." in shown
    assert "The checkpoint in kept ha" in shown
    assert "Traceback" not in shown


def test_a_model_does_not_keep_the_folder(X, tmp_path):
    model = KernelKMeans(3, random_state=0, checkpoint=tmp_path / "kept").fit(X)
    save(model, tmp_path / "model.skm")
    assert load(tmp_path / "model.skm").checkpoint is None
    with (tmp_path / "model.skm").open("rb") as file:
        assert "checkpoint" not in read_header(file)[1]["parameters"]


def test_a_stage_in_another_goes_on_though_that_has_saved_nothing(tmp_path):
    def begun():
        checkpoint = Checkpoint(tmp_path / "kept")
        with checkpoint.stage("start", 7) as outer, checkpoint.stage("pass") as inner:
            found = outer.state, inner.state
            inner.save(lambda: {"W": np.arange(3.0)})
        with checkpoint.stage("other") as after:
            assert after.state is None
        checkpoint.close(finished=False)
        return found

    assert begun() == (None, None)
    outer, inner = begun()
    assert outer is None
    np.testing.assert_array_equal(inner["W"], np.arange(3.0))


def test_stages_of_other_threads_keep_nothing(tmp_path):
    checkpoint = Checkpoint(tmp_path / "kept")

    def elsewhere():
        with checkpoint.stage("pass") as stage:
            stage.save(lambda: {"W": np.zeros(3)})

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert not (tmp_path / "kept" / "checkpoint.skc").exists()
    checkpoint.close(finished=True)


def test_a_tree_of_sums_goes_on_where_it_stood():
    random = np.random.default_rng(0)
    for parts in (
        random.normal(size=(30, 4, 3)),
        [sparse.random(5, 5, 0.3, rng=random) for _ in range(30)],
    ):
        parts = [one.tocsr() if sparse.issparse(one) else one for one in parts]
        whole, split = TreeSum(), TreeSum()
        for one in parts:
            whole.add(one.copy())
        for index, one in enumerate(parts):
            split.add(one.copy())
            if index == 19:
                split = TreeSum.restored(split.state())
        difference = whole.total() - split.total()
        assert abs(difference).max() == 0


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


def test_a_memory_map_is_a_fit_of_its_numbers(X, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    model = KernelKMeans(4, kernel="rbf", random_state=0, checkpoint=Path(tmp_path / "kept"))
    interrupted(lambda: model.fit(np.load(tmp_path / "X.npy", mmap_mode="r")), 1, monkeypatch)
    expected = found_by(model.fit(X))
    assert expected == found_by(model.set_params(checkpoint=None).fit(X))
