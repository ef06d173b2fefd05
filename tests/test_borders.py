"""Clusters as what borders separate, in the graph of nearest rows: whatever kernel found pieces."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sketchmeans import KernelKMeans
from sketchmeans.advice.borders import clusters_by_borders, separated
from sketchmeans.advice.neighborhoods import Neighborhoods
from sketchmeans.advice.waists import participation, waist


def pieces_of(X, numbers=(12, 16)):
    return [KernelKMeans(k, random_state=0).fit_predict(X) for k in numbers]


def random_rows(*shape):
    return np.random.default_rng(0).normal(size=shape)


TRUE = {
    "moons": (make_moons(900, noise=0.06, random_state=0)[0], 2),
    "circles": (make_circles(600, factor=0.5, noise=0.05, random_state=0)[0], 2),
    "blobs": (make_blobs(600, centers=4, center_box=(-20, 20), random_state=3)[0], 4),
    "a Gaussian": (random_rows(600, 2), 1),
    "a Gaussian in ten dimensions": (random_rows(600, 10), 1),
    "a line": (np.column_stack([np.linspace(0, 10, 500), 0.05 * random_rows(500)]), 1),
}


@pytest.mark.parametrize("name", TRUE)
def test_most_votes_are_for_the_clusters_that_there_are(name):
    X, number = TRUE[name]
    votes = separated(X, pieces_of(X))
    assert votes.counts.total() == 8  # two numbers of pieces, two readings at two scales
    assert votes.number == number


def test_pieces_are_joined_to_the_moons_that_they_are_of():
    X, y = make_moons(500, noise=0.05, random_state=1)
    for graph in Neighborhoods.of(X).graphs(np.arange(500)):
        labels = clusters_by_borders(graph, pieces_of(X)[0])
        assert adjusted_rand_score(y, labels) > 0.98


def test_a_piece_that_holds_a_border_is_split():
    X, y = make_moons(500, noise=0.05, random_state=1)
    graph = next(Neighborhoods.of(X).graphs(np.arange(500)))
    assert adjusted_rand_score(y, clusters_by_borders(graph, np.zeros(500, int))) > 0.98


def test_the_waist_of_a_dumbbell_is_its_bar():
    X = np.vstack([random_rows(100, 2), random_rows(100, 2) + np.array([9, 0])])
    X = np.vstack([X, np.column_stack([np.linspace(2, 7, 12), np.zeros(12)])])
    graph = next(Neighborhoods.of(X).graphs(np.arange(len(X))))
    found = waist(graph)
    sides = X[found.side, 0], X[~found.side, 0]
    assert min(map(len, sides)) > 95
    low, high = sorted(sides, key=np.mean)
    assert low.max() <= high.min() + 1.5
    cut = graph[found.side][:, ~found.side].sum()
    assert found.links == pytest.approx(cut)
    assert found.ends < 25


def test_rows_far_from_all_others_are_lone_and_equal_rows_are_not():
    X = np.vstack([random_rows(300, 2), [[40.0, 40.0], [-60.0, 10.0]]])
    lone = Neighborhoods.of(X).lone()
    assert lone[-2:].all()
    assert lone[:300].mean() < 0.05
    assert not Neighborhoods.of(np.ones((50, 2))).lone().any()


def test_participation_counts_what_carries_a_sum():
    assert participation(np.array([2.0, 2.0, 2.0, 0.0])) == pytest.approx(3)
    assert participation(np.zeros(3)) == 0
