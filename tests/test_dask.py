"""The same fits on a real cluster of processes: to the bit, whatever the chunks."""

import gc
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

import sketchmeans
from clusters import opened, same_fits
from sketchmeans import dask as placed
from sketchmeans.blas import count_threads
from sketchmeans.rows import FAN

N = 2000
RAGGED = (500, 750, 0, 1, 749)
FITS = {
    "neighbors": {"kernel_params": {"n_anchors": 150}},
    "neighbors made again": {
        "kernel_params": {"n_anchors": 60},
        "memory_limit": "32MB",
        "n_jobs": 1,
    },
    "landmarks": {"kernel": "rbf", "method": "nystrom"},
    "landmarks held": {"kernel": "linear", "method": "nystrom", "n_landmarks": 6, "rank": 5},
    "landmarks streamed": {"kernel": "laplacian", "method": "nystrom", "n_landmarks": 150},
    "pivots": {"kernel": "cosine", "method": "rpcholesky", "n_landmarks": 40},
    "one pass": {"kernel": "rbf", "method": "one-pass", "n_passes": 1},
    "two passes, refined": {"kernel": "rbf", "gamma": "scale", "n_passes": 2, "n_refine": 1},
    "one pass of unit rows": {"kernel": "cosine", "method": "one-pass"},
    "monomials": {"kernel": "polynomial", "degree": 2},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.001},
}
FITS = {name: {"n_init": 3, **options} for name, options in FITS.items()}  # the client runs starts


@pytest.fixture(scope="module")
def client():
    with opened(2) as client:
        yield client


@pytest.fixture(autouse=True)
def _short_spans(monkeypatch):
    """More spans than the fan of the tree of sums, tasks of few pairs, columns not held."""
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 140 * N)
    monkeypatch.setattr("sketchmeans.operators.neighbor_features._ROWS", 200)
    monkeypatch.setattr("sketchmeans.operators.base.BLOCK", 250)
    monkeypatch.setattr("sketchmeans.dask.meetings.ENTRIES", 500_000)
    monkeypatch.setattr("sketchmeans.tall.SPAN", 225)
    assert N / 225 > FAN


def data(dtype="float64", n=N):
    X, y = make_blobs(n, n_features=6, centers=5, cluster_std=2.0, random_state=1)
    return X.astype(dtype), y


def weights(n=N):
    w = np.random.default_rng(0).uniform(0.5, 2, n)
    w[:7] = 0
    return w


@cache
def local_fit(name, dtype="float64", weighted=False, seed=0):
    """Fit on this machine, once for all tests: what a cluster is held against."""
    model = sketchmeans.KernelKMeans(5, random_state=seed, **FITS[name])
    return model.fit(data(dtype)[0], sample_weight=weights() if weighted else None)


def assert_same_on(client, name, dtype, weighted):
    X, _ = data(dtype)
    w = weights() if weighted else None
    local = local_fit(name, dtype, weighted)
    lazy = da.from_array(X, chunks=(RAGGED, (2, 4)))
    model = placed.KernelKMeans(5, random_state=0, client=client, **FITS[name])
    same_fits(local, model.fit(lazy, sample_weight=None if w is None else da.from_array(w)))
    assert model.labels_.chunks == (RAGGED,)
    assert model.embedding_.chunks[0] == RAGGED
    if name == "landmarks streamed":  # C is made twice where it is not held
        assert local.stats_["kernel_entries"] >= 2 * N * 150


MAIN = ("neighbors", "landmarks streamed", "one pass")
"""Fits that are tried with both precisions, with and without weights; of the others one is."""


@pytest.mark.parametrize(
    ("name", "dtype", "weighted"),
    [(name, "float64", True) for name in FITS] + [(name, "float32", False) for name in MAIN],
)
@pytest.mark.filterwarnings("ignore::sketchmeans.lowrank.result.IndefiniteKernelWarning")
def test_labels_embedding_and_certificate_are_those_of_a_local_fit(client, name, dtype, weighted):
    assert_same_on(client, name, dtype, weighted)


def test_four_workers_find_the_same(client):
    client.cluster.scale(4)
    client.wait_for_workers(4, timeout=120)
    for name, dtype in zip(MAIN, ("float32", "float32", "float64"), strict=True):
        assert_same_on(client, name, dtype, dtype == "float32")
    assert len(client.scheduler_info(n_workers=-1)["workers"]) == 4
    client.cluster.scale(2)


