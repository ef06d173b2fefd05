"""Bounds where they were wrong once: narrow ranks, far from the origin, indefinite kernels."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.preprocessing import StandardScaler
from soak.bounds import run
from soak.truth import objectives, partitions

from oracles import certificate_of, objective
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.certificate.bracket import bracket
from sketchmeans.certificate.gap import gap_bound
from sketchmeans.certificate.moments import moments
from sketchmeans.certificate.optimum import optimum_lower_bound
from sketchmeans.kernels import Cosine, Gaussian, Linear
from sketchmeans.lowrank import METHODS, IndefiniteKernelWarning, Request, approximate, one_pass
from sketchmeans.lowrank.cholesky import _accept, _Factor
from sketchmeans.lowrank.core import judge
from sketchmeans.operators import CallableOperator, DataOperator, PrecomputedOperator
from sketchmeans.operators.tiles import PlainTiles
from sketchmeans.sketches import make_sketch

BLOBS = make_blobs(600, centers=2, random_state=0)[0]
SETS = {
    "iris": StandardScaler().fit_transform(load_iris().data),
    "wine": StandardScaler().fit_transform(load_wine().data),
    "blobs": BLOBS,
}


def rbf(X, gamma):
    return np.exp(-gamma * np.square(X[:, None] - X[None]).sum(axis=2))


def solved(X, k, rank, oversampling, c, seed):
    """A fit with many starts on a narrow embedding, and the gap to a good clustering of K."""
    gamma = f"{c}*median"
    options = {
        "kernel": "rbf",
        "rank": rank,
        "oversampling": oversampling,
        "n_init": 30,
        "random_state": seed,
    }
    model = KernelKMeans(k, gamma=gamma, **options).fit(X)
    K = rbf(X, model.gamma_)
    good = KernelKMeans(
        k,
        gamma=gamma,
        rank=min(len(X) // 4, 60),
        n_passes=2,
        n_refine=10,
        random_state=seed,
        kernel="rbf",
    ).fit(X)
    return model, objective(K, model.labels_) - objective(K, good.labels_)


@pytest.mark.parametrize("name", SETS)
def test_the_gap_bound_holds_for_ranks_far_below_the_sketch(name):
    """‖JK̂_rJ‖_F² of the embedding belongs into it, not squares of all columns."""
    for k, rank, c, seed in ((2, 1, 1, 0), (2, 1, 4, 1), (3, 2, 1, 2), (3, 1, 4, 3), (4, 2, 16, 4)):
        model, gap = solved(SETS[name], k, rank, 40, c, seed)
        assert gap <= model.certificate_.gap_bound
        assert model.certificate_.gap_bound <= model.certificate_.trace_error * (1 + 1e-9)


def test_the_gap_bound_is_taken_at_the_worst_trace_of_its_interval():
    """Where f² binds, the sum of leading eigenvalues falls when the trace grows."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    low = one_pass(DataOperator(X, Gaussian(5.0)), make_sketch("hadamard", 200, 20, 0), rank=5)
    known = moments(low)
    point = replace(known, trace_lower=known.trace_upper)
    wide = replace(known, trace_lower=0.9 * known.trace_upper)
    u = np.full(200, 200**-0.5)
    sharp, safe = (gap_bound(low, one, 3, np.float64, u) for one in (point, wide))
    assert safe > sharp * 1.001


def test_samples_far_from_the_origin_keep_a_valid_bound(seeds):
    X = np.random.default_rng(0).integers(-8, 9, (500, 4)) + 1e6
    truth = np.square(X - X.mean(axis=0)).sum()
    for method in METHODS:
        for seed in seeds(3):
            options = {"kernel": "linear", "method": method, "rank": 4, "random_state": seed}
            certificate = KernelKMeans(1, **options).fit(X).certificate_
            assert certificate.optimum_lower <= truth <= certificate.objective_upper
            assert certificate.relative_gap is None or certificate.relative_gap >= 0


def test_a_nearly_constant_kernel_keeps_a_valid_bound(seeds):
    for seed in seeds(40):
        X = np.sort(np.random.default_rng(seed).integers(0, 50, (40, 1)).astype(float), axis=0)
        model = KernelKMeans(2, kernel="laplacian", gamma=1e-11, random_state=seed).fit(X)
        D = -2 * np.expm1(-1e-11 * np.abs(X - X.T))
        splits = np.array([np.arange(40) >= i for i in range(1, 40)]).astype(int)
        assert model.certificate_.optimum_lower <= objectives(D, np.ones(40), splits).min()


