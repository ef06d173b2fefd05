"""The report: what it says is true, and nothing in it is larger for more samples."""

import re
import subprocess
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    silhouette_samples,
    silhouette_score,
)

from pages import read
from sketchmeans import ColumnStream, FullKernelKMeans, KernelEmbedding, KernelKMeans, load, save
from sketchmeans.advice.plain import plain_kmeans
from sketchmeans.datasets import make_rings
from sketchmeans.estimators.fitted import embedding_of
from sketchmeans.report import content, write_report
from sketchmeans.report.fit import UNREAD
from sketchmeans.report.html import command_line

IRIS = load_iris()


@pytest.fixture(scope="module")
def model():
    return KernelKMeans(3, kernel="rbf", n_passes=2, random_state=0).fit(IRIS.data)


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "iris.html"
    written = write_report(
        path,
        model,
        IRIS.data,
        command=["sketchmeans", "cluster", "my iris.csv", "-k", "3"],
        feature_names=IRIS.feature_names,
        ids=[f"flower {row}" for row in range(150)],
        truth=IRIS.target_names[IRIS.target],
        source="my iris.csv",
    )
    assert written == path
    return read(path)


def test_it_says_what_was_asked_and_how_to_repeat_it(report, model):
    asked = {row[0]: row[1] for row in report.table("data")}
    assert asked["data"] == "my iris.csv"
    assert asked["samples"] == "150"
    assert asked["features"] == "4 (float64)"
    assert asked["kernel"] == f"rbf, γ = {model.gamma_:.5g} (median)"
    assert asked["method"] == "one-pass, 2 passes (an option that belongs to it was given)"
    assert asked["rank of the embedding"] == "13 (asked: auto)"
    options = {row[0]: row[1] for row in report.table("certificate")}
    assert options == {name: repr(value) for name, value in model.get_params().items()}
    assert "sketchmeans cluster 'my iris.csv' -k 3" in report.text


def test_sizes_and_silhouettes_are_those_of_the_labels(report, model):
    head, *rows = report.table("cluster")
    assert head == ["cluster", "samples", "share", "silhouette", "mostly"]
    values = silhouette_samples(model.embedding_, model.labels_)
    for cluster, row in enumerate(rows):
        inside = model.labels_ == cluster
        assert row[:3] == [str(cluster), str(inside.sum()), f"{inside.mean():.1%}"]
        assert row[3] == f"{values[inside].mean():.3f}"
        names, counts = np.unique(IRIS.target_names[IRIS.target[inside]], return_counts=True)
        assert row[4] == f"{names[counts.argmax()]} ({counts.max() / inside.sum():.0%})"
    assert f"The mean silhouette is {values.mean():.3f}, in the embedding, over all" in report.text


def test_typical_members_are_the_nearest_to_the_centroid(report, model):
    rows = next(t for t in report.tables if t[0][1:2] == ["sample"])
    assert rows[0][4:] == IRIS.feature_names
    away = np.linalg.norm(model.embedding_ - model.cluster_centers_[model.labels_], axis=1)
    for cluster in range(3):
        mean, *members = rows[1 + 6 * cluster : 7 + 6 * cluster]
        inside = np.flatnonzero(model.labels_ == cluster)
        nearest = inside[np.argsort(away[inside])[:5]]
        assert mean[0] == str(cluster)
        assert mean[4:] == [f"{v:.5g}" for v in IRIS.data[inside].mean(axis=0)]
        for row, member in zip(nearest, members, strict=True):
            name = IRIS.target_names[IRIS.target[row]]
            values = [f"{value:.5g}" for value in IRIS.data[row]]
            assert member == [f"flower {row}", f"{away[row]:.4g}", name, *values]


def test_true_labels_are_counted_by_cluster(report, model):
    head, *rows = report.table("true label")
    assert head == ["true label", "0", "1", "2", "all"]
    for name, row in zip(IRIS.target_names, rows, strict=True):
        shown = IRIS.target_names[IRIS.target] == name
        counts = [np.sum(shown & (model.labels_ == k)) for k in range(3)]
        assert row == [name, *(str(count) for count in counts), "50"]
    nmi = normalized_mutual_info_score(IRIS.target, model.labels_)
    ari = adjusted_rand_score(IRIS.target, model.labels_)
    assert f"mutual information {nmi:.3f}, adjusted Rand index {ari:.3f};" in report.text


