"""The neighbours kernel on the command line: its flags, what is said of it, and its models."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

from shell import sketchmeans as run
from sketchmeans import KernelKMeans, choose, load

FLAGS = ("--kernel", "neighbors", "--anchors", 40, "--neighbors", 4, "--graphs", 2)
PARAMS = {"n_anchors": 40, "n_neighbors": 4, "n_graphs": 2}


@pytest.fixture(scope="module")
def points():
    return make_moons(300, noise=0.05, random_state=0)


@pytest.fixture
def moons(points, tmp_path):
    X, y = points
    path = tmp_path / "moons.csv"
    pd.DataFrame(X, columns=["x", "y"]).assign(moon=y).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("flags", "params"),
    [
        ([], None),
        (["--anchors", "auto"], {"n_anchors": "auto"}),
        (["--anchors", 40], {"n_anchors": 40}),
        (["--graphs", "auto", "--neighbors", 3], {"n_neighbors": 3, "n_graphs": "auto"}),
        (["--metric", "cosine"], {"metric": "cosine"}),
        ([*FLAGS[2:], "--metric", "euclidean"], PARAMS | {"metric": "euclidean"}),
    ],
    ids=str,
)
def test_flags_that_are_given_reach_the_estimator(flags, params, moons, tmp_path):
    path = tmp_path / "model.skm"
    arguments = ["cluster", moons, "-k", 2, "--columns", "x,y", "--kernel", "neighbors"]
    run(*arguments, *flags, "--save", path)
    model = load(path)
    assert (model.kernel, model.kernel_params) == ("neighbors", params)


def test_the_summary_tells_of_anchors_and_of_the_normalized_cut(moons, points):
    arguments = ["cluster", moons, "-k", 2, "--label-column", "moon"]
    shown = run(*arguments, *FLAGS).stdout
    assert shown.splitlines()[0] == (
        "300 rows of 2 columns in 2 clusters: neighbors kernel, 2 sets of 40 anchors, 4 neighbours."
    )
    assert "Agreement with 'moon': accuracy " in shown
    model = KernelKMeans(2, kernel="neighbors", kernel_params=PARAMS, random_state=0)
    assert str(model.fit(points[0]).certificate_) in shown
    assert "normalized cut of these labels" in shown
    verbose = run(*arguments, *FLAGS, "-v").stdout
    assert f"; distances of rows and anchors: {model.stats_['distances']:,}; threads: " in verbose
    assert "passes over the kernel" not in verbose


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--graphs", 1, "--anchors", 40], "neighbors kernel, 40 anchors, 5 neighbours."),
        (["--anchors", 300], "neighbors kernel, 300 anchors, 5 neighbours."),
        (["--anchors", 1, "--neighbors", 1, "--graphs", 1], "kernel, 1 anchor, 1 neighbour."),
        (["--graphs", 3, "--anchors", 60], "kernel, 3 sets of 60 anchors, 5 neighbours."),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sets_of_anchors_are_counted_in_words(flags, said, moons):
    arguments = ["cluster", moons, "-k", 2, "--columns", "x,y", "--kernel", "neighbors"]
    assert run(*arguments, *flags).stdout.splitlines()[0].endswith(said)


def test_json_tells_of_anchors_and_of_the_normalized_cut(moons, points):
    found = json.loads(run("cluster", moons, "-k", 2, "--columns", "x,y", *FLAGS, "--json").stdout)
    model = KernelKMeans(2, kernel="neighbors", kernel_params=PARAMS, random_state=0)
    model.fit(points[0])
    assert (found["anchors"], found["graphs"], found["neighbors"]) == (80, 2, 4)
    assert found["kernel"] == "neighbors"
    assert found["inertia"] == model.inertia_
    assert found["certificate"]["normalized_cut"] == model.certificate_.normalized_cut
    assert found["certificate"]["normalized_cut_lower"] == model.certificate_.normalized_cut_lower
    assert found["stats"]["distances"] == model.stats_["distances"]
    rbf = ["--kernel", "rbf", "--json"]
    found = json.loads(run("cluster", moons, "-k", 2, "--columns", "x,y", *rbf).stdout)
    assert found["anchors"] is found["graphs"] is found["neighbors"] is None
    assert found["certificate"]["normalized_cut"] is None


def test_info_tells_of_anchors(moons, tmp_path):
    path = tmp_path / "model.skm"
    run("cluster", moons, "-k", 2, "--columns", "x,y", *FLAGS, "--save", path)
    shown = run("info", path).stdout
    assert "Fitted to 300 rows: rank 2, 2 sets of 40 anchors, 4 neighbours." in shown
    assert "kernel='neighbors', kernel_params={'n_anchors': 40, 'n_neighbors': 4" in shown
    assert "| new_points_held " in shown
    assert str(load(path).certificate_) in shown
    found = json.loads(run("info", path, "--json").stdout)
    assert found["new_points"]["anchors"] == [40, 40]
    assert found["parameters"]["kernel_params"] == PARAMS
    assert found["stats_"]["graphs"] == 2


@pytest.mark.parametrize("refine", ["auto", 0])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_predict_gives_the_labels_of_the_model(metric, refine, moons, tmp_path):
    model, labels, again = (tmp_path / name for name in ("model.skm", "labels.npy", "again.npy"))
    flags = [*FLAGS, "--metric", metric, "--refine", refine, "--standardize"]
    run("cluster", moons, "-k", 2, "--columns", "x,y", *flags, "--save", model, "-o", labels)
    run("predict", model, moons, "-o", again)
    assert np.load(again).tolist() == np.load(labels).tolist()
    (tmp_path / "new.csv").write_text("y,x\n0.0,1.0\n")
    assert run("predict", model, tmp_path / "new.csv").stdout.startswith("row,cluster\n1,")


def test_choose_takes_the_same_flags(moons, points):
    arguments = ["choose", moons, "--columns", "x,y", "-k", "2-3", *FLAGS]
    found = choose(
        points[0], n_clusters=[2, 3], kernel="neighbors", kernel_params=PARAMS, random_state=0
    )
    ran = ["sketchmeans", "cluster", str(moons), "--columns", "x,y", *map(str, FLAGS[2:])]
    command = shlex.join([*ran, "-k", str(found.n_clusters), "--kernel", "neighbors"])
    assert run(*arguments).stdout == f"{found.running(command)}\n"


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--kernel", "rbf", "--anchors", 9], 2, "--anchors is not read with --kernel rbf. Add --"),
        (["--kernel", "linear", "--metric", "cosine"], 2, "or leave --metric out"),
        ([*FLAGS[:2], "--anchors", 3], 1, "--anchors=3 is less than --neighbors=5"),
        ([*FLAGS[:2], "--anchors", 0], 1, "--anchors=0 is too small"),
        ([*FLAGS[:2], "--anchors", 2.5], 1, "--anchors=2.5 must be a whole number"),
        ([*FLAGS[:2], "--anchors", "all"], 2, "no finite number, and not 'auto'"),
        ([*FLAGS[:2], "--neighbors", 0], 1, "--neighbors=0 is too small"),
        ([*FLAGS[:2], "--neighbors", "x"], 2, "'x' is not a valid integer"),
        ([*FLAGS[:2], "--graphs", -1], 1, "--graphs=-1 is too small"),
        ([*FLAGS[:2], "--metric", "manhattan"], 2, "'manhattan' is not one of 'euclidean', 'cos"),
        ([*FLAGS[:2], "--gamma", 2], 1, "is not read with --kernel neighbors. Add --kernel rbf, "),
        ([*FLAGS[:2], "--landmarks", 9], 1, "--landmarks=9 is not read with --kernel neighbors"),
        ([*FLAGS[:2], "--rank", 0.5], 1, "which --kernel neighbors spreads over all anchors"),
    ],
    ids=str,
)
def test_messages_speak_in_flags(flags, code, message, moons):
    shown = run("cluster", moons, "-k", 2, "--columns", "x,y", *flags, code=code)
    assert message in shown.stderr
    assert shown.stdout == ""
    assert "kernel_params" not in shown.stderr


def test_compare_says_why_it_does_not_take_this_kernel(moons):
    arguments = ["compare", moons, "-k", 2, "--columns", "x,y"]
    shown = run(*arguments, "--kernel", "neighbors", code=2).stderr
    assert "computed exactly: there is nothing to compare. Choose another kernel." in shown
    assert "No such option" in run(*arguments, "--anchors", 9, code=2).stderr
    help_page = run("compare", "--help").stdout
    assert "--kernel [rbf|" in help_page
    assert "[default: rbf]" in help_page
    assert "neighbors" not in help_page.split("--kernels NAMES")[0]