def test_no_bound_needs_orthogonal_columns():
    """A factor that was rotated has the same K̂, and the same certificate."""
    X = np.random.default_rng(0).normal(size=(150, 3))
    operator = DataOperator(X, Gaussian(0.5))
    low = one_pass(operator, make_sketch("hadamard", 150, 12, 0), rank=12)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    turned = low.factor @ rotation
    other = replace(low, factor=turned, eigenvalues=np.square(turned).sum(axis=0))
    labels = np.arange(150) % 4
    one, two = certificate_of(operator, labels, low), certificate_of(operator, labels, other)
    for name in ("gap_bound", "objective_lower", "objective_upper", "optimum_lower"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-8)


def test_refined_float32_labels_are_not_said_to_be_better_than_they_are(seeds):
    for seed in seeds(30):
        X = np.random.default_rng(seed).normal(size=(200, 3)).astype(np.float32)
        model = KernelKMeans(4, n_refine=1, random_state=seed, kernel="rbf").fit(X)
        K = rbf(X.astype(float), model.gamma_)
        found = objectives(2 - 2 * K, np.ones(200), model.labels_[None])[0]
        certificate = model.certificate_
        assert certificate.objective_lower <= found <= certificate.objective_upper
        assert certificate.objective_upper <= found * 1.001


