import _thread
import gc
import itertools
import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from sketchmeans import KernelKMeans
from sketchmeans.blas import count_threads
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import (
    Crew,
    NumpyTiles,
    RightHandSide,
    engine_name,
    tile_rows,
    tournament,
    tournament_pass,
)
from sketchmeans.engine.passes import thin_product
from sketchmeans.engine.run import Run
from sketchmeans.engine.schedule import Turns, native_tile_rows
from sketchmeans.kernels import Gaussian
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import RademacherSketch


def library_threads():
    return [pool["num_threads"] for pool in ThreadpoolController().info()]


def blas_threads():
    pools = ThreadpoolController().select(user_api="blas").info()
    return {pool["num_threads"] for pool in pools}


@pytest.mark.parametrize("n_blocks", [*range(1, 41), 99, 100, 199, 200])
def test_every_pair_of_blocks_meets_once_and_no_block_twice_in_a_round(n_blocks):
    met = []
    for pairs in tournament(n_blocks):
        players = [block for pair in pairs for block in set(pair)]
        assert len(players) == len(set(players))
        met += pairs
    assert sorted(met) == [(i, j) for i in range(n_blocks) for j in range(i, n_blocks)]


@pytest.mark.parametrize("n_blocks", [1, 2, 7, 12])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_every_block_plays_its_rounds_in_order_on_any_number_of_threads(n_blocks, n_threads):
    crew = Crew(n_threads)
    turns = Turns(n_blocks, crew)
    played = [[] for _ in range(n_blocks)]
    random = np.random.default_rng(n_blocks)
    tasks = [
        (round_, pair, random.uniform(0, 2e-3))
        for round_, pairs in enumerate(tournament(n_blocks))
        for pair in pairs
    ]

    def play(task):
        round_, pair, seconds = task
        with turns.taken(round_, pair):
            started = [len(played[block]) for block in pair]
            time.sleep(seconds)
            assert [len(played[block]) for block in pair] == started, "another tile came between"
            for block in set(pair):
                played[block].append(round_)

    with crew:
        crew.each(play, tasks)
    assert played == [list(range(n_blocks))] * n_blocks


def test_a_tile_that_fails_holds_up_nobody():
    def tile(rows, columns, out):
        if rows.start == 0:
            raise RuntimeError("the first rows")
        out[:] = 1  # what memory holds may be NaN, which is an error of its own
        return out

    side = RightHandSide(np.ones((1000, 1)), None, np.dtype(np.float64))
    with Crew(4) as crew, pytest.raises(RuntimeError, match="the first rows"):
        tournament_pass(NumpyTiles(tile, side), *side.shape, crew=crew)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 896, 897, 1792, 1793, 4480, 4481, 100_000])
def test_the_grid_covers_all_rows_and_depends_on_n_alone(n):
    blocks = row_blocks(n, tile_rows(n))
    assert blocks[0].start == 0
    assert all(one.stop == two.start for one, two in itertools.pairwise(blocks))
    assert blocks[-1].stop == n
    assert len(blocks) >= 8 or tile_rows(n) == 64


def test_tiles_are_as_large_as_eight_row_blocks_allow():
    sides = [tile_rows(n) for n in (896, 897, 1792, 1793, 4480, 4481)]
    assert sides == [64, 128, 128, 256, 256, 640]


def test_the_side_of_native_tiles_changes_at_its_borders_alone():
    borders = (1024, 5120, 15_360, 40_960)
    sides = [native_tile_rows(n + step) for n in borders for step in (-1, 0)]
    assert sides == [192, 320, 320, 640, 640, 960, 960, 1280]
    assert native_tile_rows(1) == 192
    assert native_tile_rows(10**7) == 1280


@pytest.mark.parametrize("n", [1, 2, 64, 65, 200, 1000])
@pytest.mark.parametrize("width", [1, 5])
def test_a_pass_gives_the_product_the_row_sums_and_the_sum_of_squares(n, width):
    random = np.random.default_rng(n)
    K = random.normal(size=(n, n))
    K = K + K.T
    Omega = random.normal(size=(n, width))
    side = RightHandSide(Omega, None, np.dtype(np.float64))
    with Crew(2) as crew:
        result = tournament_pass(
            NumpyTiles(lambda rows, columns, out: K[rows, columns], side), *side.shape, crew=crew
        )
    np.testing.assert_allclose(result.W, K @ Omega, atol=1e-11 * n)
    np.testing.assert_allclose(result.row_sums, K.sum(axis=1), atol=1e-11 * n)
    np.testing.assert_allclose(result.sum_of_squares, np.square(K).sum(), rtol=1e-12)
    np.testing.assert_array_equal(result.diagonal, np.diag(K))


