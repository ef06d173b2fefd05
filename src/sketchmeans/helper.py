"""A thread that helps: it does what it is given, and bears Ctrl-C in the thread that gives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any
from weakref import ref

Task = Callable[[], Any]


def start(thread: threading.Thread) -> None:
    """Start a thread; it may run already when Ctrl-C is raised.

    NOTE: ``Thread.start`` waits for it by a condition. When that is struck, it may unlock what it
    had not locked, a RuntimeError in the place of the interrupt; or leave locked what it had, and
    then the new thread stands before its first step until the process ends.
    """
    try:
        thread.start()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


class Helper:
    """A thread that does one task after the other, until nobody knows its helper any more.

    Ctrl-C may strike the thread that gives tasks at any step, and leaves none of them behind: what
    was given is done, ``wait`` can be called again, and a helper that was lost lets its thread end.
    NOTE: a ThreadPoolExecutor does not bear it. Its semaphore fails as conditions do (``start``),
    and of a thread that it was just starting it knows nothing, so that nobody waits for it.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        self.errors: list[BaseException] = []
        """What tasks have raised since the last one was given."""
        gone = ref(self, self._tasks.put)  # the thread finds it among its tasks
        thread = threading.Thread(
            target=_serve, args=(self._tasks, gone, self.errors), name="sketchmeans", daemon=True
        )
        start(thread)

    def give(self, task: Task) -> None:
        """Let the thread do a task, after those that it was given before."""
        self.errors.clear()
        self._tasks.put(task)

    def wait(self) -> None:
        """Wait until all tasks are done."""
        bell = threading.Lock()
        bell.acquire()
        self._tasks.put(bell.release)
        bell.acquire()


def _serve(tasks: SimpleQueue[Any], gone: object, errors: list[BaseException]) -> None:
    while (task := tasks.get()) is not gone:
        try:
            task()
        except BaseException as error:
            errors.append(error)
        del task  # what it holds may be large, and the next one may come late
