"""``compare`` as users meet it: plain K-means, spectral clustering, and several kernels."""

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import check_random_state

import shell
from oracles import objective
from sketchmeans import KernelKMeans, compare
from sketchmeans.advice.comparing import VARIANTS
from sketchmeans.metrics import neighbor_agreement
from sketchmeans.plotting import ComparisonDisplay

GIVEN = {"n_seeds": 2, "random_state": 0}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 3, centers=3, cluster_std=2.5, random_state=0)


@pytest.fixture(scope="module")
def several(blobs):
    X, y = blobs
    kernels = ["rbf", "linear", "neighbors"]
    names = ["exact", "plain K-means", "spectral clustering"]
    return compare(X, 3, y=y, kernels=kernels, variants=names, gamma=0.05, **GIVEN)


def row_of(table, **wanted):
    (row,) = [row for row in table if all(row[key] == wanted[key] for key in wanted)]
    return row


def seeds():
    return check_random_state(0).randint(2**31 - 1, size=2)


def test_plain_k_means_is_the_last_row_with_its_exact_objective_under_the_kernel(blobs):
    X, y = blobs
    table = compare(X, 3, y=y, gamma=0.05, **GIVEN)
    assert table["method"] == [*VARIANTS, "plain K-means"]
    row = table.rows[-1]
    K = np.exp(-0.05 * cdist(X, X, "sqeuclidean"))
    found = [KMeans(3, n_init=10, random_state=int(seed)).fit(X).labels_ for seed in seeds()]
    assert row["objective"] == pytest.approx(np.mean([objective(K, labels) for labels in found]))
    nmi = np.mean([normalized_mutual_info_score(y, labels) for labels in found])
    assert row["NMI"] == pytest.approx(nmi)
    least = min(table["objective"])
    assert row["above least"] == pytest.approx(row["objective"] / least - 1, abs=1e-12)
    assert (row["kernel error"], row["trace error"], row["numbers a sample"]) == (None,) * 3
    assert row["kernel entries"] == 0
    assert row["seconds"] > 0
    assert row.keys() == table.rows[0].keys()


def test_plain_k_means_alone_and_first_has_the_kernel_of_the_others():
    X, _ = make_blobs(1200, 3, centers=3, cluster_std=2.5, random_state=0)
    first = compare(X, 3, variants=["plain k-means", "exact"], **GIVEN)
    last = compare(X, 3, variants=["exact", "plain K-means"], **GIVEN)
    alone = compare(X, 3, variants=["plain K-means"], **GIVEN)
    assert first["objective"] == last["objective"][::-1]
    assert alone["objective"] == first["objective"][:1]
    gamma, other = (
        KernelKMeans(3, kernel="rbf", random_state=int(seed)).fit(X).gamma_ for seed in seeds()
    )
    assert gamma != other  # the median is that of some rows: the first fit's is for all
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    labels = [KMeans(3, n_init=10, random_state=int(seed)).fit(X).labels_ for seed in seeds()]
    assert alone["objective"][0] == pytest.approx(np.mean([objective(K, one) for one in labels]))


def test_spectral_clustering_is_scikit_learns_with_this_kernel_if_asked(blobs):
    X, y = blobs
    names = ["one-pass", "spectral clustering"]
    row = compare(X, 3, y=y, gamma=0.05, variants=names, n_seeds=1, random_state=0).rows[1]
    seed = int(check_random_state(0).randint(2**31 - 1, size=1)[0])
    model = SpectralClustering(3, affinity="rbf", gamma=0.05, random_state=seed).fit(X)
    K = np.exp(-0.05 * cdist(X, X, "sqeuclidean"))
    assert row["objective"] == pytest.approx(objective(K, model.labels_))
    assert row["NMI"] == pytest.approx(normalized_mutual_info_score(y, model.labels_))
    assert row["kernel entries"] == 150**2
    given = compare(K, 3, kernel="precomputed", variants=names, n_seeds=1, random_state=0)
    assert given["objective"][1] == pytest.approx(row["objective"])


