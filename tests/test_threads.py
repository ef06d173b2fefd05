"""Any thread, any number of fits at once, any fork: the same bits, no hang, nothing kept."""

import faulthandler
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController, threadpool_limits

from sketchmeans import KernelKMeans
from sketchmeans.blas import OneBlasThread, thread_controller
from sketchmeans.engine import Crew
from sketchmeans.sketches import GaussianSketch

ROOT = Path(__file__).parents[1]
SECONDS = 60

AS_EVER = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
"""What `make test` sets is left out: threads of OpenMP wait as they do for anybody."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")

POOLS = ThreadpoolController()


def library_threads(kind=None):
    pools = POOLS if kind is None else POOLS.select(user_api=kind)
    return [pool["num_threads"] for pool in pools.info()]


def in_thread(work, *arguments):
    found = []
    thread = threading.Thread(target=lambda: found.append(work(*arguments)))
    thread.start()
    thread.join(SECONDS)
    return found[0]


def in_child(work, seconds=SECONDS):
    """Call ``work`` in a forked child; return whether it gave True, and in time."""
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(seconds, exit=True)
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Busy:
    """Another thread that does something over and over."""

    def __init__(self, work):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,))

    def _run(self, work):
        while not self._stop.is_set():
            work()

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def enter_and_leave():
    with Crew(1):
        pass


@pytest.fixture
def two_threads_each():
    with threadpool_limits(2):  # this thread is the one that threadpoolctl lets change OpenBLAS
        assert set(library_threads()) == {2}
        yield


@pytest.mark.usefixtures("two_threads_each")
def test_a_crew_holds_blas_and_openmp_in_whatever_thread_it_is():
    def run():
        seen = [library_threads("openmp")]
        start = threading.Barrier(2, timeout=10)

        def work(_):
            start.wait()  # both threads are at work
            seen.append(library_threads())

        with Crew(2) as crew:
            crew.each(work, range(2))
        return [*seen, library_threads("blas"), library_threads("openmp")]

    for found in (run(), in_thread(run)):
        openmp, one, other, blas_after, openmp_after = found
        assert set(one) == set(other) == {1}
        assert set(blas_after) == {2}
        assert openmp_after == openmp
    assert set(library_threads()) == {2}


@pytest.mark.usefixtures("two_threads_each")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_last_crew_to_leave_gives_blas_back(order):
    enter, leave = [], []
    for _ in range(3):
        enter.append(threading.Event())
        leave.append(threading.Event())
    inside, outside = threading.Semaphore(0), threading.Semaphore(0)

    def run(index):
        enter[index].wait(SECONDS)
        with Crew(1):
            inside.release()
            leave[index].wait(SECONDS)
        outside.release()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for event in enter:
        event.set()
        assert inside.acquire(timeout=SECONDS)
        assert set(library_threads("blas")) == {1}
    for index in order:
        assert set(library_threads("blas")) == {1}
        leave[index].set()
        assert outside.acquire(timeout=SECONDS)
    for thread in threads:
        thread.join()
    assert set(library_threads("blas")) == {2}


@pytest.mark.usefixtures("two_threads_each")
def test_a_number_that_others_set_during_a_fit_is_the_one_given_back():
    with Crew(1):
        threadpool_limits(3, user_api="blas")
        with Crew(1):
            assert set(library_threads("blas")) == {1}
        assert set(library_threads("blas")) == {1}
    assert set(library_threads("blas")) == {3}
    with Crew(1):
        threadpool_limits(2, user_api="blas")
    assert set(library_threads("blas")) == {2}


@pytest.mark.usefixtures("two_threads_each")
def test_a_fit_in_another_thread_has_the_bits_of_the_main_one():
    X = np.random.default_rng(0).normal(size=(1500, 30))

    def fit():
        return KernelKMeans(5, n_init=2, random_state=0, kernel="rbf").fit(X).embedding_.tobytes()

    assert in_thread(fit) == fit()


def test_fits_side_by_side_and_forks_during_fits_end_with_the_same_bits():
    count = ["--fits", "17", "--forks", "17"]  # none where the platform has no fork
    command = [sys.executable, "-m", "soak.threads", "--deadline", "20", *count]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=AS_EVER,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


FITS = f"""
import faulthandler, os, sys
sys.path.insert(0, {str(ROOT)!r})
from soak.threads import make_jobs
jobs = make_jobs()
found = {{name: job() for name, job in jobs.items()}}
"""

CHILD = f"""
print(found, flush=True)
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later({SECONDS}, exit=True)
    os._exit({{name: job() for name, job in jobs.items()}} != found)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def python(code, openmp_threads):
    environment = {**AS_EVER, "OMP_NUM_THREADS": openmp_threads}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def with_two():
    """Return what fits find with two threads of OpenMP; and where there is fork, in a child too."""
    return python(FITS + (CHILD if hasattr(os, "fork") else "print(found)"), "2")


