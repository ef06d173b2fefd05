"""Plain K-means beside a model: its labels, and its objective in the terms of the certificate."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels

from sketchmeans import FullKernelKMeans, KernelKMeans, load, save
from sketchmeans.advice import plain
from sketchmeans.advice.plain import plain_kmeans
from sketchmeans.estimators.fitted import kernel_of

MOONS = make_moons(500, noise=0.06, random_state=0)[0]
BLOBS = make_blobs(500, 6, centers=4, random_state=0)[0]


def objective(K, labels):
    """Return tr K − ⟨K, P⟩ by its definition."""
    members = [labels == label for label in np.unique(labels)]
    return np.trace(K) - sum(K[np.ix_(rows, rows)].sum() / rows.sum() for rows in members)


def dense(model, X):
    """Return the kernel matrix of a model."""
    everything = slice(0, X.shape[0])
    return kernel_of(model, X).tile(everything, everything).astype(float)


@pytest.mark.parametrize("X", [MOONS, BLOBS], ids=["moons", "blobs"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_with_neighbours_the_objective_is_the_normalized_cut(X, make):
    model = KernelKMeans(3, random_state=0).fit(make(X))
    found = plain_kmeans(model, make(X))
    K = dense(model, make(X))
    np.testing.assert_allclose(K.sum(axis=1), 1)  # degrees
    cut = sum(
        K[np.ix_(found.labels == label, found.labels != label)].sum()
        / (found.labels == label).sum()
        for label in range(3)
    )
    assert found.objective == pytest.approx(cut, abs=1e-10)
    assert found.objective >= model.certificate_.normalized_cut_lower
    ours = K.trace() - objective(K, model.labels_)
    assert model.certificate_.normalized_cut == pytest.approx(3 - ours)  # the same terms


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "method": "nystrom"},
        {"kernel": "laplacian", "method": "exact"},
        {"kernel": "polynomial", "degree": 2},
        {"kernel": "linear"},
        {"kernel": "cosine"},
        {"kernel": "gaussian", "n_refine": 2},
    ],
    ids=str,
)
def test_of_few_rows_the_objective_is_exact(options):
    model = KernelKMeans(4, random_state=0, **options).fit(BLOBS)
    found = plain_kmeans(model, BLOBS)
    exact = objective(dense(model, BLOBS), found.labels)
    assert found.objective == pytest.approx(exact, rel=1e-5)
    assert found.objective >= model.certificate_.optimum_lower * (1 - 1e-9)


def test_the_kernel_is_the_one_of_the_fit():
    model = FullKernelKMeans(2, kernel="rbf", gamma=3.0, random_state=0).fit(MOONS)
    found = plain_kmeans(model, MOONS)
    K = pairwise_kernels(MOONS, metric="rbf", gamma=3.0)
    assert found.objective == pytest.approx(objective(K, found.labels), rel=1e-6)
    assert found.objective >= model.inertia_ * (1 - 1e-6)


def test_of_many_rows_landmarks_bound_it_and_without_them_it_is_unknown(monkeypatch):
    monkeypatch.setattr(plain, "PASS_ROWS", 100)
    model = KernelKMeans(4, kernel="rbf", method="nystrom", random_state=0).fit(BLOBS)
    found = plain_kmeans(model, BLOBS)
    exact = objective(dense(model, BLOBS), found.labels)
    assert exact - 1e-6 <= found.objective < 1.1 * exact
    for other in (
        KernelKMeans(4, kernel="rbf", method="one-pass", random_state=0),
        FullKernelKMeans(4, kernel="rbf", random_state=0),
    ):
        assert plain_kmeans(other.fit(BLOBS), BLOBS).objective is None
    finite = KernelKMeans(4, kernel="polynomial", degree=2, random_state=0).fit(BLOBS)
    known = plain_kmeans(finite, BLOBS)
    assert known.objective == pytest.approx(objective(dense(finite, BLOBS), known.labels))


@pytest.mark.parametrize("kernel", ["neighbors", "rbf", "polynomial"])
@pytest.mark.parametrize("total", [1.0, 500.0])
def test_of_a_weighted_fit_it_is_unknown_for_weights_are_not_kept(kernel, total):
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 500)
    model = KernelKMeans(4, kernel=kernel, random_state=0)
    model.fit(BLOBS, sample_weight=total * weights / weights.sum())
    known = plain_kmeans(model, BLOBS).objective
    if kernel == "rbf" and total == 500:
        # All K_ii are one: such weights leave no trace, and change the objective little.
        assert known == pytest.approx(model.certificate_.objective_upper, rel=0.1)
    else:
        assert known is None


def test_labels_are_those_of_scikit_learn_and_the_same_for_any_threads():
    model = KernelKMeans(4, kernel="rbf", random_state=0).fit(BLOBS)
    found = plain_kmeans(model, BLOBS)
    reference = KMeans(4, n_init=10, random_state=3).fit(BLOBS)
    assert adjusted_rand_score(found.labels, reference.labels_) == 1
    again = plain_kmeans(model.set_params(n_jobs=1), BLOBS)
    np.testing.assert_array_equal(again.labels, found.labels)
    assert again.objective == found.objective


def test_of_clusterings_as_good_as_each_other_it_is_the_one_like_ours():
    X = make_circles(1500, factor=0.5, noise=0.05, random_state=0)[0]
    model = KernelKMeans(2, kernel="rbf", random_state=0).fit(X)
    found = plain_kmeans(model, X)
    assert adjusted_rand_score(found.labels, model.labels_) > 0.95  # halved in the same direction
    inertia = sum(
        np.square(X[found.labels == c] - X[found.labels == c].mean(axis=0)).sum() for c in (0, 1)
    )
    assert inertia <= 1.01 * KMeans(2, n_init=10, random_state=0).fit(X).inertia_


def test_of_many_rows_some_make_the_clusters_and_all_get_labels(monkeypatch):
    seen = []

    class Watched(KMeans):
        def fit(self, X, *rest, **options):
            seen.append(len(X))
            return super().fit(X, *rest, **options)

    monkeypatch.setattr(plain, "KMeans", Watched)
    monkeypatch.setattr(plain, "ROWS", 200)
    model = KernelKMeans(4, kernel="rbf", random_state=0).fit(BLOBS)
    found = plain_kmeans(model, BLOBS)
    assert set(seen) == {200}
    assert len(found.labels) == 500
    assert adjusted_rand_score(found.labels, KMeans(4, random_state=0).fit_predict(BLOBS)) == 1


def test_there_is_none_of_a_precomputed_kernel_and_other_rows_are_refused():
    K = BLOBS @ BLOBS.T
    model = KernelKMeans(4, kernel="precomputed", random_state=0).fit(K)
    assert plain_kmeans(model, K) is None
    model = KernelKMeans(4, random_state=0).fit(BLOBS)
    with pytest.raises(ValueError, match="X has 499 rows, but the model was fitted to 500 samples"):
        plain_kmeans(model, BLOBS[1:])


def test_a_model_from_a_file_knows_as_much(tmp_path):
    for options in ({}, {"kernel": "rbf", "method": "nystrom"}):
        model = KernelKMeans(4, random_state=0, **options).fit(BLOBS)
        save(model, tmp_path / "m.skm", overwrite=True)
        found = plain_kmeans(load(tmp_path / "m.skm"), BLOBS)
        assert found.objective == plain_kmeans(model, BLOBS).objective
