import gc
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons

from sketchmeans import KernelKMeans, choose, compare
from sketchmeans.advice.by_cut import LEAST
from sketchmeans.advice.comparing import VARIANTS, accuracy, measure
from sketchmeans.datasets import make_rings
from sketchmeans.estimators.fitted import embedding_of, kernel_of, options_of
from sketchmeans.kernels import Gaussian
from sketchmeans.operators import DataOperator, NeighborOperator

from oracles import dense_kernel, objective  # isort: skip
from shell import sketchmeans  # isort: skip

DATA = {
    "five blobs": (make_blobs(600, 5, centers=5, random_state=1)[0], 5),
    "three blobs": (make_blobs(600, 2, centers=3, random_state=3)[0], 3),
    "rings": (make_rings(600, random_state=0)[0], 2),
    "moons": (make_moons(500, noise=0.05, random_state=0)[0], 2),
    "digits": (load_digits().data[:900] / 16, 10),
    "noise": (np.random.default_rng(0).normal(size=(500, 5)), None),
}
JUMPS = {
    "five blobs": DATA["five blobs"],
    "circles": (make_circles(800, factor=0.5, noise=0.05, random_state=1)[0], 2),
    "four moons": (
        np.vstack([make_moons(600, noise=0.05, random_state=0)[0], DATA["moons"][0] + [0, 4]]),
        4,
    ),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("gammas", [None, ("median", "4*median")], ids=["one", "grid"])
def test_wrong_advice_is_never_given_without_the_word_weak(name, gammas):
    X, truth = DATA[name]
    choice = choose(X, gammas=gammas, kernel="rbf", n_passes=2, n_splits=4, random_state=0)
    assert choice.n_clusters == truth or choice.is_weak
    assert ("weak" in str(choice)) == choice.is_weak
    assert len(choice.table) == 9 * (1 if gammas is None else 2)


@pytest.mark.parametrize("name", ["five blobs", "three blobs"])
def test_clear_clusters_are_recommended_with_confidence(name):
    X, truth = DATA[name]
    choice = choose(X, kernel="rbf", n_passes=2, random_state=0)
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


FEW = {"kernel": "neighbors", "n_init": 3, "n_splits": 1, "random_state": 0}
"""For clusters that any start finds."""


def far(count):
    """Return groups of several shapes and sizes that nothing connects."""
    random = np.random.default_rng(0)
    shapes = [
        lambda n: random.normal(size=(n, 2)),
        lambda n: random.uniform(-3, 3, (n, 1)) * [1.0, 0.0],
        lambda n: make_circles(n, factor=0.9, random_state=0)[0],
    ]
    groups = [shapes[k % 3](150 + 20 * k) + np.array([1000 * k, 0]) for k in range(count)]
    return np.vstack(groups)


@cache
def chosen_by_the_cut(name):
    """Choose among the numbers of clusters of some data, once for all tests."""
    X = (DATA | JUMPS)[name][0]
    return choose(X, kernel="neighbors", n_splits=1, n_jobs=2, random_state=0)


@pytest.mark.parametrize("name", DATA)
def test_by_the_cut_wrong_advice_is_never_given_without_the_word_weak_either(name):
    truth = DATA[name][1]
    choice = chosen_by_the_cut(name)
    assert choice.n_clusters == truth or choice.is_weak
    assert ("weak" in str(choice)) == choice.is_weak


@pytest.mark.parametrize("name", JUMPS)
def test_the_cut_jumps_behind_the_number_of_clusters(name):
    truth = JUMPS[name][1]
    choice = chosen_by_the_cut(name)
    assert choice.n_clusters == choice.rank == truth
    assert not choice.is_weak, choice.reason
    assert choice.gamma is None
    columns = ["clusters", "cut", "jump", "eigenvalue", "gap", "stability"]
    assert choice.table.columns == columns
    assert "gamma" not in str(choice)
    row = list(choice.table)[truth - 2]
    assert row["jump"] == max(choice.table["jump"])
    assert row["eigenvalue"] > 0.99


@pytest.mark.parametrize("count", [2, 10])
def test_groups_that_share_no_neighbour_are_counted(count):
    choice = choose(far(count), **FEW)
    assert choice.n_clusters == count
    words = f"{count} groups of samples share no neighbour with each other; {count + 1} clusters"
    assert choice.reason.startswith(words)
    assert choice.table["eigenvalue"][count - 2] > 1 - 1e-9


def test_more_groups_than_numbers_that_were_tried_are_told():
    choice = choose(far(9), n_clusters=[2, 4], **FEW)
    assert choice.n_clusters == 4
    assert choice.is_weak
    assert "At least 9 groups share no neighbour: try more." in choice.reason


def test_a_line_is_no_clusters_and_clusters_within_clusters_are_told():
    random = np.random.default_rng(0)
    line = np.column_stack([random.uniform(0, 10, 800), 0.05 * random.normal(size=800)])
    alone = choose(line, **FEW)
    assert alone.is_weak
    assert "No number stands out; the samples may be one cluster" in alone.reason
    blobs = make_blobs(
        900, centers=[[0, 0], [2.5, 0], [1.2, 2.2]], cluster_std=0.5, random_state=0
    )[0]
    pairs = np.vstack([blobs, random.normal(size=(300, 2)) + 1000])
    four = choose(pairs, **FEW)
    assert four.n_clusters == 4
    assert not four.is_weak
    assert "Borders between 4 clusters" in four.reason
    few = np.vstack([blobs[::8], pairs[-50:]])
    within = choose(few, **FEW)
    assert within.n_clusters == 2
    assert within.is_weak
    assert "4 clusters stand out too" in within.reason
    assert "There are fewer than 200 rows, which say little of borders." in within.reason


def test_the_table_is_that_of_fits_with_as_many_clusters():
    X, seed = DATA["moons"][0], int(np.random.RandomState(3).randint(2**31 - 1))
    # Not three: two moons in three clusters have several optima, and starts find one by luck.
    choice = choose(X, n_clusters=[2, 5, 7], kernel="neighbors", n_splits=1, random_state=3)
    for row in choice.table:
        k = row["clusters"]
        model = KernelKMeans(k, kernel="neighbors", random_state=seed).fit(X)
        known, values = model.certificate_, model.eigenvalues_
        assert row["eigenvalue"] == pytest.approx(values[-1], rel=1e-12)
        assert row["cut"] == pytest.approx(known.normalized_cut / (k - 1), rel=0.1, abs=1e-9)
        after = 1 - embedding_of(model).beyond[0]
        assert row["gap"] == pytest.approx(max(after, LEAST) / max(1 - values[-1], LEAST))


def test_one_set_of_anchors_serves_every_number_and_threads_change_nothing(monkeypatch):
    built, build = [], NeighborOperator.build
    monkeypatch.setattr(NeighborOperator, "build", lambda *a: built.append(1) or build(*a))
    one = choose(DATA["five blobs"][0], kernel="neighbors", n_splits=1, n_jobs=1, random_state=0)
    assert len(built) == 1
    assert one.table == chosen_by_the_cut("five blobs").table  # of two threads


def test_widths_belong_to_rbf_and_are_refused_with_neighbours():
    X = DATA["three blobs"][0]
    widths = choose(X, n_clusters=[2, 3], gammas=["median"], n_splits=1, random_state=0)
    assert widths.gamma is not None
    assert widths.table["gamma"] == [widths.gamma] * 2
    for option, message in (
        ({"gammas": ["median"]}, "gammas is not read with kernel='neighbors'.*kernel='rbf'"),
        ({"trace": 0.5}, "trace is not read with kernel='neighbors'.*kernel='rbf'"),
        ({"gamma": 1.0}, "Add kernel='rbf'"),
        ({"rank": 4}, "rank=4 cannot be chosen here"),
    ):
        with pytest.raises(ValueError, match=message):
            choose(X, kernel="neighbors", **option)


def test_on_the_command_line_widths_belong_to_rbf_too(tmp_path):
    path = tmp_path / "blobs.npy"
    np.save(path, DATA["three blobs"][0])
    asked = ["choose", path, "-k", "2-3", "--gammas", "median"]
    found = choose(DATA["three blobs"][0], n_clusters=[2, 3], gammas=["median"], random_state=0)
    command = f"sketchmeans cluster {path} -k {found.n_clusters} --kernel rbf --gamma median"
    assert sketchmeans(*asked).stdout == f"{found.running(f'{command} --rank {found.rank}')}\n"
    refused = sketchmeans(*asked, "--kernel", "neighbors", code=2)
    assert "--gammas is not read with --kernel neighbors" in refused.stderr
    assert "Add --kernel rbf" in refused.stderr


@pytest.mark.parametrize("kernel", ["rbf", "neighbors"])
def test_halves_need_as_many_samples_as_clusters(kernel):
    with pytest.raises(ValueError, match="n_clusters=10 needs at least 20 samples here, and there"):
        choose(DATA["moons"][0][:19], kernel=kernel)


def test_the_kernel_of_a_fit_with_neighbours_has_the_anchors_of_the_fit():
    X = DATA["moons"][0]
    model = KernelKMeans(2, kernel="neighbors", random_state=5).fit(X)
    operator = kernel_of(model, X)
    K = dense_kernel(operator)
    np.testing.assert_allclose(K.sum(axis=1), 1)
    Y = model.embedding_
    np.testing.assert_allclose(K @ Y, Y * model.eigenvalues_, atol=1e-12)
    assert objective(K, model.labels_) == pytest.approx(model.certificate_.objective)
    assert options_of(model, ("kernel", "gamma")) == {"kernel": "neighbors", "gamma": "median"}


def test_numbers_of_clusters_below_two_are_refused():
    with pytest.raises(ValueError, match="must hold numbers from 2 up"):
        choose(np.eye(10), n_clusters=[1, 2])


def test_what_compare_measures_is_exact():
    X = np.random.default_rng(0).normal(size=(200, 3))
    operator = DataOperator(X, Gaussian(0.3))
    K = dense_kernel(operator)
    model = KernelKMeans(4, kernel="rbf", gamma=0.3, random_state=0).fit(X)
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
    assert table["method"] == [*VARIANTS, "plain K-means"]
    assert set(table["numbers a sample"][:-1]) == {4, 8}
    assert min(table["above least"]) == 0
    assert all(0 <= value <= 1 for value in table["NMI"])
    best = table["kernel error"][0]  # the exact one leads in kernel error
    assert all(value >= best * (1 - 1e-9) for value in table["kernel error"][:-1])
    frame = table.to_pandas()
    assert list(frame["method"]) == table["method"]
    assert "| one-pass, 2 passes " in str(table)
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 50)
    given = compare(K, 4, kernel="precomputed", n_seeds=1, random_state=0)
    assert not {"nystrom, kmeans", "plain K-means"} & set(given["method"])
    with pytest.raises(ValueError, match=r"variants \['svd'\] are not known. Known: exact; one-p"):
        compare(X, 4, variants=["svd"])


def test_compare_keeps_rbf_and_refuses_a_kernel_that_has_no_methods_to_compare():
    X = DATA["three blobs"][0][:150]
    given = {"variants": ["one-pass"], "n_seeds": 1, "random_state": 0}
    ours, same = compare(X, 3, **given), compare(X, 3, kernel="rbf", **given)
    assert ours["objective"] == same["objective"]
    with pytest.raises(ValueError, match=r"'neighbors' needs no method.*nothing to compare"):
        compare(X, 3, kernel="neighbors", **given)


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
    for kernel in ("rbf", "neighbors"):
        with pytest.raises(ValueError, match=next(iter(option))):
            choose(DATA["rings"][0], kernel=kernel, **option)
