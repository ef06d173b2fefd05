"""Against code that others wrote: scikit-learn, SciPy's eigensolvers, a semidefinite solver.

Algorithm 1 as printed is held against a dense textbook version in ``test_one_pass``, Lloyd's
iterations in ``test_lowrank``, tiles against scikit-learn's kernels in ``test_kernels``.
"""

import warnings

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import kneighbors_graph
from soak.cuts import textbook_cut
from soak.truth import objectives, partitions

from oracles import EXAMPLES, algorithm_1, dense_kernel
from sketchmeans import KernelEmbedding, KernelKMeans, certify
from sketchmeans.graphs import normalized
from sketchmeans.lowrank import one_pass
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import SKETCHES, make_sketch

DTYPES = [np.float32, np.float64]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-11}


def their_kernel(name, X, Y=None):
    kernel = EXAMPLES[name]
    options = {key: getattr(kernel, key) for key in kernel.options()}
    return pairwise_kernels(X, Y, metric={"polynomial": "poly"}.get(name, name), **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_kernels_of_new_points_are_those_of_scikit_learn(name, make, dtype, points):
    X, new = make(points[:200].astype(dtype)), make(points[200:].astype(dtype))
    right = np.random.default_rng(0).normal(size=(200, 3))
    found = DataOperator(X, EXAMPLES[name], dtype=dtype).against(new).multiply(right)
    truth = their_kernel(name, points[200:].astype(dtype).astype(float), X.astype(float)) @ right
    assert np.abs(found - truth).max() <= TOLERANCE[dtype] * np.abs(truth).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name, one in EXAMPLES.items() if one.is_psd])
def test_every_sketch_recovers_what_the_textbook_does(name, dtype, points):
    X = points[:120].astype(dtype)
    K = their_kernel(name, X.astype(float))
    for sketch in SKETCHES:
        Omega = make_sketch(sketch, 120, 12, 3)
        found = one_pass(DataOperator(X, EXAMPLES[name], dtype=dtype), Omega, rank=12)
        truth = algorithm_1(K, Omega.matrix.astype(float))
        off = np.linalg.norm(found.factor @ found.factor.T - truth)
        assert off <= (3e-4 if dtype == np.float32 else 1e-9) * np.linalg.norm(K), sketch


@pytest.mark.parametrize("rank", [1, 5, 40])
@pytest.mark.parametrize("name", [name for name, one in EXAMPLES.items() if one.is_psd])
def test_exact_eigenvalues_are_those_of_scipy(name, rank, points):
    options = {key: getattr(EXAMPLES[name], key) for key in EXAMPLES[name].options()}
    model = KernelEmbedding(rank, kernel=name, method="exact", **options).fit(points[:150])
    K = their_kernel(name, points[:150])
    values, vectors = eigsh(K, k=rank, which="LA", v0=np.ones(150))
    found = model.eigenvalues_
    np.testing.assert_allclose(found, values[::-1][: len(found)], atol=1e-10 * values[-1])
    Y = model.embedding_
    residual = K @ Y - Y * found
    assert np.linalg.norm(residual) <= 1e-10 * values[-1] ** 1.5
    if len(found) == rank:  # as many as K has, to rounding
        best = vectors * values @ vectors.T
        assert np.linalg.norm(Y @ Y.T - best) <= 1e-7 * values[-1]


def test_the_embedding_of_a_centred_kernel_is_kernel_pca(points):
    X = points[:150]
    theirs = KernelPCA(6, kernel="rbf", gamma=0.1).fit(X)
    J = np.eye(150) - 1 / 150
    centred = J @ pairwise_kernels(X, metric="rbf", gamma=0.1) @ J
    ours = KernelEmbedding(6, kernel="precomputed", method="exact").fit((centred + centred.T) / 2)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(theirs.transform(X)), atol=1e-8)


@pytest.mark.parametrize("count", [5, 30])
def test_all_columns_of_nystrom_hold_what_scikit_learn_s_nystroem_holds(count, points):
    """From the landmarks that it drew, as a kernel of new points, too."""
    X = points[:150]
    theirs = Nystroem(kernel="rbf", gamma=0.1, n_components=count, random_state=0).fit(X[:100])
    K = pairwise_kernels(X, theirs.components_, metric="rbf", gamma=0.1)
    A = K[theirs.component_indices_]
    F = theirs.transform(X)
    np.testing.assert_allclose(F @ F.T, K @ np.linalg.pinv(A, hermitian=True) @ K.T, atol=1e-7)
    chosen = X[:100][theirs.component_indices_]
    ours = KernelEmbedding(
        count, kernel="rbf", gamma=0.1, method="nystrom", n_landmarks=count, random_state=0
    ).fit(chosen)  # no more samples than landmarks: these are the samples
    Y = ours.transform(X)
    np.testing.assert_allclose(Y @ Y.T, F @ F.T, atol=1e-7)


def graph(seed):
    """Communities of a graph of nearest neighbours, and their labels."""
    X, y = make_blobs(150, centers=3, cluster_std=1.3, random_state=seed)
    A = kneighbors_graph(X, 10)
    return sparse.csr_matrix(A.maximum(A.T)), y


