"""Properties of kernels, operators and bounds that hold for whatever Hypothesis draws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from soak.truth import objectives, partitions

from drawn import (
    dtypes,
    kernels,
    labels_of,
    positive_kernels,
    property_test,
    quiet,
    samples,
    seeds,
    weights_of,
)
from oracles import EXAMPLES, dense_kernel, objective
from sketchmeans import ColumnStream, KernelEmbedding, certify
from sketchmeans.certificate.spectral import centred_block, objective_bound
from sketchmeans.kernels import Linear, Polynomial, Statistic
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.lowrank.cholesky import greedy_cholesky
from sketchmeans.operators import DataOperator, FeatureMapOperator, NeighborOperator
from sketchmeans.sketches import SKETCHES, make_sketch

EPS = float(np.finfo(float).eps)
DISTANCES = [name for name, one in EXAMPLES.items() if one.statistic is not Statistic.DOT]


def kernel_of(X, name, **options):
    return dense_kernel(DataOperator(X, EXAMPLES[name], **options)).astype(float)


def near(found, wanted, X, name, units=100):
    """Whether two kernel matrices differ by rounding alone, in units of √(K_ii K_jj)."""
    X = X.toarray() if sparse.issparse(X) else X
    root = np.sqrt(np.maximum(np.diag(wanted), 0))
    if name == "sigmoid":
        root = np.ones(len(root))
    spread = float(np.square(X - np.median(X, axis=0)).sum(axis=1).max())
    factor = 1 + EXAMPLES["rbf"].gamma * spread if name == "rbf" else 1 + np.abs(X).max()
    allowed = units * EPS * factor * np.outer(root, root)
    return bool((np.abs(found - wanted) <= allowed + 1e-300).all())


@property_test
@given(samples(), kernels, seeds)
def test_permuted_samples_have_the_permuted_kernel(X, name, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    K = kernel_of(X, name)
    assert near(kernel_of(X[order], name), K[np.ix_(order, order)], X[order], name)


@property_test
@given(samples(), st.sampled_from(DISTANCES), st.integers(-(2**20), 2**20))
def test_a_kernel_of_distances_does_not_see_translation(X, name, step):
    X = np.round(X * 1024) / 1024  # so that the step adds no rounding of its own
    moved = X + float(step)
    assert near(kernel_of(moved, name), kernel_of(X, name), X, name, units=1000)


@property_test
@given(samples(), st.sampled_from(["rbf", "laplacian", "polynomial"]), st.integers(-30, 30))
def test_scaled_samples_with_gamma_scaled_back_have_the_same_kernel(X, name, power):
    kernel, factor = EXAMPLES[name], 2.0**power
    scaled = kernel.gamma / (factor if name == "laplacian" else factor**2)
    options = {key: getattr(kernel, key) for key in kernel.options()} | {"gamma": scaled}
    found = dense_kernel(DataOperator(X * factor, type(kernel)(**options)))
    np.testing.assert_array_equal(found, kernel_of(X, name))  # powers of two round nothing


@property_test
@given(samples(), st.sampled_from(["linear", "polynomial", "rbf", "cosine", "sigmoid"]), seeds)
def test_rotated_samples_have_the_same_kernel(X, name, seed):
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1],) * 2))[0]
    assert near(kernel_of(X @ rotation, name), kernel_of(X, name), X, name, units=1000)


@property_test
@given(samples(), kernels, st.integers(1, 4))
def test_a_feature_that_is_zero_adds_nothing(X, name, count):
    wider = np.c_[X, np.zeros((len(X), count))]
    assert near(kernel_of(wider, name), kernel_of(X, name), X, name)


@property_test
@given(samples(), kernels)
def test_sparse_samples_have_the_kernel_of_dense_ones(X, name):
    X[np.abs(X) < 0.5] = 0
    found = kernel_of(sparse.csr_matrix(X), name)
    assert near(found, kernel_of(X, name), X, name, units=1000)


@property_test
@given(samples(dtype=np.float32), positive_kernels)
def test_float32_tiles_are_off_by_no_more_than_they_say(X, name):
    operator = DataOperator(X, EXAMPLES[name], dtype=np.float32)
    truth = kernel_of(X.astype(float), name)
    root = np.sqrt(np.diag(truth))
    rounding = operator.rounding()[0]
    assert (np.abs(dense_kernel(operator) - truth) <= rounding * np.outer(root, root)).all()


@property_test
@given(samples(), st.integers(1, 3), st.sampled_from([0.0, 1.0]), seeds)
def test_a_feature_map_gives_what_tiles_give(X, degree, coef0, seed):
    kernel = Linear() if degree == 1 else Polynomial(gamma=0.4, degree=degree, coef0=coef0)
    Omega = np.random.default_rng(seed).normal(size=(len(X), 3))
    tiles = DataOperator(X, kernel).multiply(Omega)
    features = FeatureMapOperator(X, kernel).multiply(Omega)
    size = float(np.abs(tiles.W).max()) + float(np.trace(dense_kernel(DataOperator(X, kernel))))
    np.testing.assert_allclose(features.W, tiles.W, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(features.row_sums, tiles.row_sums, rtol=0, atol=1e-13 * size)
    assert features.sum_of_squares == pytest.approx(tiles.sum_of_squares, rel=1e-12)


@property_test
@given(st.sampled_from(list(SKETCHES)), st.integers(1, 300), seeds, st.data())
def test_any_block_of_a_sketch_is_that_of_the_whole(name, n, seed, data):
    width = data.draw(st.integers(1, n))
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    whole = make_sketch(name, n, width, seed).rows(0, n)
    np.testing.assert_array_equal(
        make_sketch(name, n, width, seed).rows(start, stop), whole[start:stop]
    )


@property_test
@given(samples(least=4), seeds, st.data())
def test_columns_in_any_batches_and_order_give_the_embedding_of_the_matrix(X, seed, data):
    n = len(X)
    K = kernel_of(X, "rbf")
    width = data.draw(st.integers(2, n))
    ends = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4)) | {0, n})
    parts = data.draw(st.permutations(list(pairwise(ends))))
    stream = ColumnStream(n, width=width, random_state=seed)
    for start, stop in parts:
        stream.add_columns(start, K[:, start:stop])
    options = {"rank": width, "oversampling": 0, "method": "one-pass", "n_jobs": 1}
    whole = KernelEmbedding(kernel="precomputed", random_state=seed, **options).fit(K)
    found = KernelEmbedding(rank=width).fit(stream).embedding_
    wanted = whole.embedding_
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-11 * n)


@property_test
@given(samples(least=3), positive_kernels, st.data())
def test_nested_landmarks_never_loosen_the_trace(X, name, data):
    """Greedy pivots are nested: more of them hold more of K, and K̂ stays below it."""
    operator = DataOperator(X, EXAMPLES[name])
    few = data.draw(st.integers(1, len(X) - 1))
    more = data.draw(st.integers(few, len(X)))
    K = dense_kernel(operator)
    slack = 1e-11 * float(np.trace(K))
    one, two = (
        quiet(greedy_cholesky, operator, columns=count, rank=count) for count in (few, more)
    )
    assert two.trace_error <= one.trace_error + slack
    below = [np.linalg.eigvalsh(K - low.factor @ low.factor.T)[0] for low in (one, two)]
    assert min(below) >= -slack


@property_test
@given(samples(most=7), positive_kernels, st.integers(1, 3), seeds, st.data())
def test_any_matrix_without_negative_entries_lifts_to_a_valid_bound(X, name, k, seed, data):
    n, random = len(X), np.random.default_rng(seed)
    weights = random.uniform(0.3, 3, n) if data.draw(st.booleans()) else np.ones(n)
    K = kernel_of(X, name)
    block = centred_block(K.copy(), weights, rounding=1e-13)
    N = random.exponential(size=(n, n)) * (random.random((n, n)) < 0.5)
    N *= 10 ** random.uniform(-4, 2) * float(np.trace(K)) / n
    bound = objective_bound(block, block.K + (N + N.T) / 2, k)
    diagonal = np.diag(K)
    apart = np.maximum(diagonal[:, None] + diagonal - 2 * K, 0)
    best = float(objectives(apart, weights, partitions(n, k)).min())
    assert bound <= best + 1e-12 * float(weights @ diagonal)


@property_test
@given(samples(least=3), positive_kernels, seeds)
def test_names_of_clusters_do_not_matter_to_a_proof(X, name, seed):
    k = min(3, len(X))
    labels = labels_of(len(X), k, seed)
    names = np.random.default_rng(seed).permutation(k) + 7
    options = {"kernel": name, "effort": "blocks", "n_clusters": k, "n_jobs": 1, "random_state": 0}
    one, two = (certify(X, these, **options) for these in (labels, names[labels]))
    for field in ("objective_lower", "objective_upper", "optimum_lower"):
        off = abs(getattr(one, field) - getattr(two, field))
        assert off <= 1e-12 * one.trace_kernel + 1e-300


@property_test
@given(samples(least=3, most=12), positive_kernels, seeds)
def test_a_sample_that_stands_twice_counts_as_one_of_weight_two(X, name, seed):
    counts = np.random.default_rng(seed).integers(1, 4, len(X))
    labels = labels_of(len(X), 2, seed)
    options = {"kernel": name, "effort": "free", "n_clusters": 2, "n_jobs": 1, "random_state": 0}
    if name in ("rbf", "laplacian", "polynomial"):
        options["gamma"] = 0.3
    weighted = certify(X, labels, sample_weight=counts.astype(float), **options)
    repeated = certify(np.repeat(X, counts, axis=0), np.repeat(labels, counts), **options)
    size = 1e-9 * (1 + weighted.trace_kernel)
    assert weighted.trace_kernel == pytest.approx(repeated.trace_kernel, rel=1e-12)
    assert weighted.objective_lower <= repeated.objective_upper + size
    assert repeated.objective_lower <= weighted.objective_upper + size
    assert weighted.objective_upper == pytest.approx(repeated.objective_upper, rel=1e-6, abs=size)


@property_test
@given(samples(least=3), positive_kernels, dtypes, seeds, st.data())
def test_no_labels_are_below_the_bound_and_all_are_within_their_own(X, name, dtype, seed, data):
    X = X.astype(dtype)
    k = data.draw(st.integers(1, min(4, len(X))))
    weights = data.draw(weights_of(len(X)))
    options = {"kernel": name, "n_clusters": k, "n_jobs": 1, "random_state": 0, "gamma": 0.3}
    if name in ("linear", "cosine"):
        del options["gamma"]
    options["effort"] = data.draw(st.sampled_from(["free", "blocks", "lifted", "triangles"]))
    labels = labels_of(len(X), k, seed)
    found = certify(X, labels, sample_weight=weights, **options)
    kernels_with = {"rbf": {}, "laplacian": {}, "polynomial": {"degree": 3, "coef0": 1.0}}
    kernel = EXAMPLES[name]
    if name in kernels_with:
        kernel = type(kernel)(gamma=0.3, **kernels_with[name])
    K = dense_kernel(DataOperator(X.astype(float), kernel))
    own = objective(K, labels, weights)
    slack = 1e-12 * float(np.diag(K) @ (np.ones(len(X)) if weights is None else weights))
    assert found.optimum_lower <= own + slack
    assert found.objective_lower - slack <= own <= found.objective_upper + slack


@property_test
@given(samples(least=3), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), seeds, st.data())
def test_degrees_of_the_neighbours_kernel_are_one(X, anchors, near_ones, graphs, seed, data):
    options = NeighborOptions(n_anchors=anchors, n_neighbors=near_ones, n_graphs=graphs)
    weights = data.draw(weights_of(len(X)))
    operator = NeighborOperator(X, options, weights=weights, seed=seed)
    operator.build()
    K = operator.unweighted().tile(slice(0, len(X)), slice(0, len(X)))
    d = np.ones(len(X)) if weights is None else weights
    np.testing.assert_allclose((K @ d)[d > 0], 1, rtol=1e-9)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.abs(K).max()