def test_certificate_spectrum_and_cost_are_those_of_the_model(report, model):
    known = model.certificate_
    assert f"The objective is at most {known.relative_gap:.1%} above the least" in report.text
    numbers = {row[0]: row[1] for row in report.table("objective of these labels")}
    assert numbers["best possible objective"] == f"at least {known.optimum_lower:.6g}"
    assert numbers["trace that the embedding leaves out"] == f"{known.trace_error:.6g}"
    held = model.eigenvalues_.sum() / 150
    assert f"rank 13 and holds {held:.1%} of the trace" in report.text
    stages = {row[0]: row[1] for row in report.table("stage")[1:]}
    seconds = model.stats_["seconds"]
    assert stages == {name: f"{value:.3f} s" for name, value in seconds.items()} | {
        "in all": f"{sum(seconds.values()):.3f} s"
    }


def test_the_picture_holds_the_embedding_and_the_values(report, model):
    picture = report.picture
    assert picture["cluster"] == model.labels_.tolist()
    assert picture["id"] == [f"flower {row}" for row in range(150)]
    axes = report.drawn("embedding")["axes"]
    assert len(axes) == content.COLUMNS
    for axis in axes:
        column = int(axis["name"].removeprefix("column "))
        np.testing.assert_allclose(axis["at"], model.embedding_[:, column], rtol=1e-4)
    np.testing.assert_allclose(np.transpose(picture["values"]), IRIS.data, rtol=1e-4)
    for k, cluster in enumerate(picture["clusters"]):
        assert (cluster["number"], cluster["size"]) == (k, np.sum(model.labels_ == k))
        assert model.labels_[cluster["at"]] == k


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(500, noise=0.08, random_state=0)
    params = {"n_neighbors": 6, "n_graphs": 2}
    model = KernelKMeans(2, kernel="neighbors", kernel_params=params, random_state=0).fit(X)
    return model, X, y


def test_with_neighbours_it_tells_of_anchors_and_of_the_cut(moons, tmp_path):
    model, X, y = moons
    page = read(write_report(tmp_path / "r.html", model, X, command="python moons.py", truth=y))
    asked = {row[0]: row[1] for row in page.table("samples")}
    assert asked["kernel"] == "neighbors (n_graphs = 2, n_neighbors = 6)"
    assert asked["anchors"] == "2 sets of 166 anchors, 6 neighbours"
    assert asked["rank of the embedding"] == "2 (asked: auto)"
    assert asked["numbers kept per sample"] == "12"
    known, values = model.certificate_, embedding_of(model)
    cut, least = known.normalized_cut, known.normalized_cut_lower
    words = (
        f"Normalized cut {cut:.4g}, {cut:.2%} of what labels at random have; no labels have less "
        f"than {least:.4g} under this kernel."
    )
    assert page.text.count(words) == 1  # in its section, and not on top
    numbers = {row[0]: row[1] for row in page.table("normalized cut of these labels")}
    plain = plain_kmeans(model, X).objective
    assert numbers == {
        "normalized cut of these labels": f"{cut:.6g}",
        "that of plain K-means, under this kernel": f"{plain:.6g}",
        "best possible normalized cut": f"at least {least:.6g}",
        "normalized cut of labels at random": "1",
    }
    first, then = values.eigenvalues[1], values.beyond[0]
    assert f"eigenvalue 2 is {first:.5f}, the next {then:.5f}." in page.text
    work = {row[0]: row[1] for row in page.table("distances to anchors")}
    assert work["distances to anchors"] == f"{model.stats_['distances']:,}"
    assert "kernel entries" not in work
    for word in ("gamma", "γ", "landmark", "sketch ", "no useful bound", "trace of", "rbf"):
        assert word not in page.text.lower()


