"""Certificates: brute force over all partitions, and the figures known beforehand."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles

from oracles import certificate_of, objective
from sketchmeans import ColumnStream, FullKernelKMeans, KernelKMeans
from sketchmeans.certificate.intervals import verdict
from sketchmeans.certificate.optimum import leading_sum_bound
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Gaussian, Sigmoid
from sketchmeans.lowrank import METHODS, IndefiniteKernelWarning, Request, approximate, one_pass
from sketchmeans.operators import CallableOperator, DataOperator, PrecomputedOperator
from sketchmeans.sketches import make_sketch

N = 6


def partitions(n, k):
    """All partitions of n samples into k clusters, as labels."""
    found = []
    for labels in itertools.product(range(k), repeat=n - 1):
        labels = (0, *labels)
        first = [labels.index(c) if c in labels else n for c in range(k)]
        if max(first) < n and first == sorted(first):
            found.append(labels)
    return np.array(found)


ALL = {k: partitions(N, k) for k in (2, 3, 4)}
REQUESTS = [
    (name, truncation, sketch)
    for name, method in METHODS.items()
    for truncation in (("late", "early") if "truncation" in method.reads else ("late",))
    for sketch in (("gaussian",) if name == "one-pass" else ("auto",))
]


def objectives(K, labels, d):
    """Exact objectives of many partitions of a small K at once."""
    members = (labels[:, :, None] == np.arange(labels.max() + 1)) * d[:, None]
    within = np.einsum("pik,pik->pk", members, K @ members) / members.sum(axis=1)
    return np.diag(K) @ d - within.sum(axis=1)


def tiny_cases(count):
    random = np.random.default_rng(0)
    for index in range(count):
        A = random.normal(size=(N, random.integers(1, N + 1)))
        squared = np.square(A[:, None] - A[None]).sum(axis=2)
        K = A @ A.T if index % 2 else np.exp(-random.uniform(0.1, 2) * squared)
        d = np.ones(N) if index % 3 else random.uniform(0.3, 3, N)
        yield K, d, index % 3 == 0, int(random.integers(2, 5)), int(random.integers(1, 4)), index


@pytest.mark.parametrize(("method", "truncation", "sketch"), REQUESTS)
def test_no_deterministic_bound_is_ever_violated(method, truncation, sketch):
    """100 tiny kernels for each method and truncation, all partitions enumerated.

    ``make soak PART=certificates`` draws others, as many as there is time for.
    """
    missed = checked = 0
    for K, d, weighted, k, rank, seed in tiny_cases(100):
        operator = PrecomputedOperator(K, weights=d if weighted else None)
        width = min(N - 1, rank + seed % 3)
        ask = Request(rank, width, seed, sketch=sketch, truncation=truncation)
        low = approximate(operator, method, ask)
        exact = objectives(K, ALL[k], d)
        best = exact.min()
        Y = low.embedding / np.sqrt(d)[:, None]
        solved = objectives(Y @ Y.T, ALL[k], d).argmin()
        slack = 1e-9 * np.trace(K) * d.max()
        certificate = certificate_of(
            operator, ALL[k][solved], low, n_clusters=k, failure_probability=0.2, seed=seed
        )
        plain = certificate_of(operator, ALL[k][solved], low, n_clusters=k)
        found = exact[solved]
        for one in (plain, certificate):
            assert one.objective_lower - slack <= found <= one.objective_upper + slack
            assert one.optimum_lower <= best + slack
            if one.gap_bound is not None:
                assert found - best <= one.gap_bound + slack
        if certificate.gap_bound_probabilistic is not None:
            checked += 1
            missed += found - best > certificate.gap_bound_probabilistic + slack
            missed += certificate.optimum_lower_probabilistic > best + slack
        other = (7 * seed) % len(ALL[k])
        anywhere = certificate_of(operator, ALL[k][other], low, n_clusters=k)
        assert anywhere.objective_lower - slack <= exact[other] <= anywhere.objective_upper + slack
    # Violations of a bound that fails with probability 0.2, beyond any doubt.
    assert missed <= binom.ppf(0.999, checked, 0.2)


def test_the_papers_theorem_is_tight():
    """A gap of ‖E‖_*: more than the half that the paper remarks, and all that is possible."""
    one = np.array([1, 1, -1, -1]) / 2
    other = np.array([1, -1, 1, -1]) / 2
    K = np.outer(one, one)
    approximation = 0.499 * np.outer(one, one) + 0.501 * np.outer(other, other)
    labels = partitions(4, 2)
    chosen = labels[objectives(approximation, labels, np.ones(4)).argmin()]
    gap = objective(K, chosen) - objectives(K, labels, np.ones(4)).min()
    nuclear = np.abs(np.linalg.eigvalsh(K - approximation)).sum()
    assert gap >= 0.99 * nuclear
    # The library's bound for an embedding that is not from below has the constant one, too.
    operator = PrecomputedOperator(K)
    whole = approximate(operator, "exact", Request(rank=1, width=1, seed=0))
    Y = np.stack([np.sqrt(0.499) * one, np.sqrt(0.501) * other], axis=1)
    low = replace(whole, early=Y, rank=2)
    bound = certificate_of(operator, chosen, low, n_clusters=2).gap_bound
    assert gap <= bound <= 1.001 * nuclear


@pytest.mark.parametrize(
    ("c", "n_passes", "known", "known_exact"),
    [
        (1, 1, 0.68, 0.46),
        (1, 2, 0.33, 0.31),
        (4, 1, 0.21, 0.103),
        (4, 2, 0.093, 0.080),
        (16, 1, 0.036, 0.029),
        (16, 2, 0.028, 0.020),
    ],
)
def test_the_moment_certificate_gives_the_gaps_known_beforehand(
    digits, c, n_passes, known, known_exact, seeds
):
    X, _, median = digits
    operator = DataOperator(X, Gaussian(c / median))
    gaps, exact_gaps = [], []
    for seed in seeds(3):
        sketch = make_sketch("hadamard", len(X), 20, seed)
        low = one_pass(operator, sketch, rank=10, n_passes=n_passes, run=Run(2))
        labels = KMeans(10, n_init=3, random_state=seed).fit(low.embedding).labels_
        gaps.append(certificate_of(operator, labels, low).relative_gap)
        exact_gaps.append(certificate_of(operator, labels, low, exact=True).relative_gap)
    assert abs(np.mean(gaps) - known) < 0.2 * known
    assert abs(np.mean(exact_gaps) - known_exact) < 0.2 * known_exact


def test_the_moment_bound_is_never_above_the_trace_bound_and_holds():
    random = np.random.default_rng(0)
    for _ in range(500):
        m = int(random.integers(2, 12))
        values = np.sort(random.exponential(size=m) ** random.integers(1, 4))[::-1]
        s = int(random.integers(0, m + 1))
        theta = np.sort(values[:s] * random.uniform(0.5, 1, size=s))[::-1]
        k = int(random.integers(1, m + 1))
        bound = leading_sum_bound(theta, k, values.sum(), np.square(values).sum(), m)
        assert bound >= values[:k].sum() * (1 - 1e-9)
        assert bound <= values.sum() - theta[k:].sum() + 1e-9 * values.sum()


@pytest.mark.parametrize("gamma", [0.001, 0.1, 3.0])
def test_float32_certificates_hold_against_float64_truth(gamma):
    X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    truth = DataOperator(X.astype(np.float64), Gaussian(gamma))
    K = truth.tile(slice(0, 300), slice(0, 300))
    values = np.linalg.eigvalsh(K - K.mean(0) - K.mean(1)[:, None] + K.mean())[::-1]
    for n_passes in (1, 2):
        model = KernelKMeans(5, gamma=gamma, n_passes=n_passes, random_state=0, kernel="rbf").fit(X)
        assert model.stats_["precision"] == "float32"
        exact = objective(K, model.labels_)
        certificate = model.certificate_
        assert certificate.objective_lower <= exact <= certificate.objective_upper
        relaxed = values.sum() - values[:4].sum()  # the spectral relaxation: at most the optimum
        assert certificate.optimum_lower <= relaxed * (1 + 1e-6) + 1e-4


def test_refinement_sharpens_the_certificate(digits):
    X, _, median = digits
    options = {"kernel": "rbf", "gamma": 4 / median, "n_passes": 2, "random_state": 0}
    plain = KernelKMeans(10, **options).fit(X).certificate_
    refined = KernelKMeans(10, n_refine=1, **options).fit(X)
    K = DataOperator(X, Gaussian(4 / median)).tile(slice(0, len(X)), slice(0, len(X)))
    exact = objective(K, refined.labels_)
    assert exact <= refined.certificate_.objective_upper <= exact * 1.001
    assert refined.certificate_.relative_gap < plain.relative_gap


def test_kernels_that_are_not_positive_semidefinite_get_no_bound_and_the_reason():
    X = np.random.default_rng(0).normal(size=(200, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        model = KernelKMeans(3, kernel="sigmoid", gamma=0.5, coef0=-0.5, random_state=0).fit(X)
    certificate = model.certificate_
    assert certificate.gap_bound is certificate.optimum_lower is certificate.relative_gap is None
    assert "Negative eigenvalues were seen" in certificate.reason
    assert "no bound" in str(certificate)
    mild = KernelKMeans(3, kernel="sigmoid", gamma=1e-6, coef0=0.0, random_state=0).fit(X)
    assert "not positive semidefinite in general" in mild.certificate_.reason


def test_what_is_only_assumed_is_said():
    X = np.random.default_rng(0).normal(size=(200, 3))
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))
    by_rule = KernelKMeans(3, random_state=0, kernel="rbf").fit(X)
    assert not by_rule.certificate_.assumes_psd
    given = KernelKMeans(3, kernel="precomputed", random_state=0).fit(K)
    assert given.certificate_.assumes_psd
    assert "assumes that the kernel is positive semidefinite" in str(given.certificate_)
    stream = ColumnStream(200, random_state=0)
    stream.add_columns(0, K)
    assert KernelKMeans(3, random_state=0).fit(stream).certificate_.assumes_psd


def test_a_useless_bound_is_called_so():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = KernelKMeans(8, kernel="linear", random_state=0).fit(X)  # rank 2: no bound from spectra
    assert model.certificate_.relative_gap is None
    assert "no useful bound" in str(model.certificate_)
    assert model.certificate_.gap_bound is not None
    landmarks = KernelKMeans(
        8, method="nystrom", n_landmarks=20, gamma=50.0, random_state=0, kernel="rbf"
    ).fit(X)
    assert "meets only some columns" in str(landmarks.certificate_)


def test_labels_of_any_origin_can_be_certified():
    X = np.random.default_rng(0).normal(size=(300, 3))
    operator = DataOperator(X, Gaussian(1.0))
    low = one_pass(operator, make_sketch("hadamard", 300, 40, 0), rank=20)
    labels = KMeans(5, n_init=3, random_state=0).fit(X).labels_
    certificate = certificate_of(operator, labels, low, exact=True, failure_probability=1e-3)
    K = operator.tile(slice(0, 300), slice(0, 300))
    assert certificate.objective == pytest.approx(objective(K, labels))
    assert "exactly" in str(certificate)
    assert "except with probability 0.001" in str(certificate)
    full = FullKernelKMeans(5, gamma=1.0, random_state=0).fit(X)
    assert certificate.optimum_lower <= full.inertia_


def test_bad_labels_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    operator = DataOperator(X, Gaussian(1.0))
    low = one_pass(operator, make_sketch("hadamard", 30, 10, 0), rank=5)
    for labels in (np.zeros(29, int), np.zeros(30), -np.ones(30, int), np.zeros((30, 1), int)):
        with pytest.raises(ValueError, match="labels must be 30 whole numbers from 0"):
            certificate_of(operator, labels, low)
    with pytest.raises(ValueError, match="a stream's kernel is gone"):
        certificate_of(None, np.zeros(30, int), low, exact=True)


@pytest.mark.parametrize("value", [1.5, -1.0, 0.0, 1.0, np.nan])
def test_a_failure_probability_that_is_none_is_refused(value):
    X = np.random.default_rng(0).normal(size=(30, 3))
    operator = DataOperator(X, Gaussian(1.0))
    low = one_pass(operator, make_sketch("hadamard", 30, 10, 0), rank=5)
    with pytest.raises(ValueError, match="is no probability: give a number between"):
        certificate_of(operator, np.zeros(30, int), low, failure_probability=value)


def test_fewer_clusters_than_the_labels_have_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    operator = DataOperator(X, Gaussian(1.0))
    low = one_pass(operator, make_sketch("hadamard", 30, 10, 0), rank=5)
    with pytest.raises(ValueError, match="n_clusters=2 is less than the 3 clusters"):
        certificate_of(operator, np.arange(30) % 3, low, n_clusters=2)
    for value in (2.0, True, "3"):
        with pytest.raises(TypeError, match="must be a whole number"):
            certificate_of(operator, np.zeros(30, int), low, n_clusters=value)


def test_a_plain_certificate_costs_no_kernel_entry():
    asked = 0

    def kernel(A, B):
        nonlocal asked
        asked += len(A) * len(B)
        return np.exp(-np.square(A[:, None] - B[None]).sum(axis=2))

    X = np.random.default_rng(0).normal(size=(200, 3))
    operator = CallableOperator(X, kernel)
    low = one_pass(operator, make_sketch("hadamard", 200, 20, 0), rank=10)
    before = asked
    certificate_of(operator, np.arange(200) % 3, low)
    assert asked == before
    certificate_of(operator, np.arange(200) % 3, low, exact=True)
    assert before < asked <= 2 * before


def test_an_indefinite_operator_still_has_an_exact_objective():
    X = np.random.default_rng(0).normal(size=(60, 3))
    operator = DataOperator(X, Sigmoid(0.5, -0.5))
    with pytest.warns(IndefiniteKernelWarning):
        low = one_pass(operator, make_sketch("hadamard", 60, 20, 0), rank=10)
    labels = np.arange(60) % 3
    certificate = certificate_of(operator, labels, low, exact=True)
    K = operator.tile(slice(0, 60), slice(0, 60))
    assert certificate.objective == pytest.approx(objective(K, labels))
    assert certificate.objective_upper is None


def test_labels_are_never_said_to_be_better_than_the_best_possible():
    from sklearn.datasets import load_digits

    from sketchmeans import KernelKMeans

    X = load_digits().data[:600] / 16
    for n_passes in (1, 2):
        model = KernelKMeans(
            10, gamma="4*median", n_passes=n_passes, random_state=0, kernel="rbf"
        ).fit(X)
        certificate = model.certificate_
        assert certificate.optimum_lower <= certificate.objective_lower
        assert certificate.objective_lower <= certificate.objective_upper


@pytest.mark.parametrize("method", ["nystrom", "rpcholesky", "greedy-cholesky"])
def test_a_pass_for_the_objective_brings_landmarks_the_moments_of_the_kernel(method):
    X = np.random.default_rng(0).normal(size=(300, 5))
    operator = DataOperator(X, Gaussian(0.5))
    low = approximate(operator, method, Request(rank=10, width=20, seed=0))
    labels = np.arange(300) % 4
    plain, later = (
        certificate_of(operator, labels, low),
        certificate_of(operator, labels, low, exact=True),
    )
    assert later.optimum_lower > 2 * plain.optimum_lower
    assert later.optimum_lower <= later.objective
    # From K̂ = 0 alone nothing would be known of the best clustering.
    model = FullKernelKMeans(4, gamma=0.5, n_init=1, random_state=0).fit(X)
    assert 0 < model.certificate_.optimum_lower <= later.optimum_lower


@pytest.mark.parametrize("kernel", ["neighbors", "rbf"])
def test_it_says_what_it_bounds_and_what_it_cannot_tell(kernel):
    X = make_circles(300, factor=0.5, noise=0.05, random_state=0)[0]
    known = KernelKMeans(2, kernel=kernel, random_state=0).fit(X).certificate_
    what = "the cut" if kernel == "neighbors" else "the objective"
    head, found, *_ = str(known).splitlines()
    assert head == (
        f"Certificate for 2 clusters: it bounds {what} of this kernel, not how well kernel and "
        "number of clusters suit the data"
    )
    assert " of these labels: " in found
    assert known.scope == (
        f"This bounds {what} under this kernel. Whether the kernel and 2 clusters suit the data it "
        "cannot tell."
    )
    assert verdict(known).endswith(" under this kernel.")
    if kernel == "rbf":
        share = f"{known.relative_gap:.1%}"
        assert f"objective is at most {share} above the least that 2 clusters" in str(known)
        assert f"objective is at most {share} above the least that 2 clusters" in verdict(known)
