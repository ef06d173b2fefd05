"""Agreement of neighbours: against a dense oracle, and as a scorer that finds a width."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchmeans import FullKernelKMeans, KernelKMeans, metrics
from sketchmeans.metrics import neighbor_agreement, neighbor_agreement_scorer

FOLDS = KFold(5, shuffle=True, random_state=0)  # the rows of wine are in the order of its classes
WIDTHS = ["0.25*median", "median", "4*median", "16*median", "64*median"]


def share_of_pairs(X, labels, n_neighbors, rows):
    """The share of the pairs of these rows and their neighbours that are in one cluster."""
    same = []
    for i in rows:
        distances = np.square(X - X[i]).sum(axis=1)
        distances[i] = np.inf
        same += [labels[i] == labels[j] for j in np.argsort(distances)[:n_neighbors]]
    return np.mean(same)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("n_neighbors", [1, 4, 39])
def test_the_agreement_is_the_share_of_pairs_beyond_the_mean_of_shuffled_labels(n_neighbors):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    labels = (X[:, 0] > 0.5).astype(int) + (X[:, 0] > 1.2)
    chance = np.mean(
        [
            share_of_pairs(X, random.permutation(labels), n_neighbors, range(40))
            for _ in range(300 if n_neighbors < 39 else 1)
        ]
    )
    share = share_of_pairs(X, labels, n_neighbors, range(40))
    found = neighbor_agreement(X, labels, n_neighbors=n_neighbors)
    assert found == pytest.approx((share - chance) / (1 - chance), abs=0.03)
    sizes = np.bincount(labels)
    exact = (sizes * (sizes - 1)).sum() / (40 * 39)
    assert found == pytest.approx((share - exact) / (1 - exact), abs=1e-12)


def test_one_cluster_and_random_labels_are_worth_nothing():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    assert neighbor_agreement(X, np.zeros(600)) == 0
    assert abs(neighbor_agreement(X, random.integers(3, size=600))) < 0.05
    giant = np.zeros(600, int)
    giant[random.choice(600, 30, replace=False)] = 1
    assert share_of_pairs(X, giant, 10, range(600)) > 0.88  # by the size of the giant alone
    assert abs(neighbor_agreement(X, giant)) < 0.1


def test_the_names_of_clusters_and_the_form_of_the_rows_do_not_matter(wine):
    X, y = wine
    names = np.array(["red", "white", "rose"])[y]
    dense = neighbor_agreement(X, y)
    assert neighbor_agreement(X, names) == neighbor_agreement(X.tolist(), list(y)) == dense
    assert neighbor_agreement(sparse.csr_matrix(X), y) == pytest.approx(dense, abs=1e-3)
    assert neighbor_agreement(X * 2.0**600, y) == dense


def test_rows_that_equal_each_other_are_neighbours_but_never_of_themselves():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    apart, mixed = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    assert neighbor_agreement(X, apart, n_neighbors=3) == 1
    assert neighbor_agreement(np.arange(6.0)[:, None], np.arange(6), n_neighbors=2) == 0
    assert neighbor_agreement(X, mixed, n_neighbors=19) == pytest.approx(-0.026, abs=1e-3)


def test_of_many_rows_a_seeded_choice_looks_for_its_neighbours_among_all(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    labels = (X[:, 0] > 0).astype(int)
    asked = []

    def watch(X, rows, count, original=metrics._neighbors):
        asked.append((X.shape[0], rows))
        return original(X, rows, count)

    monkeypatch.setattr(metrics, "ROWS", 50)
    monkeypatch.setattr(metrics, "_neighbors", watch)
    found = neighbor_agreement(X, labels)
    assert found == neighbor_agreement(X, labels)
    assert found != neighbor_agreement(X, labels, random_state=1)
    (among, rows), again, other = asked
    assert (among, len(rows)) == (300, 50)
    assert np.array_equal(rows, again[1])
    assert not np.array_equal(rows, other[1])
    sizes = np.bincount(labels)
    chance = (sizes * (sizes - 1)).sum() / (300 * 299)
    share = share_of_pairs(X, labels, 10, rows)
    assert found == pytest.approx((share - chance) / (1 - chance), abs=1e-12)


@pytest.mark.parametrize("cls", [KernelKMeans, FullKernelKMeans])
def test_a_grid_search_finds_a_good_width_on_wine_where_score_finds_a_useless_one(cls, wine):
    X, y = wine

    def nmi(scoring):
        model = cls(3, kernel="rbf", random_state=0)
        search = GridSearchCV(model, {"gamma": WIDTHS}, scoring=scoring, cv=FOLDS).fit(X)
        return normalized_mutual_info_score(y, search.best_estimator_.labels_)

    assert nmi(neighbor_agreement_scorer) > 0.8
    if cls is KernelKMeans:
        assert nmi(None) < 0.05
    assert "sketchmeans.metrics" in cls.score.__doc__


def test_the_scorer_takes_kernels_any_clusterer_and_another_number_of_neighbours(wine):
    X, y = wine
    grid = {"kernel": ["neighbors", "rbf", "linear"]}
    search = GridSearchCV(
        KernelKMeans(3, random_state=0),
        grid,
        scoring=partial(neighbor_agreement_scorer, n_neighbors=5),
        cv=FOLDS,
    ).fit(X)
    assert normalized_mutual_info_score(y, search.best_estimator_.labels_) > 0.8
    plain = KMeans(3, n_init=3, random_state=0)
    scores = cross_val_score(plain, X, scoring=neighbor_agreement_scorer, cv=FOLDS)
    assert scores.min() > 0.5
    plain.fit(X)
    assert neighbor_agreement_scorer(plain, X, y) == neighbor_agreement(X, plain.labels_)
    few = X[::9]  # 20 rows: a quarter of them
    wanted = neighbor_agreement(few, plain.predict(few), n_neighbors=5)
    assert neighbor_agreement_scorer(plain, few) == wanted


def test_in_a_pipeline_the_neighbours_are_those_of_the_rows_that_are_clustered(wine):
    X = load_wine().data
    model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="rbf", random_state=0)).fit(X)
    wanted = neighbor_agreement(wine[0], model.predict(X))
    assert neighbor_agreement_scorer(model, X) == wanted
    assert neighbor_agreement(X, model.predict(X)) < wanted
    alone = make_pipeline(KMeans(3, n_init=3, random_state=0)).fit(X)
    assert neighbor_agreement_scorer(alone, X) == neighbor_agreement(X, alone.predict(X))


def test_what_cannot_be_scored_is_refused_with_a_way_out(wine):
    X, y = wine
    with pytest.raises(ValueError, match="labels has 177 entries, and X has 178 rows"):
        neighbor_agreement(X, y[1:])
    for count in (0, 178):
        with pytest.raises(ValueError, match=f"n_neighbors={count} is not from 1 to 177"):
            neighbor_agreement(X, y, n_neighbors=count)
    model = KernelKMeans(3, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match=r"'precomputed' leaves no rows.*Give the rows"):
        neighbor_agreement_scorer(model, X @ X.T)


@pytest.mark.parametrize("label", [None, np.nan])
def test_rows_without_a_cluster_are_refused(label):
    with pytest.raises(ValueError, match="labels hold None or NaN: every row needs a cluster"):
        neighbor_agreement(np.arange(6.0)[:, None], [0, 0, 1, 1, label, 1], n_neighbors=2)