@pytest.mark.parametrize("offset", [1e5, 1e8])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_exact_objective_says_what_rounding_leaves_of_it(offset, streamed, monkeypatch):
    monkeypatch.setattr("sketchmeans.estimators.full.CACHE_LIMIT", 0 if streamed else 3000)
    X = np.random.default_rng(1).normal(size=(300, 3)) + offset
    for model in (
        KernelKMeans(3, kernel="linear", n_refine=1, n_init=10, random_state=0).fit(X),
        FullKernelKMeans(3, kernel="linear", n_init=1, random_state=0).fit(X),
    ):
        certificate, labels = model.certificate_, model.labels_
        found = sum(np.square(X[labels == c] - X[labels == c].mean(axis=0)).sum() for c in range(3))
        assert certificate.objective_lower <= found <= certificate.objective_upper
        if offset == 1e8:
            assert "exactly" not in str(certificate)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_measures_how_well_it_knows_the_entries(method, monkeypatch):
    """An error of the tiles that no formula knows shows in ε, for every method."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    operator = DataOperator(X, Gaussian(0.5))
    ask = Request(rank=5, width=10, seed=0)
    honest = approximate(operator, method, ask)
    assert 0 < honest.facts.rounding < 1e-12
    assert honest.cost.audit_entries > 0
    plain = PlainTiles.__call__

    def wrong(self, rows, columns, out=None):
        return plain(self, rows, columns, out) * (1 + 1e-6)

    monkeypatch.setattr(PlainTiles, "__call__", wrong)
    assert approximate(operator, method, ask).facts.rounding >= 1e-6


def test_an_error_of_scale_is_seen():
    """Norms of sparse float32 rows are summed in float64, and audited by norms of their own."""
    random = np.random.default_rng(0)
    X = sparse.random(60, 4000, density=0.5, format="csr", dtype=np.float32, random_state=0)
    X.data += random.uniform(0.1, 1, X.nnz).astype(np.float32)
    operator = DataOperator(X, Cosine())
    exact = X.astype(np.float64)
    truth = 1 / np.sqrt(np.asarray(exact.multiply(exact).sum(axis=1)).ravel())
    np.testing.assert_allclose(operator.points.prepared.scale, truth, rtol=1e-12)
    sketch = make_sketch("hadamard", 60, 10, 0)
    result = operator.multiply(sketch)
    operator.points._scale *= 1 + 1e-4
    wrong = operator.multiply(sketch)
    assert operator.relative_error(sketch.matrix, result, 0)[0] < 1e-5
    assert operator.relative_error(sketch.matrix, wrong, 0)[0] > 1e-4
    np.testing.assert_array_equal(operator.diagonal(), np.ones(60))


def thresholded():
    X = np.random.default_rng(0).normal(size=(300, 2))
    K = rbf(X, 1.0)
    return np.where(K > 0.3, K, 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_an_indefinite_kernel_gets_no_bound_for_any_seed(method, seeds):
    K = thresholded()
    assert np.linalg.eigvalsh(K)[0] < -1
    for seed in seeds(20):
        model = KernelKMeans(3, kernel="precomputed", method=method, random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            certificate = model.fit(K).certificate_
        warned = any(issubclass(one.category, IndefiniteKernelWarning) for one in caught)
        assert warned
        assert certificate.optimum_lower is certificate.objective_upper is None
        assert "Negative eigenvalues were seen" in certificate.reason


def cliques():
    return np.kron(np.eye(2), np.ones((15, 15))) - np.eye(30)


def one_row():
    K = np.eye(100)
    K[0, 1:11] = K[1:11, 0] = 3.0
    return K


@pytest.mark.parametrize("K", [cliques(), one_row(), -np.abs(np.arange(9.0)[:, None] - range(9))])
@pytest.mark.parametrize(
    ("method", "options"),
    [(name, {}) for name in METHODS]
    + [
        ("nystrom", {"truncation": "early", "sketch": sketch})
        for sketch in ("uniform", "column-norm")
    ],
)
def test_no_bound_is_shown_that_an_indefinite_kernel_breaks(K, method, options, seeds):
    """Zero diagonals, landmarks that look well by chance, the early form of Nyström."""
    for seed in seeds(8):
        rank = {"rank": 1, "n_landmarks": 1} if method == "nystrom" else {}
        model = KernelKMeans(
            2, kernel="precomputed", method=method, random_state=seed, **rank, **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(K)
        certificate = model.certificate_
        if certificate.objective_upper is not None:
            found = objective(K, model.labels_)
            assert certificate.objective_lower <= found <= certificate.objective_upper
    with pytest.warns(IndefiniteKernelWarning):
        KernelKMeans(2, kernel="precomputed", method="rpcholesky", random_state=0).fit(cliques())


def test_full_kernel_k_means_shows_no_bound_for_an_indefinite_kernel():
    random = np.random.default_rng(0)
    K = random.normal(size=(60, 60))
    K = (K + K.T) / 2
    np.fill_diagonal(K, 1.0)
    certificate = FullKernelKMeans(3, kernel="precomputed", random_state=0).fit(K).certificate_
    assert certificate.objective is not None
    assert certificate.optimum_lower is certificate.objective_upper is None
    assert "Negative eigenvalues were seen" in str(certificate)


def test_bounds_that_contradict_each_other_are_not_shown():
    K = np.eye(60)
    operator = PrecomputedOperator(K)
    low = approximate(operator, "exact", Request(rank=60, width=60, seed=0))
    assert certificate_of(operator, np.arange(60) % 3, low).optimum_lower is not None
    for facts in (
        replace(low.facts, trace=30.0),
        replace(low.facts, row_sums=2 * low.facts.row_sums),
    ):
        certificate = certificate_of(operator, np.arange(60) % 3, replace(low, facts=facts))
        assert certificate.optimum_lower is certificate.objective_upper is None
        assert "contradict each other" in certificate.reason
        assert "at least" not in str(certificate)


def test_labels_may_be_any_whole_numbers():
    X = np.random.default_rng(0).normal(size=(40, 3))
    operator = DataOperator(X, Gaussian(1.0))
    low = one_pass(operator, make_sketch("hadamard", 40, 10, 0), rank=5)
    labels = np.arange(40) % 3
    for exact in (False, True):
        one = certificate_of(operator, labels, low, exact=exact)
        assert one == certificate_of(operator, 10**12 + labels, low, exact=exact)


def test_a_zero_kernel_has_exact_eigenvectors_without_the_matrix(monkeypatch):
    monkeypatch.setattr(sys.modules["sketchmeans.lowrank.exact"], "DENSE_LIMIT", 0)
    low = approximate(
        PrecomputedOperator(np.zeros((50, 50))), "exact", Request(rank=3, width=3, seed=0)
    )
    assert low.factor.shape == (50, 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", ["six digits", "float32", "float32 in float64", "callable"])
def test_rounding_is_not_taken_for_indefiniteness(method, given):
    X = 5 * np.random.default_rng(0).normal(size=(300, 1))
    K, ask = rbf(X, 0.3), Request(rank=60, width=60, seed=0)
    low32 = K.astype(np.float32)
    operator = {
        "six digits": PrecomputedOperator(K.round(6)),
        "float32": PrecomputedOperator(low32, dtype=np.float32),
        "float32 in float64": PrecomputedOperator(low32.astype(np.float64)),
        "callable": CallableOperator(X, lambda A, B: rbf32(A, B)),
    }[given]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low = approximate(operator, method, ask)
    assert low.negative_mass == 0
    exact = approximate(PrecomputedOperator(K), method, ask).factor[:, :20]
    Y = low.factor[:, :20]
    assert np.linalg.norm(K - Y @ Y.T) < 1.5 * np.linalg.norm(K - exact @ exact.T)
    certificate = certificate_of(operator, np.arange(300) % 3, low)
    assert certificate.optimum_lower is not None
    assert certificate.optimum_lower <= objective(K, np.arange(300) % 3)


def rbf32(A, B):
    return np.exp(np.float32(-0.3) * np.square(A.astype(np.float32) - B.T.astype(np.float32)))


@pytest.mark.parametrize("method", METHODS)
def test_cosine_of_float32_rows_is_positive_semidefinite(method, seeds):
    for seed in seeds(10):
        X = np.random.default_rng(seed).normal(size=(200, 3)).astype(np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error", IndefiniteKernelWarning)
            model = KernelKMeans(3, kernel="cosine", method=method, random_state=seed).fit(X)
        assert model.certificate_.optimum_lower is not None


def test_one_judge_knows_rounding_from_indefiniteness():
    assert judge(1e-14, 1.0, 1e-13, None) == (1e-13, False)
    assert judge(1e-6, 1.0, 1e-13, None) == (1e-6, False)
    assert judge(1e-2, 1.0, 1e-13, None) == (1e-13, True)
    assert judge(1e-2, 1.0, 1e-13, True) == (1e-2, False)


def test_random_pivots_end_where_what_is_left_is_rounding(seeds):
    X = np.array(
        [
            [0.8547139, 0.8644161, -1.7245846],
            [0.60287845, 0.3987704, -0.96173394],
            [-0.5663841, -0.05296876, 0.7164652],
            [0.14335968, 2.2262464, -0.84845334],
        ],
        dtype=np.float32,
    )
    model = KernelKMeans(2, kernel="cosine", method="rpcholesky", random_state=0).fit(X)
    assert model.width_ <= 4
    options = {"kernel": "cosine", "method": "rpcholesky", "n_init": 1}
    for seed in seeds(200):
        random = np.random.default_rng(seed)
        few = random.normal(size=(random.integers(2, 8), 3)).astype(np.float32)
        KernelKMeans(2, random_state=seed, **options).fit(few)


def test_a_running_diagonal_that_is_wrong_does_not_keep_pivots_coming():
    """What is left by the running diagonal and by the columns may differ: columns count."""
    factor = _Factor(PrecomputedOperator(np.ones((5, 5))), 5, 0.0, 0, 1)
    factor.add([0])
    factor.left[1:] = 0.1  # nothing is left of a constant kernel
    random = np.random.default_rng(0)
    for _ in range(5):
        p = factor.left / max(factor.left.sum(), 1e-300)
        if factor.wants_more():
            assert not _accept(factor, random.choice(5, 32, p=p), random)
    assert not factor.wants_more()


def test_every_bound_holds_against_all_partitions():
    tally = run(400, seed=7)
    assert not tally.broken
    assert tally.fits == 400
    assert tally.refused + tally.unbounded < 20


@pytest.mark.parametrize(
    ("name", "wrong", "noticed", "cases"),
    [
        (
            "bracket",
            lambda *given: (0.0, 0.7 * bracket(*given)[1]),
            "objective_upper",
            100,
        ),
        (
            "bracket",
            lambda *given: (1.1 * bracket(*given)[0], bracket(*given)[1]),
            "objective_lower",
            300,  # fewer lower sides are so near
        ),
        (
            "optimum_lower_bound",
            lambda *given: 1.1 * optimum_lower_bound(*given),
            "optimum_lower",
            100,
        ),
        ("gap_bound", lambda *given: 0.0, "gap_bound", 100),
    ],
)
def test_the_brute_force_notices_a_bound_that_is_wrong(name, wrong, noticed, cases, monkeypatch):
    monkeypatch.setattr(f"sketchmeans.certificate.certifying.{name}", wrong)
    assert any(line.startswith(f"{noticed}:") for line in run(cases, seed=7).broken)


def test_partitions_are_all_and_each_once():
    assert len(partitions(6, 3)) == 122  # Stirling: 1 + 31 + 90
    assert len(partitions(4, 4)) == 15  # Bell


def test_linear_kernel_truth_is_the_sum_of_squares():
    X = np.random.default_rng(0).normal(size=(6, 2))
    D = np.square(X[:, None] - X[None]).sum(axis=2)
    K = DataOperator(X, Linear()).tile(slice(0, 6), slice(0, 6))
    labels = np.array([0, 0, 1, 1, 1, 2])
    assert objectives(D, np.ones(6), labels[None])[0] == pytest.approx(objective(K, labels))