@pytest.mark.parametrize("n", [1, 100, 500, 5000])
def test_a_pass_evaluates_half_of_the_kernel_and_half_a_tile_a_row(n):
    evaluated = 0
    lock = threading.Lock()

    def tile(rows, columns, out):
        nonlocal evaluated
        with lock:
            evaluated += out.size
        out[:] = 1
        return out

    side = RightHandSide(np.ones((n, 1)), None, np.dtype(np.float64))
    with Crew(2) as crew:
        result = tournament_pass(NumpyTiles(tile, side), *side.shape, crew=crew)
    assert evaluated == result.entries
    assert n * (n + 1) / 2 <= evaluated <= n * (n + 1) / 2 + n * tile_rows(n) / 2


@pytest.mark.parametrize("width", [1, 13, 25, 37, 61, 121])
@pytest.mark.parametrize("rows", [1, 100, 256, 512])
def test_slabs_do_not_change_the_product(rows, width):
    random = np.random.default_rng(0)
    T, right = random.normal(size=(rows, 512)), random.normal(size=(512, width))
    np.testing.assert_allclose(thin_product(T, right), T @ right, atol=1e-12)
    left = random.normal(size=(rows, width))
    np.testing.assert_allclose(thin_product(T.T, left), T.T @ left, atol=1e-12)


def test_float32_tiles_are_accumulated_in_float64():
    n, value = 20_001, 1 + 2.0**-12
    side = RightHandSide(np.ones((n, 1), np.int8), None, np.dtype(np.float32))

    def tile(rows, columns, out):
        out[:] = value
        return out

    with Crew(2) as crew:
        W = tournament_pass(NumpyTiles(tile, side), *side.shape, crew=crew).W
    # The sum over a tile fits the 24 bits of float32; that over all samples needs 27.
    assert float(np.float32(n * value)) != n * value
    np.testing.assert_array_equal(W, n * value)


def test_a_nan_is_found_and_located():
    K = np.ones((500, 500))
    K[400, 70] = np.nan
    side = RightHandSide(np.ones((500, 1)), None, np.dtype(np.float64))
    with (
        Crew(1) as crew,
        pytest.raises(ValueError, match=r"gave NaN among rows 64:128 and columns 384:448"),
    ):
        tournament_pass(
            NumpyTiles(lambda rows, columns, out: K.T[rows, columns], side), *side.shape, crew=crew
        )


def test_an_error_in_a_thread_stops_the_others_and_is_raised():
    done = []

    def work(task):
        if task == 3:
            raise RuntimeError("tile 3")
        time.sleep(0.001)
        done.append(task)

    with Crew(2) as crew, pytest.raises(RuntimeError, match="tile 3"):
        crew.each(work, range(10_000))
    assert len(done) < 100


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_is_answered_within_a_second(n_threads):
    X = np.random.default_rng(0).normal(size=(60_000, 20)).astype(np.float32)
    operator = DataOperator(X, Gaussian(0.02))
    pressed = []
    threads_before = set(threading.enumerate())

    def press():
        pressed.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(0.5, press)
    timer.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            operator.multiply(RademacherSketch(60_000, 12, 0), Run(n_threads))
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - pressed[0] < 1.0
    assert {t for t in threading.enumerate() if t is not timer} <= threads_before


@pytest.mark.usefixtures("untraced")
def test_ctrl_c_at_any_moment_stops_all_threads():
    def tile(rows, columns, out):
        out[:] = 1
        return out

    side = RightHandSide(np.ones((700, 1)), None, np.dtype(np.float64))

    def passes():
        while True:
            with Crew(3) as crew:
                W = tournament_pass(NumpyTiles(tile, side), *side.shape, crew=crew).W
            np.testing.assert_array_equal(W, 700)

    delays = np.random.default_rng(0).uniform(0, 4e-3, 200)
    threads_before = library_threads()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    try:
        for delay in delays:
            timer = threading.Timer(delay, _thread.interrupt_main)
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                timer.start()
                passes()
            timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    gc.collect()  # crews that were struck between the steps of ``with``
    assert library_threads() == threads_before


def test_threads_wait_for_the_next_crew():
    seen = set()
    start = threading.Barrier(3, timeout=10)

    def work(_):
        start.wait()  # all three are at work
        seen.add(threading.current_thread())

    for _ in range(20):
        with Crew(3) as crew:
            crew.each(work, range(3))
    assert len(seen) == 3
    assert threading.current_thread() in seen


def test_crews_side_by_side_have_threads_of_their_own():
    start = threading.Barrier(4, timeout=10)

    def run():
        with Crew(2) as crew:
            crew.each(lambda _: start.wait(), range(2))

    users = [threading.Thread(target=run) for _ in range(2)]
    for user in users:
        user.start()
    for user in users:
        user.join(20)
    assert not start.broken


