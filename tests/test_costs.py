"""What the statistics say was evaluated was evaluated, and the docstrings' formulas hold."""

import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import tile_rows
from sketchmeans.estimators.full import INITS
from sketchmeans.kernels import Gaussian
from sketchmeans.lowrank import METHODS, Request, approximate
from sketchmeans.lowrank.cholesky import BATCH
from sketchmeans.operators import CallableOperator, DataOperator

N, RANK, WIDTH = 700, 10, 20
SKETCHED = [(name, sketch) for name, m in METHODS.items() for sketch in (m.sketches or ("auto",))]


OPTIONS = [{}, {"n_passes": 3}, {"truncation": "early"}, {"rank": 0.9}, {"n_refine": 3}]
FITS = [
    (method, sketch, more)
    for method, sketch in SKETCHED
    for more in OPTIONS
    if set(more) <= {"rank", "n_refine", *METHODS[method].reads}
]


class CountingKernel:
    """A Gaussian kernel that counts the entries that it is asked for."""

    def __init__(self):
        self.asked = 0

    def __call__(self, A, B):
        self.asked += len(A) * len(B)
        return Gaussian(0.2).of(cdist(A, B, "sqeuclidean"))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 2))


@pytest.fixture
def kernel():
    return CountingKernel()


def one_pass_entries(n):
    """A symmetric pass: n(n + 1)/2 and, on the diagonal, half a tile per row."""
    tiles = row_blocks(n, tile_rows(n))
    return (n * n + sum((rows.stop - rows.start) ** 2 for rows in tiles)) // 2