def test_options_that_neighbours_do_not_read_are_those_that_a_fit_refuses(moons, tmp_path):
    model, X, _ = moons
    page = read(write_report(tmp_path / "r.html", model, X, command="x"))
    shown = {row[0]: row[1] for row in page.table("certificate")}
    given = model.get_params()
    assert shown == {name: repr(given[name]) for name in given if name not in UNREAD}
    other = {"gamma": 1.0, "degree": 2, "coef0": 0.0, "method": "nystrom", "precision": "float32"}
    other |= {"oversampling": 3, "n_landmarks": 9, "n_passes": 2, "sketch": "uniform"}
    other |= {"truncation": "early"}
    assert other.keys() == set(UNREAD)
    for name, value in other.items():
        with pytest.raises(ValueError, match=f"{name}=.* is not read with kernel='neighbors'"):
            KernelKMeans(2, kernel="neighbors", **{name: value}).fit(X)


def test_the_constant_column_of_neighbours_is_not_drawn(moons, tmp_path):
    model, X, _ = moons
    assert np.ptp(model.embedding_[:, 0]) < 1e-9
    page = read(write_report(tmp_path / "r.html", model, X, command="x"))
    assert [axis["name"] for axis in page.drawn("embedding")["axes"]] == ["column 1", "cluster"]
    assert "The embedding has one column that is not constant" in page.text


def test_a_model_with_neighbours_from_a_file_is_reported_alike(moons, tmp_path):
    model, X, _ = moons
    save(model, tmp_path / "m.skm")
    loaded = load(tmp_path / "m.skm")
    ours, theirs = (
        read(write_report(tmp_path / f"{name}.html", one, X, command="x"))
        for name, one in (("a", model), ("b", loaded))
    )
    assert ours.picture == theirs.picture
    assert ours.table("samples") == theirs.table("samples")
    first = "normalized cut of these labels"
    assert ours.table(first) == theirs.table(first)


def test_one_cluster_and_clusters_that_share_no_neighbour_are_reported(tmp_path):
    X = make_blobs(300, centers=[[0, 0], [0, 100], [100, 0]], random_state=0)[0]
    for k, words in (
        (1, "All samples are in one cluster: no other labels are possible."),
        (3, "No two clusters share a neighbour under this kernel: no"),
    ):
        model = KernelKMeans(k, kernel="neighbors", random_state=0).fit(X)
        page = read(write_report(tmp_path / f"{k}.html", model, X, command="x"))
        assert words in page.text
    with pytest.warns(match="all 50 samples are equal"):
        same = KernelKMeans(2, kernel="neighbors", random_state=0).fit(np.ones((50, 2)))
    page = read(write_report(tmp_path / "same.html", same, np.ones((50, 2)), command="x"))
    assert "eigenvalue 1 is 1.00000" in page.text


def test_of_many_samples_a_seeded_choice_is_shown_and_it_says_so(tmp_path):
    X, _ = make_rings(6000, random_state=0)
    model = KernelKMeans(2, kernel="polynomial", degree=2, coef0=0, random_state=0).fit(X)
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        path = tmp_path / f"{name}.html"
        found.append(read(write_report(path, model, X, command="x", random_state=seed)))
    count = len(found[0].picture["id"])
    assert 2000 <= count <= 2010
    words = "A random choice of 2,000 of the 6,000 samples (seed 0) and the typical members, "
    assert f"{words}{count:,} points in all." in found[0].text
    assert found[0].picture == found[1].picture
    assert found[0].picture["id"] != found[2].picture["id"]
    rows = [int(row) for row in found[0].picture["id"]]
    assert found[0].picture["cluster"] == model.labels_[rows].tolist()
    assert set(rows) >= {int(row[-4]) for row in members(found[0])}
    # Silhouettes of the choice are near those of all.
    said = float(re.search(r"mean silhouette is ([0-9.]+), .* choice of 2,000", found[0].text)[1])
    whole = silhouette_score(model.embedding_, model.labels_)
    assert said == pytest.approx(whole, abs=0.03)


def members(page):
    """Rows of the table of typical members, without the means; their last four cells."""
    rows = next(t for t in page.tables if t[0][1:2] == ["sample"])[1:]
    return [row[-4:] for row in rows if "mean of the cluster" not in row]


