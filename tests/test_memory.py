"""Memory is a promise: n × width numbers and a few tiles."""

import json
import subprocess
import sys

import numpy as np
import pytest

from sketchmeans import KernelKMeans
from sketchmeans.estimators.memory import parse_bytes

FIT = """
import json, sys
import numpy as np
from sketchmeans import KernelKMeans
options = json.loads(sys.argv[2])
dtype = options.pop("dtype")
few = np.random.default_rng(0).normal(size=(200, 3)).astype(dtype)
KernelKMeans(2, kernel="rbf", n_init=2).fit(few)
n = int(sys.argv[1])
X = np.empty((n, 20), dtype)
random = np.random.default_rng(0)
for start in range(0, n, 1000):
    X[start:start + 1000] = random.normal(size=(len(X[start:start + 1000]), 20))
def peak():  # ru_maxrss would begin at the peak of the process that started this one
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines["VmHWM"].split()[0])
before = peak()
options = {"kernel": "rbf", "rank": 12, "oversampling": 12, "random_state": 0} | options
model = KernelKMeans(8, max_iter=20, **options).fit(X)
print(peak() - before, model.stats_["planned_bytes"])
"""


def measure(n, **options):
    out = subprocess.run(
        [sys.executable, "-c", FIT, str(n), json.dumps(options)],
        capture_output=True,
        text=True,
        check=True,
    )
    peak, planned = map(int, out.stdout.split())
    return peak, planned


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float32"},
        {"dtype": "float64"},
        {"dtype": "float64", "n_passes": 2, "n_refine": 1},
        {"dtype": "float64", "kernel": "polynomial", "degree": 2},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_the_peak_of_a_fit_keeps_to_the_promise_and_to_its_plan(options):
    n = 30_000
    peak, planned = measure(n, **options)
    assert peak < 3 * n * 24 * 8 + 150e6
    assert peak < planned
    # An n × n matrix would need 7.2 GB; 3 · n · width numbers are 17 MB.
    assert planned < 3 * n * 24 * 8 + 60e6


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
def test_a_limit_that_can_be_kept_is_kept_by_fewer_threads():
    n, limit = 30_000, 50_000_000
    peak, planned = measure(n, dtype="float64", n_jobs=8)
    assert peak < planned
    assert planned > limit
    peak, planned = measure(n, dtype="float64", n_jobs=8, memory_limit=limit)
    assert planned <= limit
    assert peak <= limit


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_samples_keep_to_their_plan_and_to_a_limit(dtype):
    """K-means copies a part of the embedding only."""
    n = 150_000
    options = {"dtype": dtype, "kernel": "polynomial", "degree": 2, "n_init": 2}
    peak, planned = measure(n, **options, n_jobs=4)
    assert peak < planned < n * (2 * 24 + 12) * 8 + 110e6
    limit = planned - 30_000_000
    peak, planned = measure(n, **options, n_jobs=4, memory_limit=limit)
    assert peak < planned <= limit


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
