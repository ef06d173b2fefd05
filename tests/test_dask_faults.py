"""Workers that are lost in the middle of a fit cost what they held, and no bit of the result."""

import threading

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from sklearn.datasets import make_blobs
from soak.clusters import crashed, killed, left, lose

import sketchmeans
from clusters import opened, same_fits
from sketchmeans import dask as placed


@pytest.fixture(scope="module")
def client():
    with opened(2) as client:
        yield client


class LosesWorkers:
    """A client that loses a worker, by a way of ``soak.clusters``, when some tasks are done."""

    def __init__(self, client, how, after):
        self.client, self.how, self.left = client, how, after
        self.lost = threading.Event()

    def __getattr__(self, name):
        return getattr(self.client, name)

    def map(self, *args, **options):
        self.left -= 1
        futures = self.client.map(*args, **options)
        if self.left == 0:
            worker = next(iter(self.client.scheduler_info(n_workers=-1)["workers"]))
            lose(self.client, self.how, worker)
            self.lost.set()
        return futures


@pytest.mark.parametrize(
    ("how", "after", "options"),
    [
        (killed, 6, {"kernel_params": {"n_anchors": 150}}),
        (crashed, 9, {"kernel": "rbf", "n_landmarks": 300}),
        (left, 4, {"kernel": "rbf", "method": "one-pass", "n_refine": 1}),
    ],
    ids=["SIGKILL", "segmentation fault", "exit"],
)
def test_a_fit_survives_the_loss_of_a_worker_to_the_bit(client, how, after, options, monkeypatch):
    monkeypatch.setattr("sketchmeans.dask.meetings.ENTRIES", 2_000_000)
    X = make_blobs(4000, n_features=6, centers=5, cluster_std=2.0, random_state=1)[0]
    local = sketchmeans.KernelKMeans(5, random_state=0, **options).fit(X)
    client.wait_for_workers(2, timeout=120)  # a lost one is replaced
    losing = LosesWorkers(client, how, after)
    model = placed.KernelKMeans(5, random_state=0, client=losing, **options)
    model.fit(da.from_array(X, chunks=(1000, -1)))
    assert losing.lost.is_set()
    same_fits(local, model)


def test_a_fit_whose_client_is_closed_meanwhile_ends_with_an_error(client):
    X = da.random.default_rng(0).normal(size=(100_000, 6), chunks=(10_000, -1))
    found = []
    other = Client(client.cluster)

    def fit():
        try:
            placed.KernelKMeans(5, random_state=0, client=other).fit(X)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join(1.0)
    assert thread.is_alive()
    other.close()
    thread.join(60)
    assert not thread.is_alive()
    (error,) = found
    assert "cancel" in repr(error).lower() or "clos" in repr(error).lower()


def test_an_error_in_a_task_is_the_error_of_the_fit(client):
    X = np.random.default_rng(0).normal(size=(3000, 3)) * 1e120
    lazy = da.from_array(X, chunks=(1000, -1))
    model = placed.KernelKMeans(2, kernel="polynomial", gamma=1.0, client=client)
    with pytest.raises(ValueError, match="cannot square it"):
        model.fit(lazy)
