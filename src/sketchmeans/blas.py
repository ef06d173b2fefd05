"""How many threads: ours, and those of other libraries, held to one while we work.

BLAS and OpenMP split a sum among their threads, so that its last bits depend on their number. And
an OpenMP pool that has threads does not survive a fork: a loop in the child waits for them.

NOTE: threadpoolctl's own limits do not serve. From version 3.8 only the first thread that set one
can change OpenBLAS, the others are ignored; and of two limits that overlap, the one that ends last
puts back the other's. So we call the libraries' functions, which threadpoolctl finds for us.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple
from weakref import ref

import joblib
import scipy.linalg  # noqa: F401  (it and scikit-learn load libraries that are to be found)
import sklearn.utils.parallel
import threadpoolctl
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from sketchmeans.helper import Helper
from sketchmeans.text import called


def count_threads(n_jobs: int | None) -> int:
    """Turn ``n_jobs`` into a number of threads.

    None means what ``joblib.parallel_config`` says, and all cores where it says nothing; but one
    inside a joblib or Dask worker: there the outer level has taken the cores already. Negative
    numbers count from all cores down, as in joblib.
    """
    if n_jobs is None:
        backend, configured = get_active_backend()
        if backend.nesting_level or _in_dask_worker():
            return 1
        n_jobs = -1 if configured is None else int(configured)
    if n_jobs == 0:
        raise ValueError(
            f"{called('n_jobs')}=0 is no number of threads: give 1, 2, …, -1 (all) or None."
        )
    if n_jobs < 0:
        # joblib.effective_n_jobs would count the workers of a cluster, and ours are threads here.
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


@cache
def thread_controller() -> ThreadpoolController:
    """Return the one controller of the process: looking for the libraries takes milliseconds.

    NOTE: threadpoolctl looks for them in a callback of C's. A Ctrl-C that strikes there is printed
    and lost; and it strikes in the main thread alone, so that another one looks.
    """
    found: list[ThreadpoolController] = []

    def look() -> None:
        # scikit-learn's K-means has one of its own, which it would look for in the main thread.
        theirs = getattr(sklearn.utils.parallel, "_get_threadpool_controller", None)
        if theirs is not None:
            theirs()
        found.append(ThreadpoolController())

    other = Helper()
    other.give(look)
    other.wait()
    if other.errors:
        raise other.errors.pop()
    return found[0]


@dataclass(frozen=True, eq=False)
class _Pool:
    """The number of threads of one library."""

    get: Callable[[], int | None]
    set: Callable[[int], Any]


class _Pools(NamedTuple):
    of_process: tuple[_Pool, ...]
    """One number for all threads: OpenBLAS with threads of its own."""
    of_thread: tuple[_Pool, ...]
    """A number for each calling thread: OpenMP, MKL, and OpenBLAS on OpenMP."""


@cache
def _pools() -> _Pools:
    of_process, of_thread = [], []
    for library in thread_controller().lib_controllers:
        shared = library.user_api == "blas" and library.internal_api != "mkl"
        if shared and getattr(library, "threading_layer", None) != "openmp":
            of_process.append(_pool(library, _OPENBLAS))
        else:
            of_thread.append(_pool(library, _OPENMP if library.user_api == "openmp" else []))
    return _Pools(tuple(of_process), tuple(of_thread))


_Names = list[tuple[str, str]]

_OPENMP: _Names = [("omp_get_max_threads", "omp_set_num_threads")]
_OPENBLAS: _Names = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64"))
]
"""Names of the two functions, as they are found in builds of the libraries."""


def _pool(library: Any, names: _Names) -> _Pool:
    # NOTE: PyDLL keeps the interpreter's lock. To give it away for a call of nanoseconds may cost
    # milliseconds until it comes back, and lets a fork fall into the call.
    functions = ctypes.PyDLL(library.filepath)
    for get, set_ in names:
        if hasattr(functions, get) and hasattr(functions, set_):
            return _Pool(getattr(functions, get), getattr(functions, set_))
    return _Pool(library.get_num_threads, library.set_num_threads)


class _Scope:
    """Pools that have one number for all who hold them: those of the process, or of a thread.

    Ctrl-C may strike at any step: the steps are in such an order that a later ``release`` puts
    back what was there before. A number above one that is met while somebody holds was set by
    others, after ours: it is the one to be put back.
    """

    def __init__(self, pools: Callable[[], tuple[_Pool, ...]]) -> None:
        self._pools = pools
        self.holders: set[_Hold] = set()
        self._before: dict[_Pool, int] = {}

    def hold(self, holder: _Hold) -> None:
        self.holders.add(holder)
        for pool in self._pools():
            threads = pool.get()
            if threads is not None and threads > 1:
                self._before[pool] = threads
                pool.set(1)

    def release(self, holder: _Hold) -> None:
        self.holders.discard(holder)
        self.restore()

    def restore(self) -> None:
        if self.holders:
            return
        for pool, threads in tuple(self._before.items()):
            if pool.get() == 1:
                pool.set(threads)
            self._before.pop(pool, None)


_LOCK = threading.RLock()
"""Held for every change of a number. Reentrant: a holder may be collected, and let go, inside."""

_PROCESS = _Scope(lambda: _pools().of_process)


class _Local(threading.local):
    def __init__(self) -> None:
        self.scope = _Scope(lambda: _pools().of_thread)


_LOCAL = _Local()


class _Hold:
    """Holds the pools of the process and of a thread, from ``hold`` to ``release``.

    It lets go as well when its owner is no more: Ctrl-C may have struck before the body of
    ``with``, or after it. NOTE: no ``__del__`` does that, for it would run after every fit, and a
    Ctrl-C that strikes there is printed and lost; this is called where nobody has let go.
    """

    def __init__(self) -> None:
        self.thread = 0
        self._scope: _Scope | None = None
        self._owner: ref[OneBlasThread] | None = None

    def hold(self, owner: OneBlasThread) -> None:
        self._owner = ref(owner, lambda _: self.release())
        self.thread = threading.get_ident()
        self._scope = _LOCAL.scope
        with _LOCK:
            _PROCESS.hold(self)
            self._scope.hold(self)

    def release(self) -> None:
        if self._scope is None:
            return
        with _LOCK:
            _PROCESS.release(self)
            self._scope.holders.discard(self)
            if self._scope is _LOCAL.scope:  # else its own thread puts it back, with its next hold
                self._scope.restore()
            self._scope = None
        self._owner = None


class OneBlasThread:
    """Holds BLAS and OpenMP to one thread each, for the thread that enters it.

    Of fits that run side by side and overlap in any order, the first to come sets the number and
    the last to go puts it back.
    """

    def __init__(self) -> None:
        self._held = _Hold()

    def __enter__(self) -> OneBlasThread:
        self._held.hold(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._held.release()


def _after_fork_in_parent() -> None:
    """Start the threads of BLAS again, which OpenBLAS stops before a fork.

    NOTE: whoever sets a number first starts them, under a lock of OpenBLAS's. scikit-learn's
    K-means does in every fit, and a child that is forked just then finds that lock taken. Started
    here, they run before another thread asks (``python -m soak.threads``).
    """
    if _PROCESS.holders:
        for pool in _pools().of_process:
            if (threads := pool.get()) is not None:
                pool.set(threads)
    _LOCK.release()


def _after_fork_in_child() -> None:
    """Let go for the threads that stayed with the parent; the forking thread holds on."""
    here = threading.get_ident()
    _PROCESS.holders = {holder for holder in _PROCESS.holders if holder.thread == here}
    _PROCESS.restore()
    _LOCK.release()
    # NOTE: scikit-learn's K-means takes this lock of threadpoolctl's, which knows nothing of forks.
    shared = getattr(threadpoolctl.OpenBLASController, "_SHARED_STATE", None)
    if shared is not None:
        shared.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    # The lock is taken, so that no other thread is inside when the child begins.
    os.register_at_fork(
        before=_LOCK.acquire,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
