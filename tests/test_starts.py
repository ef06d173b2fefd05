"""Starts of full kernel K-means: distances are those of K, and weights count the samples."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sketchmeans import FullKernelKMeans
from sketchmeans.engine.run import ALONE
from sketchmeans.estimators import starts
from sketchmeans.estimators.full import INITS
from sketchmeans.estimators.lloyd import refine
from sketchmeans.kernels import Gaussian, Linear
from sketchmeans.lowrank import one_pass
from sketchmeans.operators import DataOperator, KernelOperator
from sketchmeans.sketches import make_sketch

BLOBS = np.repeat(np.arange(4), 30)
random = np.random.default_rng(0)
X = 8 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[BLOBS] + random.normal(size=(120, 2))
UNEQUAL = 10.0 ** random.uniform(-3, 3, 120)
UNEQUAL[::7] = 0.0


@pytest.fixture
def started(monkeypatch):
    """Record the labels that iterations start from, and the columns of K that were asked for."""
    labels, columns = [], []

    def record_start(operator, start, *args, **options):
        labels.append(start.copy())
        return refine(operator, start, *args, **options)

    def record_columns(self, indices, *run):
        if len(indices) == 1:
            columns.append(int(indices[0]))
        return whole(self, indices, *run)

    whole = KernelOperator.columns
    monkeypatch.setattr("sketchmeans.estimators.full.refine", record_start)
    monkeypatch.setattr(KernelOperator, "columns", record_columns)
    return labels, columns


@pytest.fixture(params=[10, 3000], ids=["streamed", "cached"])
def cache(request, monkeypatch):
    monkeypatch.setattr("sketchmeans.estimators.full.CACHE_LIMIT", request.param)


@pytest.mark.parametrize("init", ["k-means++", "sketch"])
@pytest.mark.usefixtures("cache")
def test_a_start_finds_separated_blobs_whatever_the_weights_within_them(init, started):
    model = FullKernelKMeans(4, init=init, gamma=0.02, n_init=10, random_state=0)
    for weights in (None, UNEQUAL, UNEQUAL * 1e-20, np.full(120, 1e20)):
        model.fit(X, sample_weight=weights)
        labels, _ = started
        found = [adjusted_rand_score(BLOBS, start) for start in labels]
        assert np.median(found) == 1.0
        assert model.certificate_.objective <= model.objectives_[0] * (1 + 1e-12)
        labels.clear()


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.usefixtures("cache")
def test_a_start_gives_every_sample_its_nearest_center_in_feature_space(init, started):
    FullKernelKMeans(4, init=init, gamma=0.02, n_init=10, max_iter=1, random_state=1).fit(
        X, sample_weight=UNEQUAL
    )
    labels, columns = started
    squares = np.square(X[:, None] - X[None]).sum(axis=2)
    for start, centers in zip(labels, np.reshape(columns, (10, 4)), strict=True):
        assert UNEQUAL[centers].all()
        if len(set(centers)) == 4:
            np.testing.assert_array_equal(start, squares[:, centers].argmin(axis=1))


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_centers_are_drawn_as_if_samples_were_repeated_by_their_weights(init, started):
    points = np.array([[0.0], [1.0], [1.5], [4.0], [9.0]])
    counts = np.array([5, 1, 0, 3, 2])
    draws = 4_000
    model = FullKernelKMeans(2, kernel="linear", init=init, n_init=draws, max_iter=1)
    model.set_params(random_state=0).fit(points, sample_weight=counts)
    repeated = np.repeat(np.arange(5), counts)
    expected = np.zeros((5, 5))
    for first in repeated:
        squares = np.square(points[repeated, 0] - points[first, 0])
        p = squares if init == "k-means++" else np.ones(len(repeated))
        np.add.at(expected, (first, repeated), p / p.sum() / len(repeated))
    pairs = np.reshape(started[1], (draws, 2))
    frequency = np.zeros((5, 5))
    np.add.at(frequency, (pairs[:, 0], pairs[:, 1]), 1 / draws)
    # Five standard deviations of a frequency, in each of the cells.
    assert (np.abs(frequency - expected) <= 5 * np.sqrt(expected / draws)).all()


@pytest.mark.parametrize("init", INITS)
def test_whole_weights_find_what_repeated_samples_find(init):
    counts = random.integers(1, 5, 120)
    options = {"init": init, "gamma": 0.02, "n_init": 20, "random_state": 0}
    weighted = FullKernelKMeans(4, **options).fit(X, sample_weight=counts)
    repeated = FullKernelKMeans(4, **options).fit(np.repeat(X, counts, axis=0))
    assert adjusted_rand_score(np.repeat(weighted.labels_, counts), repeated.labels_) == 1.0
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-9)


@pytest.mark.parametrize("init", INITS)
def test_a_start_works_where_few_samples_have_weight(init):
    weights = np.zeros(120)
    weights[[3, 40, 70]] = 1.0, 2.0, 3.0
    model = FullKernelKMeans(3, init=init, gamma=0.02, n_init=5, random_state=0)
    model.fit(X, sample_weight=weights)
    assert len(set(model.labels_[[3, 40, 70]])) == 3
    assert model.inertia_ == pytest.approx(0, abs=1e-12)


def test_a_start_says_what_it_takes_and_what_it_cost():
    weights = np.ones(120)
    weights[:7] = 0.0
    plain = DataOperator(X, Gaussian(0.02))
    some = DataOperator(X, Gaussian(0.02), weights=weights)
    for init in ("random", "k-means++"):
        assert starts.start(plain, init, 4, 0, ALONE)[1].entries == 120 * 4 + 120
        found = starts.start_bytes(plain, init, 4, ALONE, some_apart=False)
        assert found == plain.columns_bytes(1, ALONE) + 120 * 120
    # Samples of weight zero come in by their columns.
    entries = [starts.start(one, "sketch", 4, 0, ALONE)[1].entries for one in (plain, some)]
    assert entries[1] - entries[0] == 120 * 7


def test_a_start_of_many_samples_takes_their_embedding_and_k_means_beside_it():
    n, n_clusters, rank = 20_000, 50, 60
    operator = DataOperator(np.zeros((n, 1)), Gaussian(1.0))
    ask = starts.Request(rank=rank, width=2 * rank, seed=0, run=ALONE)
    needs = starts.METHODS["one-pass"].needs(operator, ask)
    embedding = n * rank * 8
    expected = needs.kept + embedding + starts.kmeans_bytes(n, n_clusters, embedding)
    assert expected > needs.working
    found = starts.start_bytes(operator, "sketch", n_clusters, ALONE, some_apart=False)
    assert found == expected
    columns = n * 256 * 8 + operator.columns_bytes(256, ALONE)
    apart = starts.start_bytes(operator, "sketch", n_clusters, ALONE, some_apart=True)
    assert apart == needs.kept + embedding + columns


def test_a_start_by_a_sketch_is_one_run_of_k_means_on_its_embedding():
    noise = np.random.default_rng(0).normal(size=(120, 2))
    operator = DataOperator(noise, Gaussian(1.0))
    rank = starts.auto_rank(8, 120)
    for seed in range(4):
        low = one_pass(operator, make_sketch("hadamard", 120, 2 * rank, seed), rank=rank)
        model = KMeans(8, n_init=1, random_state=seed).fit(low.factor[:, :rank])
        found, cost = starts.start(operator, "sketch", 8, seed, ALONE)
        np.testing.assert_array_equal(found, model.labels_)
        assert cost.entries == low.cost.entries


def test_where_a_center_is_drawn_twice_the_heaviest_distance_fills_the_empty_cluster():
    operator = DataOperator(
        np.array([[0.0], [3.0], [10.0]]), Linear(), weights=np.array([100.0, 50.0, 1.0])
    )
    found = {tuple(starts.start(operator, "random", 2, seed, ALONE)[0]) for seed in range(12)}
    assert (0, 1, 0) in found  # 9 · 50 is more than 100 · 1
    assert (0, 0, 1) not in found
