import gc

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs, make_moons

from sketchmeans import KernelKMeans, choose, compare
from sketchmeans.advice.comparing import VARIANTS, accuracy, measure
from sketchmeans.datasets import make_rings
from sketchmeans.kernels import Gaussian
from sketchmeans.operators import DataOperator

from oracles import dense_kernel, objective  # isort: skip

DATA = {
    "five blobs": (make_blobs(600, 5, centers=5, random_state=1)[0], 5),
    "three blobs": (make_blobs(600, 2, centers=3, random_state=3)[0], 3),
    "rings": (make_rings(600, random_state=0)[0], 2),
    "moons": (make_moons(500, noise=0.05, random_state=0)[0], 2),
    "digits": (load_digits().data[:900] / 16, 10),
    "noise": (np.random.default_rng(0).normal(size=(500, 5)), None),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("gammas", [None, ("median", "4*median")], ids=["one", "grid"])
def test_wrong_advice_is_never_given_without_the_word_weak(name, gammas):
    X, truth = DATA[name]
    choice = choose(X, gammas=gammas, n_passes=2, n_splits=4, random_state=0)
    assert choice.n_clusters == truth or choice.is_weak
    assert ("weak" in str(choice)) == choice.is_weak
    assert len(choice.table) == 9 * (1 if gammas is None else 2)


@pytest.mark.parametrize("name", ["five blobs", "three blobs"])
def test_clear_clusters_are_recommended_with_confidence(name):
    X, truth = DATA[name]
    choice = choose(X, n_passes=2, random_state=0)
    assert choice.n_clusters == truth
    assert not choice.is_weak
    assert f"agree best on {truth} clusters" in choice.reason
    assert choice.rank >= truth


def test_one_sketch_serves_every_number_of_clusters():
    asked = 0

    def kernel(A, B):
        nonlocal asked
        asked += len(A) * len(B)
        return np.exp(-0.1 * np.square(A[:, None] - B[None]).sum(axis=2))

    X = DATA["three blobs"][0][:200]
    choose(X, n_clusters=range(2, 7), kernel=kernel, n_splits=2, random_state=0)
    assert asked <= 2 * (200 * 201 / 2 + 200 * 32) + 2 * 32**2  # two passes


def test_numbers_of_clusters_below_two_are_refused():
    with pytest.raises(ValueError, match="must hold numbers from 2 up"):
        choose(np.eye(10), n_clusters=[1, 2])


def test_what_compare_measures_is_exact():
    X = np.random.default_rng(0).normal(size=(200, 3))
    operator = DataOperator(X, Gaussian(0.3))
    K = dense_kernel(operator)
    model = KernelKMeans(4, gamma=0.3, random_state=0).fit(X)
    Y = model.embedding_
    values = measure(operator, Y, model.labels_)
    size = np.linalg.norm(K)
    assert values["kernel error"] == pytest.approx(np.linalg.norm(K - Y @ Y.T) / size, rel=1e-6)
    assert values["trace error"] == pytest.approx(np.trace(K - Y @ Y.T) / 200)
    assert values["objective"] == pytest.approx(objective(K, model.labels_))


def test_accuracy_does_not_depend_on_the_names_of_clusters():
    truth = np.repeat([0, 1, 2], 10)
    assert accuracy(truth, (truth + 1) % 3) == 1
    assert accuracy(truth, np.zeros(30, int)) == pytest.approx(1 / 3)


def test_compare_sets_all_methods_beside_each_other():
    X, y = make_blobs(300, 4, centers=4, random_state=0)
    table = compare(X, 4, y=y, n_seeds=2, random_state=0)
    assert table["method"] == list(VARIANTS)
    assert set(table["numbers a sample"]) == {4, 8}
    assert min(table["above least"]) == 0
    assert all(0 <= value <= 1 for value in table["NMI"])
    best = table["kernel error"][0]  # the exact one leads in kernel error
    assert all(value >= best * (1 - 1e-9) for value in table["kernel error"])
    frame = table.to_pandas()
    assert list(frame["method"]) == list(VARIANTS)
    assert "| one-pass, 2 passes " in str(table)
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 50)
    given = compare(K, 4, kernel="precomputed", n_seeds=1, random_state=0)
    assert "nystrom, kmeans" not in given["method"]
    with pytest.raises(ValueError, match=r"variants \['svd'\] are not known. Known: exact; one-p"):
        compare(X, 4, variants=["svd"])


def test_a_comparison_of_perfect_clusterings_has_no_ratio_to_zero():
    X = np.repeat([[0.0], [5.0]], 10, axis=0)
    table = compare(X, 2, variants=["one-pass"], n_seeds=1, random_state=0, rank=2, width=2)
    assert table["above least"] == [0.0]


def test_local_kernels_keep_their_clusters_in_a_sketch_where_random_landmarks_lose_them():
    """The order of the table in the README, on digits: who wins where."""
    digits = load_digits()
    table = compare(
        digits.data / 16,
        10,
        y=digits.target,
        gamma="4*median",
        rank=10,
        width=20,
        variants=["exact", "one-pass", "one-pass, 2 passes", "nystrom", "rpcholesky"],
        n_seeds=4,
        random_state=0,
    )
    nmi = dict(zip(table["method"], table["NMI"], strict=True))
    assert nmi["exact"] >= nmi["one-pass, 2 passes"] > nmi["one-pass"] + 0.05
    assert nmi["one-pass"] > max(nmi["nystrom"], nmi["rpcholesky"]) + 0.05


def test_compare_takes_options_that_one_method_does_not_read_and_keeps_no_model():
    X = DATA["rings"][0][:120]
    alive = []

    def count(name, done, total):
        gc.collect()
        alive.append(sum(isinstance(one, KernelKMeans) for one in gc.get_objects()))

    table = compare(X, 2, variants=["exact", "one-pass"], oversampling=5, n_seeds=4, progress=count)
    assert table["numbers a sample"] == [2, 7]
    assert max(alive) <= alive[0] + 1


@pytest.mark.parametrize("option", [{"n_init": 0}, {"n_refine": -1}, {"tol": -1.0}])
def test_choose_refuses_what_a_fit_would_refuse(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        choose(DATA["rings"][0], **option)
