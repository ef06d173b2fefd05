"""Kernel, width and number of clusters together: what ``choose`` recommends by its defaults."""

import json
import shlex
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from benchmarks import choosing
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

import shell
from sketchmeans import KernelKMeans, choose
from sketchmeans.advice import together
from sketchmeans.advice.borders import Votes
from sketchmeans.advice.candidates import WIDTHS, candidates
from sketchmeans.advice.choosing import RUNNING
from sketchmeans.advice.follow_up import cluster_after_choose
from sketchmeans.advice.neighborhoods import Neighborhoods, share_cut

BLOBS = make_blobs(400, centers=3, cluster_std=0.7, random_state=3)
CIRCLES = make_circles(500, factor=0.5, noise=0.05, random_state=1)
FEW = {"n_clusters": range(2, 5), "n_splits": 2, "random_state": 0}
FEWER = {**FEW, "n_init": 3}
"""For blobs, which any start finds."""


@pytest.fixture(scope="module")
def circles():
    return choose(CIRCLES[0], **FEW)


def labels_of(choice, X):
    """Run the recommended line as it stands."""
    return eval(choice.command, {"KernelKMeans": KernelKMeans, "X": X}).labels_


def test_circles_need_the_neighbours_kernel_and_all_kernels_were_tried(circles):
    assert (circles.n_clusters, circles.kernel, circles.width) == (2, "neighbors", None)
    assert not circles.is_weak, circles.reason
    assert circles.kernels["kernel"] == ["neighbors", *(f"rbf {width}" for width in WIDTHS)]
    cuts = circles.kernels["cut"]
    assert cuts[0] == min(cuts)
    assert min(cuts[1:]) > 10 * cuts[0]
    assert circles.table["clusters"] == [2, 3, 4]
    assert circles.table["borders"][0] >= 9  # of twelve votes
    assert sum(circles.table["borders"]) <= 12


def test_the_recommended_line_of_python_finds_the_clusters(circles):
    assert circles.command == "KernelKMeans(2, kernel='neighbors', random_state=0).fit(X)"
    assert str(circles).endswith(f"\n\nRun: {circles.command}")
    assert adjusted_rand_score(CIRCLES[1], labels_of(circles, CIRCLES[0])) > 0.98


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, pd.DataFrame, np.ndarray.tolist])
def test_blobs_are_found_in_rows_of_any_kind(kind):
    choice = choose(kind(BLOBS[0]), **FEWER)
    assert choice.n_clusters == 3
    assert not choice.is_weak
    assert adjusted_rand_score(BLOBS[1], labels_of(choice, BLOBS[0])) > 0.95


def test_a_cloud_without_clusters_is_weak_and_the_words_say_why():
    X = np.random.default_rng(0).normal(size=(500, 3))
    choice = choose(X, **FEW)
    assert choice.is_weak
    assert str(choice).startswith("Weak evidence: ")
    assert "the rows may be one cluster, or clusters that touch" in choice.reason


def test_few_rows_are_weak_whatever_they_show():
    choice = choose(load_iris().data, **FEW)
    assert choice.is_weak
    assert "There are fewer than 200 rows, which say little of borders." in choice.reason
    assert set(choice.table["borders"]) == {None}


def test_threads_change_nothing_and_the_seed_decides(circles):
    again = choose(CIRCLES[0], n_jobs=2, **FEW)
    assert again.table == circles.table
    assert again.kernels == circles.kernels
    assert again.reason == circles.reason
    assert "n_jobs=2" in again.command


def test_of_many_rows_some_are_drawn_by_the_seed_and_that_is_told(monkeypatch):
    monkeypatch.setattr(together, "ROWS", 300)
    seen = []

    def spy(X, *rest):
        seen.append(X)
        return candidates(X, *rest)

    monkeypatch.setattr(together, "candidates", spy)
    told = [choose(BLOBS[0], **{**FEWER, "random_state": seed}) for seed in (0, 0, 1)]
    assert all(X.shape[0] == 300 for X in seen)
    np.testing.assert_array_equal(seen[0], seen[1])
    assert (seen[0] != seen[2]).any()
    assert "Looked at 300 of 400 rows, drawn by the seed." in told[0].reason
    assert str(told[0]) == str(told[1])


def test_a_kernel_or_widths_that_are_given_are_the_only_ones_tried():
    given = choose(BLOBS[0], kernel="neighbors", **FEWER)
    assert (given.kernel, given.kernels) == ("neighbors", None)
    widths = choose(BLOBS[0], gammas=["median", "4*median"], **FEW)
    assert widths.kernel == "rbf"
    assert widths.kernels is None
    assert widths.table["width"] == ["median"] * 3 + ["4*median"] * 3
    assert widths.width in ("median", "4*median")
    assert f"gamma='{widths.width}', rank={widths.rank}" in widths.command
    assert adjusted_rand_score(BLOBS[1], labels_of(widths, BLOBS[0])) > 0.95
    one = choose(BLOBS[0], gammas="4*median", **FEW)
    assert set(one.table["width"]) == {"4*median"}


