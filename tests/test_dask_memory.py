"""Workers do not hold the summands of all spans: sums are taken while others are still made."""

import weakref

import numpy as np
from distributed import Client

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
