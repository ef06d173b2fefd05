"""The client that a fit talks to its cluster by, and how it waits for tasks."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import CancelledError, Client, get_client, rejoin, secede
from distributed.threadpoolexecutor import thread_state

from sketchmeans.helper import start

LOOK, ALONE = 5.0, 60.0
"""Seconds between two looks at the workers, and without any after which a warning says so."""


def client_for(client: Any) -> Client:
    """Return this client, or the one that was started last; it must be open."""
    if client is None:
        try:
            client = get_client()
        except ValueError as error:
            raise ValueError(
                "no Dask client was found: start one, client = distributed.Client(), or give one "
                "as client=."
            ) from error
    if not hasattr(client, "submit"):
        what = repr(client) if isinstance(client, str) else "your cluster"
        raise TypeError(
            f"client={client!r} is no Dask client: make one of it, distributed.Client({what}), and "
            "give that."
        )
    check_open(client, "start one, client = distributed.Client(), and fit again")
    return client


def is_open(client: Client) -> bool:
    """Whether a client can be asked for something."""
    return client.status not in ("closed", "closing")


def check_open(client: Client, way_out: str) -> None:
    """Refuse a client that is closed: what it is asked for would never come."""
    if not is_open(client):
        raise RuntimeError(f"the Dask client is closed: {way_out}.")


@contextmanager
def working(client: Client) -> Iterator[None]:
    """Wait for tasks in this block; what cancels them is an error that says so.

    A cluster that has no workers is waited for, as Dask does, and a warning says so.

    Inside a task, its thread is left to other tasks meanwhile: those that are waited for may be
    sent to this very worker, and it may have no other.
    """
    inside = getattr(thread_state, "proceed", False)  # of a pool of a worker, and not left before
    if inside:
        secede()
    ended = threading.Event()
    try:
        start(threading.Thread(target=_watch, args=(client, ended), daemon=True))
        yield
    except CancelledError as error:
        raise CancelledError(
            f"tasks were cancelled before they were done ({error}): the client or its cluster was "
            "closed or restarted, or somebody cancelled them. Start again on a client that is open."
        ) from error
    finally:
        ended.set()
        if inside:
            rejoin()


def _watch(client: Client, ended: threading.Event) -> None:
    """Warn, once, where there have been no workers for a while."""
    seen = time.monotonic()
    while not ended.wait(LOOK) and is_open(client):
        try:
            has_workers = bool(client.nthreads())
        except (OSError, RuntimeError):  # its scheduler is gone: what waits for it says so
            return
        if has_workers:
            seen = time.monotonic()
        elif time.monotonic() - seen >= ALONE:
            warnings.warn(
                f"the Dask cluster has had no workers for {ALONE:.0f} s, and the fit waits for "
                "one: start some (client.cluster.scale(2)), or end it by Ctrl-C. A cluster gives "
                "workers up that do not come back in time after they were lost (Dask's setting "
                "distributed.deploy.lost-worker-timeout).",
                stacklevel=2,
            )
            return