def test_options_of_one_kernel_ask_for_the_kernel_of_a_fit():
    choice = choose(BLOBS[0], kernel_params={"metric": "cosine"}, **FEWER)
    assert choice.kernels is None
    assert "kernel_params={'metric': 'cosine'}" in choice.command
    with pytest.raises(ValueError, match="Add kernel='rbf'"):
        choose(BLOBS[0], gamma="4*median", **FEW)
    known = {*KernelKMeans().get_params()}
    assert known >= RUNNING


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_init": 0}, "n_init"),
        ({"n_jobs": 0}, "n_jobs=0 is no number of threads"),
        ({"n_splits": 0}, "n_splits"),
        ({"n_clusters": [2, 251]}, "n_clusters=251 needs at least 502 samples"),
        ({"gammas": []}, "gammas is empty"),
        ({"gammas": ["median", "4*mean"]}, r"gamma='4\*mean' is not understood"),
        ({"gammas": ["median", 0]}, "gamma=0 makes any two samples alike"),
        ({"gammas": ["median"], "n_clusters": [2, 251]}, "needs at least 502 samples"),
    ],
    ids=str,
)
def test_bad_options_are_refused_before_anything_is_embedded(options, message, monkeypatch):
    def embed(*given):
        raise AssertionError("something was embedded")

    for module in ("candidates", "choosing", "by_cut"):
        monkeypatch.setattr(f"sketchmeans.advice.{module}.embed", embed)
    with pytest.raises(ValueError, match=message):
        choose(CIRCLES[0], **options)


def test_an_unknown_option_is_refused_too():
    with pytest.raises(TypeError, match="n_neigbors"):
        choose(CIRCLES[0], n_neigbors=5)


def dense_share_cut(graph, labels, k):
    """The definition, cluster by cluster."""
    A, cut = graph.toarray(), 0.0
    for cluster in range(k):
        inside = labels == cluster
        cut += A[inside][:, ~inside].sum() / A[inside].sum()
    return cut / (k - 1)


def test_the_cut_of_the_common_graph_is_that_of_its_definition():
    X = np.random.default_rng(1).normal(size=(120, 2))
    graph = next(Neighborhoods.of(X).graphs(np.arange(120)))
    labels = np.random.default_rng(2).integers(0, 4, 120)
    assert share_cut(graph, labels, 4) == pytest.approx(dense_share_cut(graph, labels, 4))
    assert share_cut(graph, np.arange(120) % 2, 2) == pytest.approx(1, abs=0.15)  # as by chance
    assert share_cut(graph, np.zeros(120, int), 1) == pytest.approx(0)


def voted(*graphs, lone=0.0):
    """Return votes in some graphs, each a list of numbers."""
    counts = tuple(map(Counter, graphs))
    return Votes(sum(counts, Counter()), lone, counts)


def test_votes_are_counted_by_graphs():
    votes = voted([2, 2, 2], [2, 2, 4], [4, 4, 4], [3, 2, 4])
    assert votes.share(2) == 0.5
    assert votes.share(4) == 0.25
    assert votes.share(3) == 0


def numbers(cuts):
    """Return what was seen of 2, 3, … clusters with these cuts."""
    return [
        together._Seen(k, None, cut, after, 1.0, 1.0)
        for k, (cut, after) in enumerate(pairwise(cuts), start=2)
    ]


@pytest.mark.parametrize(
    ("cuts", "votes", "number", "doubt"),
    [
        ([0.01, 0.02, 0.03, 0.1], voted(*[[3, 3, 3]] * 4), 3, None),  # all agree: whatever is cut
        ([0.01, 0.012, 0.02, 0.03], voted(*[[3] * 3] * 3, [4] * 3), 3, None),  # three, and the cut
        ([0.01, 0.012, 0.015, 0.02], voted(*[[3] * 3] * 3, [4] * 3), 3, "speak for 4 clusters too"),
        ([0.01, 0.05, 0.06, 0.07], voted(*[[3] * 3] * 3, [4] * 3), 3, "The cut speaks for 2"),
        ([0.001, 0.02, 0.03, 0.04], voted(*[[2] * 3] * 2, *[[3] * 3] * 2), 2, None),  # a large jump
        ([0.01, 0.05, 0.06, 0.07], voted(*[[2] * 3] * 2, *[[3] * 3] * 2), 2, "for 3 clusters too"),
        ([0.01, 0.05, 0.06, 0.07], voted(*[[1, 1, 1]] * 4), 2, "the rows may be one cluster"),
        ([0.01, 0.05, 0.06, 0.07], voted(*[[9, 9, 9]] * 4), 2, "speak for 9 clusters"),
        ([0.01, 0.05, 0.06, 0.07], voted(*[[3, 3, 3]] * 4, lone=0.5), 3, "50% of the rows lie alo"),
        ([0.01, 0.012, 0.05, 0.06], None, 3, "fewer than 200 rows"),
    ],
    ids=range(10),
)
def test_a_number_is_firm_where_borders_agree_or_most_of_them_and_the_cut(
    cuts, votes, number, doubt
):
    best, doubts = together._number(numbers(cuts), votes)
    assert best.n_clusters == number
    assert bool(doubts) == (doubt is not None), doubts
    if doubt is not None:
        assert any(doubt in said for said in doubts), doubts


