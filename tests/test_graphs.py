"""Graphs of one's own: a normalized cut is kernel K-means."""

import json
import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import kneighbors_graph

from graph_data import graph, neighbours
from oracles import objective
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.graphs import NormalizedGraph, normalized
from sketchmeans.lowrank import METHODS


def small_graph(seed, n=7, loops=True):
    random = np.random.default_rng(seed)
    A = np.triu(random.uniform(0, 1, (n, n)) * (random.uniform(size=(n, n)) < 0.6), not loops)
    A[np.arange(n - 1), np.arange(1, n)] += 0.1  # connected
    return np.maximum(A, A.T)


def normalized_cut(A, labels):
    """Σ cut(C) / vol(C), from the definition; vertices without an edge are in no cut."""
    total = 0.0
    for cluster in np.unique(labels):
        inside = labels == cluster
        total += A[np.ix_(inside, ~inside)].sum() / A[inside].sum()
    return total


def partitions(n, k):
    """All labels with k clusters, none of them empty, each partition once."""
    for rest in product(range(k), repeat=n - 1):
        labels = np.array((0, *rest))
        first = [np.flatnonzero(labels == cluster)[:1] for cluster in range(k)]
        if all(len(place) for place in first) and (np.diff(np.concatenate(first)) > 0).all():
            yield labels


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("loops", [False, True], ids=["no loops", "loops"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_objective_of_every_partition_is_its_normalized_cut(k, loops, make):
    A = small_graph(k, loops=loops)
    K, weights = normalized(make(A))
    K = K.toarray() if sparse.issparse(K) else K
    trace = weights @ np.diag(K)
    cuts, objectives = [], []
    for labels in partitions(len(A), k):
        cuts.append(normalized_cut(A, labels))
        objectives.append(objective(K, labels, weights))
    assert len(cuts) == {2: 63, 3: 301}[k]
    np.testing.assert_allclose(2 * (np.array(objectives) - trace + k), cuts, atol=1e-12)
    assert np.argmin(cuts) == np.argmin(objectives)


@pytest.mark.parametrize("seed", range(5))
def test_the_weighted_kernel_is_positive_semidefinite_and_as_the_textbook_has_it(seed):
    A = small_graph(seed, n=12)
    K, weights = normalized(A)
    root = np.sqrt(weights)
    weighted = root[:, None] * K * root
    np.testing.assert_allclose(weights, A.sum(axis=1), rtol=1e-15)
    np.testing.assert_allclose(2 * weighted, np.eye(12) + A / np.outer(root, root), atol=1e-14)
    values = np.linalg.eigvalsh(weighted)
    assert values[0] > -1e-15
    np.testing.assert_allclose(values[-1], 1)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("k", [2, 3])
def test_a_fit_finds_the_least_normalized_cut_and_its_certificate_says_what_it_is(k, make):
    A = small_graph(k + 10)
    best = min(normalized_cut(A, labels) for labels in partitions(len(A), k))
    K, weights = normalized(make(A))
    trace = weights @ K.diagonal()
    model = FullKernelKMeans(k, kernel="precomputed", n_init=50, random_state=0)
    model.fit(K, sample_weight=weights)
    found = 2 * (model.certificate_.objective - trace + k)
    assert found == pytest.approx(normalized_cut(A, model.labels_), abs=1e-12)
    assert found == pytest.approx(best, abs=1e-12)
    sketched = KernelKMeans(k, kernel="precomputed", rank=k, method="exact", random_state=0)
    sketched.fit(K, sample_weight=weights)
    assert normalized_cut(A, sketched.labels_) <= 1.1 * best
    lower = 2 * (sketched.certificate_.optimum_lower - trace + k)
    assert lower <= best + 1e-12


def test_dense_and_sparse_affinities_give_the_same_and_keep_their_kind():
    A = small_graph(0, n=30)
    K, weights = normalized(A)
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.csc_array):
        found = normalized(make(A))
        assert isinstance(found, NormalizedGraph)
        assert found.n_components == 1
        assert found.kernel.format == "csr"
        assert isinstance(found.kernel, sparse.sparray) == isinstance(make(A), sparse.sparray)
        np.testing.assert_allclose(found.kernel.toarray(), K, rtol=1e-14)
        np.testing.assert_allclose(found.weights, weights, rtol=1e-14)
    for given in (A.tolist(), A.astype(np.float32), np.asfortranarray(A)):
        np.testing.assert_allclose(normalized(given).kernel, K, rtol=1e-6)
    whole = normalized((A > 0.5).astype(int)).kernel
    np.testing.assert_array_equal(whole, normalized(A > 0.5).kernel)


def doubled(A):
    """The same matrix with every entry stored twice, by half."""
    twice = np.repeat(A.data, 2) / 2, np.repeat(A.indices, 2), 2 * A.indptr
    return sparse.csr_matrix(twice, A.shape)


def test_entries_that_are_stored_twice_are_summed_in_a_copy():
    A, kernel = neighbours(400), graph().kernel
    twice, K_twice = doubled(A), doubled(kernel)
    found = graph().kernel
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        np.testing.assert_array_equal(normalized(twice).kernel.toarray(), found.toarray())
    models = [
        KernelEmbedding(5, kernel="precomputed", n_passes=2, random_state=0).fit(K)
        for K in (kernel, K_twice)
    ]
    np.testing.assert_array_equal(models[0].embedding_, models[1].embedding_)
    assert models[1].stats_["kernel_entries"] == 2 * kernel.nnz
    assert (twice.nnz, K_twice.nnz) == (2 * A.nnz, 2 * kernel.nnz)


def test_the_graph_of_scikit_learn_is_refused_with_the_line_that_mends_it():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    A = kneighbors_graph(X, 10)
    with pytest.raises(ValueError, match=r"symmetric, but .* K = K.maximum\(K.T\) joins them"):
        KernelKMeans(2, kernel="precomputed").fit(A + sparse.eye_array(300))
    for given, line in ((A, "A.maximum(A.T)"), (A.toarray(), "np.maximum(A, A.T)")):
        with pytest.raises(
            ValueError, match=r"A must be symmetric, but A\[\d+, \d+\] = "
        ) as caught:
            normalized(given)
        assert f"A = {line} joins them, A = (A + A.T) / 2" in str(caught.value)
        mended = eval(line, {"A": given, "np": np})
        assert normalized(mended).kernel.shape == normalized((given + given.T) / 2).kernel.shape


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ((2, 4), -0.25, r"A\[2, 4\] = -0.25 is negative, .* np.exp\(-A / A.mean\(\)\)"),
        ((3, 5), np.nan, r"A\[3, 5\] is nan: affinities must be finite. Leave vertex 3 out"),
        ((3, 5), np.inf, r"A\[3, 5\] is inf"),
        ((3, 5), 1e200, r"largest degree of A, 1e\+200, is outside 1e-100 to 1e\+100. Rescale"),
        ((3, 5), 1.7e308, r"largest degree of A"),
    ],
    ids=["negative", "NaN", "infinite", "large", "huge"],
)
def test_affinities_that_are_none_are_refused(where, value, message, make):
    A = small_graph(0)
    A[where] = A[where[::-1]] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=message):
            normalized(make(A))


