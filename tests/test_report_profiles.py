"""What the report says of the clusters: profiles, advice, and what is no headline."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs, make_circles, make_moons

from pages import read
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.advice.guidance import guidance
from sketchmeans.advice.plain import plain_kmeans
from sketchmeans.report import Preparation, write_report
from sketchmeans.report.pictures import rounded
from sketchmeans.report.profiles import FULL, LEVELS, STANDS_OUT

IRIS = load_iris()


@pytest.fixture(scope="module")
def model():
    return KernelKMeans(3, kernel="rbf", random_state=0).fit(IRIS.data)


def profile(model, X):
    """Means and scores of clusters, plainly."""
    means = np.array([X[model.labels_ == k].mean(axis=0) for k in range(model.n_clusters)])
    return means, (means - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("kind", ["dense", "sparse", "standardized"])
def test_what_is_high_and_low_in_a_cluster_is_said_the_furthest_first(model, tmp_path, kind):
    X, names = IRIS.data, IRIS.feature_names
    given, done = X, Preparation()
    if kind == "sparse":
        given = sparse.csr_matrix(X)
    elif kind == "standardized":
        done = Preparation(X.mean(axis=0), X.std(axis=0))
        given = (X - done.center) / done.scale
    page = read(
        write_report(tmp_path / "r.html", model, given, feature_names=names, preparation=done)
    )
    means, scores = profile(model, X)
    for k, row in enumerate(page.table("cluster", "high", "low")[1:]):
        for said, sign in ((row[1], 1), (row[2], -1)):
            order = np.argsort(-sign * scores[k], kind="stable")
            out = [one for one in order if sign * scores[k, one] >= STANDS_OUT]
            assert said == "".join(f"{names[one]}: {means[k, one]:.3g}" for one in out) or (
                not out and said == "nothing"
            )


def test_clusters_that_no_feature_tells_apart_alone_are_said_to_be_so(tmp_path):
    X, _ = make_circles(400, factor=0.3, noise=0.04, random_state=0)
    model = KernelKMeans(2, random_state=0).fit(X)
    assert np.abs(profile(model, X)[1]).max() < STANDS_OUT
    page = read(write_report(tmp_path / "r.html", model, X))
    assert "Here none is: the clusters differ in their shapes" in page.text
    assert [row[1:] for row in page.table("cluster", "high", "low")[1:]] == [["nothing"] * 2] * 2


def test_shades_of_the_heat_map_rise_with_the_distance_from_the_mean(model, tmp_path):
    path = write_report(tmp_path / "r.html", model, IRIS.data)
    _, scores = profile(model, IRIS.data)
    body = re.search(r'<table class="heat">.*?<tbody>(.*?)</tbody>', path.read_text())[1]
    levels = [
        [int(level) for level in re.findall(r'<td class="h(-?\d)', row)]
        for row in body.split("<tr>")[1:]
    ]
    expected = np.round(np.clip(scores / FULL, -1, 1) * LEVELS).T
    np.testing.assert_array_equal(levels, expected)
    assert {-3, 2} <= set(np.ravel(levels))


def test_what_to_do_next_is_the_advice_for_this_run_with_commands_to_copy(tmp_path):
    random = np.random.default_rng(0)
    X = make_blobs(200, 3, centers=3, random_state=0)[0] * [1, 1, 1000]
    X[:, 0] += random.normal(size=200)
    model = KernelKMeans(3, random_state=0).fit(X)
    command = ["sketchmeans", "cluster", "my data.csv", "-k", "3"]
    names = ["age", "<b>height", "income"]
    path = write_report(tmp_path / "r.html", model, X, command=command, feature_names=names)
    page, text = read(path), path.read_text()
    lines = guidance(
        model, X, feature_names=names, command="sketchmeans cluster 'my data.csv' -k 3",
        plain=plain_kmeans(model, X),
    )  # fmt: skip
    assert len(lines) >= 2
    for line in lines:
        assert line in page.text
    commands = re.findall(r"<pre[^>]*><code>(sketchmeans [^<]*)</code>", text)
    assert "sketchmeans cluster &#x27;my data.csv&#x27; -k 3 --standardize" in commands
    places = [text.index(f">{name}</h2>") for name in ("Clusters", "What to do next", "Profiles")]
    assert places == sorted(places)


def test_a_name_cannot_pass_for_a_command_to_copy(tmp_path):
    X = make_blobs(200, 2, centers=3, random_state=0)[0] * [1, 1000]
    model = KernelKMeans(3, random_state=0).fit(X)
    names = ["age", "x: sketchmeans cluster evil.csv"]
    text = write_report(tmp_path / "a.html", model, X, feature_names=names).read_text()
    advice = re.search(r'<ul class="advice">.*?</ul>', text)[0]
    assert "x: sketchmeans cluster evil.csv is " in advice
    assert "<code>StandardScaler()</code>" in advice
    assert "<pre" not in advice  # no command ran: there is none to copy
    command = "sketchmeans cluster a.csv -k 3"
    path = write_report(tmp_path / "b.html", model, X, feature_names=names, command=command)
    advice = re.search(r'<ul class="advice">.*?</ul>', path.read_text())[0]
    first = re.search(r"<pre[^>]*><code>(.*?)</code>", advice)[1]
    assert first == "sketchmeans cluster a.csv -k 3 --standardize"


def test_the_certificate_of_a_bad_clustering_is_no_headline(tmp_path):
    X, y = make_circles(400, factor=0.4, noise=0.05, random_state=0)
    model = KernelKMeans(2, kernel="rbf", random_state=0).fit(X)
    path = write_report(tmp_path / "r.html", model, X, truth=y)
    header = re.search("<header>.*?</header>", path.read_text(), re.DOTALL)[0]
    assert "in 2 clusters" in header
    assert "NMI with the true labels" in header
    for word in ("above the", "best", "objective", "least"):
        assert word not in header
    section = read(path).text.split("Certificate")[-1]
    said = (
        "This bounds the objective under this kernel. Whether the kernel and 2 clusters suit the "
        "data it cannot tell. A clustering can be the best of its kernel and still not show the "
        "groups that one looks for"
    )
    assert said in section


@pytest.mark.parametrize("kernel", ["rbf", "neighbors"])
def test_the_certificate_shows_found_best_and_plain_k_means_under_this_kernel(tmp_path, kernel):
    X, _ = make_moons(300, noise=0.05, random_state=0)
    model = KernelKMeans(2, kernel=kernel, random_state=0).fit(X)
    path = write_report(tmp_path / "r.html", model, X)
    chart = re.search(
        r'<div class="chart"><svg[^>]*aria-label="([^"]*)"(.*?)</svg>', path.read_text()
    )
    plain = plain_kmeans(model, X).objective
    assert f"plain K-means: {plain:.6g}" in chart[1]
    assert re.search(r"found: .*; plain K-means: .*; best possible: at least ", chart[1])
    dots = {kind: float(x) for x, kind in re.findall(
        r'<circle cx="([\d.]+)%"[^>]*class="dot (\w+)"', chart[2])}  # fmt: skip
    start = float(re.search(r'<line x1="([\d.]+)%"[^>]*class="interval best"', chart[2])[1])
    assert start <= dots["found"] <= 100
    if kernel == "neighbors":  # plain K-means cuts the moons
        assert dots["found"] + 50 < dots["other"] <= 100


def test_a_flat_spectrum_can_be_drawn(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3000))  # nearly orthogonal: no power of ten
    model = KernelKMeans(2, kernel="linear", rank=2, random_state=0).fit(X)
    path = write_report(tmp_path / "r.html", model, X)
    chart = re.search(r'<div class="chart spectrum">.*?</div>', path.read_text())[0]
    numbers = [float(text) for text in re.findall(r'text-anchor="end">([\d.e+]+)<', chart)]
    assert numbers
    top = model.eigenvalues_[0]
    assert all(0.3 * top < number < 3 * top for number in numbers)


def test_full_kernel_k_means_is_set_beside_plain_k_means_too(tmp_path):
    model = FullKernelKMeans(3, n_init=2, random_state=0).fit(IRIS.data)
    page = read(write_report(tmp_path / "r.html", model, IRIS.data))
    numbers = {row[0]: row[1] for row in page.table("objective of these labels")}
    plain = plain_kmeans(model, IRIS.data).objective
    assert numbers["that of plain K-means, under this kernel"] == f"{plain:.6g}"
    assert plain >= model.certificate_.objective * (1 - 1e-9)


def test_the_pictures_begin_with_the_pair_that_parts_the_clusters(tmp_path):
    random = np.random.default_rng(0)
    plane, _ = make_circles(500, factor=0.4, noise=0.04, random_state=0)
    X = random.normal(size=(500, 6)) * 0.01
    X[:, [4, 1]] = plane
    model = KernelKMeans(2, random_state=0).fit(X)
    page = read(write_report(tmp_path / "r.html", model, X))
    features = page.drawn("features")
    assert [features["axes"][place]["feature"] for place in features["start"]] == [1, 4]
    assert features["scale"] == "alike"


def test_numbers_far_from_zero_keep_the_digits_that_tell_them_apart():
    times = 1.7e9 + np.arange(5.0)
    assert rounded(times) == times.tolist()
    assert rounded(np.array([1.0, 1.0])) == [1.0, 1.0]
    assert rounded(np.array([np.pi, 100.0])) == [3.1416, 100.0]


def test_the_same_input_gives_the_same_page_but_for_times_and_memory(model, tmp_path):
    one, other = (
        write_report(tmp_path / name, model, IRIS.data, truth=IRIS.target).read_text()
        for name in "ab"
    )
    still = [
        re.sub(r"<tr><th[^>]*>memory of the process.*?</tr>", "", text) for text in (one, other)
    ]
    assert still[0] == still[1]
