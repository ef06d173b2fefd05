"""Memory is a promise: n × width numbers and a few tiles."""

import json
import subprocess
import sys

import numpy as np
import pytest

from sketchmeans import KernelKMeans
from sketchmeans.estimators.memory import parse_bytes

FITS = """
import ctypes, json, sys
import numpy as np
from sketchmeans import KernelKMeans
def status(name):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines[name].split()[0])
few = np.random.default_rng(0).normal(size=(200, 3))
KernelKMeans(2, kernel="rbf", n_init=2).fit(few)
for case in json.load(sys.stdin):
    n, dtype, less = case.pop("n"), case.pop("dtype"), case.pop("less", None)
    X = np.random.default_rng(0).normal(size=(n, 20)).astype(dtype)
    if less is not None:
        case["memory_limit"] = planned - less
    options = {"kernel": "rbf", "rank": 12, "oversampling": 12, "random_state": 0} | case
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is that of now
    before = status("VmRSS")
    model = KernelKMeans(8, max_iter=20, **options).fit(X)
    peak, planned = status("VmHWM") - before, model.stats_["planned_bytes"]
    print(json.dumps([peak, planned, case.get("memory_limit")]), flush=True)
"""
LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)


def measure(*cases):
    """Return peak, plan and limit of fits, one after the other in a process of their own."""
    out = subprocess.run(
        [sys.executable, "-c", FITS],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in out.stdout.splitlines()]


@LINUX
def test_the_peak_of_a_fit_keeps_to_the_promise_and_to_its_plan():
    n = 15_000
    cases = [
        {"n": n, "dtype": "float32"},
        {"n": n, "dtype": "float64"},
        {"n": n, "dtype": "float64", "n_passes": 2, "n_refine": 1},
        {"n": n, "dtype": "float64", "kernel": "polynomial", "degree": 2},
    ]
    for case, (peak, planned, _) in zip(cases, measure(*cases), strict=True):
        assert 0 < peak < 3 * n * 24 * 8 + 150e6, case
        assert peak < planned, case
        # An n × n matrix would need 1.8 GB; 3 · n · width numbers are 8.6 MB.
        assert planned < 3 * n * 24 * 8 + 60e6, case


@LINUX
def test_a_limit_that_can_be_kept_is_kept_by_fewer_threads():
    case = {"n": 20_000, "dtype": "float64", "n_jobs": 8}
    limit = 40_000_000
    (free, free_plan, _), (peak, planned, _) = measure(case, case | {"memory_limit": limit})
    assert free < free_plan
    assert peak <= planned <= limit < free_plan


@LINUX
def test_many_samples_keep_to_their_plan_and_to_a_limit():
    """K-means copies a part of the embedding only."""
    n = 100_000
    many = {"n": n, "kernel": "polynomial", "degree": 2, "n_init": 2, "n_jobs": 4}
    kinds = ({"dtype": "float32"}, {"dtype": "float64"}, {"dtype": "float64", "less": 30_000_000})
    cases = [many | kind for kind in kinds]
    for case, (peak, planned, limit) in zip(cases, measure(*cases), strict=True):
        print(case, peak, planned, limit)
        assert 0 < peak < planned < n * (2 * 24 + 12) * 8 + 110e6, case
        assert limit is None or planned <= limit, case


def test_a_limit_that_cannot_be_kept_is_refused_before_the_start():
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    with pytest.raises(
        MemoryError,
        match=r"memory_limit=10 MB cannot be kept: 20,000 samples with width=36 need .* MB at the "
        r"least \(sketch 5.92 MB.*Raise memory_limit, or lower rank",
    ):
        KernelKMeans(8, method="one-pass", memory_limit="10MB", kernel="rbf").fit(X)


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2e9), ("2GiB", 2**31), ("500 mb", 5e8), ("1e", None), (10, 10), ("1.5kB", 1500)],
)
def test_limits_are_read(text, size):
    if size is None:
        with pytest.raises(ValueError, match="is not understood"):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == size


@pytest.mark.parametrize("bad", ["much", "GB", "-2GB", 0, -1, [1], True, "1.2.3GB", float("nan")])
def test_limits_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="memory_limit="):
        KernelKMeans(2, memory_limit=bad, kernel="rbf").fit(np.eye(4))