def test_sparse_data_are_shown_as_dense_ones_are(tmp_path):
    X, _ = make_blobs(200, 30, centers=3, random_state=0)
    X[np.abs(X) < 3] = 0
    pages = []
    for name, given in (("dense", X), ("sparse", sparse.csr_matrix(X))):
        model = KernelKMeans(3, kernel="rbf", gamma=0.01, random_state=0).fit(given)
        pages.append(read(write_report(tmp_path / name, model, given, command="x")))
    dense, thin = (page.picture for page in pages)
    assert dense["features"] == thin["features"]
    assert len(dense["features"]) == content.FEATURES
    assert dense["values"] == thin["values"]
    assert dense["cluster"] == thin["cluster"]
    assert "Shown are the 12 of 30 features" in pages[0].text
    assert f"sparse, {np.count_nonzero(X):,} numbers stored" in pages[1].text


def test_the_features_shown_are_those_that_differ_most_by_cluster(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 40))
    truth = np.arange(300) % 3
    for feature in (31, 7, 19):
        X[:, feature] = 1e6 + 50 * truth + random.normal(size=300) * (1 + feature)
    names = [f"f{column}" for column in range(40)]
    model = KernelKMeans(3, kernel="rbf", gamma=1e-4, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.5
    for name, given in (("a", X), ("b", sparse.csr_matrix(X - np.r_[[1e6] * 40]))):
        path = write_report(tmp_path / name, model, given, command="x", feature_names=names)
        assert set(read(path).picture["features"][:3]) == {"f31", "f7", "f19"}


def test_full_kernel_k_means_is_reported_with_an_embedding_made_for_it(tmp_path):
    model = FullKernelKMeans(3, n_init=2, random_state=0).fit(IRIS.data)
    page = read(write_report(tmp_path / "full.html", model, IRIS.data, command="x"))
    assert "this one was made for the report, with the same kernel, by one pass" in page.text
    assert page.picture["cluster"] == model.labels_.tolist()
    own = KernelEmbedding(13, gamma=model.gamma_, random_state=0).fit(IRIS.data).embedding_
    axis = page.drawn("embedding")["axes"][0]
    column = int(axis["name"].removeprefix("column "))
    np.testing.assert_allclose(axis["at"], own[:, column], rtol=1e-4)
    with pytest.raises(ValueError, match="FullKernelKMeans works without an embedding"):
        write_report(tmp_path / "none.html", model, command="x")


def test_a_given_kernel_a_stream_and_absent_data_show_no_values(tmp_path):
    K = np.exp(-np.square(IRIS.data[:, None] - IRIS.data[None]).sum(axis=2))
    given = KernelKMeans(3, kernel="precomputed", random_state=0).fit(K)
    full = FullKernelKMeans(3, kernel="precomputed", n_init=1, random_state=0).fit(K)
    stream = ColumnStream(150, width=30, random_state=0)
    stream.add_columns(0, K)
    streamed = KernelKMeans(3, kernel="precomputed", random_state=0).fit(stream)
    for index, (model, X) in enumerate([(given, K), (given, None), (full, K), (streamed, None)]):
        path = write_report(tmp_path / f"{index}.html", model, X, command="x")
        page = read(path)
        assert page.picture["features"] == []
        assert "there are no values to show" in page.text
        assert len(members(page)) == 15


def test_one_cluster_rank_one_and_empty_clusters_are_reported(tmp_path):
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 20, axis=0)
    one = KernelKMeans(1, kernel="rbf", rank=1, random_state=0).fit(X)
    page = read(write_report(tmp_path / "one.html", one, X, command="x"))
    assert "Silhouettes need at least two clusters" in page.text
    assert [axis["name"] for axis in page.drawn("embedding")["axes"]] == ["column 0", "cluster"]
    with pytest.warns(match="the 40 samples have 2 distinct rows"):
        few = KernelKMeans(3, kernel="rbf", random_state=0).fit(X)
    page = read(write_report(tmp_path / "few.html", few, X, command="x"))
    assert sorted(int(row[1]) for row in page.table("cluster")[1:4])[2] == 20
    zero = KernelKMeans(2, kernel="linear", random_state=0)
    with pytest.warns(match="all 5 samples are equal"):
        zero.fit(np.zeros((5, 2)))
    page = read(write_report(tmp_path / "zero.html", zero, np.zeros((5, 2)), command="x"))
    assert "All eigenvalues are zero" in page.text