def test_what_is_no_graph_is_refused():
    with pytest.raises(ValueError, match=r"A must be square, not 7 × 6: .*kneighbors_graph"):
        normalized(small_graph(0)[:, :6])
    for nothing in (np.zeros((4, 4)), sparse.csr_matrix((4, 4))):
        with pytest.raises(ValueError, match="A has no edge"):
            normalized(nothing)
    with pytest.raises(ValueError, match="largest degree of A, 2e-200, is outside"):
        normalized(np.array([[0, 2e-200], [2e-200, 0]]))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", METHODS)
def test_isolated_vertices_are_told_of_and_change_nothing(method, make):
    A = small_graph(0, n=20)
    padded = np.zeros((23, 23))
    others = np.setdiff1d(np.arange(23), [4, 9, 22])
    padded[np.ix_(others, others)] = A
    with pytest.warns(UserWarning, match=r"3 of 23 vertices are isolated \(the first is 4\)"):
        found = normalized(make(padded))
    assert found.n_components == 1
    K, weights = found
    np.testing.assert_array_equal(np.flatnonzero(weights == 0), [4, 9, 22])
    assert K[[4, 9, 22]].sum() == 0
    np.testing.assert_allclose(K[others][:, others].sum(), normalized(A).kernel.sum())
    model = KernelKMeans(3, kernel="precomputed", method=method, rank=3, random_state=0)
    model.fit(K, sample_weight=weights)
    assert set(model.labels_[[4, 9, 22]]) <= set(model.labels_[others])
    np.testing.assert_array_equal(model.embedding_[[4, 9, 22]], 0)
    alone = KernelKMeans(3, kernel="precomputed", rank=3, method="exact", random_state=0)
    if method == "exact":
        alone.fit(normalized(A).kernel, sample_weight=normalized(A).weights)
        assert normalized_mutual_info_score(alone.labels_, model.labels_[others]) == pytest.approx(
            1
        )