def test_many_rows_are_clustered_in_blocks_on_the_workers(client):
    X, _ = data("float32", 45_000)
    options = {"kernel": "rbf", "n_landmarks": 60, "random_state": 0, "n_init": 2}
    local = sketchmeans.KernelKMeans(5, **options).fit(X)
    same_fits(local, placed.KernelKMeans(5, **options).fit(da.from_array(X, chunks=(7001, -1))))


def test_sparse_blocks_frames_and_unknown_sizes_give_the_same(client):
    X, _ = data()
    X[np.abs(X) < 3] = 0
    few = FITS["neighbors"]
    local = sketchmeans.KernelKMeans(5, random_state=0, **few).fit(sparse.csr_matrix(X))
    blocks = da.from_array(X, chunks=(1234, -1)).map_blocks(sparse.csr_matrix)
    same_fits(local, placed.KernelKMeans(5, random_state=0, **few).fit(blocks))

    dataframes = pytest.importorskip("dask.dataframe")
    names = list("abcdef")
    local = sketchmeans.KernelKMeans(5, random_state=0, **few).fit(pd.DataFrame(X, columns=names))
    frame = dataframes.from_pandas(pd.DataFrame(X, columns=names), npartitions=4)
    model = placed.KernelKMeans(5, random_state=0, **few).fit(frame)
    same_fits(local, model)
    assert list(model.feature_names_in_) == names
    unknown = frame.to_dask_array()
    assert np.isnan(unknown.chunks[0]).all()
    same_fits(local, placed.KernelKMeans(5, random_state=0, **few).fit(unknown))


@pytest.mark.parametrize("name", ["neighbors", "landmarks", "one pass", "two passes, refined"])
def test_predict_and_transform_are_lazy_and_those_of_the_local_model(client, name, tmp_path):
    X, _ = data()
    model = placed.KernelKMeans(5, random_state=0, **FITS[name]).fit(da.from_array(X, chunks=1000))
    local = local_fit(name)
    new = da.from_array(X[:900] + 0.1, chunks=((400, 0, 500), -1))
    labels, embedding = model.predict(new), model.transform(new)
    assert isinstance(labels, da.Array)
    assert labels.chunks == ((400, 0, 500),)
    np.testing.assert_array_equal(labels.compute(), local.predict(new.compute()))
    np.testing.assert_allclose(embedding.compute(), local.transform(new.compute()), rtol=1e-9)
    assert model.score(new) == pytest.approx(local.score(new.compute()), rel=1e-9)
    sketchmeans.save(model.to_local(), tmp_path / "model.skm")
    loaded = sketchmeans.load(tmp_path / "model.skm")
    np.testing.assert_array_equal(loaded.predict(X), local.predict(X))
    np.testing.assert_array_equal(loaded.labels_, local.labels_)


