"""Proofs on a real cluster of processes: one task a block, and the bits of a local proof."""

import inspect

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from soak.clusters import killed

import sketchmeans
from clusters import opened, same_fits
from sketchmeans import dask as placed
from test_dask_faults import LosesWorkers

N = 160
RAGGED = (40, 60, 0, 1, 59)


@pytest.fixture(scope="module")
def client():
    with opened(2) as client:
        yield client


def data(dtype="float64"):
    X, y = make_blobs(N, n_features=6, centers=4, cluster_std=3.0, random_state=1)
    return (X + 5).astype(dtype), y


def weights():
    w = np.random.default_rng(0).uniform(0.5, 2, N)
    w[:7] = 0
    return w


CASES = {
    "linear": {"kernel": "linear", "block_size": 45, "effort": "blocks"},
    "polynomial, one block": {"kernel": "polynomial", "degree": 2, "effort": "blocks"},
    "rbf, lifted": {"kernel": "rbf", "block_size": 80, "effort": "lifted"},
    "free": {"kernel": "rbf", "effort": "free", "failure_probability": 1e-3},
    "neighbors": {"kernel": "neighbors", "effort": "blocks"},
}


@pytest.mark.parametrize("name", CASES)
def test_a_proof_on_a_cluster_has_the_bits_of_a_local_one(client, name):
    options = CASES[name]
    for w, dtype in ((None, "float32"), (weights(), "float64")):
        X, labels = data(dtype)
        lazy = da.from_array(X, chunks=(RAGGED, (2, 4)))
        local = sketchmeans.certify(X, labels, random_state=3, sample_weight=w, **options)
        lazy_weights = None if w is None else da.from_array(w, chunks=37)
        found = placed.certify(
            lazy,
            da.from_array(labels, chunks=39),
            random_state=3,
            sample_weight=lazy_weights,
            client=client,
            **options,
        )
        assert found == local
        assert found.objective_upper is not None


def test_sparse_rows_and_an_upper_side_from_landmarks_have_the_same_bits(client, monkeypatch):
    X, labels = data()
    X[np.abs(X) < 3] = 0
    blocks = da.from_array(X, chunks=(53, -1)).map_blocks(sparse.csr_matrix)
    monkeypatch.setattr("sketchmeans.certificate.proven.PAIRS", 1e3)
    for kernel, rows, lazy in (
        ("linear", sparse.csr_matrix(X), blocks),
        ("rbf", sparse.csr_matrix(X), blocks),
        ("rbf", X, da.from_array(X, chunks=(53, -1))),
    ):
        options = {"kernel": kernel, "block_size": 50, "random_state": 0, "effort": "blocks"}
        local = sketchmeans.certify(rows, labels, **options)
        assert placed.certify(lazy, labels, **options) == local
        assert local.objective_from == ("landmarks" if kernel == "rbf" else "all pairs")


def test_a_model_brings_its_labels_and_a_fit_proves_what_it_is_asked_to(client):
    X, _ = data()
    lazy = da.from_array(X, chunks=(RAGGED, -1))
    options = {"kernel": "rbf", "random_state": 0, "certificate": "lifted"}
    local = sketchmeans.KernelKMeans(4, **options).fit(X)
    model = placed.KernelKMeans(4, client=client, **options).fit(lazy)
    same_fits(local, model)
    assert model.certificate_.level == "lifted"
    proof = {"block_size": 45, "effort": "blocks", "random_state": 0}
    assert placed.certify(lazy, model, **proof) == sketchmeans.certify(X, local, **proof)
    with pytest.raises(TypeError, match="has no labels"):
        placed.certify(lazy, placed.KernelEmbedding(3).fit(lazy))


def test_a_worker_that_is_lost_costs_its_blocks_and_no_bit(client):
    X, labels = data()
    options = {"kernel": "rbf", "block_size": 20, "random_state": 0, "effort": "blocks"}
    local = sketchmeans.certify(X, labels, **options)
    losing = LosesWorkers(client, killed, 9)
    lazy = da.from_array(X, chunks=(40, -1))
    assert placed.certify(lazy, labels, client=losing, **options) == local
    assert losing.lost.is_set()
    client.wait_for_workers(2, timeout=120)  # the lost one is replaced


def test_with_a_time_limit_what_is_known_then_counts(client, monkeypatch):
    X, labels = data()
    lazy = da.from_array(X, chunks=(RAGGED, -1))
    timed = placed.certify(lazy, labels, kernel="rbf", seconds=3, block_size=50)
    assert 0 < timed.optimum_lower <= timed.objective_upper
    monkeypatch.setattr("sketchmeans.certificate.proven.SMALL_BLOCKS", 10**9)
    monkeypatch.setattr("sketchmeans.certificate.proven.ONE_BLOCK", 100)
    monkeypatch.setattr("sketchmeans.certificate.proven.DRAWN_SIZE", 50)
    options = {"kernel": "rbf", "effort": "blocks", "failure_probability": 1e-3}
    drawn = placed.certify(lazy, labels, seconds=10, **options)  # ends when all are done
    assert drawn.n_blocks > 1
    assert 0 < drawn.optimum_lower_probabilistic <= drawn.objective_upper


def test_the_rows_of_a_block_never_come_to_the_client(client, monkeypatch):
    def never(*args):
        raise AssertionError("a block was made by the client")

    X, labels = data()
    monkeypatch.setattr("sketchmeans.certificate.blockwise.part_of", never)
    with pytest.raises(AssertionError, match="by the client"):
        sketchmeans.certify(X, labels, kernel="rbf", effort="blocks", block_size=50)
    lazy = da.from_array(X, chunks=(40, -1))
    for size in (50, N):
        found = placed.certify(lazy, labels, kernel="rbf", effort="blocks", block_size=size)
        assert found.block_size <= size


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "precomputed"}, "not offered on a cluster"),
        ({"kernel": np.dot}, "callable kernel is not offered"),
        ({"kernel": "sigmoid"}, "not positive semidefinite in general.*sketchmeans.certify"),
        ({"kernel": "polynomial", "coef0": -1.0}, "not positive semidefinite in general"),
        ({}, "give the kernel to judge them by"),
        ({"kernel": "rbf", "effort": "lift"}, "effort='lift' is not known"),
        ({"kernel": "rbf", "seconds": -1}, "seconds"),
    ],
)
def test_what_cannot_be_proved_there_is_refused_before_rows_are_moved(options, said):
    def never(block):
        raise AssertionError("a block was computed")

    lazy = da.zeros((10, 2), chunks=5).map_blocks(never, dtype=float, meta=np.zeros((0, 2)))
    with pytest.raises(ValueError, match=said):
        placed.certify(lazy, np.arange(10) % 2, **options)


def test_the_signature_is_that_of_the_local_one_and_a_client():
    local = list(inspect.signature(sketchmeans.certify).parameters)
    assert list(inspect.signature(placed.certify).parameters) == [*local, "client"]
    with pytest.raises(TypeError, match="efort"):
        placed.certify(da.zeros((10, 2)), np.arange(10), kernel="rbf", efort="free")
