"""Sparse kernels: what the same dense ones give, at the cost of what is stored."""

import sys

import numpy as np
import pytest
from scipy import sparse

from graph_data import changed, graph
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.engine.run import Run
from sketchmeans.estimators.checks import check_precomputed
from sketchmeans.estimators.full import INITS
from sketchmeans.lowrank import METHODS
from sketchmeans.operators import SparseOperator
from sketchmeans.operators import graphs as operators_graphs
from sketchmeans.sketches import make_sketch

SKETCHED = [
    (name, sketch)
    for name, method in METHODS.items()
    for sketch in method.sketches or ("auto",)
    if sketch != "kmeans"  # it puts landmarks among points
]
FORMATS = ["csr", "csc", "coo", "dia", "lil", "bsr"]


@pytest.fixture(scope="module")
def kernel():
    return graph().kernel


WEIGHTS = {
    "plain": lambda n: None,
    "weighted": lambda n: np.random.default_rng(1).uniform(0.5, 2, n),
    "some left out": lambda n: np.random.default_rng(1).integers(0, 3, n),
}


@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize(("method", "sketch"), SKETCHED)
def test_a_sparse_kernel_gives_what_the_same_dense_one_gives(kernel, method, sketch, weighting):
    weights = WEIGHTS[weighting](400)
    options = {"method": method, "rank": 6, "n_refine": 2, "n_init": 2, "random_state": 0}
    few, all_ = (
        KernelKMeans(4, kernel="precomputed", sketch=sketch, **options).fit(
            K, sample_weight=weights
        )
        for K in (kernel, kernel.toarray())
    )
    for one, other in (
        (few.embedding_ @ few.embedding_.T, all_.embedding_ @ all_.embedding_.T),
        (few.eigenvalues_, all_.eigenvalues_),
        (few.inertia_, all_.inertia_),
        (few.certificate_.optimum_lower, all_.certificate_.optimum_lower),
        (few.certificate_.objective_upper, all_.certificate_.objective_upper),
        (few.score(kernel, sample_weight=weights), -few.inertia_),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(few.labels_, all_.labels_)


@pytest.mark.parametrize("refine", [0, 2])
@pytest.mark.parametrize(("method", "sketch"), SKETCHED)
def test_rows_of_new_points_may_be_sparse_or_dense(kernel, method, sketch, refine):
    model = KernelKMeans(4, kernel="precomputed", method=method, sketch=sketch, n_refine=refine)
    model.set_params(rank=6, random_state=0).fit(kernel)
    np.testing.assert_array_equal(model.predict(kernel), model.labels_)
    for make in (sparse.csr_array, sparse.coo_matrix, lambda rows: rows.toarray()):
        rows = make(kernel[100:200])
        np.testing.assert_array_equal(model.predict(rows), model.labels_[100:200])
        expected = model.transform(kernel[100:200])
        np.testing.assert_allclose(model.transform(rows), expected, rtol=1e-9, atol=1e-12)
    if refine:
        with pytest.raises(ValueError, match=r"need κ\(x, x\), which rows of a precomputed kernel"):
            model.score(kernel[:100])


@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("limit", [3000, 10], ids=["cached", "streamed"])
@pytest.mark.parametrize("init", INITS)
def test_full_kernel_k_means_takes_sparse_kernels(kernel, init, limit, weighting, monkeypatch):
    monkeypatch.setattr("sketchmeans.estimators.full.CACHE_LIMIT", limit)
    weights, options = WEIGHTS[weighting](400), {"init": init, "n_init": 1, "random_state": 0}
    few, all_ = (
        FullKernelKMeans(4, kernel="precomputed", **options).fit(K, sample_weight=weights)
        for K in (kernel, kernel.toarray())
    )
    np.testing.assert_array_equal(few.labels_, all_.labels_)
    np.testing.assert_allclose(few.inertia_, all_.inertia_, rtol=1e-12)
    np.testing.assert_array_equal(few.predict(kernel), few.labels_)
    np.testing.assert_array_equal(few.predict(kernel.toarray()), few.labels_)
    if limit == 10 and init != "sketch":
        n, stored, stats = 400, kernel.nnz, few.stats_
        starting, certifying = n * 4 + n, n
        assert stats["kernel_entries"] == stats["passes"] * stored + starting + certifying


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("refine", [0, 2])
def test_a_pass_reads_each_stored_entry_once(kernel, passes, refine):
    model = KernelKMeans(4, kernel="precomputed", method="one-pass", n_passes=passes)
    stats = model.set_params(n_refine=refine, random_state=0).fit(kernel).stats_
    assert passes + bool(refine) <= stats["passes"] <= passes + refine
    assert stats["kernel_entries"] == stats["passes"] * kernel.nnz


class CountedEntries(np.ndarray):
    """Numbers of a sparse matrix that count how many of them are read."""

    read = 0

    def __getitem__(self, where):
        found = super().__getitem__(where)
        type(self).read += np.size(found)
        return found.view(np.ndarray) if isinstance(found, np.ndarray) else found


def test_what_a_pass_says_that_it_reads_is_what_it_reads(kernel):
    counted = kernel.copy()
    counted.data = counted.data.view(CountedEntries)
    operator = SparseOperator(counted)
    for width, type_ in ((3, float), (400, np.int8)):
        CountedEntries.read = 0
        Omega = np.random.default_rng(0).integers(-1, 2, (400, width)).astype(type_)
        result = operator.multiply(Omega, Run(2))
        assert result.entries == CountedEntries.read == kernel.nnz
        np.testing.assert_allclose(result.W, kernel.toarray() @ Omega, atol=1e-14)


def test_methods_without_tiles_count_columns_as_dense_and_passes_as_stored(kernel, monkeypatch):
    options = {"kernel": "precomputed", "rank": 5, "random_state": 0}
    model = KernelEmbedding(method="nystrom", sketch="column-norm", n_landmarks=30, **options)
    assert model.fit(kernel).stats_["kernel_entries"] == kernel.nnz + 400 * 30 + 400
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.exact"], "DENSE_LIMIT", 50)
    stats = KernelEmbedding(method="exact", **options).fit(kernel).stats_
    assert stats["kernel_entries"] == stats["passes"] * kernel.nnz + 400


def test_method_auto_takes_the_eigenvectors_and_says_why(kernel):
    stats = KernelKMeans(4, kernel="precomputed", random_state=0).fit(kernel).stats_
    assert stats["method"] == "exact"
    assert "clusters of a graph are in its eigenvectors" in stats["why"]


def test_every_method_gives_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(operators_graphs, "STORED", 1000)  # blocks for every thread
    K, weights = graph(1500)
    for method in METHODS:
        models = [
            KernelKMeans(4, kernel="precomputed", method=method, rank=6, n_refine=1, n_jobs=jobs)
            .set_params(random_state=0, n_init=2)
            .fit(K, sample_weight=weights)
            for jobs in (1, 2, 3, 8)
        ]
        for model in models[1:]:
            for name in ("embedding_", "labels_", "inertia_", "cluster_centers_"):
                np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name))
            assert model.certificate_ == models[0].certificate_
            np.testing.assert_array_equal(model.transform(K), models[0].transform(K))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pass_has_the_same_bits_on_any_number_of_threads_and_measures_its_error(dtype):
    K, weights = graph(9000)  # more rows than a block
    sketch = make_sketch("hadamard", 9000, 30, 0)
    operator = SparseOperator(K.astype(dtype), dtype=dtype, weights=weights)
    expected = operator.multiply(sketch)
    exact = SparseOperator(K, weights=weights).multiply(sketch).W
    true = np.linalg.norm(expected.W - exact) / np.linalg.norm(exact)
    if dtype == np.float32:
        assert 0.3 * true < expected.relative_error < 3 * true < 3e-6
    else:
        assert expected.relative_error == true == 0
    for n_threads in (2, 3, 8):
        result = operator.multiply(sketch, Run(n_threads, pack=False))
        np.testing.assert_array_equal(result.W, expected.W)
        np.testing.assert_array_equal(result.row_sums, expected.row_sums)
        assert result.sum_of_squares == expected.sum_of_squares