def test_a_vertex_that_float64_would_not_notice_counts_as_isolated():
    A = small_graph(0)
    A[3] = A[:, 3] = 0
    A[3, 4] = A[4, 3] = 1e-25
    with pytest.warns(UserWarning, match=r"1 of 7 vertices are isolated \(the first is 3\)"):
        K, weights = normalized(A)
    assert weights[3] == 0
    assert not K[3].any()
    KernelKMeans(2, kernel="precomputed", rank=2, random_state=0).fit(K, sample_weight=weights)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_components_are_counted_told_of_and_found(make):
    A = np.zeros((31, 31))
    for number in range(3):
        part = slice(10 * number, 10 * number + 10)
        A[part, part] = small_graph(number, n=10)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = normalized(make(A))
    assert [str(one.message).split(":")[0] for one in told] == [
        "1 of 31 vertices are isolated (the first is 30)",
        "the graph falls into 3 connected components",
    ]
    assert found.n_components == 3
    K, weights = found
    model = KernelKMeans(3, kernel="precomputed", rank=3, method="exact", random_state=0)
    labels = model.fit(K, sample_weight=weights).labels_
    assert normalized_mutual_info_score(np.repeat([0, 1, 2], 10), labels[:30]) == pytest.approx(1)
    assert normalized_cut(A[:30, :30], labels[:30]) == 0


def test_a_connected_graph_is_told_nothing_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert normalized(small_graph(0)).n_components == 1
        assert normalized(np.ones((1, 1))).n_components == 1  # a loop is an edge


def moons(seed):
    """Two moons, their graph, its weights, and its model by the lines of the docstring."""
    X, y = make_moons(500, noise=0.07, random_state=seed)
    A = kneighbors_graph(X, 15)
    A = A.maximum(A.T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moons that do not touch
        K, weights = normalized(A)
    options = {"kernel": "precomputed", "rank": 2, "method": "exact", "n_init": 30}
    return y, A, weights, KernelKMeans(2, random_state=0, **options).fit(K, sample_weight=weights)


def test_two_moons_are_found_with_the_lines_of_the_docstring():
    for seed in range(3):
        y, _, _, model = moons(seed)
        assert normalized_mutual_info_score(y, model.labels_) >= 0.95


def test_two_eigenvectors_of_moons_are_cut_no_worse_than_by_spectral_clustering(seeds):
    """By the weighted distances that are minimised; both lose the moons of one draw in twelve."""
    for seed in seeds(3):
        _, A, weights, model = moons(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rival = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(A)
        inertia = 0.0
        for members in (rival == 0, rival == 1):
            rows, mass = model.embedding_[members], weights[members]
            inertia += mass @ np.square(rows - np.average(rows, axis=0, weights=mass)).sum(axis=1)
        # Optima of Lloyd's lie side by side, a sample apart; it is 0 where the moons do not touch.
        assert model.inertia_ <= 1.001 * inertia + 1e-12


def test_a_hub_that_knows_everybody_is_no_trouble():
    n = 3000
    A = sparse.lil_matrix((n, n))
    A[0, 1:] = 1
    A[np.arange(1, n - 1), np.arange(2, n)] = 3
    K, weights = normalized((A + A.T).tocsr())
    for method in ("one-pass", "nystrom", "rpcholesky"):
        model = KernelKMeans(3, kernel="precomputed", method=method, rank=5, random_state=0)
        model.fit(K, sample_weight=weights)
        np.testing.assert_array_equal(model.predict(K), model.labels_)


RING = """
import ctypes, json, sys
import numpy as np
from scipy import sparse
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.graphs import normalized
def ring(n):
    near = np.arange(n)
    A = sparse.coo_array((np.ones(n), (near, (near + 1) % n)), (n, n)).tocsr()
    K, weights = normalized(A + A.T)
    return K, weights
def status(name):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines[name].split()[0])
some, many = ring(3500), ring(int(sys.argv[1]))
for options in json.load(sys.stdin):
    kind = FullKernelKMeans if "init" in options else KernelKMeans
    make = lambda: kind(8, kernel="precomputed", random_state=0, max_iter=5, n_init=1, **options)
    make().fit(some[0], sample_weight=some[1])
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is that of now
    before = status("VmRSS")
    model = make().fit(many[0], sample_weight=many[1])
    rise = status("VmHWM") - before
    assert len(np.unique(model.predict(many[0][:1000]))) >= 1
    print(json.dumps([rise, model.stats_["planned_bytes"]]), flush=True)
"""
LARGE = [
    {"n_passes": 2},
    {"n_passes": 2, "n_refine": 2},
    {"method": "nystrom", "n_landmarks": 100},
    {"method": "rpcholesky", "n_landmarks": 100},
    {"init": "k-means++"},
]


@pytest.fixture(scope="module")
def measured():
    """Return peak and plan of every fit to 50,000 vertices, one after the other in a process."""
    program = [sys.executable, "-c", RING, "50000"]
    asked = {"input": json.dumps(LARGE), "capture_output": True, "text": True, "check": True}
    found = subprocess.run(program, **asked).stdout.splitlines()
    return dict(zip(map(str, LARGE), map(json.loads, found), strict=True))


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
@pytest.mark.parametrize("options", LARGE, ids=str)
def test_fifty_thousand_vertices_take_memory_linear_in_their_number(options, measured):
    """K would be 20 GB as a matrix, and 1.8 MB as it is stored."""
    peak, planned = measured[str(options)]
    assert 0 < peak < planned < 3 * 50_000 * 36 * 8 + 80e6
