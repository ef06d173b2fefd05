"""A memory limit that cannot be kept is refused at once: before data are read, copied or fitted."""

import re
import time

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, certify
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.estimators.full import INITS
from sketchmeans.kernels import KERNELS
from sketchmeans.lowrank import METHODS

N = 200_000
DATA = {
    "numbers": lambda: np.full((N, 2), np.nan),  # whoever reads them refuses them
    "whole numbers": lambda: np.zeros((N, 2), int),
    "kernel matrix": lambda: np.broadcast_to(np.float32(np.nan), (N, N)),
    "graph": lambda: sparse.eye_array(N, format="csr"),
}


def estimators():
    """Every method with every sketch and kernel, and options that take memory of their own."""
    for method, known in METHODS.items():
        for sketch in ("auto", *known.sketches):
            yield "numbers", KernelKMeans(kernel="rbf", method=method, sketch=sketch)
        for kernel in KERNELS:
            yield "numbers", KernelKMeans(kernel=kernel, method=method)
        yield "numbers", KernelKMeans(kernel=np.minimum, method=method)
        yield "whole numbers", KernelKMeans(kernel="rbf", method=method, rank=0.9)
        yield "kernel matrix", KernelKMeans(kernel="precomputed", method=method)
        yield "graph", KernelKMeans(kernel="precomputed", method=method)
        yield "numbers", KernelEmbedding(rank=5, method=method)
    for level in (None, *LEVELS):
        yield "numbers", KernelKMeans(certificate=level)
        yield "numbers", KernelKMeans(kernel="rbf", certificate=level)
    yield "numbers", KernelKMeans(kernel_params={"n_graphs": 1, "n_anchors": 10})
    for init in INITS:
        yield "numbers", FullKernelKMeans(init=init)
        yield "kernel matrix", FullKernelKMeans(init=init, kernel="precomputed")


def test_no_method_kernel_or_option_looks_at_data_that_a_limit_leaves_no_room_for():
    made = {name: make() for name, make in DATA.items()}
    slowest = 0.0
    for name, model in estimators():
        start = time.process_time()
        with pytest.raises(MemoryError) as refused:
            model.set_params(memory_limit="1MB").fit(made[name])
        slowest = max(slowest, time.process_time() - start)
        said = str(refused.value)
        assert re.search(r"memory_limit=1 MB cannot be kept: .*need [\d.]+ [MGT]B", said), model
        assert "Raise memory_limit" in said
    assert slowest < 1.0


@pytest.mark.parametrize("kernel", ["linear", "rbf", "neighbors", "precomputed"])
@pytest.mark.parametrize("effort", LEVELS)
def test_certify_looks_at_no_data_that_a_limit_leaves_no_room_for(kernel, effort):
    X = DATA["kernel matrix" if kernel == "precomputed" else "numbers"]()
    with pytest.raises(MemoryError, match=r"memory_limit=1 MB cannot be kept: .* need [\d.]+ MB"):
        certify(X, np.arange(N) % 5, kernel=kernel, effort=effort, memory_limit="1MB")


def test_certify_counts_the_graph_that_it_decomposes():
    X, labels = np.random.default_rng(0).normal(size=(20_000, 6)), np.arange(20_000) % 4
    with pytest.raises(MemoryError, match=r"need 9\d.\d MB at the least"):  # measured: 64 to 70 MB
        certify(X, labels, kernel="neighbors", effort="free", memory_limit="60MB")


class Counting:
    """A kernel that counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self, A, B):
        self.asked += 1
        return A @ B.T


@pytest.mark.parametrize("level", ["blocks", "lifted", "triangles"])
def test_a_proof_that_a_limit_leaves_no_room_for_is_refused_before_the_fit(level):
    X, kernel = np.random.default_rng(0).normal(size=(8000, 3)), Counting()
    options = {"kernel": kernel, "method": "one-pass", "n_passes": 1, "rank": 3, "n_init": 1}
    model = KernelKMeans(3, certificate=level, memory_limit="60MB", **options)
    with pytest.raises(MemoryError, match=r"blocks of 1,000 samples need .* at the least"):
        model.fit(X)
    assert kernel.asked == 0
    model.set_params(certificate="free").fit(X)  # there is room for the fit itself
    assert model.stats_["planned_bytes"] < 60e6


def test_what_is_wrong_with_data_or_options_is_said_before_what_is_wrong_with_a_limit():
    X = np.random.default_rng(0).normal(size=(50, 3))
    for change, said in (
        ({"n_clusters": 60}, "n_clusters=60 exceeds n_samples=50"),
        ({"gamma": "much"}, "gamma='much' is not understood"),
        ({"kernel": "precomputed"}, "must be square"),
    ):
        options = {"n_clusters": 3, "kernel": "rbf", "memory_limit": "1MB", **change}
        with pytest.raises(ValueError, match=said):
            KernelKMeans(**options).fit(X)


@pytest.mark.parametrize("kernel", ["neighbors", "rbf", "laplacian", "polynomial"])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_limit_that_is_kept_is_not_refused_for_rows_that_nobody_has_seen(kernel, size):
    X = (size * np.random.default_rng(0).normal(size=(3000, 4))).astype(np.float32)
    options = {"kernel": kernel, "n_init": 1, "max_iter": 2, "random_state": 0}
    if kernel == "neighbors":
        options["kernel_params"] = {"n_graphs": 1, "n_anchors": 50}
    if kernel == "rbf":
        options["gamma"] = 100 / size**2
    needed = KernelKMeans(3, **options).fit(X).stats_["planned_bytes"]
    model = KernelKMeans(3, memory_limit=needed, **options).fit(X)
    assert model.stats_["planned_bytes"] <= needed
