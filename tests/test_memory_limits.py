"""A memory limit is kept by every method and option, or refused before the start."""

import json
import os
import subprocess
import sys
from itertools import cycle

import numpy as np
import pytest

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.estimators.full import INITS
from sketchmeans.estimators.memory import OVERHEAD
from sketchmeans.lowrank import METHODS
from sketchmeans.operators.base import THREAD_BYTES

MEASURE = r"""
import ctypes, json, re, sys, warnings
import numpy as np
from scipy import sparse
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.estimators.memory import parse_bytes
from sketchmeans.graphs import normalized

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
N = 12_000  # with a polynomial kernel of degree 2, a pass costs next to nothing
X = random.normal(size=(N, 14))
X[:5000] += 2
lone = sparse.csr_matrix(X[:4000])
def rbf(X):
    squares = np.square(X).sum(axis=1)
    return np.exp(-0.05 * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
DATA = {
    "many": lambda: X,
    "narrow": lambda: X[:, :7].copy(),
    "float32": lambda: X.astype(np.float32),
    "whole numbers": lambda: (10 * X).astype(int),
    "thousands": lambda: X[:5000],
    "few": lambda: X[:1200],
    "sparse": lambda: sparse.hstack([lone, sparse.csr_matrix((4000, 9986))], format="csr"),
    "precomputed": lambda: rbf(X[:2500]),
    "graph": lambda: graph(N),
    "communities": lambda: communities(N),
}
def graph(n):  # a band, and one that knows everybody
    A = sparse.diags_array([1.0] * 8, offsets=range(1, 9), shape=(n, n), format="lil")
    A[0, 1:] = 1
    return normalized(sparse.csr_matrix(A + A.T)).kernel
def communities(n):  # of a thousand each
    friends = np.arange(n)[:, None] // 1000 * 1000 + random.integers(0, 1000, (n, 10))
    A = sparse.csr_matrix((np.ones(10 * n), friends.ravel(), 10 * np.arange(n + 1)), (n, n))
    return normalized(A + A.T).kernel

def status(name):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines[name].split()[0])

def measure(make, X, weights):
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is that of now
    before = status("VmRSS")
    model = make().fit(X, sample_weight=weights)
    return status("VmHWM") - before, model.stats_.get("planned_bytes", 0)

KernelKMeans(2, kernel="rbf", n_init=2, n_refine=1).fit(X[:200])
KernelKMeans(2).fit(X[:200])
FullKernelKMeans(2, init="sketch", n_init=1).fit(X[:200])
for case in json.load(sys.stdin):
    options = dict(case)
    data = DATA[options.pop("data", "many")]()
    weights = None
    if options.pop("weighted", False):
        weights = np.random.default_rng(1).integers(0, 3, data.shape[0])
    estimator = KernelKMeans if "init" not in options else FullKernelKMeans
    if estimator is KernelKMeans:
        # The second iteration takes what the first does, and so would any other.
        options = {"rank": 50, "max_iter": 2} | options
        if options.get("kernel") == "neighbors":
            options["n_refine"] = 2
    options = {"kernel": "polynomial"} | options
    if options["kernel"] == "polynomial":
        options["degree"] = 2
    options |= {"n_init": 2, "n_jobs": 2, "random_state": 0}
    make = lambda limit: lambda: estimator(options.get("k", 8), memory_limit=limit,
        **{name: value for name, value in options.items() if name != "k"})
    try:
        make(1)().fit(data, sample_weight=weights)
    except MemoryError as error:
        least = parse_bytes(re.search(r"need ([0-9.e+]+ \w+)", str(error))[1])
    else:
        raise AssertionError(f"a limit of one byte is not refused: {case}")
    limit = int(1.006 * least)  # the message rounds
    peak, planned = measure(make(limit), data, weights)
    print(json.dumps([peak, planned, limit]), flush=True)
"""