DEGENERATE = {
    "one sample": (np.ones((1, 2)), 1, {}),
    "one sample, rbf": (np.ones((1, 2)), 1, {"kernel": "rbf"}),
    "one feature, one cluster": (np.arange(10.0)[:, None], 1, {}),
    "equal samples": (np.ones((50, 3)), 3, {}),
    "zeros": (np.zeros((60, 3)), 2, {"kernel": "linear"}),
    "two distinct rows": (np.repeat(np.eye(2), 20, axis=0), 3, {"kernel": "rbf"}),
    "whole numbers": (np.arange(300).reshape(100, 3) % 7, 3, {"kernel": "rbf"}),
    "an outlier": (np.vstack([np.eye(30), np.full((1, 30), 1e8)]), 3, {"kernel": "rbf"}),
    "a share of the trace": (
        np.sin(np.arange(2000.0)).reshape(400, 5),
        3,
        {"kernel": "rbf", "rank": 0.8, "method": "nystrom"},
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", DEGENERATE)
def test_few_and_equal_samples_are_no_trouble(client, name):
    X, n_clusters, options = DEGENERATE[name]
    local = sketchmeans.KernelKMeans(n_clusters, random_state=0, **options).fit(X)
    model = placed.KernelKMeans(n_clusters, random_state=0, **options)
    same_fits(local, model.fit(da.from_array(X, chunks=(7, 2))))


def test_an_embedding_alone_is_the_same(client):
    X, _ = data()
    local = sketchmeans.KernelEmbedding(7, random_state=0).fit(X)
    model = placed.KernelEmbedding(7, random_state=0, client=client)
    same_fits(local, model.fit(da.from_array(X, chunks=(RAGGED, -1))))
    assert clone(model).get_params()["rank"] == 7


def test_two_fits_on_one_client_at_once_do_not_meet(client):
    X, _ = data()
    lazy = da.from_array(X, chunks=(RAGGED, -1))
    found = {}

    def fit(seed):
        model = placed.KernelKMeans(5, random_state=seed, client=client, **FITS["neighbors"])
        found[seed] = model.fit(lazy)

    threads = [threading.Thread(target=fit, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        same_fits(local_fit("neighbors", seed=seed), found[seed])


def test_bad_rows_are_named_by_their_place_among_all(client):
    X, _ = data()
    for value, said in ((np.nan, "NaN"), (np.inf, "infinity")):
        X[1777, 2] = value
        lazy = da.from_array(X, chunks=(RAGGED, -1))
        with pytest.raises(ValueError, match=rf"Input X contains {said}: the first is in row 1777"):
            placed.KernelKMeans(5).fit(lazy)
    with pytest.raises(ValueError, match="no number"):
        placed.KernelKMeans(5).fit(da.from_array(np.full((10, 2), "x", dtype=object), chunks=5))
    with pytest.raises(ValueError, match="no rows"):
        placed.KernelKMeans(5).fit(da.zeros((0, 3), chunks=(1, 3)))
    with pytest.raises(TypeError, match="from_array"):
        placed.KernelKMeans(5).fit(X)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "precomputed"}, "not offered on a cluster"),
        ({"kernel": np.dot}, "callable kernel is not offered"),
        ({"kernel": "rbf", "method": "exact"}, "method='exact' is not offered"),
        ({"kernel": "rbf", "sketch": "leverage"}, "sketch='leverage' is not offered"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 7000}, "exceeds n_samples=2000"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_with_the_way_out(client, options, said):
    X = da.from_array(data()[0], chunks=1500)
    with pytest.raises(ValueError, match=said):
        placed.KernelKMeans(**{"n_clusters": 3, **options}).fit(X)


def test_threads_inside_a_worker_are_one(client):
    assert client.submit(count_threads, None, pure=False).result() == 1


def status(name):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(lines[name].split()[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_the_client_holds_fewer_numbers_than_the_embedding_has(client):
    n = 200_000
    lazy = da.random.default_rng(0).normal(size=(n, 10), chunks=(n // 8, -1)).astype("float32")
    model = placed.KernelEmbedding(18, kernel="rbf", n_landmarks=60, random_state=0)
    model.fit(lazy[:10_000])
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    before = status("VmRSS")
    model.fit(lazy)
    assert status("VmHWM") - before < n * model.rank_ * 8


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_sketches_of_two_passes_stay_on_the_workers(client, monkeypatch):
    monkeypatch.setattr("sketchmeans.tall.SPAN", 4096)
    monkeypatch.setattr("sketchmeans.dask.meetings.ENTRIES", 300_000_000)
    n, rank = 20_000, 80
    lazy = da.random.default_rng(0).normal(size=(n, 4), chunks=(n // 8, -1)).astype("float32")
    options = {"kernel": "rbf", "method": "one-pass", "n_passes": 2, "random_state": 0}
    model = placed.KernelEmbedding(rank, **options)
    model.fit(lazy[:2_000])
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    model.fit(lazy)
    # The coefficients of new points are n × rank; a client with W, too, would hold thrice that.
    assert model.width_ == 2 * rank
    assert status("VmHWM") - before < n * rank * 8 + 14_000_000


def test_without_a_client_or_without_dask_the_line_that_mends_it_is_said():
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "try: import sketchmeans.dask\n"
        "except ImportError as error: print(error)\n"
        "del sys.modules['distributed']\n"
        "import dask.array as da; from sketchmeans.dask import KernelKMeans\n"
        "KernelKMeans(2).fit(da.zeros((10, 2)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "sketchmeans[dask]"' in done.stdout
    assert done.returncode == 1
    assert "client = distributed.Client()" in done.stderr


def test_a_closed_client_is_an_error_and_no_hang():
    X = da.from_array(data()[0], chunks=1500)
    with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        model = placed.KernelKMeans(5, client=client)
    with pytest.raises(Exception, match=r"(?i)clos|not running|cancel"):
        model.fit(X)
