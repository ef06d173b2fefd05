"""Reading ahead: a thread of its own reads blocks in order, a few before they are wanted."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from sketchmeans.engine import Crew
from sketchmeans.helper import start

Request = TypeVar("Request")

_PATIENCE = 0.1
"""Seconds after which who waits for a block looks whether the crew has stopped."""


class Ahead(Generic[Request]):
    """What a function reads for some requests, in their order, for the threads of a crew.

    No more than ``most`` blocks are read and not yet ``done``. NOTE: simple queues bear Ctrl-C,
    which may strike the calling thread at any step; a queue with a limit is locked by conditions.

    Parameters
    ----------
    read : callable
    requests : iterable
        May end when it likes: it is asked for the next one before there is room for it.
    most : int
        More than there are threads: then one is always being read.
    crew : Crew
        Who takes them; where it has stopped, nobody waits any longer.
    """

    def __init__(
        self, read: Callable[[Request], Any], requests: Iterable[Request], most: int, crew: Crew
    ) -> None:
        self._read, self._requests, self._crew = read, requests, crew
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._blocks: queue.SimpleQueue[tuple[int | None, Any, BaseException | None]]
        self._blocks = queue.SimpleQueue()
        self._stopped = False
        for _ in range(most):
            self._room.put(None)
        self._thread = threading.Thread(target=self._work, name="sketchmeans-read", daemon=True)

    def __enter__(self) -> Ahead[Request]:
        try:
            start(self._thread)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        # After Ctrl-C nobody waits for a slow disk: the thread ends when it has its block.
        self._thread.join(None if error[0] is None else _PATIENCE)

    def _end(self) -> None:
        self._stopped = True
        self._room.put(None)

    def _work(self) -> None:
        index = 0
        try:
            for request in self._requests:
                self._room.get()
                if self._stopped:
                    return
                self._blocks.put((index, self._read(request), None))
                index += 1
        except BaseException as error:
            self._blocks.put((index, None, error))
        else:
            self._blocks.put((None, None, None))

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Give every block with its number; an error of the reader is raised in its place."""
        while True:
            try:
                index, block, error = self._blocks.get(timeout=_PATIENCE)
            except queue.Empty:
                self._crew.go_on()
                continue
            if error is not None:
                raise error
            if index is None:
                return
            yield index, block
            del block

    def done(self) -> None:
        """Let one more block be read."""
        self._room.put(None)


class InOrder:
    """Hands results on in the order of their numbers, in whatever order they come.

    Parameters
    ----------
    take : callable
        Called with a number and a result, by one thread at a time.
    """

    def __init__(self, take: Callable[[int, Any], None]) -> None:
        self._take, self._lock = take, threading.Lock()
        self._waiting: dict[int, Any] = {}
        self._next = 0

    def put(self, index: int, value: Any) -> None:
        """Bring a result."""
        with self._lock:
            self._waiting[index] = value
            while self._next in self._waiting:
                self._take(self._next, self._waiting.pop(self._next))
                self._next += 1
