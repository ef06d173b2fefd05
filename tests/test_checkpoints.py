"""Checkpoints: fits and proofs that are interrupted or killed go on with the same bits."""

import importlib
import os
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from soak.resume import SLACK, WORK, killed_and_resumed

import interruptions
import shell
from interruptions import found_by, interrupted
from sketchmeans import (
    FullKernelKMeans,
    KernelEmbedding,
    KernelKMeans,
    certify,
)
from sketchmeans.checkpoints import Checkpoint
from sketchmeans.estimators import many_rows
from sketchmeans.lowrank import METHODS
from sketchmeans.rows import TreeSum


@pytest.fixture(scope="module", autouse=True)
def often_saved():
    with interruptions.often_saved():
        yield


@pytest.fixture(scope="module")
def X():
    return interruptions.rows()


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
    saves = len(interrupted(lambda: kept.fit(X), 0, monkeypatch))
    assert found_by(kept) == expected
    assert saves > 1
    interrupted(lambda: kept.fit(X), 2 * saves // 3, monkeypatch)
    assert (tmp_path / "kept" / "checkpoint.skc").exists()
    kept.set_params(n_jobs=2, memory_limit="1GB")
    more = len(interrupted(lambda: kept.fit(X), 0, monkeypatch))
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
    saves = len(interrupted(lambda: proof(tmp_path / "kept"), 0, monkeypatch))
    interrupted(lambda: proof(tmp_path / "kept"), (saves + 1) // 2, monkeypatch)
    assert proof(tmp_path / "kept") == expected
    assert os.listdir(tmp_path) == []


def test_a_process_that_is_killed_five_times_loses_no_more_than_an_interval(tmp_path):
    """A share of ``python -m soak.resume``."""
    waits = np.random.default_rng().uniform(0, 0.15, 5).tolist()
    found = killed_and_resumed("many passes", tmp_path / "kept", waits, 0.2, saved_before=True)
    assert found.kills == found.resumed == 5
    assert found.lost <= 0.2 + SLACK
    assert os.listdir(tmp_path) == []
    assert found.result == WORK["many passes"](None)


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


def test_a_memory_map_is_a_fit_of_its_numbers(X, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    model = KernelKMeans(4, kernel="rbf", random_state=0, checkpoint=Path(tmp_path / "kept"))
    interrupted(lambda: model.fit(np.load(tmp_path / "X.npy", mmap_mode="r")), 1, monkeypatch)
    expected = found_by(model.fit(X))
    assert expected == found_by(model.set_params(checkpoint=None).fit(X))


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
        [sparse.random(5, 5, 0.3, random_state=random) for _ in range(30)],
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
