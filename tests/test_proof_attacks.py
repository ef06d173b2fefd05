"""What a proof was once wrong about, or late with; each of these was found by an attack."""

import time
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from soak.truth import partitions

from sketchmeans import KernelKMeans, certify, graphs
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.blockwise import Blockwise
from sketchmeans.certificate.proving import Effort
from sketchmeans.certificate.sampling import drawn_bound, geometric_bound
from sketchmeans.kernels import Gaussian
from sketchmeans.operators import DataOperator


def exact_objective(K, labels):
    """Return the objective of labels, in exact arithmetic."""
    total = sum(K[i][i] for i in range(len(K)))
    for label in set(labels):
        members = [i for i, one in enumerate(labels) if one == label]
        total -= sum(K[i][j] for i in members for j in members) / len(members)
    return total


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_where_a_polynomial_cancels_the_slack_covers_what_is_lost(degree):
    x, far = np.random.default_rng(0).normal(size=6), 1e7
    X, labels = (far + x)[:, None], [0, 0, 0, 1, 1, 1]
    found = certify(X, labels, kernel="polynomial", degree=degree, gamma=1.0, coef0=-(far**2))
    exact = [Fraction(float(one)) for one in X.ravel()]
    K = [[(a * b - Fraction(far) ** 2) ** degree for b in exact] for a in exact]
    true = exact_objective(K, labels)
    assert Fraction(found.objective_lower) <= true <= Fraction(found.objective_upper)
    best = min(exact_objective(K, few.tolist()) for few in partitions(6, 2))
    assert found.optimum_lower == -np.inf or Fraction(found.optimum_lower) <= best


def test_where_a_sigmoid_cancels_the_slack_covers_what_is_lost():
    far = 1e7
    X = far + np.random.default_rng(1).normal(size=(6, 1))
    found = certify(X, [0, 0, 0, 1, 1, 1], kernel="sigmoid", gamma=1e-7, coef0=-far)
    exact = [Fraction(float(one)) for one in X.ravel()]
    arguments = [[Fraction(1e-7) * a * b - Fraction(far) for b in exact] for a in exact]
    K = [[Fraction(float(np.tanh(float(one)))) for one in row] for row in arguments]
    best = min(exact_objective(K, few.tolist()) for few in partitions(6, 2))
    assert found.optimum_lower <= float(best) + 1e-14


def test_weights_that_a_fit_takes_for_zero_are_refused():
    far = [[0.0], [1.0], [2.0], [1e15]]
    with pytest.raises(ValueError, match=r"sample_weight\[3\] = 1e-21 is less than 1e-20 of the"):
        certify(far, [0, 0, 1, 1], kernel="linear", sample_weight=[1, 1, 1, 1e-21])
    found = certify(far, [0, 0, 1, 1], kernel="linear", sample_weight=[1, 1, 1, 0])
    assert found.objective_upper < 0.51


def test_a_light_sample_far_out_leaves_the_others_their_digits():
    X, weights = [[0.0], [1.0], [10.0], [11.0], [1e8]], [1, 1, 1, 1, 1e-18]
    found = certify(X, [0, 0, 1, 1, 1], kernel="linear", sample_weight=weights)
    assert found.objective_upper < 1.1


def graph():
    random = np.random.default_rng(1)
    A = np.triu((random.random((8, 8)) < 0.4) * random.random((8, 8)), 1)
    A[np.arange(7), np.arange(1, 8)] += 0.1
    return A + A.T


def cut(A, labels):
    d = A.sum(axis=1)
    parts = [labels == one for one in np.unique(labels)]
    return sum(A[np.ix_(part, ~part)].sum() / d[part].sum() for part in parts)


def test_a_cut_is_that_of_the_clusters_there_are():
    A, labels = graph(), np.array([0, 0, 0, 1, 1, 1, 2, 2])
    K, weights = graphs.normalized(sparse.csr_matrix(A))
    asked = {"kernel": "precomputed", "sample_weight": weights}
    found = certify(K, labels, **asked)
    assert found.normalized_cut == pytest.approx(cut(A, labels), rel=1e-9)
    least = min(cut(A, few) for few in partitions(8, 3) if len(set(few)) == 3)
    assert found.normalized_cut_lower <= least + 1e-9
    with pytest.raises(ValueError, match="n_clusters=5, and the labels have 3 clusters"):
        certify(K, labels, n_clusters=5, **asked)
    # A fit may leave clusters empty: its cut is that of the others.
    model = KernelKMeans(5, kernel="precomputed", rank=2, certificate="lifted", random_state=0)
    model.fit(K, sample_weight=weights)
    assert model.certificate_.n_clusters == len(set(model.labels_))
    assert model.certificate_.normalized_cut == pytest.approx(cut(A, model.labels_), rel=1e-9)


