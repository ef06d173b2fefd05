"""Leading eigenvectors of sparse kernels: exact, also where eigenvalues are equal or close."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import kneighbors_graph

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.engine.run import Run
from sketchmeans.graphs import normalized
from sketchmeans.lowrank import IndefiniteKernelWarning, exact
from sketchmeans.lowrank import filtered as filters
from sketchmeans.operators import SparseOperator


def blocks(sizes, scales=1.0):
    """Blocks of ones, scaled: eigenvalues size · scale, and zeros."""
    scales = np.broadcast_to(scales, len(sizes))
    ones = [scale * np.ones((size, size)) for size, scale in zip(sizes, scales, strict=True)]
    return sparse.block_diag(ones, format="csr")


def bumps(n=700):
    """A positive definite kernel of finite reach: Wendland's, in three dimensions."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    near = np.maximum(0, 1 - np.linalg.norm(X[:, None] - X, axis=2))
    return sparse.csr_matrix(near**4 * (4 * (1 - near) + 1))


def path(n, reach=5):
    """The graph of a line, in which everybody knows the next few; its kernel, weighted."""
    A = sparse.diags_array([1.0] * reach, offsets=range(1, reach + 1), shape=(n, n), format="csr")
    K, weights = normalized(A + A.T)
    root = sparse.diags_array(np.sqrt(weights))
    return sparse.csr_matrix(root @ K @ root)


KERNELS = {
    "eight equal eigenvalues, all asked for": (blocks([90] * 8), 8),
    "eight equal eigenvalues, three asked for": (blocks([90] * 8), 3),
    "fewer eigenvalues than asked for": (blocks([200] * 3), 10),
    "eigenvalues that fall by half": (blocks([40] * 15, 2.0 ** -np.arange(15)), 6),
    "many eigenvalues": (bumps(), 80),
    "tiny": (1e-60 * bumps(), 10),
    "huge": (1e60 * bumps(), 10),
    "a line": (path(800), 5),
    "identity": (sparse.eye_array(600, format="csr"), 4),
    "zero": (sparse.csr_matrix((600, 600)), 4),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_leading_eigenvalues_and_vectors_are_those_of_the_matrix(name):
    K, rank = KERNELS[name]
    operator = SparseOperator(sparse.csr_matrix(K))
    assert filters.is_filtered(operator, rank)
    low = exact(operator, rank=rank, seed=0)
    values = np.linalg.eigvalsh(K.toarray())
    largest, expected = values[-1] or 1.0, values[::-1][:rank]
    expected = expected[expected > 1e-10 * largest]
    assert low.rank == len(expected)
    np.testing.assert_allclose(low.eigenvalues, expected, rtol=1e-9, atol=1e-12 * largest)
    F = low.factor
    off = K @ F - F * low.eigenvalues
    assert np.linalg.norm(off) <= 1e-11 * largest * np.sqrt(largest)
    least = np.linalg.eigvalsh(K.toarray() - F @ F.T)[0]
    assert least >= -1e-13 * largest
    assert low.cost.passes <= 600


@pytest.mark.parametrize("weighting", ["weighted", "some left out"])
def test_weights_are_in_the_eigenvectors_and_new_points_follow_them(weighting):
    K, random = bumps(), np.random.default_rng(1)
    weights = random.uniform(0.5, 2, 700) if weighting == "weighted" else random.integers(0, 3, 700)
    options = {"kernel": "precomputed", "rank": 6, "method": "exact", "random_state": 0}
    few, all_ = (
        KernelEmbedding(**options).fit(given, sample_weight=weights) for given in (K, K.toarray())
    )
    np.testing.assert_allclose(
        few.embedding_ @ few.embedding_.T, all_.embedding_ @ all_.embedding_.T, atol=1e-9
    )
    np.testing.assert_allclose(few.transform(K), few.embedding_, atol=1e-9)
    assert few.stats_["kernel_entries"] >= few.stats_["passes"] * K.nnz + 700
    if weighting == "weighted":
        assert few.stats_["kernel_entries"] == few.stats_["passes"] * K.nnz + 700


def test_a_share_of_the_trace_is_held():
    K = blocks([40] * 15, 2.0 ** -np.arange(15))
    model = KernelEmbedding(rank=0.9, kernel="precomputed", method="exact", random_state=0).fit(K)
    assert model.rank_ == 4  # 1/2 + 1/4 + 1/8 + 1/16


def test_the_bits_do_not_depend_on_threads():
    operator = SparseOperator(path(9000), weights=np.random.default_rng(0).uniform(1, 2, 9000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        patched = pytest.MonkeyPatch()
        patched.setattr(filters, "PASSES", 60)
        found = [exact(operator, rank=3, run=Run(threads)) for threads in (1, 2, 3, 8)]
        patched.undo()
    for low in found[1:]:
        np.testing.assert_array_equal(low.factor, found[0].factor)
        np.testing.assert_array_equal(low.dual, found[0].dual)


def test_float32_stops_where_float32_does():
    K = bumps()
    low = exact(SparseOperator(K.astype(np.float32), dtype=np.float32), rank=6)
    expected = np.linalg.eigvalsh(K.toarray())[::-1][:6]
    np.testing.assert_allclose(low.eigenvalues, expected, rtol=1e-5)
    assert low.cost.passes <= 200


def test_eigenvalues_too_close_for_the_passes_are_told_of_and_bounds_hold(monkeypatch):
    monkeypatch.setattr(filters, "PASSES", 60)
    K = path(900, reach=1)
    with pytest.warns(ConvergenceWarning, match=r"after \d+ passes the leading eigenvectors are "):
        low = exact(SparseOperator(K), rank=3)
    assert low.cost.passes <= 60
    assert np.linalg.eigvalsh(K.toarray() - low.factor @ low.factor.T)[0] >= -1e-13
    assert low.eigenvalues[0] <= 1 + 1e-13


@pytest.mark.parametrize("loops", [0.0, 0.5, 1.5])
def test_a_graph_that_is_no_kernel_is_noticed(loops):
    diagonals = [1.0, loops, 1.0]
    A = sparse.diags_array(diagonals, offsets=[-1, 0, 1], shape=(900, 900), format="csr")
    with pytest.warns(IndefiniteKernelWarning, match="not positive semidefinite"):
        low = exact(SparseOperator(A), rank=3)
    np.testing.assert_allclose(low.eigenvalues, loops + 2 * np.cos(np.pi * np.arange(1, 4) / 901))


def test_thousands_of_samples_in_two_components_take_hundreds_of_passes():
    """Lanczos iterations with one vector take 14,000: the eigenvalue 1 is there twice."""
    X, y = make_moons(5000, noise=0.05, random_state=0)
    A = kneighbors_graph(X, 10)
    with pytest.warns(UserWarning, match="2 connected components"):
        K, weights = normalized(A.maximum(A.T))
    model = KernelKMeans(2, kernel="precomputed", rank=2, method="exact", random_state=0)
    model.fit(K, sample_weight=weights)
    assert model.stats_["passes"] < 1000
    assert normalized_mutual_info_score(y, model.labels_) == pytest.approx(1)
    np.testing.assert_allclose(model.eigenvalues_, 1, rtol=1e-12)
