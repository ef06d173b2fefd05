"""Threads for tiles: how many, and a crew that shares a list of tasks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import cache
from types import TracebackType
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")

_REPORTS = 0.1
"""Seconds between two reports of progress while threads work."""


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
                self._limit = thread_controller().limit(limits=1, user_api="blas")
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


class Crew:
    """A few threads that take tasks from one list, with BLAS held to one thread each.

    ``each`` returns when every task is done. An exception in a task, or Ctrl-C, stops the others
    before their next task and is raised.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Crew:
        _BLAS.hold()
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="sketchmeans")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
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
        stop = threading.Event()
        lock = threading.Lock()
        waiting = iter(tasks)
        done = 0
        caller = threading.get_ident()

        def drain() -> None:
            nonlocal done
            # Overflow and NaN are looked for by the pass itself, which can say where they arose.
            with np.errstate(over="ignore", invalid="ignore"):
                while not stop.is_set():
                    with lock:
                        try:
                            task = next(waiting)
                        except StopIteration:
                            return
                    try:
                        work(task)
                    except BaseException:
                        stop.set()
                        raise
                    with lock:
                        done += 1
                    if progress is not None and threading.get_ident() == caller:
                        progress(done)

        if self._pool is None:
            drain()
            return
        futures = {self._pool.submit(drain) for _ in range(self.n_threads)}
        running = futures
        try:
            while running:
                ended, running = wait(running, timeout=_REPORTS, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
                if progress is not None:
                    progress(done)
        finally:
            stop.set()
            wait(futures)