def test_blocks_hold_about_as_many_entries_however_skewed_the_rows(monkeypatch):
    monkeypatch.setattr(operators_graphs, "STORED", 100)
    sizes = np.array([0, 0, 250, 3, 90, 20, 0, 1, 0, 99, 1, 0])
    blocks = operators_graphs.stored_blocks(np.concatenate([[0], np.cumsum(sizes)]))
    assert [int(sizes[rows].sum()) for rows in blocks] == [0, 250, 93, 21, 100]
    assert np.concatenate([np.arange(12)[rows] for rows in blocks]).tolist() == list(range(12))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("make", ["matrix", "array"])
def test_any_sparse_format_is_taken(kernel, kind, make):
    given = getattr(sparse, f"{kind}_{make}")(kernel[:100, :100])
    options = {"kernel": "precomputed", "rank": 4, "random_state": 0}
    expected = KernelKMeans(3, **options).fit(kernel[:100, :100])
    model = KernelKMeans(3, **options).fit(given)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_any_numbers_are_taken(kernel):
    options = {"kernel": "precomputed", "rank": 4, "random_state": 0}
    expected = KernelEmbedding(**options).fit(kernel).embedding_

    def embedding(K, **more):
        return KernelEmbedding(**options, **more).fit(K).embedding_

    wide = kernel.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(embedding(wide), expected)
    zeros = kernel.copy()
    zeros.data[zeros.data < 0.01 * zeros.data.max()] = 0
    np.testing.assert_array_equal(embedding(zeros), embedding(sparse.csr_matrix(zeros.toarray())))
    swapped = kernel.copy()
    swapped.data = swapped.data.astype(">f8")
    np.testing.assert_array_equal(embedding(swapped), expected)
    single = embedding(kernel.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ single.T, expected @ expected.T, atol=2e-6)
    single = embedding(kernel, precision="float32")
    assert single.dtype == np.float64
    np.testing.assert_allclose(single @ single.T, expected @ expected.T, atol=2e-6)
    whole = (kernel > 0).astype(int) + 30 * sparse.eye_array(400, dtype=int, format="csr")
    np.testing.assert_array_equal(embedding(whole), embedding(whole.astype(float)))
    blocks = sparse.block_diag([np.ones((5, 5), bool)] * 4, format="csr")
    labels = KernelKMeans(4, rank=4, kernel="precomputed", random_state=0).fit(blocks).labels_
    assert len(np.unique(labels.reshape(4, 5), axis=1)[0]) == 1
    assert len(np.unique(labels)) == 4


