"""Clients of any kind: not the default one, inside a task, closed or cancelled; none hangs."""

import threading
import time
import warnings
from contextlib import contextmanager
from threading import Timer

import dask.array as da
import numpy as np
import pytest
from distributed import CancelledError, Client, LocalCluster

import sketchmeans
from sketchmeans import dask as placed
from sketchmeans.dask import clients

X = np.random.default_rng(0).normal(size=(60, 3))
LAZY = da.from_array(X, chunks=(20, -1))
QUICK = {"kernel": "rbf", "n_init": 1, "random_state": 0}
PATIENCE = 60
"""Seconds after which something hangs: what is tried takes one or two."""


@contextmanager
def alone(**options):
    """Yield the client of a cluster of one thread in this process, which is not the default one."""
    kinds = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with (
        LocalCluster(**kinds, dashboard_address=":0") as cluster,
        Client(cluster, **{"set_as_default": False, **options}) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with alone() as client:
        yield client


def outcome(function):
    """Return what a function returns or raises; fail where it does neither."""
    found = []

    def run():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it hangs"
    return found[0]


@pytest.mark.parametrize("method", ["nystrom", "one-pass"])
def test_the_client_of_the_fit_is_asked_whatever_the_default_is(client, method):
    local = sketchmeans.KernelKMeans(3, method=method, **QUICK).fit(X)
    model = placed.KernelKMeans(3, method=method, client=client, **QUICK).fit(LAZY)
    proof = {"effort": "blocks", "block_size": 30, "random_state": 0}
    expected = sketchmeans.certify(X, local.labels_, kernel="rbf", **proof)
    with alone(set_as_default=True):
        assert model.score(LAZY) == pytest.approx(local.score(X), rel=1e-9)
        assert placed.certify(LAZY, model, **proof) == expected
        np.testing.assert_array_equal(model.to_local().predict(X), local.predict(X))
    labels = client.compute(model.predict(LAZY)).result()
    np.testing.assert_array_equal(labels, local.predict(X))


def test_a_cluster_without_workers_is_waited_for_with_a_warning(monkeypatch):
    monkeypatch.setattr(clients, "LOOK", 0.1)
    monkeypatch.setattr(clients, "ALONE", 0.5)
    with alone() as client:
        client.cluster.scale(0)
        model = placed.KernelKMeans(3, client=client, **QUICK)
        Timer(3, client.cluster.scale, [1]).start()
        with pytest.warns(UserWarning, match="no workers for 0 s, and the fit waits for one: "):
            found = outcome(lambda: model.fit(LAZY))
        assert found is model


def test_a_cluster_with_workers_is_not_warned_of(client, monkeypatch):
    monkeypatch.setattr(clients, "LOOK", 0.01)
    monkeypatch.setattr(clients, "ALONE", 0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed.KernelKMeans(3, client=client, **QUICK).fit(LAZY)
    # What watches has an end, too.
    end = time.monotonic() + PATIENCE
    while any(thread.name.endswith("(_watch)") for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


def inside(method):
    model = placed.KernelKMeans(3, method=method, **QUICK).fit(LAZY)
    gap = placed.certify(LAZY, model, effort="blocks", block_size=30, random_state=0)
    return model.to_local().labels_, model.score(LAZY), gap.relative_gap


def test_a_fit_inside_a_task_of_a_worker_with_one_thread_ends(client):
    local = sketchmeans.KernelKMeans(3, method="one-pass", **QUICK).fit(X)
    tasks = client.map(inside, ["one-pass"] * 2, pure=False)
    for found in outcome(lambda: client.gather(tasks)):
        np.testing.assert_array_equal(found[0], local.labels_)
        assert found[1] == pytest.approx(local.score(X), rel=1e-9)


class Interrupted:
    """A client to which something happens while tasks of some name run, which take a while."""

    def __init__(self, client, name, event):
        self.client, self.name, self.event = client, name, event
        self.tasks, self.happened = [], threading.Event()

    def __getattr__(self, name):
        return getattr(self.client, name)

    def submit(self, function, *args, key, **options):
        if not key[0].startswith(f"sketchmeans-{self.name}-") or "-plan" in key[0]:
            return self.client.submit(function, *args, key=key, **options)
        return self.seen([self.client.submit(slowly, function, *args, key=key, **options)])[0]

    def map(self, function, *columns, key=None, **options):
        if key is None or not key[0][0].startswith(f"sketchmeans-{self.name}-"):
            return self.client.map(function, *columns, key=key, **options)
        first = [function] * len(columns[0])
        return self.seen(self.client.map(slowly, first, *columns, key=key, **options))

    def seen(self, tasks):
        if not self.tasks:
            threading.Timer(0.3, self.happen).start()
        self.tasks += tasks
        return tasks

    def happen(self):
        self.event(self)
        self.happened.set()


def slowly(function, *args):
    time.sleep(0.5)
    return function(*args)


EVENTS = {
    "a cancelled task": lambda to: to.client.cancel(to.tasks[-1:], force=True),
    "cancelled tasks": lambda to: to.client.cancel(to.tasks, force=True),
    "a closed client": lambda to: to.client.close(),
    "a closed cluster": lambda to: to.client.cluster.close(),
    "a restart": lambda to: to.client.restart(wait_for_workers=False),
}


def fitted(client):
    return placed.KernelKMeans(3, method="nystrom", client=client, **QUICK).fit(LAZY)


def proved(client):
    labels = np.arange(60) % 3
    options = {"kernel": "rbf", "effort": "blocks", "block_size": 15}
    return placed.certify(LAZY, labels, client=client, **options)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(("work", "name"), [(fitted, "look"), (proved, "proof")])
def test_what_is_cancelled_is_an_error_that_says_so(work, name, event):
    with alone() as client:
        interrupted = Interrupted(client, name, EVENTS[event])
        error = outcome(lambda: work(interrupted))
        assert interrupted.happened.wait(PATIENCE)
    assert isinstance(error, CancelledError)
    assert "tasks were cancelled before they were done" in str(error)


def test_what_was_fitted_by_a_client_that_is_closed_is_not_waited_for():
    with alone() as client:
        model = fitted(client)
    for ask in (model.to_local, lambda: model.score(LAZY), lambda: model.fit(LAZY)):
        error = outcome(ask)
        assert isinstance(error, RuntimeError)
        assert "the Dask client is closed" in str(error)


def test_what_is_no_client_is_refused_with_the_line_that_makes_one(client):
    with pytest.raises(TypeError, match=r"distributed.Client\('tcp://host:8786'\)"):
        placed.KernelKMeans(3, client="tcp://host:8786").fit(LAZY)
    with pytest.raises(TypeError, match="is no Dask client"):
        placed.certify(LAZY, np.arange(60) % 3, kernel="rbf", client=client.cluster)


def test_saving_a_model_on_a_cluster_says_to_local(client, tmp_path):
    model = fitted(client)
    with pytest.raises(TypeError, match=r"model.to_local\(\)"):
        sketchmeans.save(model, tmp_path / "model.skm")
    sketchmeans.save(model.to_local(), tmp_path / "model.skm")
