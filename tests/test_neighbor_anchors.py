"""The anchors of the neighbours kernel: where they stand, who is near, what that costs."""

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import normalized_mutual_info_score as nmi

from neighbor_data import N, built, data, weights_of
from sketchmeans import KernelKMeans
from sketchmeans.engine import Run
from sketchmeans.operators.anchors import Anchors, Frame, room
from sketchmeans.operators.neighbor_features import NeighborPoints


@pytest.fixture
def asked(monkeypatch):
    """The distances that were asked for, block by block."""
    counts = []
    nearest = Anchors.nearest

    def counted(self, rows):
        counts.append(rows.shape[0] * len(self))
        return nearest(self, rows)

    monkeypatch.setattr(Anchors, "nearest", counted)
    return counts


def test_wide_sparse_rows_have_samples_for_anchors():
    random = np.random.default_rng(0)
    X = sparse.random(400, 200_000, density=1e-4, random_state=random, format="csr")
    tracemalloc.start()
    model = KernelKMeans(
        2, kernel="neighbors", kernel_params={"metric": "cosine"}, random_state=0
    ).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sparse.issparse(model._new_points.map.graphs[0].points)
    assert peak < 100e6  # centers would take 400 × 200,000 × 8 bytes
    assert (model.predict(X) == model.labels_).all()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_room_of_a_row_reaches_to_the_eleventh_nearest_in_the_medians_units(kind):
    X = data()
    X[:20] = X[0]  # copies have no room
    X[20] = 1e9
    X = np.where(np.abs(X) < 0.5, 0, X)
    others = X[:200]
    distances = np.sort(cdist(X, others), axis=1)[:, 10]
    truth = np.clip(distances / np.median(distances[distances > 0]), 0.01, 100)
    given = (X, others) if kind == "dense" else map(sparse.csr_matrix, (X, others))
    found = room(*given)
    np.testing.assert_allclose(found, truth, rtol=1e-9)
    assert found.min() == found[0] == 0.01
    assert found.max() == found[20] == 100
    assert (room(X[:20], X[:20]) == 1).all()


@pytest.mark.parametrize("weighting", ["none", "some"])
def test_thin_places_have_more_anchors_than_samples_alone_would_give_them(weighting, monkeypatch):
    random = np.random.default_rng(0)
    thin = np.arange(1000) < 500
    X = np.where(thin, 16, 1)[:, None] * random.normal(size=(1000, 2)) + 100 * thin[:, None]

    def share():
        sets = built(X, weights_of(weighting, 1000), n_anchors=300).map.graphs
        return np.mean([one.points[:, 0] > 50 for one in sets])

    roomier = share()
    monkeypatch.setattr("sketchmeans.operators.anchors.ROOMIER", 0)
    alike = share()
    assert 0.45 < alike < 0.6
    # 16 times the room: rows count four times as much, 0.8 of the whole; with less than one row
    # in two an anchor, not all of that is reached.
    assert alike + 0.1 < roomier < 0.85


@pytest.mark.parametrize("seed", [9, 13])
def test_the_thin_end_of_a_stretched_blob_stays_with_it(seed, monkeypatch):
    centers = make_blobs(random_state=170, return_centers=True)[2]
    X, y = make_blobs(1500, centers=centers, random_state=seed)
    X = X @ [[0.6, -0.6], [-0.4, 0.8]]
    found = nmi(y, KernelKMeans(3, random_state=seed).fit_predict(X))
    monkeypatch.setattr("sketchmeans.operators.anchors.ROOMIER", 0)
    assert nmi(y, KernelKMeans(3, random_state=seed).fit_predict(X)) < 0.95 < found


def test_nearest_anchors_are_those_of_all_distances_and_ties_go_to_the_first():
    random = np.random.default_rng(0)
    for points in (random.normal(size=(40, 3)), random.integers(0, 3, (40, 3)).astype(float)):
        rows = random.integers(0, 4, (200, 3)).astype(float)
        found = Anchors(points, 4).nearest(rows)
        distances = np.square(rows[:, None] - points).sum(axis=2)
        truth = np.sort(distances, axis=1)[:, :4]
        here = np.sort(np.take_along_axis(distances, found, 1), axis=1)
        np.testing.assert_allclose(here, truth, rtol=1e-14)
        assert (np.diff(found, axis=1) > 0).all()


@pytest.mark.parametrize("kind", ["dense", "sparse", "sparse anchors"])
@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_nearest_anchors_are_exact_where_products_lose_all_digits(kind, offset):
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 3)) + offset * random.integers(0, 2, (60, 1))
    points = random.normal(size=(40, 3)) + offset * random.integers(0, 2, (40, 1))
    distances = np.square(rows[:, None] - points).sum(axis=2)
    truth = np.sort(np.argsort(distances, axis=1, kind="stable")[:, :4], axis=1)
    given = rows if kind == "dense" else sparse.csr_matrix(rows)
    anchors = Anchors(sparse.csr_matrix(points) if kind == "sparse anchors" else points, 4)
    np.testing.assert_array_equal(anchors.nearest(given), truth)