def test_nobody_waits_for_the_turn_of_a_tile_that_was_interrupted_before_it_began():
    begun = threading.Event()
    waits = []

    def tasks():
        yield 0, (0, 1)
        begun.wait(10)  # the other thread has the first tile, and will never play it
        yield 1, (0, 0)

    crew = Crew(2)
    turns = Turns(2, crew)

    def compute(task):
        if task[0] == 0:
            begun.set()
            time.sleep(0.2)
            raise KeyboardInterrupt
        waits.append(task)
        with turns.taken(*task):
            raise AssertionError("it is not its turn")

    with pytest.raises(KeyboardInterrupt), crew:
        crew.each(compute, tasks())
    assert waits == [(1, (0, 0))]


def test_progress_runs_from_the_first_tile_to_the_last():
    operator = DataOperator(np.random.default_rng(0).normal(size=(700, 3)), Gaussian(1.0))
    seen = []
    operator.multiply(
        np.ones((700, 1)), Run(progress=lambda done, total: seen.append((done, total)))
    )
    tiles = {"native": 10, "numpy": 66}[engine_name()]  # sides of 192 and of 64 rows
    assert seen[-1] == (tiles, tiles)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_all_cores_are_used_outside_and_one_inside_a_joblib_worker():
    assert count_threads(None) == joblib.cpu_count()
    assert count_threads(3) == 3
    assert count_threads(-1) == joblib.cpu_count()
    for backend in ("threading", "loky"):
        inside = joblib.Parallel(n_jobs=2, backend=backend)(
            joblib.delayed(count_threads)(None) for _ in range(2)
        )
        assert inside == [1, 1], backend
        with joblib.parallel_config(backend=backend, n_jobs=2):
            inside = joblib.Parallel()(joblib.delayed(count_threads)(None) for _ in range(2))
        assert inside == [1, 1], backend


def test_the_number_of_jobs_that_joblib_is_told_is_kept():
    for n_jobs, threads in ((1, 1), (2, 2), (3, 3), (-1, joblib.cpu_count())):
        with joblib.parallel_config(n_jobs=n_jobs):
            assert count_threads(None) == threads
            assert count_threads(5) == 5
        with joblib.parallel_backend("threading", n_jobs=n_jobs):
            assert count_threads(None) == threads
    with joblib.parallel_config(backend="threading"):
        assert count_threads(None) == joblib.cpu_count()
    with joblib.parallel_config(n_jobs=0), pytest.raises(ValueError, match="n_jobs=0"):
        count_threads(None)


def test_estimators_keep_the_number_of_jobs_that_joblib_is_told():
    X = np.random.default_rng(0).normal(size=(400, 3))
    for n_jobs in (1, 3):
        with joblib.parallel_config(n_jobs=n_jobs):
            assert (
                KernelKMeans(3, random_state=0, kernel="rbf").fit(X).stats_["n_threads"] == n_jobs
            )


def test_blas_is_held_to_one_thread_and_released_again():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with Crew(2):
            assert blas_threads() == {1}
        assert blas_threads() == before
        with Crew(2, blas=False):
            assert blas_threads() == before


def test_blas_is_released_by_a_crew_that_never_came_to_its_end():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        crew = Crew(1)
        crew.__enter__()  # Ctrl-C may strike before the body of ``with``
        assert blas_threads() == {1}
        del crew
        assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_fork_after_a_pass_can_make_a_pass():
    X = np.random.default_rng(0).normal(size=(500, 3))
    operator = DataOperator(X, Gaussian(1.0))
    expected = operator.multiply(np.ones((500, 1)), Run(2)).W
    child = os.fork()
    if child == 0:
        same = np.array_equal(operator.multiply(np.ones((500, 1)), Run(2)).W, expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fits_side_by_side_leave_blas_and_warnings_as_they_were():
    import warnings

    X = np.random.default_rng(0).normal(size=(400, 3))
    with threadpool_limits(2, user_api="blas"):
        filters = list(warnings.filters)
        joblib.Parallel(n_jobs=3, backend="threading")(
            joblib.delayed(KernelKMeans(3, random_state=seed, kernel="rbf").fit)(X)
            for seed in range(6)
        )
        assert blas_threads() == {2}
        assert list(warnings.filters) == filters


@pytest.mark.skipif(
    "SKETCHMEANS_REQUIRE_NATIVE" not in os.environ, reason="no native build was required"
)
def test_a_native_build_that_was_required_is_there(monkeypatch):
    monkeypatch.delenv("SKETCHMEANS_ENGINE", raising=False)
    assert engine_name() == "native"
