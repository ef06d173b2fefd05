"""Real clusters of worker processes, how workers are lost, and what fits on them are held against.

Shared with the tests (``tests/clusters.py``, ``tests/test_dask_faults.py``).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster


@contextmanager
def opened(n_workers: int, **options: Any) -> Iterator[Client]:
    """Yield the client of a cluster of processes with a thread each."""
    # NOTE: the first parameter of LocalCluster is a name. Given there, a number of workers is
    # taken for one, and there are as many workers as cores.
    options = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True, **options}
    options.setdefault("dashboard_address", ":0")  # any port: others may have clusters here too
    # A worker that is lost is started again, and on a busy machine that takes longer than the 15 s
    # after which LocalCluster gives it up: then the others must do its work, or nobody.
    patience = dask.config.set({"distributed.deploy.lost-worker-timeout": "120s"})
    with patience, LocalCluster(**options) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers, timeout=120)
        yield client


async def killed() -> None:
    """Be killed, as by the system where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


async def crashed() -> None:
    """Crash, as compiled code does."""
    os.kill(os.getpid(), signal.SIGSEGV)


async def left() -> None:
    """Leave without a word to anybody."""
    os._exit(1)


WAYS: dict[str, Callable[[], Awaitable[None]]] = {
    "SIGKILL": killed,
    "segmentation fault": crashed,
    "exit": left,
}
"""How a worker is lost: coroutines that it runs itself."""


def lose(client: Client, how: Callable[[], Awaitable[None]], worker: str) -> None:
    """Let a worker be lost, by its address, and do not wait for it.

    NOTE: ``Client.run`` without waiting takes coroutines alone.
    """
    client.run(how, workers=[worker], wait=False)


def same_fits(local: Any, model: Any) -> None:
    """Hold a fit on a cluster against a local one: every bit of what it found."""
    found = {"embedding_": model.embedding_.compute()}
    if hasattr(local, "labels_"):
        found["labels_"] = model.labels_.compute()
        assert model.certificate_ == local.certificate_, "certificate_"
        assert model.inertia_ == local.inertia_, "inertia_"
        assert model.n_iter_ == local.n_iter_, "n_iter_"
        found["cluster_centers_"] = model.cluster_centers_
    found["eigenvalues_"] = model.eigenvalues_
    for name, value in found.items():
        truth = np.asarray(getattr(local, name))
        assert value.dtype == truth.dtype, name
        np.testing.assert_array_equal(value, truth, err_msg=name)
        assert value.tobytes() == truth.tobytes(), name
