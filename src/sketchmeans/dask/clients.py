"""The client that a fit talks to its cluster by, and how it waits for tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import CancelledError, Client, get_client, rejoin, secede
from distributed.threadpoolexecutor import thread_state


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
def working() -> Iterator[None]:
    """Wait for tasks in this block; what cancels them is an error that says so.

    Inside a task, its thread is left to other tasks meanwhile: those that are waited for may be
    sent to this very worker, and it may have no other.
    """
    inside = getattr(thread_state, "proceed", False)  # of a pool of a worker, and not left before
    if inside:
        secede()
    try:
        yield
    except CancelledError as error:
        raise CancelledError(
            f"tasks were cancelled before they were done ({error}): the client or its cluster was "
            "closed or restarted, or somebody cancelled them. Start again on a client that is open."
        ) from error
    finally:
        if inside:
            rejoin()
