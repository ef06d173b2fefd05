"""The neighbours kernel: what it is, what it costs, and that it finds what people see."""

import itertools
import threading
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_blobs, make_circles, make_moons
from sklearn.metrics import normalized_mutual_info_score as nmi

from neighbor_data import N, built, data, weights_of
from sketchmeans import KernelEmbedding, KernelKMeans
from sketchmeans.engine import Run
from sketchmeans.kernels.neighbors import METRICS, NeighborOptions
from sketchmeans.lowrank import Request, approximate
from sketchmeans.operators import NeighborOperator
from sketchmeans.operators.anchors import Frame


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of few rows, so that there are some for every thread."""
    monkeypatch.setattr("sketchmeans.operators.neighbor_features._ROWS", 100)
    monkeypatch.setattr("sketchmeans.operators.streams.SPANS", 5)


def textbook_kernel(operator, X, weights=None):
    """K from the definition, by dense loops over the anchors that the operator has."""
    X = X.toarray() if sparse.issparse(X) else X
    rows = operator.map.frame.rows(X.astype(np.float64))
    d = np.ones(len(X)) if weights is None else weights
    total = np.zeros((len(X), len(X)))
    for anchors in operator.map.graphs:
        points = anchors.points.toarray() if sparse.issparse(anchors.points) else anchors.points
        Z = np.zeros((len(X), len(points)))
        for i, row in enumerate(rows):
            squares = np.square(row - points).sum(axis=1)
            near = np.argsort(squares, kind="stable")[: anchors.n_neighbors]
            Z[i, near] = 1 / anchors.n_neighbors
        total += Z @ np.diag(1 / (d @ Z)) @ Z.T
    return total / len(operator.map.graphs)


@cache
def partitions(n, k):
    """Return every partition into k clusters, by labels that are numbered as they come."""
    every = itertools.product(range(k), repeat=n)
    return [
        labels
        for labels in every
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels))
        and max(labels) == k - 1
    ]


def textbook_cut(A, labels):
    """Σ_c cut(c, the rest) / vol(c) of a graph with affinities A."""
    degrees = A.sum(axis=1)
    return sum(
        A[np.ix_(labels == c, labels != c)].sum() / degrees[labels == c].sum()
        for c in np.unique(labels)
    )


@pytest.mark.parametrize("weighting", ["none", "some", "zeros"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("metric", METRICS)
def test_tiles_are_the_kernel_of_the_definition(kind, metric, weighting):
    X, weights = data(kind), weights_of(weighting)
    operator = built(X, weights, metric=metric, n_anchors=40)
    plain = operator.unweighted()
    K = plain.tile(slice(0, N), slice(0, N))
    np.testing.assert_allclose(K, textbook_kernel(operator, X, weights), atol=1e-12)
    np.testing.assert_allclose(plain.diagonal(), K.diagonal(), atol=1e-14)


@pytest.mark.parametrize("weighting", ["none", "some", "zeros"])
@pytest.mark.parametrize("graphs", [1, 4])
def test_all_degrees_are_one_and_no_eigenvalue_is_negative(weighting, graphs):
    X, weights = data(), weights_of(weighting)
    operator = built(X, weights, n_anchors=50, n_graphs=graphs)
    K = operator.unweighted().tile(slice(0, N), slice(0, N))
    d = np.ones(N) if weights is None else weights
    np.testing.assert_allclose(K @ d, 1, atol=1e-13)
    assert np.linalg.eigvalsh(K)[0] > -1e-13
    assert np.linalg.matrix_rank(K) <= 50 * graphs


@pytest.mark.parametrize("weighting", ["none", "some", "zeros"])
@pytest.mark.parametrize("n_refine", [0, "auto"])
def test_the_certificate_states_the_normalized_cut_and_none_is_below_its_bound(weighting, n_refine):
    X, weights = data(), weights_of(weighting)
    model = KernelKMeans(
        3, kernel="neighbors", kernel_params={"n_anchors": 60}, n_refine=n_refine, random_state=0
    ).fit(X, sample_weight=weights)
    # The same anchors: the seed of a fit's kernel is its second number.
    seed = int(np.random.RandomState(0).randint(2**31 - 1, size=2)[1])
    operator = NeighborOperator(X, NeighborOptions(n_anchors=60), weights=weights, seed=seed)
    operator.build()
    K = operator.unweighted().tile(slice(0, N), slice(0, N))
    d = np.ones(N) if weights is None else weights
    counted = d > 0
    A = (d[:, None] * K * d)[np.ix_(counted, counted)]
    labels, certificate = model.labels_[counted], model.certificate_
    cut = textbook_cut(A, labels)
    objective = sum(K.diagonal()[i] * d[i] for i in range(N)) - sum(
        (d * (model.labels_ == c)) @ K @ (d * (model.labels_ == c)) / d[model.labels_ == c].sum()
        for c in range(3)
    )
    assert certificate.normalized_cut == pytest.approx(cut, abs=1e-10)
    assert certificate.objective == pytest.approx(objective, rel=1e-12)
    trace = float(K.diagonal() @ d)
    assert certificate.normalized_cut == pytest.approx(objective - trace + 3, abs=1e-10)
    values = np.linalg.eigvalsh(np.sqrt(d)[:, None] * K * np.sqrt(d))[::-1]
    assert certificate.normalized_cut_lower == pytest.approx((1 - values[:3]).sum(), abs=1e-9)
    if n_refine == "auto":
        assert model.inertia_ <= objective + 1e-9
        assert model.stats_["objective"] == "exact"


def test_no_partition_of_few_samples_cuts_less_than_the_bound_says(seeds):
    for seed in seeds(30):
        random = np.random.default_rng(seed)
        X = random.normal(size=(7, 2))
        weights = None if seed % 2 else random.uniform(0.2, 2, 7)
        k = 2 + seed % 3
        params = {"n_anchors": 5, "n_neighbors": 2 + seed % 2, "n_graphs": 1 + seed % 3}
        options = {"kernel_params": params, "n_init": 3, "random_state": seed}
        model = KernelKMeans(k, kernel="neighbors", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            certificate = model.fit(X, sample_weight=weights).certificate_
        seed_of_kernel = int(np.random.RandomState(seed).randint(2**31 - 1, size=2)[1])
        operator = NeighborOperator(
            X, NeighborOptions(**params), weights=weights, seed=seed_of_kernel
        )
        operator.build()
        A = operator.tile(slice(0, 7), slice(0, 7))
        d = np.ones(7) if weights is None else weights
        A = A * np.sqrt(d)[:, None] * np.sqrt(d)
        used = len(np.unique(model.labels_))
        cuts = [textbook_cut(A, np.array(labels)) for labels in partitions(7, used)]
        assert certificate.normalized_cut_lower <= min(cuts) + 1e-12
        assert min(cuts) <= certificate.normalized_cut + 1e-12


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("weighting", ["none", "zeros"])
def test_the_same_bits_on_any_threads(kind, dtype, metric, weighting, small_blocks, monkeypatch):
    monkeypatch.setattr("sketchmeans.operators.neighbor_features._ROWS", 64)  # the least there is
    n = 540  # nine blocks for eight threads
    X, weights = data(kind, dtype, n), weights_of(weighting, n)
    many = (kind, dtype, metric, weighting) == ("dense", np.float64, METRICS[0], "none")
    starts = {"n_init": "auto" if many else 3}  # ten for eight threads are enough once

    def fit(**options):
        params = {"kernel": "neighbors", "kernel_params": {"metric": metric}, **starts}
        model = KernelKMeans(3, random_state=0, **params, **options)
        return model.fit(X, sample_weight=weights)

    first = fit(n_jobs=1)
    least = KernelKMeans(3, kernel="neighbors", kernel_params={"metric": metric}, random_state=0)
    with pytest.raises(MemoryError, match="cannot be kept") as refused:
        least.set_params(memory_limit=1).fit(X)
    assert "anchors" in str(refused.value)
    others = [fit(n_jobs=threads) for threads in (3, 8)]
    found = {}
    worker = threading.Thread(target=lambda: found.update(model=fit(n_jobs=2)))
    worker.start()
    worker.join()
    for model in [*others, found["model"]]:
        assert first.embedding_.tobytes() == model.embedding_.tobytes()
        assert first.labels_.tobytes() == model.labels_.tobytes()
        assert first.inertia_ == model.inertia_
        assert first.certificate_ == model.certificate_


def test_features_that_are_made_again_are_those_that_are_held(small_blocks):
    X = data(n=2000)
    held, again = (
        approximate(
            NeighborOperator(X, NeighborOptions(), seed=0),
            "exact",
            Request(rank=4, width=4, seed=0, run=Run(2, pack)),
        )
        for pack in (True, False)
    )
    assert held.factor.tobytes() == again.factor.tobytes()
    assert held.eigenvalues.tobytes() == again.eigenvalues.tobytes()


def test_a_tight_memory_limit_makes_features_again_and_gives_the_same_bits():
    X, _ = make_blobs(60_000, 4, centers=3, random_state=0)
    free = KernelKMeans(3, kernel="neighbors", random_state=0).fit(X)
    limit = free.stats_["planned_bytes"] - 1
    tight = KernelKMeans(3, kernel="neighbors", random_state=0, memory_limit=limit).fit(X)
    assert tight.stats_["planned_bytes"] <= limit
    lowest = 30_000_000
    while True:
        try:
            lowest = int(lowest * 1.1)
            least = KernelKMeans(3, kernel="neighbors", random_state=0, memory_limit=lowest).fit(X)
            break
        except MemoryError:
            continue
    for model in (tight, least):
        assert model.labels_.tobytes() == free.labels_.tobytes()
        assert model.embedding_.tobytes() == free.embedding_.tobytes()
    placing = 4 * 9000 * 1800  # of each set a subsample, with four rows for an anchor
    assert free.stats_["distances"] == 60_000 * free.stats_["anchors"] + placing
    assert least.stats_["distances"] > free.stats_["distances"]


@pytest.mark.parametrize("weighting", ["none", "some", "zeros"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_refine", [0, 5])
def test_predict_on_training_rows_gives_their_labels_and_transform_their_embedding(
    kind, weighting, n_refine
):
    X = data(kind)
    model = KernelKMeans(3, kernel="neighbors", n_refine=n_refine, n_init=3, random_state=0)
    model.fit(X, sample_weight=weights_of(weighting))
    assert (model.predict(X) == model.labels_).all()
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-13)
    total = model.score(X, sample_weight=weights_of(weighting))
    assert total == pytest.approx(-model.inertia_, rel=1e-10)


def test_weights_are_duplicated_rows_in_the_objective_given_the_same_anchors(monkeypatch):
    X = data()
    weights = np.random.default_rng(2).integers(1, 4, N)
    repeated = np.repeat(X, weights, axis=0)
    labels = np.random.default_rng(3).integers(0, 3, N)
    one = built(X, weights.astype(float), n_anchors=40)
    other = NeighborOperator(repeated, one.options)
    other._find_graphs = lambda frame: (one.map.graphs, 0)
    monkeypatch.setattr(Frame, "of", lambda X, metric: one.map.frame)
    other.build()
    np.testing.assert_allclose(np.hstack(one.map.held), np.hstack(other.map.held), rtol=1e-13)
    K = one.unweighted().tile(slice(0, N), slice(0, N))
    L = other.tile(slice(0, len(repeated)), slice(0, len(repeated)))
    d, many = weights.astype(float), np.repeat(labels, weights)
    for cluster in range(3):
        member = d * (labels == cluster)
        inside = (many == cluster).astype(float)
        assert member @ K @ member == pytest.approx(inside @ L @ inside, rel=1e-12)
    assert K.diagonal() @ d == pytest.approx(np.trace(L), rel=1e-12)


def test_ten_columns_more_lose_the_clusters_that_as_many_as_clusters_find():
    X, y = load_digits(return_X_y=True)
    found = {
        rank: nmi(
            y,
            KernelKMeans(10, kernel="neighbors", rank=rank, n_refine=0, random_state=0).fit_predict(
                X
            ),
        )
        for rank in ("auto", 20)
    }
    assert found["auto"] > 0.83
    assert found[20] < found["auto"] - 0.03


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: make_moons(1500, noise=0.05, random_state=seed),
        lambda seed: make_circles(1500, factor=0.5, noise=0.05, random_state=seed),
    ],
)
def test_curved_clusters_are_found_with_every_option_at_its_default(draw, seeds):
    for seed in seeds(3):
        X, y = draw(seed)
        assert nmi(y, KernelKMeans(2, kernel="neighbors", random_state=seed).fit_predict(X)) > 0.95


def test_digits_are_found_better_than_by_a_width(seeds):
    X, y = load_digits(return_X_y=True)
    for seed in seeds(1):
        model = KernelKMeans(10, kernel="neighbors", random_state=seed)
        assert nmi(y, model.fit_predict(X)) > 0.83


def degenerate():
    """Data that are few, equal, constant, far away, or on several scales."""
    random = np.random.default_rng(0)
    line = np.linspace(0, 1, 30)[:, None]
    return {
        "one": np.ones((1, 2)),
        "two": np.array([[0.0, 1.0], [1.0, 0.0]]),
        "three": np.array([[0.0], [1.0], [5.0]]),
        "equal": np.full((50, 3), 7.0),
        "two distinct": np.repeat(np.array([[0.0, 0.0], [1.0, 1.0]]), 30, axis=0),
        "constant column": np.hstack([line, np.ones((30, 1))]),
        "zeros": np.zeros((20, 2)),
        "far": 1e8 + random.normal(size=(60, 2)),
        "far, float32": (1e4 + random.normal(size=(60, 2))).astype(np.float32),
        "huge": 1e200 * random.normal(size=(60, 2)),
        "tiny": 1e-200 * random.normal(size=(60, 2)),
        "outlier": np.vstack([random.normal(size=(60, 2)), [[1e8, 1e8]]]),
        "grid": np.stack(np.meshgrid(range(8), range(8)), -1).reshape(-1, 2).astype(float),
        "empty rows": sparse.csr_matrix((40, 6)),
        "subnormal": 1e-309 * random.normal(size=(40, 3)),
        "a subnormal row": np.vstack([random.normal(size=(60, 2)), [[1e-309, 0.0]]]),
        "sparse subnormal": sparse.csr_matrix(1e-309 * random.integers(0, 2, (40, 6))),
        "small beside a constant": np.column_stack([1e-200 * random.normal(size=50), np.ones(50)]),
        "one stored": sparse.csr_matrix(([1.0], ([3], [2])), shape=(40, 6)),
    }


@pytest.mark.parametrize("name", degenerate())
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_difficult_data_are_clustered_without_an_error_or_a_warning_of_numbers(name, metric):
    X = degenerate()[name]
    k = min(2, X.shape[0])
    model = KernelKMeans(k, kernel="neighbors", kernel_params={"metric": metric}, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(X)
        assert (model.predict(X) == model.labels_).all()
        assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.inertia_)
    assert model.certificate_.normalized_cut >= 0
    assert model.certificate_.normalized_cut_lower <= model.certificate_.normalized_cut + 1e-9
    assert str(model.certificate_)


def test_few_distinct_rows_are_told_apart():
    X = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [50.0, 50.0], [51.0, 50.0]]), 20, axis=0)
    for rows, k in ((X, 2), (X[:40], 2), (X[20:60], 2)):
        labels = KernelKMeans(k, random_state=0).fit_predict(rows)
        y = np.repeat(np.arange(len(rows) // 20), 20) // (2 if len(rows) == 80 else 1)
        assert nmi(y, labels) == pytest.approx(1)


def test_two_far_groups_are_found_far_from_the_origin_in_float32():
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(100, 3)), random.normal(size=(100, 3)) + 20])
    y = np.repeat([0, 1], 100)
    for shift in (0, 1e4):
        labels = KernelKMeans(2, kernel="neighbors", random_state=0).fit_predict(
            (X + shift).astype(np.float32)
        )
        assert nmi(y, labels) == pytest.approx(1)


def test_scale_and_translation_change_no_label():
    X = load_iris().data
    first = KernelKMeans(3, kernel="neighbors", random_state=0).fit_predict(X)
    for other in (X * 2.0**60, X * 2.0**-60, X * 2.0**300):
        assert (
            KernelKMeans(3, kernel="neighbors", random_state=0).fit_predict(other) == first
        ).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": 0.5}, "gamma=0.5 is not read with kernel='neighbors'. Add kernel='rbf'"),
        ({"degree": 2}, "Add kernel='polynomial'"),
        ({"method": "nystrom"}, "method='nystrom' is not read with kernel='neighbors'"),
        ({"n_landmarks": 50}, "n_landmarks=50 is not read"),
        ({"n_passes": 2}, "n_passes=2 is not read"),
        ({"oversampling": 2}, "oversampling=2 is not read"),
        ({"sketch": "gaussian"}, "sketch='gaussian' is not read"),
        ({"truncation": "early"}, "truncation='early' is not read"),
        ({"precision": "float32"}, "precision='float32' is not read"),
        ({"rank": 0.9}, "rank=0.9 asks for a share of the trace"),
        ({"kernel_params": {"width": 3}}, "knows n_anchors, n_neighbors, n_graphs, metric"),
        ({"kernel_params": {"n_anchors": 0}}, "n_anchors=0"),
        ({"kernel_params": {"n_anchors": "many"}}, "n_anchors='many'"),
        ({"kernel_params": {"n_anchors": 3}}, "n_anchors=3 is less than n_neighbors=5"),
        ({"kernel_params": {"n_neighbors": 0}}, "n_neighbors=0"),
        ({"kernel_params": {"n_graphs": -1}}, "n_graphs=-1"),
        ({"kernel_params": {"n_graphs": 1001}}, "n_graphs=1001 is more than 1000"),
        ({"kernel_params": {"n_anchors": np.ones(2)}}, "must be a whole number"),
        ({"kernel_params": {"metric": "manhattan"}}, "metric='manhattan'"),
    ],
)
def test_options_that_this_kernel_does_not_read_or_know_are_refused_by_name(options, words):
    with pytest.raises((ValueError, TypeError)) as refused:
        KernelKMeans(2, kernel="neighbors", **options).fit(data())
    assert words in str(refused.value)


def test_an_embedding_of_this_kernel_has_as_many_columns_as_are_asked_for():
    X = data()
    model = KernelEmbedding(3, kernel="neighbors", random_state=0).fit(X)
    assert model.embedding_.shape == (N, 3)
    assert model.eigenvalues_[0] == pytest.approx(1)
    Y = KernelEmbedding(kernel="neighbors", random_state=0).fit_transform(X)
    assert Y.shape == (N, 8)
