"""What client and workers hold: no summands of all spans, no more than the rows they have."""

import gc
import sys
import weakref
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from soak.clusters import opened

from sketchmeans.dask import KernelKMeans
from sketchmeans.dask.placed import DaskRows
from sketchmeans.rows import FAN, Part

SPANS = 100
alive = {"now": 0, "most": 0}


def fewer():
    alive["now"] -= 1


def counted(rows):
    summand = rows.sum(axis=0)
    alive["now"] += 1
    alive["most"] = max(alive.values())
    weakref.finalize(summand, fewer)
    return Part((rows[:, 0].copy(),), summand)


def test_a_worker_holds_the_summands_of_a_few_spans_alone():
    X = np.arange(2.0 * 10 * SPANS).reshape(-1, 2)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with Client(processes=False, **options) as client:
        chunks = client.map(np.array, np.split(X, SPANS), pure=False)
        rows = DaskRows(client, chunks, [10] * SPANS, 2, X.dtype)
        (first,), total = rows.run(counted, size=10)
    np.testing.assert_array_equal(total, X.sum(axis=0))
    np.testing.assert_array_equal(first, X[:, 0])
    assert FAN <= alive["most"] <= 4 * FAN < SPANS


CLIENT = 24_000_000
"""Bytes that a client takes beside n × rank numbers: the scheduler of the cluster is in it, too."""
WORKER = 20_000_000
"""Bytes of a worker beside its rows and squares: messages, and the span that it works on.

Of 41 MB in all, workers had 20 to 30 with landmarks in three fits; of 76, with neighbours 35 to 37.
"""
SQUARES = 12
"""Matrices of m × m numbers at once: those of a sum of eight, their sum, and what it is made of."""
FITS = {
    "neighbours": ({"kernel_params": {"n_anchors": 100}}, 400, 240),
    "landmarks": ({"kernel": "rbf", "n_landmarks": 200, "rank": 16}, 200, 0),
}
"""Options, m, and bytes of the features of a row; neighbours have four sets of anchors."""


@pytest.fixture(scope="module")
def client():
    with opened(2) as client:
        yield client


def peak():
    return memory("VmHWM")


def peak_is_now():
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(lines[name].split()[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_client_holds_n_times_rank_numbers_and_a_worker_its_blocks(client, name):
    n, p = 100_000, 10
    options, m, features = FITS[name]
    lazy = da.random.default_rng(0).normal(size=(n, p), chunks=(n // 8, -1)).astype("float32")
    model = KernelKMeans(16, n_init=1, max_iter=2, random_state=0, client=client, **options)
    model.fit(lazy[:5_000])  # what the first fit imports is held by all
    before, on_workers = peak_is_now(), client.run(peak_is_now)
    model.fit(lazy)
    assert peak() - before < n * model.rank_ * 8 + CLIENT
    row = 4 * p + features + 8 * model.rank_
    # Twice the blocks: rows that are cut anew at the bounds of spans lie there in both forms.
    most = 2 * (n // 2) * row + SQUARES * 8 * m**2 + WORKER
    for worker, now in client.run(peak).items():
        assert now - on_workers[worker] < most