@pytest.mark.parametrize("seed", range(4))
def test_the_cut_of_a_given_graph_is_not_above_that_of_spectral_clustering(seed):
    A, _ = graph(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of these graphs are not connected, as they say
        theirs = SpectralClustering(3, affinity="precomputed", random_state=0).fit(A).labels_
        kernel, weights = normalized(A)
        model = KernelKMeans(3, kernel="precomputed", method="exact", rank=3, n_refine=20)
        ours = model.set_params(random_state=0).fit(kernel, sample_weight=weights).labels_
    dense = A.toarray()
    assert textbook_cut(dense, ours) <= textbook_cut(dense, theirs) * (1 + 1e-9) + 1e-12
    assert adjusted_rand_score(ours, theirs) > 0.9


def test_the_embedding_of_a_graph_spans_scikit_learn_s_spectral_embedding():
    A = graph(1)[0].astype(float)
    A = A + sparse.csr_matrix(np.full((150, 150), 1e-3))  # so that it is connected
    kernel, weights = normalized(A)
    options = {"kernel": "precomputed", "method": "exact", "rank": 3}
    ours = KernelKMeans(3, random_state=0, **options).fit(kernel, sample_weight=weights).embedding_
    theirs = spectral_embedding(A, n_components=3, drop_first=False, random_state=0)
    Q, R = (np.linalg.qr(np.asarray(rows))[0] for rows in (ours, theirs))
    np.testing.assert_allclose(np.linalg.svd(Q.T @ R)[1], 1, atol=1e-6)


def relaxation(K, k, *, triangles):
    """tr K − max ⟨K, P⟩ over P ≽ 0, P ≥ 0, P1 = 1, tr P ≤ k, and the triangles, by Clarabel."""
    n = len(K)
    i, j = np.triu_indices(n)
    order = np.lexsort((i, j))  # columns of the upper triangle, one after the other
    i, j = i[order], j[order]
    place = np.zeros((n, n), int)
    place[i, j] = place[j, i] = np.arange(len(i))
    stretch = np.where(i == j, 1.0, np.sqrt(2))

    def entry(*terms):
        row = np.zeros(len(i))
        for one, two, factor in terms:
            row[place[one, two]] += factor / stretch[place[one, two]]
        return row

    equal = [entry(*[(a, b, 1.0) for b in range(n)]) for a in range(n)]
    below = [entry((a, b, -1.0)) for a in range(n) for b in range(a)]
    below.append(entry(*[(a, a, 1.0) for a in range(n)]))
    most = [*[0.0] * (len(below) - 1), float(k)]
    if triangles:
        pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
        cuts = [entry((a, b, 1.0), (a, a, -1.0)) for a, b in pairs]
        cuts += [
            entry((a, b, 1.0), (a, c, 1.0), (a, a, -1.0), (b, c, -1.0))
            for a, b in pairs
            for c in range(b)
            if c != a
        ]
        below, most = below + cuts, most + [0.0] * len(cuts)
    matrix = sparse.csc_matrix(np.array([*equal, *below, *-np.eye(len(i))]))
    right = np.array([*[1.0] * n, *most, *[0.0] * len(i)])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(len(below))]
    cones.append(clarabel.PSDTriangleConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    goal = -(K[i, j] * stretch)
    nothing = sparse.csc_matrix((len(i), len(i)))
    solver = clarabel.DefaultSolver(nothing, goal, matrix, right, cones, settings)
    return float(np.trace(K)) + solver.solve().obj_val


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(5))
def test_lifted_proofs_are_those_of_a_semidefinite_solver(seed, kernel):
    """Never above it, and so near that the labels' gap would be the same to a tenth of it."""
    random = np.random.default_rng(seed)
    n, k = 9, 2 + seed % 2
    X = random.normal(size=(n, 2)) + 2 * random.integers(0, k, (n, 1))
    options = {"gamma": 0.3} if kernel == "rbf" else {}
    K = pairwise_kernels(X, metric=kernel, **options)
    squares = np.diag(K)[:, None] + np.diag(K) - 2 * K
    every = partitions(n, k)
    values = objectives(squares, np.ones(n), every)
    labels, best = every[values.argmin()], float(values.min())
    for level, triangles in (("lifted", False), ("triangles", True)):
        bound = certify(X, labels, kernel=kernel, effort=level, n_jobs=1, **options).optimum_lower
        truth = relaxation(K, k, triangles=triangles)
        assert truth <= best + 1e-6 * best
        assert bound <= truth + 1e-6 * best
        assert bound >= truth - 0.02 * best


def test_the_solver_s_relaxation_without_cuts_is_above_the_spectral_bound(points):
    K = dense_kernel(DataOperator(points[:8], EXAMPLES["rbf"]))
    labels = np.arange(8) % 3
    options = {"kernel": "rbf", "gamma": EXAMPLES["rbf"].gamma, "n_jobs": 1}
    spectral = certify(points[:8], labels, effort="blocks", **options).optimum_lower
    assert spectral <= relaxation(K, 3, triangles=False) + 1e-6
