"""K-means of many rows: starts on some, Lloyd's iterations over blocks of all."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from sketchmeans import KernelKMeans
from sketchmeans.blas import OneBlasThread
from sketchmeans.engine import Crew
from sketchmeans.estimators import many_rows
from sketchmeans.estimators.kmeans import best_start, inertia
from sketchmeans.estimators.many_rows import Lloyd, RowBlocks, draw, drawn_rows, grid


@pytest.fixture
def small(monkeypatch):
    """Let 2000 rows be many, of which 400 are drawn, in blocks of 256."""
    monkeypatch.setattr(many_rows, "MANY", 2000)
    monkeypatch.setattr(many_rows, "SOME", 400)
    monkeypatch.setattr(many_rows, "_ROWS", 256)


def blobs(n, n_clusters, *, columns=6, spread=1.5, dtype=np.float64, seed=0):
    options = {"n_features": columns, "centers": n_clusters, "cluster_std": spread}
    return make_blobs(n, random_state=seed, **options)[0].astype(dtype)


def cluster(Y, n_clusters, weights=None, *, seeds=range(10), n_threads=2, **options):
    model = KMeans(n_clusters, **options)
    return best_start(model, list(seeds), Y, weights, side_by_side=n_threads, n_threads=n_threads)


def lloyd(Y, start, weights=None, *, max_iter=300, tol=1e-4):
    with Crew(2) as crew:
        blocks = RowBlocks(Y, weights, grid(len(Y), len(start), Y.shape[1]), crew)
        middle = Y.mean(axis=0)
        end, _ = Lloyd(blocks, middle, max_iter, tol).finish([start])
    return np.concatenate(end.labels), end.centers + middle, end


def test_fewer_rows_are_clustered_by_scikit_learn_as_ever():
    Y = blobs(3000, 5)
    found = cluster(Y, 5, seeds=[7])
    with OneBlasThread():
        model = KMeans(5, n_init=1, random_state=7).fit(Y)
    np.testing.assert_array_equal(found.labels_, model.labels_)
    np.testing.assert_array_equal(found.cluster_centers_, model.cluster_centers_)
    assert (found.inertia_, found.n_iter_) == (model.inertia_, model.n_iter_)
    assert drawn_rows(39_999, 8) is None
    assert drawn_rows(100_000, 8) == 20_000
    assert drawn_rows(100_000, 1500) is None


@pytest.mark.parametrize(
    ("n_clusters", "spread"), [(2, 1.0), (3, 6.0), (5, 1.0), (8, 1.5), (12, 3.0), (26, 2.0)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_is_that_of_starts_on_all_rows(n_clusters, spread, dtype, small):
    """20 starts each: with ten, luck alone would tell them apart where there are 26 blobs."""
    Y = blobs(8000, n_clusters, spread=spread, dtype=dtype)
    found = cluster(Y, n_clusters, seeds=range(20))
    model = KMeans(n_clusters, n_init=20, random_state=0).fit(Y)
    here = inertia(Y, found.cluster_centers_, found.labels_, None)
    assert here <= 1.001 * inertia(Y, model.cluster_centers_, model.labels_, None)
    assert found.inertia_ == pytest.approx(here, rel=1e-5)
    assert found.labels_.dtype == np.int32
    assert found.cluster_centers_.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_iterations_over_blocks_are_those_of_scikit_learn(dtype, weighted, small):
    Y = blobs(3000, 6, spread=4, dtype=dtype) + 5
    weights = np.random.default_rng(0).uniform(0.1, 1, len(Y)) if weighted else None
    for tol, max_iter in ((0, 300), (1e-3, 300), (0, 4)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KMeans(6, init=Y[:6], n_init=1, tol=tol, max_iter=max_iter)
            model.fit(Y, sample_weight=weights)
        labels, centers, end = lloyd(Y, Y[:6], weights, tol=tol, max_iter=max_iter)
        if dtype == np.float64 and not weighted:  # the variance of scikit-learn has no weights
            assert end.n_iter == model.n_iter_
            np.testing.assert_array_equal(labels, model.labels_)
            np.testing.assert_allclose(centers, model.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(labels, pairwise_distances_argmin(Y, centers))
        assert end.inertia == pytest.approx(model.inertia_, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_and_starts_side_by_side_do_not_change_a_bit(dtype, weighted, small):
    Y = blobs(5000, 9, spread=4, dtype=dtype)
    weights = np.random.default_rng(1).integers(0, 4, len(Y)) / 3 if weighted else None
    first = cluster(Y, 9, weights, n_threads=1)
    for n_threads in (2, 3, 8):
        other = cluster(Y, 9, weights, n_threads=n_threads)
        np.testing.assert_array_equal(first.labels_, other.labels_)
        np.testing.assert_array_equal(first.cluster_centers_, other.cluster_centers_)
        assert (first.inertia_, first.n_iter_) == (other.inertia_, other.n_iter_)


def test_a_fit_of_many_samples_has_the_same_bits_for_any_threads_and_memory_limit():
    X = blobs(100_000, 5, columns=3)
    fits = {"kernel": "polynomial", "degree": 2, "n_init": 2, "random_state": 0}
    models = [
        KernelKMeans(5, n_jobs=n_jobs, memory_limit=limit, **fits).fit(X)
        for n_jobs, limit in ((1, None), (2, None), (3, None), (8, None), (8, "90MB"))
    ]
    assert models[-1].stats_["planned_bytes"] < 90e6 < models[-2].stats_["planned_bytes"]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.cluster_centers_, models[0].cluster_centers_)
        assert (model.inertia_, model.n_iter_) == (models[0].inertia_, models[0].n_iter_)


def test_rows_of_weight_zero_are_labelled_and_count_nothing(small):
    Y = blobs(4000, 5)
    weights = np.repeat([1.0, 0.0], 2000)
    far = np.where(weights[:, None] > 0, Y, 1000 * Y)
    near, moved = cluster(Y, 5, weights), cluster(far, 5, weights)
    np.testing.assert_allclose(moved.cluster_centers_, near.cluster_centers_, rtol=1e-9)
    labels = pairwise_distances_argmin(far, moved.cluster_centers_)
    np.testing.assert_array_equal(moved.labels_, labels)


def test_heavy_rows_are_drawn_though_they_are_few(small):
    Y = blobs(4000, 3)
    Y[[5, 1234, 3999]] = 100 * np.eye(6)[:3]
    weights = np.ones(4000)
    weights[[5, 1234, 3999]] = 1e6
    found = cluster(Y, 3, weights)
    assert len(set(found.labels_[[5, 1234, 3999]])) == 3


def test_draws_are_seeded_sorted_and_of_positive_weight():
    Y = np.random.default_rng(0).normal(size=(5000, 2))
    weights = np.random.default_rng(1).integers(0, 3, 5000).astype(float)
    for given in (None, weights):
        rows, hits = draw(Y, given, 500, 4, [1, 2])
        assert np.all(np.diff(rows) > 0)
        assert hits.sum() == 500
        np.testing.assert_array_equal(rows, draw(Y, given, 500, 4, [1, 2]).rows)
        assert not np.array_equal(rows, draw(Y, given, 500, 4, [1, 3]).rows)
        assert given is None or given[rows].all()


def test_an_empty_cluster_takes_the_farthest_row(small):
    Y = np.concatenate([blobs(2999, 1, columns=2, spread=0.1), [[50.0, 50.0]]])
    start = np.array([Y[0], Y[1], [1e3, -1e3]])
    labels, centers, _ = lloyd(Y, start)
    np.testing.assert_array_equal(np.unique(labels), [0, 1, 2])
    assert labels[-1] == 2
    np.testing.assert_allclose(centers[2], Y[-1])


def test_an_empty_cluster_that_took_a_copy_of_a_center_takes_another_row_next():
    Y = np.array([[0.0]] * 12 + [[98.0]] * 3 + [[106.0]])
    labels, centers, end = lloyd(Y, np.array([[-20.0], [100.0], [1e4]]))
    np.testing.assert_array_equal(labels, [0] * 12 + [1] * 3 + [2])
    np.testing.assert_array_equal(centers, [[0.0], [98.0], [106.0]])
    assert end.inertia == 0


def test_a_point_that_the_draw_missed_does_not_make_a_warning(small, recwarn):
    Y = np.repeat(np.eye(4), 1000, axis=0)
    Y[2500] = 7
    found = cluster(Y, 5)
    assert not [one for one in recwarn if one.category is ConvergenceWarning]
    assert len(np.unique(found.labels_)) == 5
    assert found.inertia_ == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("distinct", [1, 3])
def test_fewer_distinct_points_than_clusters_are_found_without_a_warning_of_each_start(
    distinct, small, recwarn
):
    Y = np.repeat(np.eye(4)[:distinct], 3000, axis=0)
    found = cluster(Y, 5, seeds=[0])
    assert not list(recwarn)
    assert found.inertia_ == pytest.approx(0, abs=1e-9)
    assert np.isfinite(found.cluster_centers_).all()
    assert len(np.unique(found.labels_)) == distinct


def test_more_clusters_than_half_of_the_drawn_rows_are_found(small, monkeypatch):
    monkeypatch.setattr(many_rows, "EACH", 1)
    Y = blobs(2500, 30)
    found = cluster(Y, 300, seeds=[0])
    assert len(np.unique(found.labels_)) == 300


def test_iterations_are_those_on_some_rows_and_on_all(small):
    Y = blobs(3000, 6, spread=5)
    assert cluster(Y, 6, max_iter=1).n_iter_ == 2
    assert cluster(Y, 6, max_iter=3).n_iter_ == 6


def test_fewer_rows_that_count_than_clusters_are_clustered_all_the_same(small):
    Y = np.random.default_rng(0).normal(size=(3000, 3))
    weights = np.zeros(3000)
    weights[:3] = 1
    found = cluster(Y, 5, weights)
    assert found.inertia_ == pytest.approx(0, abs=1e-12)
    assert found.labels_.shape == (3000,)