@pytest.mark.parametrize(
    ("cuts", "halves", "best"),
    [
        ([0.1, 0.2, 0.3], [0.5, 1.0, 1.0], 0),  # the least cut, though others are more stable
        ([0.100, 0.101, 0.3], [0.8, 0.9, 1.0], 1),  # as good, and more stable
        ([0.101, 0.100, 0.3], [0.99, 1.0, 1.0], 0),  # no difference: the first
        ([0.2, 0.3, 0.1], [1.0, 1.0, 0.9], 2),
    ],
)
def test_the_kernel_is_the_one_that_cuts_least_and_of_equals_the_more_stable(cuts, halves, best):
    tried = [together._Judged(None, *of) for of in zip(cuts, [1.0] * 3, halves, strict=True)]
    assert together._best(tried) is tried[best]


@pytest.fixture
def folder(tmp_path):
    X, y = make_moons(300, noise=0.05, random_state=0)
    frame = pd.DataFrame({"id": range(300), "x": X[:, 0], "y": X[:, 1], "moon": y})
    frame.to_csv(tmp_path / "my moons.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    "options", ["-k 2-3", "-qk 2-3", "-k2-3 --gammas '4*median,16*median' -v"], ids=str
)
def test_the_command_at_the_end_works_when_it_is_copied(options, folder):
    given = "--id-column id --label-column moon --standardize --seed 5"
    shown = shell.here(f"sketchmeans choose 'my moons.csv' {given} {options}", folder)
    assert shown.returncode == 0, shown.stderr
    command = shown.stdout.splitlines()[-1].removeprefix("Run: ")
    start = ["sketchmeans", "cluster", "my moons.csv", *given.split(), "-k"]
    assert shlex.split(command)[: len(start)] == start
    found = shell.here(f"{command} --json", folder)
    assert found.returncode == 0, found.stderr
    result = json.loads(found.stdout)
    assert result["kernel"] == ("rbf" if "gammas" in options else "neighbors")
    assert result["rows"] == 300
    assert result["columns"] == 2
    if "gammas" not in options:
        assert result["agreement"]["NMI"] > 0.95


def test_json_has_the_kernel_the_width_and_the_command(folder):
    shown = shell.here("sketchmeans choose 'my moons.csv' --columns x,y -k 2-3 --json", folder)
    found = json.loads(shown.stdout)
    assert (found["kernel"], found["width"], found["n_clusters"]) == ("neighbors", None, 2)
    assert found["command"] == (
        "sketchmeans cluster 'my moons.csv' --columns x,y -k 2 --kernel neighbors"
    )
    assert len(found["kernels"]) == 5
    assert len(found["table"]) == 2


@pytest.mark.parametrize(
    ("command", "then"),
    [
        ("sketchmeans choose a.csv", "sketchmeans cluster a.csv -k 3"),
        ("sketchmeans choose - --gammas=median -q", "sketchmeans cluster - -k 3"),
        ("sketchmeans choose --gamma 2 a.csv -vk 2-9", "sketchmeans cluster a.csv -k 3"),
        ("sketchmeans choose --seed 1 -- -a.csv", "sketchmeans cluster --seed 1 -k 3 -- -a.csv"),
    ],
)
def test_a_command_is_made_of_the_one_that_ran(command, then):
    assert cluster_after_choose(command, "-k", "3") == then


def test_the_benchmark_keeps_its_table_and_goes_on_where_it_ended(tmp_path, monkeypatch):
    file, asked, ask = tmp_path / "choosing.json", [], choosing.asked
    monkeypatch.setattr(choosing, "asked", lambda *one: asked.append(one) or ask(*one))
    run = ["--sets", "iris", "--seeds", "1", "--first", "7", "--out", str(file), "--resume"]
    choosing.main(run)
    report = choosing.main(run)
    assert asked == [("iris", 7)]
    (row,) = report.tables[0]["rows"]
    assert row[:5] == ["iris", "7", "3", "2", "weak"]
    assert 0.6 < float(row[6]) < 0.9
    kept = file.with_suffix(".md").read_text()
    assert kept.startswith("# What choose recommends\n\n`python -m benchmarks.choosing --seeds 1 ")
    assert "share of the sets where it is firm: 0 × (target ≥ 0.5 ×): MISSED" in kept
    with pytest.raises(SystemExit, match="--sets rings is not known"):
        choosing.main(["--sets", "rings"])