def leverage_entries(n, m):
    """All samples with the landmarks of the level below, half of them, and so on."""
    sizes = [n]
    while sizes[-1] > 2 * m:
        sizes.append(-(-sizes[-1] // 2))
    assert sum(sizes) <= 2 * n + len(sizes)
    return sum(size * m for size in sizes)


FORMULAS = {
    ("one-pass", "hadamard"): lambda n, m, d: one_pass_entries(n),
    ("one-pass", "gaussian"): lambda n, m, d: one_pass_entries(n),
    ("one-pass", "rademacher"): lambda n, m, d: one_pass_entries(n),
    ("one-pass", "sparse"): lambda n, m, d: one_pass_entries(n),
    ("nystrom", "uniform"): lambda n, m, d: n * m + d,
    ("nystrom", "diagonal"): lambda n, m, d: n * m + d,
    ("nystrom", "column-norm"): lambda n, m, d: n * m + d + one_pass_entries(n),
    ("nystrom", "leverage"): lambda n, m, d: n * m + d + leverage_entries(n, m),
    ("nystrom", "kmeans"): lambda n, m, d: n * m + d + m * m,
    ("rpcholesky", "auto"): lambda n, m, d: n * m + d,  # and a batch per round
    ("greedy-cholesky", "auto"): lambda n, m, d: n * m + d,
    ("exact", "auto"): lambda n, m, d: n * n + d,
}


def test_every_method_has_a_formula():
    assert set(FORMULAS) == set(SKETCHED)


@pytest.mark.parametrize("kind", ["callable", "data"])
@pytest.mark.parametrize(("method", "sketch"), SKETCHED)
def test_every_method_evaluates_what_it_says_and_what_its_docstring_says(
    X, kernel, kind, method, sketch
):
    if kind == "callable":
        operator = CallableOperator(X, kernel)
        diagonal = 16 * 16 * (N // 16) + (N % 16) ** 2  # in small blocks
    else:
        operator, diagonal = DataOperator(X, Gaussian(0.2)), N
    ask = Request(rank=RANK, width=WIDTH, seed=0, sketch=sketch)
    low = approximate(operator, method, ask)
    expected = FORMULAS[method, sketch](N, WIDTH, diagonal)
    if kind == "callable":
        assert kernel.asked == low.cost.entries + low.cost.audit_entries
    elif method == "one-pass":
        return  # native tiles have a grid of their own: test_estimators counts them
    if method == "rpcholesky":
        rounds, rest = divmod(low.cost.entries - expected, BATCH**2)
        assert rest == 0
        assert 1 <= rounds <= WIDTH
    else:
        assert low.cost.entries == expected


STREAMED = [(method, sketch) for method, sketch in SKETCHED if METHODS[method].landmarks]


@pytest.mark.parametrize(("method", "sketch"), STREAMED)
def test_streamed_columns_are_evaluated_twice_and_the_landmarks_kernel_once(
    X, kernel, method, sketch, monkeypatch
):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)
    operator = CallableOperator(X, kernel)
    diagonal = 16 * 16 * (N // 16) + (N % 16) ** 2
    low = approximate(operator, method, Request(rank=3, width=WIDTH, seed=0, sketch=sketch))
    assert low.factor.shape == (N, 3)
    assert kernel.asked == low.cost.entries + low.cost.audit_entries
    expected = 2 * N * WIDTH + WIDTH**2 + diagonal
    sampling = {
        "column-norm": one_pass_entries(N),
        "leverage": leverage_entries(N, WIDTH),
        "auto": N * WIDTH,  # pivots, among fewer samples than would be drawn
    }.get(sketch, 0)
    rounds, rest = divmod(low.cost.entries - expected - sampling, BATCH**2)
    assert rest == 0
    assert 1 <= rounds <= WIDTH if method == "rpcholesky" else rounds == 0


@pytest.mark.parametrize("n_refine", [0, 1, 5])
def test_an_iteration_in_landmark_space_evaluates_its_columns_once(X, n_refine, monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.nystrom"], "HELD", 0)
    options = {"kernel": "rbf", "gamma": 0.2, "method": "nystrom", "n_landmarks": 30, "rank": 5}
    model = KernelKMeans(3, n_refine=n_refine, random_state=0, **options).fit(X)
    embedding = KernelEmbedding(random_state=0, **options).fit(X)
    most = 2 * N * 30 + 30 * 30 + N
    assert embedding.stats_["kernel_entries"] == most
    spent = model.stats_["kernel_entries"] - most
    if n_refine == 0:
        assert spent == N * 30  # sums over the clusters, for the certificate
    else:
        streams, diagonal = divmod(spent, N * 30)
        assert diagonal == N
        assert 2 <= streams <= n_refine + 1


def test_exact_without_the_matrix_evaluates_its_passes_and_the_diagonal(X, kernel, monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.exact"], "DENSE_LIMIT", 50)
    low = approximate(CallableOperator(X, kernel), "exact", Request(rank=5, width=5, seed=0))
    assert low.cost.passes > 1
    assert kernel.asked == low.cost.entries + low.cost.audit_entries
    diagonal = 16 * 16 * (N // 16) + (N % 16) ** 2
    assert low.cost.entries == low.cost.passes * one_pass_entries(N) + diagonal


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "zero weights"])
@pytest.mark.parametrize(("method", "sketch", "more"), FITS, ids=str)
def test_the_statistics_of_a_fit_count_what_was_evaluated(
    X, kernel, method, sketch, more, weighted
):
    if METHODS[method].sketches:
        more = {**more, "sketch": sketch}
    weights = np.random.default_rng(1).integers(0, 3, N) if weighted else None
    options = {"kernel": kernel, "method": method, "random_state": 0}
    model = KernelKMeans(3, **{"rank": 6, "n_refine": 1, "n_init": 2} | options | more)
    model.fit(X, sample_weight=weights)
    assert model.stats_["kernel_entries"] + model.stats_["audit_entries"] == kernel.asked
    if "n_passes" in more:
        assert model.stats_["passes"] == 4


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("limit", [3000, 10], ids=["cached", "streamed"])
@pytest.mark.parametrize("init", INITS)
def test_the_statistics_of_full_kernel_k_means_count_starts_and_the_certificate(
    X, kernel, monkeypatch, init, limit, weighted
):
    monkeypatch.setattr("sketchmeans.estimators.full.CACHE_LIMIT", limit)
    weights = np.random.default_rng(1).integers(0, 3, N) if weighted else None
    model = FullKernelKMeans(3, kernel=kernel, init=init, n_init=2, max_iter=4, random_state=0)
    stats = model.fit(X, sample_weight=weights).stats_
    assert stats["kernel_entries"] + stats["audit_entries"] == kernel.asked
    if limit == 3000:
        assert (stats["passes"], stats["kernel_entries"]) == (1, N * N)
    else:
        starts = 2 if init == "sketch" else 0
        assert 3 + starts <= stats["passes"] <= 9 + starts


def test_named_kernels_count_the_audit_of_the_sketches_that_full_kernel_k_means_starts_from(
    X, monkeypatch
):
    monkeypatch.setattr("sketchmeans.estimators.full.CACHE_LIMIT", 10)
    stats = FullKernelKMeans(3, init="sketch", n_init=2, random_state=0).fit(X).stats_
    assert stats["audit_entries"] >= 2 * 32 * N


@pytest.mark.parametrize("method", ["rpcholesky", "greedy-cholesky"])
def test_a_share_of_the_trace_reports_the_columns_that_were_found(X, method):
    for n in (50, N):
        model = KernelEmbedding(rank=0.9, method=method, gamma=0.2, random_state=0).fit(X[:n])
        found = len(model._new_points.points.X)
        assert model.width_ == found < 40
        assert model.stats_["sketch_bytes"] == n * found * 8


@pytest.mark.parametrize("method", ["rpcholesky", "greedy-cholesky"])
def test_a_factor_that_grows_has_the_pivots_of_one_that_does_not(X, method, monkeypatch):
    options = {"rank": 0.999, "method": method, "gamma": 2.0, "random_state": 0}
    whole = KernelEmbedding(**options).fit(X)
    assert whole.width_ > 64
    monkeypatch.setattr("sketchmeans.lowrank.cholesky._FIRST", N)
    grown = KernelEmbedding(**options).fit(X)
    np.testing.assert_array_equal(grown.embedding_, whole.embedding_)