@pytest.mark.parametrize("estimator", [KernelKMeans, FullKernelKMeans])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_samples_and_rows_without_entries_are_clustered(n, estimator):
    for K in (sparse.eye_array(n, format="csr"), sparse.csr_matrix((n, n))):
        for weights in (None, np.arange(1, n + 1), np.eye(n)[0]):
            model = estimator(1, kernel="precomputed", random_state=0)
            model.fit(K, sample_weight=weights)
            np.testing.assert_array_equal(model.labels_, np.zeros(n))
            np.testing.assert_array_equal(model.predict(K), np.zeros(n))


@pytest.mark.parametrize("method", METHODS)
def test_rows_without_entries_get_some_label(kernel, method):
    K = sparse.block_diag([kernel, sparse.csr_matrix((5, 5))], format="csr")
    model = KernelKMeans(4, kernel="precomputed", rank=5, method=method, random_state=0).fit(K)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_allclose(model.embedding_[400:], 0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(K), model.labels_)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (sparse.eye_array(9, 8), r"must be square, not 9 × 8"),
        (
            changed(sparse.eye_array(9), 6, 2, 0.5, both=False),
            r"symmetric, but K\[6, 2\] = 0.5 and K\[2, 6\] = 0\. .*K = K.maximum\(K.T\) joins",
        ),
        (
            changed(changed(sparse.eye_array(9), 2, 6, 0.5), 6, 2, 0.6, both=False),
            r"symmetric, but K\[2, 6\] = 0.5 and K\[6, 2\] = 0.6",
        ),
        (changed(sparse.eye_array(9), 5, 7, np.nan), r"row 5 of the precomputed kernel holds nan"),
        (changed(sparse.eye_array(9), 3, 1, np.inf), r"row 1 of the precomputed kernel holds inf"),
        (changed(sparse.eye_array(9), 4, 4, np.nan), r"K\[4, 4\] is NaN on the diagonal"),
        (changed(sparse.eye_array(9), 4, 4, -2), r"K\[4, 4\] = -2 is negative"),
        (sparse.eye_array(9) * 1j, r"Complex data not supported|real numbers"),
    ],
    ids=["not square", "one-sided", "unequal", "NaN", "inf", "NaN diagonal", "negative", "complex"],
)
def test_a_bad_sparse_kernel_is_refused(K, message):
    for estimator in (KernelKMeans, FullKernelKMeans):
        with pytest.raises(ValueError, match=message):
            estimator(2, kernel="precomputed").fit(K)


def test_one_entry_among_thousands_that_is_not_symmetric_is_found(monkeypatch):
    monkeypatch.setattr(operators_graphs, "STORED", 500)
    K = graph(1500).kernel
    check_precomputed(K, 0)
    random = np.random.default_rng(0)
    for place in random.choice(K.nnz, 20, replace=False):
        i = int(np.searchsorted(K.indptr, place, side="right")) - 1
        j = int(K.indices[place])
        if i == j:
            continue
        one_sided, rounded = K.copy(), K.copy()
        one_sided.data[place] *= 1.001
        rounded.data[place] *= 1 + 1e-9
        check_precomputed(rounded, 0)
        names = rf"K\[{min(i, j)}, {max(i, j)}\] = "
        with pytest.raises(ValueError, match=names):
            check_precomputed(one_sided, 0)
        one_sided.data[place] = 0
        one_sided.eliminate_zeros()
        with pytest.raises(ValueError, match=rf"= 0\. |K\[{i}, {j}\] = 0 "):
            check_precomputed(one_sided, 0)


def test_entries_too_large_to_square_are_refused_by_a_pass():
    K = changed(sparse.eye_array(9), 2, 3, 1e200)
    with pytest.raises(ValueError, match="far too large value among rows 0:9"):
        SparseOperator(sparse.csr_matrix(K)).multiply(np.ones((9, 1)))
