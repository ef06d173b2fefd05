"""Ctrl-C at every step of what holds libraries and threads: nothing stays held, none is lost."""

import gc
import sys
import threading
import time

import numpy as np
import pytest

from sketchmeans import blas
from sketchmeans.blas import OneBlasThread, thread_controller
from sketchmeans.disk.ahead import Ahead
from sketchmeans.engine import threads
from sketchmeans.engine.threads import Crew
from sketchmeans.helper import Helper
from struck import strikes
from test_threads import library_threads

pytestmark = pytest.mark.usefixtures("untraced")

OURS = ("sketchmeans/blas.py", "sketchmeans/helper.py", "engine/threads.py", "disk/ahead.py")
STANDARD = ("/threading.py", "/queue.py", "concurrent/futures/thread.py")
"""Code of the standard library that ours runs in the thread that is struck."""


@pytest.fixture
def lost(monkeypatch):
    """What was raised where Python prints and forgets it."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: found.append(repr(report.exc_value)))
    return found


def check_each(work, lost, at_least):
    """Check that an interrupt at any step is raised, and leaves nothing held when it arrives."""
    before = library_threads()
    steps = 0
    for where, raised in strikes(work, OURS + STANDARD):
        steps += 1
        assert raised is KeyboardInterrupt, where
        assert not blas._PROCESS.holders, where
        assert library_threads() == before, where
        assert not lost, where
        assert blas._LOCK.acquire(timeout=1), where
        blas._LOCK.release()
    assert steps >= at_least


def test_one_blas_thread(lost):
    def work():
        with OneBlasThread(), OneBlasThread():
            pass

    work()  # the libraries are looked for once
    check_each(work, lost, 60)


@pytest.mark.parametrize("new", [True, False])
def test_a_crew_whose_threads_are_new_or_wait(new, lost):
    def work():
        if new:
            threads._IDLE.clear()
        for _ in range(2):
            done = []
            with Crew(3) as crew:
                crew.each(done.append, range(6))
            assert sorted(done) == list(range(6))

    work()
    check_each(work, lost, 200)


def test_looking_for_libraries(lost):
    def work():
        thread_controller.cache_clear()
        assert thread_controller().lib_controllers

    check_each(work, lost, 10)


def test_reading_ahead_leaves_no_reader(lost):
    def readers():
        found = [thread for thread in threading.enumerate() if thread.name == "sketchmeans-read"]
        return [thread for thread in found if thread.is_alive()]  # has begun, and has not ended

    def work():
        with Crew(1) as crew, Ahead(np.ones, [3, 4, 5], 2, crew) as blocks:
            assert [len(block) for _, block in blocks if blocks.done() is None] == [3, 4, 5]

    work()
    check_each(work, lost, 60)
    deadline = time.monotonic() + 10
    while readers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not readers()


def test_a_helper_that_is_lost_lets_its_thread_end():
    helper = Helper()
    seen = []
    helper.give(lambda: seen.append(threading.current_thread()))
    helper.wait()
    (thread,) = seen
    assert thread.is_alive()
    del helper
    thread.join(10)
    assert not thread.is_alive()


def test_an_idle_helper_holds_on_to_nothing_of_its_last_task():
    class Large:
        pass

    def task(large=Large()):  # noqa: B008
        raise ValueError(large)

    helper = Helper()
    helper.give(task)
    del task
    helper.wait()
    assert [type(error) for error in helper.errors] == [ValueError]
    helper.give(int)
    helper.wait()
    gc.collect()
    assert not helper.errors
    assert not [found for found in gc.get_objects() if isinstance(found, Large)]