@pytest.mark.parametrize("n_refine", [0, 5])
@pytest.mark.parametrize("distinct", [3, 8, 12])
def test_equal_rows_of_other_weights_have_one_label(distinct, n_refine, seeds):
    for seed in seeds(4):
        random = np.random.default_rng(seed)
        X = random.normal(size=(distinct, 2))[random.integers(0, distinct, 80)]
        model = KernelKMeans(distinct + 4, n_refine=n_refine, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, sample_weight=random.random(80) + 0.1)
        both = np.column_stack([X, model.labels_])
        assert len(np.unique(both, axis=0)) == len(np.unique(X, axis=0))


def test_distances_of_samples_without_weight_are_counted(asked):
    model = KernelKMeans(3, kernel_params={"n_anchors": 30}, random_state=0)
    model.fit(data(), sample_weight=weights_of("zeros"))
    placing = np.count_nonzero(weights_of("zeros")) * 480
    assert model.stats_["distances"] == sum(asked) == N * 120 + placing


def test_every_set_of_anchors_is_drawn_also_where_sampled_ones_repeat():
    X = sparse.random(300, 100_000, density=1e-4, random_state=0, format="csr")
    X = sparse.vstack([X, X], format="csr")
    operator = built(X, n_anchors=200)
    assert len(operator.map.graphs) == 4


@pytest.mark.parametrize("kind", ["dense", "sparse", "sparse anchors"])
def test_ties_go_to_the_first_anchor_and_are_found_among_all(kind):
    random = np.random.default_rng(0)
    rows = random.integers(0, 2, (500, 12)).astype(float)
    points = np.unique(random.integers(0, 2, (150, 12)).astype(float), axis=0)
    distances = np.square(rows[:, None] - points).sum(axis=2)
    truth = np.sort(np.argsort(distances, axis=1, kind="stable")[:, :5], axis=1)
    given = rows if kind == "dense" else sparse.csr_matrix(rows)
    anchors = Anchors(sparse.csr_matrix(points) if kind == "sparse anchors" else points, 5)
    np.testing.assert_array_equal(anchors.nearest(given), truth)


def test_wide_sparse_rows_are_not_refused_for_memory_that_they_do_not_take():
    X = sparse.random(400, 100_000, density=1e-4, random_state=0, format="csr")
    model = KernelKMeans(2, random_state=0, memory_limit="500MB").fit(X)
    assert model.stats_["planned_bytes"] < 200e6


def test_a_row_keeps_its_neighbours_whatever_rows_stand_beside_it():
    random = np.random.default_rng(0)
    points, rows = random.normal(size=(150, 7)), random.normal(size=(500, 7))
    anchors = Anchors(points, 5)
    whole = anchors.nearest(rows)
    for size in (1, 7, 64, 333):
        parts = [anchors.nearest(rows[i : i + size]) for i in range(0, 500, size)]
        assert (np.vstack(parts) == whole).all()


def test_distances_are_counted(asked, monkeypatch):
    X = data()
    for n_refine, pack, n in itertools.product((0, 3), (True, False), (N, 100)):
        X = data(n=n)  # and fewer samples than anchors in all
        monkeypatch.setattr("sketchmeans.estimators.memory.choose", _chooser(pack))
        asked.clear()
        model = KernelKMeans(
            3,
            kernel="neighbors",
            kernel_params={"n_anchors": 30},
            n_refine=n_refine,
            random_state=0,
            n_jobs=1,
        ).fit(X)
        assert model.stats_["distances"] == sum(asked)
        assert model.stats_["kernel_entries"] == model.stats_["passes"] == 0
        if pack:
            assert sum(asked) == n * 120 + n * 4 * min(n, 120)  # one visit, after placing
        asked.clear()
        model.predict(X)
        assert sum(asked) == n * 120


def _chooser(pack):
    from sketchmeans.estimators.memory import Plan

    def choose(peak, n_threads, starts, limit):
        run = Run(n_threads, pack)
        return Plan(run, 1, peak(run, 1))

    return choose


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_new_points_are_embedded_by_their_features_and_take_no_kernel_entries(kind, monkeypatch):
    X = data(kind)
    points, new = NeighborPoints(built(X, n_anchors=30).map), X[:90]
    monkeypatch.setattr(points.map, "rows_at_once", 64)  # two blocks
    F = points.map.block(new).toarray()
    right = np.random.default_rng(0).normal(size=(F.shape[1], 3))
    found = points.against(new)
    assert found.shape == F.shape
    assert found.entries == 0
    np.testing.assert_allclose(found.multiply(right), F @ right, atol=1e-12)
    np.testing.assert_array_equal(found.dense(), F)
    np.testing.assert_allclose(points.diagonal_of(new), np.square(F).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 60, 1000])
def test_a_frame_shows_rows_so_that_their_distances_keep_their_order(n):
    X = 1e6 + np.random.default_rng(0).normal(size=(n, 2))
    rows = Frame.of(X, "euclidean").rows(X)
    assert np.abs(rows).max() < 10