def test_frames_and_series_bring_their_names(tmp_path):
    frame = pd.DataFrame(IRIS.data, columns=list("abcd"), index=np.arange(150)[::-1])
    model = KernelKMeans(3, random_state=0).fit(frame)
    truth = pd.Series(IRIS.target, index=frame.index, dtype=float)
    truth.iloc[3] = np.nan
    ids = pd.Series([f"row {k}" for k in range(150)], index=frame.index)
    path = write_report(tmp_path / "f.html", model, frame, command="x", ids=ids, truth=truth)
    page = read(path)
    assert page.picture["features"] == list("abcd")
    assert page.picture["id"][:2] == ["row 0", "row 1"]
    truth = page.picture["truth"]
    assert [truth["names"][code] for code in truth["of"][2:5]] == ["0", "(missing)", "0"]


def test_a_report_stays_below_two_megabytes(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 60)) * 1e-7 / 3
    model = KernelKMeans(120, kernel="rbf", random_state=0, n_init=1, max_iter=5).fit(X)
    path = write_report(
        tmp_path / "large.html",
        model,
        X,
        command="x",
        ids=["<" * 10_000] * 5000,
        truth=[f"{'<' * 30}{row}" for row in range(5000)],
        feature_names=['"' * 10_000] * 60,
    )
    assert 1_000_000 < path.stat().st_size < 2_000_000
    page = read(path)
    assert "The 60 largest of 120 clusters are listed." in page.text
    assert max(page.picture["truth"]["of"]) == 60
    assert "The 60 commonest of 5,000 labels are listed." in page.text


def test_memory_does_not_grow_as_the_samples_do_but_for_a_few_numbers_each(tmp_path):
    X, _ = make_rings(150_000, random_state=0)
    model = KernelKMeans(
        2, kernel="polynomial", degree=2, coef0=0, rank=2, n_init=1, random_state=0
    ).fit(X)
    write_report(tmp_path / "first.html", model, X, command="x")  # what imports need
    tracemalloc.start()
    write_report(tmp_path / "second.html", model, X, command="x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 2,000 × 2,000 distances and their copies, the page, and a few numbers per sample.
    assert peak < 130e6 + 150_000 * 8 * 8


def test_an_existing_file_stays_unless_told_otherwise(tmp_path, model):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"exists already.*overwrite=True"):
        write_report(path, model, command="x")
    assert path.read_text() == "mine"
    write_report(path, model, command="x", overwrite=True)
    assert path.read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match="X has 7 rows, but the model was fitted to 150 samples"):
        write_report(path, model, IRIS.data[:7], command="x", overwrite=True)
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ids": ["a"]}, "ids has 1 rows, but the model was fitted to 150 samples"),
        ({"truth": [1, 2]}, "truth has 2 rows, but the model was fitted to 150 samples"),
        ({"feature_names": ["a"]}, "feature_names has 1 names, but X has 4 columns"),
    ],
)
def test_names_that_do_not_fit_are_refused(tmp_path, model, wrong, message):
    with pytest.raises(ValueError, match=message):
        write_report(tmp_path / "r.html", model, IRIS.data, command="x", **wrong)


def test_an_embedding_alone_is_no_clustering_to_report(tmp_path):
    embedding = KernelEmbedding(3, random_state=0).fit(IRIS.data)
    with pytest.raises(ValueError, match="KernelEmbedding has no clusters to report"):
        write_report(tmp_path / "r.html", embedding, command="x")


@pytest.mark.parametrize(
    "words",
    [
        ["cluster", "my data.csv"],
        ["a'b", 'c"d', "$(rm x)", "`id`", "!!", "\\", ""],
        ["tab\there", "line\nbreak", "bell\x07", "return\r", "it's\x1b[0m"],
        ["é — 漢字", "not utf-8: \udcff\udc80"],
        ["turned \u202e over", "\ufeff"],
    ],
)
def test_the_command_is_exact_for_a_shell(words):
    script = f"printf '%s\\0' {command_line(words)}".encode("utf-8", "surrogateescape")
    told = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert told.decode("utf-8", "surrogateescape").split("\0")[:-1] == words
    assert not re.search(r"[\x00-\x1f\x7f\ud800-\udfff\u202e\ufeff]", command_line(words))
