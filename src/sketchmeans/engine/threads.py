"""Threads for tiles: a crew that shares a list of tasks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, Generic, TypeVar

import numpy as np

from sketchmeans.blas import OneBlasThread
from sketchmeans.helper import Helper

Task = TypeVar("Task")

_PATIENCE = 0.1
"""Seconds after which a task that waits for another looks whether the crew has stopped."""


_IDLE: list[Helper] = []
"""Threads that wait for the next crew.

To start a thread takes several times as long as to wake one, and longer than a small pass.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)  # the threads stay with the parent


def _idle_thread() -> Helper:
    try:
        return _IDLE.pop()
    except IndexError:
        return Helper()


class Abandoned(Exception):
    """Raised in a task that waits for another one when the crew has stopped."""


class Crew:
    """A few threads that take tasks from one list, with BLAS and OpenMP held to one thread each.

    The thread that calls ``each`` is one of them. ``each`` returns when every task is done. An
    exception in a task, or Ctrl-C, stops the others before their next task and is raised. Where no
    task calls either, ``blas=False`` saves the time to hold and release them.
    """

    def __init__(self, n_threads: int, *, blas: bool = True) -> None:
        self.n_threads = n_threads
        self._blas = blas
        self._libraries = OneBlasThread()
        self.stopped = False
        self._others: list[Helper] = []
        self._process = os.getpid()

    def __enter__(self) -> Crew:
        if self._blas:
            self._libraries.__enter__()
        self._others = [_idle_thread() for _ in range(self.n_threads - 1)]
        return self

    def __exit__(self, *error: object) -> None:
        if not self._forked:  # else the threads stayed with the parent
            if error[0] is not None:
                self._wait()  # one that was interrupted twice may still be at work
                for other in self._others:
                    other.errors.clear()  # their frames hold tiles
            _IDLE.extend(self._others)
        self._others = []
        self._libraries.__exit__()

    @property
    def _forked(self) -> bool:
        return os.getpid() != self._process

    def go_on(self) -> None:
        """Raise ``Abandoned`` in a task whose crew has stopped."""
        if self.stopped:
            raise Abandoned

    def each(
        self,
        work: Callable[[Task], Any],
        tasks: Iterable[Task],
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Call ``work`` on every task; in order on one thread, side by side on several.

        ``progress`` is called with the number of tasks done, now and then and at the end, from the
        thread that called ``each``.
        """
        shared = _Shared(tasks)
        reported = 0
        self.stopped = False

        def report() -> None:
            nonlocal reported
            if progress is not None and shared.done > reported:
                reported = shared.done
                progress(reported)

        def drain(after: Callable[[], None] = lambda: None) -> None:
            try:
                # Overflow and NaN are looked for by the pass itself, which can say where they are.
                with np.errstate(over="ignore", invalid="ignore"):
                    while not self.stopped:
                        work(shared.take())
                        shared.finish()
                        after()
            except (Abandoned, _Empty):
                pass
            except BaseException:
                self.stopped = True
                raise

        def help_out() -> None:
            with OneBlasThread() if self._blas else nullcontext():
                drain()

        try:
            for other in self._others:
                other.give(help_out)
            drain(report)
            self._wait()
            for other in self._others:
                if other.errors:
                    raise other.errors.pop()
        except BaseException:
            self.stopped = True
            if not self._forked:  # a child that leaves a task by an error has nobody to wait for
                self._wait()
            raise
        report()

    def _wait(self) -> None:
        for other in self._others:
            other.wait()


class _Empty(Exception):
    """Raised where no task is left."""


class _Shared(Generic[Task]):
    """Tasks that threads take one after the other, and how many are done."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._waiting = iter(tasks)
        self._lock = threading.Lock()
        self.done = 0

    def take(self) -> Task:
        with self._lock:
            for task in self._waiting:
                return task
        raise _Empty

    def finish(self) -> None:
        with self._lock:
            self.done += 1


class Signal:
    """Lets tasks of a crew wait for what its other tasks bring about.

    What is waited for is changed and ``announce`` is called with the ``lock`` held. NOTE: this is
    a Condition that bears Ctrl-C. It may strike the calling thread at any step, and a Condition
    would then be left locked, or unlock what it had not locked.
    """

    def __init__(self, crew: Crew) -> None:
        self.lock = threading.Lock()
        self._crew = crew
        self._asleep: list[threading.Lock] = []

    def announce(self) -> None:
        """Wake all who wait, to look again."""
        for bell in self._asleep:
            bell.release()
        self._asleep.clear()

    def wait_for(self, ready: Callable[[], bool]) -> None:
        """Wait until ``ready``.

        Raises ``Abandoned`` if the crew has stopped: then it may never be.
        """
        while True:
            with self.lock:
                if ready():
                    return
                bell = threading.Lock()
                bell.acquire()
                self._asleep.append(bell)
            if self._crew.stopped:
                raise Abandoned
            bell.acquire(timeout=_PATIENCE)
