"""Threads for tiles: how many, and a crew that shares a list of tasks."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from types import TracebackType
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")

_PATIENCE = 0.1
"""Seconds after which a task that waits for another looks whether the crew has stopped."""


def count_threads(n_jobs: int | None) -> int:
    """Turn ``n_jobs`` into a number of threads.

    None means all cores, but one inside a joblib or Dask worker: there the outer level has taken
    the cores already. Negative numbers count from all cores down, as in joblib.
    """
    if n_jobs is None:
        inside = get_active_backend()[0].nesting_level or _in_dask_worker()
        return 1 if inside else joblib.cpu_count()
    if n_jobs < 0:
        return max(1, joblib.cpu_count() + 1 + n_jobs)
    return n_jobs


def _in_dask_worker() -> bool:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


class _OneBlasThread:
    """Holds BLAS to one thread while anybody asks for it.

    The limit is one setting of the process. Fits that run side by side overlap in any order, so
    the first to come sets it and the last to go restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: Any = None

    def hold(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limit = _blas_controller().limit(limits=1)
                self._limit.__enter__()

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limit.__exit__(None, None, None)


_BLAS = _OneBlasThread()


@cache
def thread_controller() -> ThreadpoolController:
    """Return the one controller of the process: looking for the libraries takes milliseconds."""
    return ThreadpoolController()


@cache
def _blas_controller() -> ThreadpoolController:
    return thread_controller().select(user_api="blas")


_IDLE: defaultdict[int, list[ThreadPoolExecutor]] = defaultdict(list)
"""Pools that wait for the next crew, by the number of their threads.

To start a thread takes several times as long as to wake one, and longer than a small pass.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)  # the threads stay with the parent


def _pool_of(n_threads: int) -> ThreadPoolExecutor:
    try:
        return _IDLE[n_threads].pop()
    except IndexError:
        return ThreadPoolExecutor(n_threads, thread_name_prefix="sketchmeans")


class Abandoned(Exception):
    """Raised in a task that waits for another one when the crew has stopped."""


class Crew:
    """A few threads that take tasks from one list, with BLAS held to one thread each.

    The thread that calls ``each`` is one of them. ``each`` returns when every task is done. An
    exception in a task, or Ctrl-C, stops the others before their next task and is raised.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._stopped = False
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Crew:
        _BLAS.hold()
        if self.n_threads > 1:
            self._pool = _pool_of(self.n_threads - 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            if kind is None:
                _IDLE[self.n_threads - 1].append(self._pool)
            else:
                self._pool.shutdown()
            self._pool = None
        _BLAS.release()

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
        lock = threading.Lock()
        waiting = iter(tasks)
        done = reported = 0
        self._stopped = False

        def take() -> Iterator[Task]:
            while not self._stopped:
                with lock:
                    try:
                        task = next(waiting)
                    except StopIteration:
                        return
                yield task

        def drain(report: Callable[[], None] | None = None) -> None:
            nonlocal done
            try:
                # Overflow and NaN are looked for by the pass itself, which can say where they are.
                with np.errstate(over="ignore", invalid="ignore"):
                    for task in take():
                        work(task)
                        with lock:
                            done += 1
                        if report is not None:
                            report()
            except Abandoned:
                pass
            except BaseException:
                self._stopped = True
                raise

        def report() -> None:
            nonlocal reported
            if progress is not None and done > reported:
                reported = done
                progress(reported)

        others: list[Future[None]] = []
        try:
            if self._pool is not None:
                others.extend(self._pool.submit(drain) for _ in range(self.n_threads - 1))
            drain(report)
            for other in others:
                other.result()
        except BaseException:
            self._stopped = True
            wait(others)
            raise
        report()

    def wait_for(self, changed: threading.Condition, ready: Callable[[], bool]) -> None:
        """Wait in a task until ``ready``, which other tasks bring about; ``changed`` is held.

        Raises ``Abandoned`` if the crew has stopped: then they may never do so.
        """
        while not ready():
            if self._stopped:
                raise Abandoned
            changed.wait(_PATIENCE)
