"""Same seed, same result: bit for bit, for any number of threads and any memory limit."""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Gaussian, Polynomial
from sketchmeans.operators import DataOperator, FeatureMapOperator, PrecomputedOperator
from sketchmeans.sketches import make_sketch

THREADS = [1, 2, 3, 16]


def data(n, dtype, make):
    X = np.random.default_rng(n).normal(size=(n, 5)).astype(dtype)
    X[np.abs(X) < 0.4] = 0
    return make(X)


@pytest.mark.parametrize("n", [1023, 1024, 1025, 4097])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_labels_embedding_and_sketch_have_the_same_bits_for_any_number_of_threads(n, dtype, make):
    X = data(n, dtype, make)
    sketch = make_sketch("hadamard", n, 20, 0)
    first = None
    for n_jobs in [*THREADS, 1]:
        model = KernelKMeans(4, rank=8, n_jobs=n_jobs, n_init=3, random_state=0, kernel="rbf").fit(
            X
        )
        result = DataOperator(X, Gaussian(0.1)).multiply(sketch, Run(n_jobs))
        here = [
            result.W,
            result.row_sums,
            result.sum_of_squares,
            model.embedding_,
            model.labels_,
            model.cluster_centers_,
            model.inertia_,
        ]
        first = first or here
        for one, other in zip(first, here, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("options", [{"n_passes": 2, "n_refine": 2}, {"truncation": "early"}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_passes_and_refinement_have_the_same_bits_too(options, dtype):
    X = data(2049, dtype, np.asarray)
    models = [
        KernelKMeans(4, n_jobs=n_jobs, random_state=0, kernel="rbf", **options).fit(X)
        for n_jobs in THREADS
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.embedding_, models[0].embedding_)
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        assert model.inertia_ == models[0].inertia_


@pytest.mark.parametrize("width", [10, 330])
def test_precomputed_kernels_and_feature_maps_have_the_same_bits_too(width):
    X = data(3001, np.float64, np.asarray)
    K = (X @ X.T + 1) ** 2
    sketch = make_sketch("hadamard", 3001, width, 0)
    for operator in (PrecomputedOperator(K), FeatureMapOperator(X, Polynomial(1.0, 2, 1.0))):
        expected = operator.multiply(sketch)
        for n_threads in THREADS[1:]:
            result = operator.multiply(sketch, Run(n_threads))
            np.testing.assert_array_equal(result.W, expected.W)
            assert result.sum_of_squares == expected.sum_of_squares


def test_prediction_has_the_same_bits_for_any_number_of_threads():
    X = data(1025, np.float32, np.asarray)
    model = KernelKMeans(4, random_state=0, kernel="rbf").fit(X)
    expected = model.transform(X)
    for n_jobs in THREADS:
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).transform(X), expected)


def test_a_memory_limit_changes_no_bit():
    X = data(6000, np.float64, np.asarray)
    free = KernelKMeans(4, random_state=0, n_jobs=4, kernel="rbf").fit(X)
    for spare in (0, 8e6, 16e6):
        limit = free.stats_["planned_bytes"] - spare
        model = KernelKMeans(4, random_state=0, n_jobs=4, memory_limit=limit, kernel="rbf").fit(X)
        assert (model.stats_["n_threads"] < 4) == (spare > 0)
        np.testing.assert_array_equal(model.embedding_, free.embedding_)
        np.testing.assert_array_equal(model.labels_, free.labels_)


def test_nothing_depends_on_the_threads_that_blas_has_outside():
    X = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    X[:9000] += 1
    seen = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            model = KernelKMeans(8, n_refine=1, n_init=2, random_state=0, kernel="rbf").fit(X)
            plain = KernelKMeans(8, n_init=2, random_state=0, kernel="rbf").fit(X)
            seen.append(
                [
                    plain.certificate_,
                    plain.inertia_,
                    plain.stats_["eta"],
                    plain.score(X[:3000]),
                    model.certificate_,
                    model.inertia_,
                    model.score(X[:3000]),
                    model.labels_.tobytes(),
                    model.embedding_.tobytes(),
                ]
            )
    assert seen[0] == seen[1]


def test_the_seed_alone_decides():
    X = data(500, np.float64, np.asarray)
    one = KernelEmbedding(rank=5, random_state=3).fit(X).embedding_
    np.testing.assert_array_equal(KernelEmbedding(rank=5, random_state=3).fit(X).embedding_, one)
    other = KernelEmbedding(rank=5, random_state=4).fit(X).embedding_
    assert not np.array_equal(other, one)
