"""Fits side by side in threads, and forks during fits: the same bits, no hang, BLAS as it was.

    python -m soak.threads --fits 60 --forks 60

Every kind of fit is run once in the main thread. Then ``--fits`` of them run at once, each in a
thread of its own, and ``--forks`` children are forked while other threads fit; each child makes a
fit of its own. All must give the bits of the main thread, every child by its deadline, and
afterwards BLAS and OpenMP must have the threads that they had before. Exits with 1 if not.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_info

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.lowrank import METHODS
from soak.running import Cases, Check

SAMPLES = 600
BUSY_THREADS = 3
AT_ONCE, FORKS = 60, 20
WRONG_BITS, WRONG_THREADS = 3, 4

Jobs = dict[str, Callable[[], str]]


def hash_of(model: object) -> str:
    """Return a hash of all that a fit has found."""
    found = hashlib.sha256()
    for name in ("labels_", "embedding_", "cluster_centers_", "inertia_"):
        if hasattr(model, name):
            found.update(np.ascontiguousarray(getattr(model, name)).tobytes())
    return found.hexdigest()


def make_jobs() -> Jobs:
    """Return every method with every sketch, and the other estimators, each by its name."""
    X = np.random.default_rng(0).normal(size=(SAMPLES, 40))
    X[: SAMPLES // 3] += 1
    thin = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    few_starts = {"kernel": "rbf", "n_init": 2, "random_state": 0}
    models = {
        f"{method} {sketch}": (KernelKMeans(5, method=method, sketch=sketch, **few_starts), X)
        for method, known in METHODS.items()
        for sketch in known.sketches or ["auto"]
    }
    models |= {
        "refined": (KernelKMeans(5, n_passes=2, n_refine=1, **few_starts), X),
        "sparse laplacian": (KernelKMeans(5, **few_starts | {"kernel": "laplacian"}), thin),
        "embedding": (KernelEmbedding(8, random_state=0), X),
        "full sketch": (FullKernelKMeans(5, init="sketch", **few_starts), X),
        "full k-means++": (FullKernelKMeans(5, **few_starts), X),
    }
    return {name: _job(model, data) for name, (model, data) in models.items()}


def _job(model: object, data: object) -> Callable[[], str]:
    return lambda: hash_of(clone(model).fit(data))


def library_threads() -> list[int]:
    """Return the threads that each library has."""
    return [library["num_threads"] for library in threadpool_info()]


def side_by_side(jobs: Jobs, wanted: dict[str, str], count: int) -> list[str]:
    """Run ``count`` fits, each in a thread of its own; return what went wrong."""
    wrong: list[str] = []
    start = threading.Barrier(count)

    def run(name: str) -> None:
        start.wait()
        try:
            if jobs[name]() != wanted[name]:
                wrong.append(f"in a thread: {name} has other bits")
        except Exception as error:
            wrong.append(f"in a thread: {name} raised {error!r}")

    names = list(jobs)
    threads = [threading.Thread(target=run, args=(names[i % len(names)],)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def forks(
    jobs: Jobs, wanted: dict[str, str], count: int, deadline: float, seed: int = 0
) -> list[str]:
    """Fork ``count`` children while other threads fit; return what went wrong."""
    wrong: list[str] = []
    stop = threading.Event()
    before = library_threads()

    def keep_busy(names: list[str]) -> None:
        while not stop.is_set():
            for name in names:
                if jobs[name]() != wanted[name]:
                    wrong.append(f"beside forks: {name} has other bits")

    names = list(jobs)
    busy = [
        threading.Thread(target=keep_busy, args=(names[i::BUSY_THREADS],))
        for i in range(BUSY_THREADS)
    ]
    for thread in busy:
        thread.start()
    pauses = np.random.default_rng(seed).uniform(0, 0.02, count)
    for index, name in enumerate(names[i % len(names)] for i in range(count)):
        time.sleep(pauses[index])
        child = os.fork()
        if child == 0:
            _fit_in_child(jobs[name], wanted[name], before, deadline)
        code = _ended(child, 2 * deadline)
        reasons = {0: "", WRONG_BITS: "has other bits", WRONG_THREADS: "found BLAS held"}
        if code:
            wrong.append(f"in child {index}: {name} {reasons.get(code, f'ended with {code}')}")
    stop.set()
    for thread in busy:
        thread.join()
    return wrong


def _fit_in_child(job: Callable[[], str], wanted: str, before: list[int], deadline: float) -> None:
    try:
        # An alarm, which needs no thread, says where it hangs and ends it.
        # NOTE: where the parent has called faulthandler.dump_traceback_later, as soak.running does,
        # to call it again in a child waits for ever for a thread that the child does not have.
        faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
        signal.setitimer(signal.ITIMER_REAL, deadline)
        if library_threads() != before:
            os._exit(WRONG_THREADS)
        os._exit(0 if job() == wanted else WRONG_BITS)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)


def _ended(child: int, seconds: float) -> int:
    """Wait for a child and return its exit code; one that does not end is killed."""
    for _ in _until(seconds):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _until(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.002)


def _soaked(count: int, each: int, run: Callable[[Jobs, dict[str, str], int], list[str]]) -> Cases:
    """Run so many fits, some at a time, and look at the libraries after each lot."""
    jobs = make_jobs()
    before = library_threads()
    wanted = {name: job() for name, job in jobs.items()}
    for start in range(0, count, each):
        lot = min(each, count - start)
        wrong = run(jobs, wanted, lot)
        if (after := library_threads()) != before:
            wrong.append(f"libraries had {before} threads before, and {after} after")
        yield from [("", wrong), *[("", [])] * (lot - 1)]


def soaked_threads(seed: int, count: int) -> Cases:
    """Run fits side by side, many at a time; the order of threads is chance enough."""
    yield from _soaked(count, AT_ONCE, side_by_side)


def soaked_forks(seed: int, count: int) -> Cases:
    """Fork children during fits, some before the fits begin anew."""
    yield from _soaked(count, FORKS, lambda *given: forks(*given, deadline=60.0, seed=seed))


CHECKS = {
    "fits side by side": Check(600, soaked_threads, lot=AT_ONCE),
    "forks during fits": Check(400, soaked_forks, lot=FORKS),
}
if not hasattr(os, "fork"):
    del CHECKS["forks during fits"]


def main() -> int:
    """Run both, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fits", type=int, default=60, help="fits side by side (default: 60)")
    parser.add_argument("--forks", type=int, default=60, help="forks during fits (default: 60)")
    parser.add_argument(
        "--deadline", type=float, default=60.0, help="seconds for a child's fit (default: 60)"
    )
    given = parser.parse_args()
    if not hasattr(os, "fork"):
        given.forks = 0
    jobs = make_jobs()
    before = library_threads()
    start = time.perf_counter()
    wanted = {name: job() for name, job in jobs.items()}
    one = time.perf_counter()
    wrong = side_by_side(jobs, wanted, given.fits) if given.fits else []
    two = time.perf_counter()
    wrong += forks(jobs, wanted, given.forks, given.deadline) if given.forks else []
    three = time.perf_counter()
    if (after := library_threads()) != before:
        wrong.append(f"libraries had {before} threads before, and {after} after")
    print(f"{len(jobs)} kinds of fits in the main thread: {one - start:.1f} s")
    print(f"{given.fits} fits side by side in threads: {two - one:.1f} s")
    print(f"{given.forks} forks during fits: {three - two:.1f} s")
    print("\n".join(wrong) or "the same bits everywhere, no hang, all threads given back")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