def test_no_method_or_sketch_depends_on_the_threads_of_openmp(with_two):
    assert python(FITS + "print(found)", "1") == with_two


@needs_fork
def test_fits_in_a_child_that_is_forked_after_fits_do_not_wait_for_openmp(with_two):
    assert with_two.count("\n") == 1  # the parent's; the child has ended with the same bits


@needs_fork
def test_a_child_that_is_forked_while_another_thread_enters_and_leaves_crews_can_do_so_too():
    before = library_threads("blas")

    def work():
        enter_and_leave()
        return library_threads("blas") == before

    with Busy(enter_and_leave):
        assert all(in_child(work, 10) for _ in range(50))


@needs_fork
@pytest.mark.usefixtures("two_threads_each")
def test_a_child_holds_on_only_if_the_forking_thread_does():
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with Crew(1):
            inside.set()
            leave.wait(SECONDS)

    other = threading.Thread(target=hold)
    other.start()
    inside.wait(SECONDS)
    try:
        assert set(library_threads("blas")) == {1}
        assert in_child(lambda: set(library_threads("blas")) == {2})
        crew = Crew(1)

        def leave_it():
            held = set(library_threads()) == {1}
            crew.__exit__(None, None, None)
            return held and set(library_threads()) == {2}

        with crew:
            assert in_child(leave_it)
            assert set(library_threads()) == {1}
    finally:
        leave.set()
        other.join()
    assert set(library_threads("blas")) == {2}


@needs_fork
def test_a_child_that_is_forked_while_another_thread_draws_a_sketch_can_draw_one():
    def draw():
        return GaussianSketch(100_000, 5, seed=0).matrix is not None

    with Busy(draw):
        assert all(in_child(draw, 10) for _ in range(10))


@needs_fork
def test_a_child_that_leaves_a_task_by_an_error_waits_for_no_thread_of_the_parent():
    parents = []
    go_on = threading.Event()

    def work(_):
        if threading.current_thread() is not threading.main_thread():
            go_on.wait(SECONDS)
            return
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(10, exit=True)
            raise ZeroDivisionError
        parents.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        go_on.set()

    home = os.getpid()
    try:
        with Crew(2) as crew:
            crew.each(work, range(2))
    except ZeroDivisionError:
        enter_and_leave()
        with Crew(2) as crew:
            crew.each(lambda _: None, range(4))
    finally:
        if os.getpid() != home:
            os._exit(7)
    assert set(parents) == {7}  # the calling thread may have taken both tasks


@needs_fork
def test_a_lock_of_threadpoolctl_that_another_thread_held_does_not_stop_a_child():
    state = getattr(threadpoolctl.OpenBLASController, "_SHARED_STATE", None)
    if state is None:
        pytest.skip("this threadpoolctl has no lock")
    X = np.random.default_rng(0).normal(size=(50, 2))

    def cluster():
        with Crew(1):  # as in a fit: the threads of OpenMP that other tests left do not come along
            return len(KMeans(2, random_state=0).fit(X).labels_) == 50

    with state.lock:
        assert in_child(cluster, 10)


def test_ctrl_c_is_not_lost_while_libraries_are_looked_for(monkeypatch):
    """threadpoolctl looks in a callback of C's, which prints what is raised in it and goes on."""
    real, struck = threadpoolctl._realpath, []

    def strikes(path):
        if not struck:
            struck.append(path)
            signal.raise_signal(signal.SIGINT)
        return real(path)

    monkeypatch.setattr(threadpoolctl, "_realpath", strikes)
    if (known := getattr(threadpoolctl, "_CDLL_CACHE", None)) is not None:
        monkeypatch.setattr(known, "_controller_cache", {})  # else it need not look
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ``nohup`` has it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            thread_controller.__wrapped__()
    finally:
        signal.signal(signal.SIGINT, before)
    assert struck


def test_a_hold_that_nobody_ends_is_let_go_when_it_is_collected():
    """Ctrl-C may strike between the hold and the body of ``with``."""
    before = [library["num_threads"] for library in thread_controller().info()]
    held = OneBlasThread()
    held.__enter__()
    assert {library["num_threads"] for library in thread_controller().info()} == {1}
    del held
    assert [library["num_threads"] for library in thread_controller().info()] == before