def test_each_kernel_has_the_methods_that_make_sense_for_it(several):
    assert list(zip(several["kernel"], several["method"], strict=True)) == [
        ("rbf", "exact"),
        ("rbf", "plain K-means"),
        ("rbf", "spectral clustering"),
        ("linear", "exact"),
        ("linear", "plain K-means"),
        ("neighbors", "anchors"),
    ]
    assert several.columns[:2] == ["kernel", "method"]
    assert "Objectives can be compared only within a kernel" in several.caption


def test_objectives_are_measured_against_the_least_of_their_own_kernel(several, blobs):
    for kernel in ("rbf", "linear", "neighbors"):
        rows = [row for row in several if row["kernel"] == kernel]
        least = min(row["objective"] for row in rows)
        for row in rows:
            assert row["above least"] == pytest.approx(row["objective"] / least - 1, abs=1e-12)
    X, _ = blobs
    labels = [KMeans(3, n_init=10, random_state=int(seed)).fit(X).labels_ for seed in seeds()]
    wanted = np.mean([objective(X @ X.T, one) for one in labels])
    row = row_of(several, kernel="linear", method="plain K-means")
    assert row["objective"] == pytest.approx(wanted)
    wanted = np.mean([neighbor_agreement(X, one) for one in labels])
    assert row["neighbor agreement"] == pytest.approx(wanted)


def test_the_row_of_the_neighbours_kernel_is_that_of_its_defaults(several, blobs):
    X, y = blobs
    models = [KernelKMeans(3, random_state=int(seed)).fit(X) for seed in seeds()]
    row = row_of(several, kernel="neighbors")
    assert row["objective"] == np.mean([model.certificate_.objective for model in models])
    nmi = [normalized_mutual_info_score(y, model.labels_) for model in models]
    assert row["NMI"] == pytest.approx(np.mean(nmi))
    assert row["kernel error"] is None


def test_a_kernel_has_the_same_rows_alone_and_beside_others(several, blobs):
    X, y = blobs
    alone = compare(X, 3, y=y, gamma=0.05, variants=["exact", "plain K-means"], **GIVEN)
    for row in alone:
        beside = row_of(several, kernel="rbf", method=row["method"])
        for name in ("objective", "NMI", "kernel error", "kernel entries"):
            assert beside[name] == row[name]