@pytest.mark.parametrize("kernel", ["neighbors", "rbf", "linear"])
def test_a_model_is_not_judged_by_rows_that_it_was_not_fitted_to(kernel):
    X, _ = make_blobs(120, n_features=4, random_state=3, cluster_std=3)
    model = KernelKMeans(3, kernel=kernel, random_state=0).fit(X)
    assert certify(X, model, effort="blocks").objective_upper is not None
    for others in (X[::-1].copy(), X + 1):
        with pytest.raises(ValueError, match=r"not what the model was fitted to|other degrees"):
            certify(others, model, effort="blocks")
    with pytest.raises(ValueError, match="expecting 4 features"):
        certify(X[:, :3], model, effort="blocks")


def test_a_graph_of_neighbours_is_judged_by_itself_and_not_by_what_a_fit_was_asked_for():
    X, _ = make_blobs(120, random_state=3)
    asked = {"kernel": "neighbors", "random_state": 0}
    model = KernelKMeans(3, certificate=None, **asked).fit(X)
    known = KernelKMeans(3, **asked).fit(X).certificate_
    found = certify(X, model, effort="free")
    assert found.normalized_cut == pytest.approx(known.normalized_cut, abs=1e-12)
    assert found.normalized_cut_lower == pytest.approx(known.normalized_cut_lower, abs=1e-12)
    for count in (0, 5):
        with pytest.raises(ValueError, match="n_clusters=" + str(count)):
            certify(X, model, n_clusters=count)


def test_a_bound_of_a_weighted_fit_is_not_taken_for_samples_without_weights():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(30, 5)) + 4 * np.eye(5)[i] for i in range(4)])
    options = {"kernel": "rbf", "gamma": 0.15, "random_state": 0}
    good = KernelKMeans(4, n_init=10, **options).fit(X).labels_
    least = certify(X, good, kernel="rbf", gamma=0.15, effort="blocks").objective_upper
    weak = KernelKMeans(4, n_init=1, max_iter=1, rank=2, n_refine=0, **options)
    for weight in (1.04, 1.12, 1.5):
        model = weak.fit(X, sample_weight=np.full(len(X), weight))
        assert certify(X, model, effort="blocks").optimum_lower <= least


def test_time_is_kept_where_blocks_are_drawn():
    random = np.random.default_rng(0)
    X, labels = random.normal(size=(4000, 3)), random.integers(0, 5, 4000)
    operator = DataOperator(X, Gaussian(0.1))
    ask = Blockwise(operator, labels, Effort(5, "triangles"), 1e-14, n_threads=2)
    began = time.process_time()
    found = drawn_bound(ask, 650, 1.0, 1e-6)
    # A block took half a minute: it went on with triangles while these gained.
    assert time.process_time() - began < 12
    assert found.n_blocks >= 1


def test_blocks_for_which_there_was_hardly_time_take_nothing_away():
    few = np.array([2.0, 2.1, 1.9, 2.0])
    known = geometric_bound(few, 0.1, 1e-2)
    assert known > 0
    assert geometric_bound(np.append(few, [1e-9, 0.0, 5.0]), 0.1, 1e-2) == known
    assert geometric_bound(np.array([0.0, 3.0]), 0.1, 1e-2) == 0
    assert geometric_bound(np.zeros(0), 0.1, 1e-2) == 0


def test_samples_without_weight_fill_no_blocks(recwarn):
    X, labels = make_blobs(400, random_state=0)
    weights = np.zeros(400)
    weights[:30] = 1
    found = certify(X, labels, kernel="linear", sample_weight=weights, block_size=20, n_jobs=1)
    assert not recwarn.list
    assert found.block_size <= 20
    alone = certify(X[:30], labels[:30], kernel="linear", block_size=30)
    assert found.optimum_lower <= alone.objective_upper


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_labels_with_nothing_left_to_gain_are_told_to_be_so(kernel):
    X = np.repeat(np.eye(3), 4, axis=0)
    found = certify(X, np.repeat([0, 1, 2], 4), kernel=kernel)
    assert "0 to rounding" in str(found) or found.relative_gap < 1e-6
    assert "too few or too small" not in str(found)


def test_a_likely_bound_is_told_only_where_it_says_more():
    known = {"n_clusters": 2, "trace_kernel": 9.0, "trace_error": 1.0, "objective_lower": 1.0}
    known |= {"objective_upper": 1.1, "optimum_lower": 1.0, "failure_probability": 1e-3}
    likely = Certificate(relative_gap=0.1, relative_gap_probabilistic=0.05, **known)
    assert "at most 5.0% above the least, except" in str(likely)
    late = Certificate(relative_gap=0.1, relative_gap_probabilistic=0.2, **known)
    assert "except with" not in str(late)


def test_a_given_matrix_that_is_not_symmetric_is_refused():
    X, labels = make_blobs(60, random_state=0)
    for row in range(8):  # some are seen at once, among pairs that are drawn
        K = X @ X.T
        K[row, 50] += 1000
        with pytest.raises(ValueError, match="symmetric"):
            certify(K, labels, kernel="precomputed", random_state=row)