def cases(method):
    """Every sketch and truncation that a method reads, and kinds of data and kernels.

    Of their product, from which ``make soak PART=memory`` draws, these have every one once or more.
    """
    tiles = {"data": "thousands", "kernel": "rbf"}
    if method == "full":
        for init in INITS:
            yield {"init": init, "k": 20, "max_iter": 2, "data": "narrow"}
        yield {"init": "sketch", "k": 20, "max_iter": 2, "data": "narrow", "weighted": True}
        yield {"init": "sketch", "k": 20, "max_iter": 2, "data": "few"}
        yield {"init": "sketch", "k": 40, "max_iter": 2, **tiles}
        for init in INITS:
            yield {"init": init, "max_iter": 2, "data": "graph", "kernel": "precomputed"}
        return
    if method == "neighbors":
        for data in ("float32", "sparse", "few"):
            yield {"kernel": "neighbors", "data": data, "rank": 8}
        yield {"kernel": "neighbors", "data": "many", "weighted": True, "rank": 20, "k": 20}
        wide = {"n_anchors": 400, "n_neighbors": 10, "n_graphs": 6, "metric": "cosine"}
        yield {"kernel": "neighbors", "data": "many", "rank": 8, "kernel_params": wide}
        many = {"n_anchors": 300, "n_neighbors": 250}
        yield {"kernel": "neighbors", "data": "thousands", "rank": 8, "kernel_params": many}
        return
    reads = METHODS[method].reads
    truncations = ("late", "early") if "truncation" in reads else ("late",)
    for sketch, truncation in zip(
        METHODS[method].sketches or ("auto",), cycle(truncations), strict=False
    ):
        case = {"method": method, "truncation": truncation, "sketch": sketch}
        # The norms of columns take a pass over K, feature map or not.
        yield {**case, "rank": 10, **tiles} if sketch == "column-norm" else case
    if method == "exact":
        yield {"method": method, "data": "few", "rank": 900, "kernel": "rbf"}
        yield {"method": method, "data": "few", "weighted": True}
        yield {"method": method, "rank": 10, **tiles}
        graph = {"data": "communities", "kernel": "precomputed", "weighted": True}
        yield {"method": method, "rank": 20, **graph}
        return
    graph = {"data": "graph", "kernel": "precomputed", "weighted": True, "rank": 20}
    kinds = [
        {"method": method, "data": "float32", "n_refine": 2},
        {"method": method, "data": "whole numbers", "weighted": True, "rank": 20},
        {"method": method, "data": "sparse", "kernel": "rbf"},
        {"method": method, "data": "precomputed", "kernel": "precomputed"},
        {"method": method, **graph},
    ]
    # The two Cholesky methods need the same but for a batch of columns: they share the kinds.
    yield from {"rpcholesky": kinds[::2], "greedy-cholesky": kinds[1::2]}.get(method, kinds)
    if method == "one-pass":
        yield {"method": method, "n_passes": 2, "weighted": True, "n_refine": 2, "k": 60}
        yield {"method": method, "n_passes": 2, "sketch": "gaussian", **tiles}
        yield {"method": method, "rank": 150, **tiles}
        yield {"method": method, "data": "graph", "kernel": "precomputed", "n_refine": 2}
    if method == "nystrom":
        yield {"method": method, "sketch": "kmeans", "data": "sparse", "kernel": "rbf"}
        yield {"method": method, "sketch": "leverage", "weighted": True, "rank": 100}


KINDS = [*METHODS, "full", "neighbors"]


@pytest.fixture(scope="module")
def measured():
    """Return peak, plan and limit of every case by its kind, all from one process."""
    asked = [case for kind in KINDS for case in cases(kind)]
    out = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input=json.dumps(asked),
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # scikit-learn's threads would only wait
        capture_output=True,
        text=True,
        check=False,
    )
    found = [json.loads(line) for line in out.stdout.splitlines()]
    assert len(found) == len(asked), out.stderr
    every = iter(found)
    return {kind: [next(every) for _ in cases(kind)] for kind in KINDS}


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
@pytest.mark.parametrize("method", KINDS)
def test_the_lowest_limit_that_is_not_refused_is_kept(method, measured):
    asked, found = list(cases(method)), measured[method]
    for case, (peak, planned, _) in zip(asked, found, strict=True):
        print(f"{peak / 1e6:6.1f} of {planned / 1e6:6.1f} MB: {case}")
    broken = [
        case
        for case, (peak, planned, limit) in zip(asked, found, strict=True)
        if not 0 < peak <= planned <= limit
    ]
    assert not broken


@pytest.mark.parametrize("method", ["rpcholesky", "greedy-cholesky"])
def test_a_share_of_the_trace_needs_no_room_for_more_columns_than_it_takes(method):
    """All that the search for a share might take is 2048 columns, 131 MB; it needs 20."""
    X = np.random.default_rng(0).normal(size=(8000, 3))
    options = {"rank": 0.9, "method": method, "gamma": 0.05, "random_state": 0, "n_jobs": 1}
    free = KernelEmbedding(**options).fit(X)
    assert free.width_ < 30
    assert free.stats_["planned_bytes"] < 50e6
    model = KernelEmbedding(memory_limit="60MB", **options).fit(X)
    np.testing.assert_array_equal(model.embedding_, free.embedding_)
    with pytest.raises(
        MemoryError,
        match=r"memory_limit='30MB' cannot be kept: rank=0.999 needs more than the \d+ columns "
        r"that it leaves room for; they hold .*% of the trace. Raise memory_limit, or lower rank",
    ):
        KernelEmbedding(memory_limit="30MB", **options | {"rank": 0.999, "gamma": 5.0}).fit(X)


def test_a_copy_of_the_data_counts_against_the_limit():
    X = np.random.default_rng(0).integers(0, 9, (3000, 500))
    planned = [
        KernelKMeans(3, n_jobs=1, random_state=0, kernel="rbf").fit(data).stats_["planned_bytes"]
        for data in (X.astype(float), X, X.tolist())
    ]
    assert planned[1] == planned[2] == planned[0] + X.size * 8


def test_exact_plans_for_the_matrix_that_it_forms_for_more_than_half_of_the_columns(monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.exact"], "DENSE_LIMIT", 50)
    X = np.random.default_rng(0).normal(size=(1200, 3))
    model = KernelEmbedding(rank=601, method="exact", n_jobs=1).fit(X)
    assert model.stats_["planned_bytes"] > 3 * 8 * 1200**2 + OVERHEAD + THREAD_BYTES
    with pytest.raises(MemoryError, match="memory_limit=55 MB cannot be kept: 1,200 samples"):
        KernelEmbedding(rank=601, method="exact", memory_limit="55MB").fit(X)