def test_options_go_to_the_kernels_that_read_them_and_a_callable_has_its_name(blobs):
    X, _ = blobs

    def dot(A, B):
        return A @ B.T

    names = ["one-pass", "plain K-means"]
    options = {"gamma": 0.1, "degree": 2, "oversampling": 5, "n_jobs": 1}
    table = compare(
        X, 3, kernels=["polynomial", "neighbors", dot], variants=names, **options, **GIVEN
    )
    assert table["kernel"] == ["polynomial"] * 2 + ["neighbors"] + ["dot"] * 2
    K = (0.1 * X @ X.T + 1) ** 2
    labels = [KMeans(3, n_init=10, random_state=int(seed)).fit(X).labels_ for seed in seeds()]
    wanted = np.mean([objective(K, one) for one in labels])
    assert table["objective"][1] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernels": []}, "kernels is empty"),
        ({"kernels": ["rfb"]}, r"'rfb' is not known. Did you mean 'rbf'\?"),
        ({"kernels": ["rbf"], "kernel": "rbf"}, "kernel and kernels cannot both be given"),
        ({"kernels": ["rbf", "precomputed"]}, "cannot be both a kernel matrix and rows"),
        ({"kernels": ["linear", "cosine"], "gamma": 1.0}, "gamma=1.0 is not read by any"),
        ({"kernels": ["linear"], "variants": ["spectral clustering"]}, "without negative entries"),
        ({"kernel": "linear", "variants": ["spectral clustering"]}, "without negative entries"),
        ({"variants": ["plain kmeans"]}, r"not known. Known: .* Did you mean 'plain K-means'\?"),
        ({"kernel": "precomputed", "variants": ["plain K-means"]}, "needs rows"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_before_any_fit(options, message, blobs):
    told = []
    with pytest.raises(ValueError, match=message):
        compare(blobs[0], 3, progress=lambda *stage: told.append(stage), **options)
    assert told == []


def test_a_precomputed_matrix_with_negative_entries_has_no_spectral_clustering(blobs):
    K = blobs[0] @ blobs[0].T
    with pytest.raises(ValueError, match=r"without negative entries, and this one has -\d"):
        compare(K, 3, kernel="precomputed", variants=["spectral clustering"])


def test_bars_of_missing_values_are_missing_and_the_best_is_that_of_each_kernel(several):
    def dark(measure):
        display = ComparisonDisplay.from_table(several, measure=measure)
        numbers = [text.get_text() for text in display.ax_.texts]
        weights = [text.get_fontweight() == "bold" for text in display.ax_.texts]
        return numbers, weights, [text.get_text() for text in display.ax_.get_yticklabels()]

    numbers, weights, names = dark("kernel error")
    assert [number != "" for number in numbers] == [True, False, False, True, False, False]
    assert weights == [True, False, False, True, False, False]
    assert names[0] == "rbf: exact"
    weights = dark("objective")[1]
    for kernel in ("rbf", "linear", "neighbors"):
        assert any(weights[i] for i in range(6) if several["kernel"][i] == kernel)
    best = max(several["neighbor agreement"])
    assert dark("neighbor agreement")[1] == [one == best for one in several["neighbor agreement"]]


def test_the_command_takes_kernels_and_methods_and_prints_the_table_of_the_library(rings):
    command = "sketchmeans compare rings.csv -k 2 --columns x,y --label-column ring --seeds 1"
    asked = "--kernels 'rbf, neighbors' --methods 'one-pass; plain k-means; spectral clustering'"
    shown = shell.here(f"{command} {asked} --json", rings.parent)
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = json.loads(shown.stdout)["rows"]
    assert [row["method"] for row in rows] == [
        "one-pass",
        "plain K-means",
        "spectral clustering",
        "anchors",
    ]
    assert rows[1]["kernel error"] is None
    text = shell.here(f"{command} {asked}", rings.parent).stdout
    assert "| neighbors | anchors " in text
    assert "only within a kernel" in text
    plain = shell.here(command, rings.parent).stdout
    assert "| plain K-means " in plain
    assert "spectral" not in plain


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ("--kernels rbf,neighbours", 2, "Did you mean 'neighbors'?"),
        ("--kernels rbf,precomputed", 2, "'precomputed' is not one of"),
        ("--kernels rbf --kernel rbf", 2, "--kernel and --kernels cannot both be given"),
        ("--kernel laplacain", 2, "Did you mean 'laplacian'?"),
        ("--kernel neighbors", 2, "--kernels neighbors,rbf"),
        ("--kernels linear --gamma 2", 1, "gamma=2 is not read by any of these kernels"),
        ("--methods 'one-pas'", 1, "--methods ['one-pas'] are not known"),
        ("--kernel linear --methods 'spectral clustering'", 1, "--kernel linear can have some"),
    ],
)
def test_the_command_refuses_in_the_words_of_its_flags(asked, code, message, rings):
    shown = shell.here(f"sketchmeans compare rings.csv -k 2 --columns x,y {asked}", rings.parent)
    assert shown.returncode == code
    assert message in shown.stderr
    assert shown.stdout == ""


def test_a_large_precomputed_matrix_leaves_out_what_needs_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.cli.compare.EXACT_LIMIT", 50)
    X = np.random.default_rng(0).normal(size=(60, 2))
    np.save(tmp_path / "matrix.npy", X @ X.T)
    arguments = ["compare", str(tmp_path / "matrix.npy"), "-k", "2", "--kernel", "precomputed"]
    shown = shell.sketchmeans(*arguments, "--seeds", 1, "--rank", 2, "--width", 2)
    assert "| greedy-cholesky" in shown.stdout
    assert "| exact" not in shown.stdout
    assert "plain K-means" not in shown.stdout
