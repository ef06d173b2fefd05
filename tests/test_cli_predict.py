"""``sketchmeans predict``: which columns it takes, and what it says of other ones."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from shell import sketchmeans as run
from sketchmeans import KernelEmbedding, load, save
from sketchmeans.cli import cli
from sketchmeans.datasets import make_rings


def test_predict_gives_the_labels_of_the_model(rings, tmp_path):
    data = pd.read_csv(rings)
    model, labels = tmp_path / "model.skm", tmp_path / "labels.csv"
    arguments = ["--columns", "x,y", "--id-column", "point", "--gamma", "2", "--refine", 1]
    run("cluster", rings, "-k", 2, *arguments, "--standardize", "--save", model, "-o", labels)
    shuffled = data[["ring", "y", "point", "x"]].iloc[::-1]
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    shown = run("predict", model, tmp_path / "shuffled.csv", "--id-column", "point")
    head, *lines = shown.stdout.splitlines()
    trained = pd.read_csv(labels)
    assert head == "point,cluster"
    assert lines[::-1] == [f"{p},{c}" for p, c in trained.itertuples(index=False)]
    data[["x", "y"]].to_csv(tmp_path / "bare.csv", index=False, header=False)
    run("predict", model, tmp_path / "bare.csv", "-o", tmp_path / "new.npy")
    assert np.load(tmp_path / "new.npy").tolist() == trained["cluster"].tolist()
    shown = run("predict", model, tmp_path / "bare.csv", "-o", tmp_path / "new.npy", code=1)
    assert "new.npy exists already" in shown.stderr
    shown = run(
        "predict", model, tmp_path / "bare.csv", "--force", "-o", tmp_path / "new.npy", "--json"
    )
    assert sum(json.loads(shown.stdout)["clusters"].values()) == 300


def test_predict_takes_chosen_columns_in_the_order_of_the_model(rings, tmp_path):
    model = tmp_path / "model.skm"
    run("cluster", rings, "-k", 2, "--columns", "x,y", "--save", model)
    wanted = run("predict", model, rings).stdout
    for columns in ("x,y", "y,x", "3,2"):
        assert run("predict", model, rings, "--columns", columns).stdout == wanted
    renamed = pd.read_csv(rings).rename(columns={"y": "z"})
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    assert run("predict", model, tmp_path / "renamed.csv", "--columns", "x,z").stdout == wanted
    shown = run("predict", model, tmp_path / "renamed.csv", "--columns", "z,x", code=1)
    assert "--columns has 'x' in place 2, and the model in place 1" in shown.stderr


def test_predict_refuses_other_columns(rings, tmp_path):
    model = tmp_path / "model.skm"
    run("cluster", rings, "-k", 2, "--columns", "x,y", "--save", model)
    (tmp_path / "other.csv").write_text("x,z\n1,2\n")
    assert "has no column 'y'" in run("predict", model, tmp_path / "other.csv", code=1).stderr
    (tmp_path / "wide.csv").write_text("1,2,3\n4,5,7\n")
    shown = run("predict", model, tmp_path / "wide.csv", code=1)
    assert "has 3 feature columns, and the model was fitted to 2" in shown.stderr
    X, _ = make_rings(50, random_state=0)
    save(KernelEmbedding(3, random_state=0).fit(X), tmp_path / "embedding.skm")
    shown = run("predict", tmp_path / "embedding.skm", rings, code=1)
    assert "holds a KernelEmbedding, which has no clusters" in shown.stderr


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "x,y\n1,2\n3,\n",
            [],
            "'y' has no value in row 2. Leave such rows out with --drop-missing",
        ),
        ("x,y\n1,\n", ["--drop-missing"], "every row has a missing value"),
        ("x,y\n1,two\n", [], "'y' holds 'two' in row 1.*--columns which 2 columns to take"),
        ("x,y\n1,inf\n", [], "'y' holds an infinite value in row 1. Mend it.\n"),
        ("1,2,3\n", [], "3 feature columns, and the model was fitted to 2"),
        ("x,y\n1,2\n", ["--columns", "x,x"], "'x' is asked for twice"),
    ],
)
def test_messages_of_predict_name_options_of_predict(text, options, message, rings, tmp_path):
    model, new = tmp_path / "model.skm", tmp_path / "new.csv"
    run("cluster", rings, "-k", 2, "--columns", "x,y", "--save", model)
    new.write_text(text)
    shown = run("predict", model, new, *options, code=1).stderr
    assert re.search(message, shown), shown
    known = {name for option in cli.get_command(None, "predict").params for name in option.opts}
    assert set(re.findall(r"--[a-z-]+", shown)) <= known


def test_predict_widens_a_libsvm_file_whose_last_columns_are_empty(tmp_path):
    lines = [f"{i % 2} 1:{i}.5 2:{i % 7} 3:{i % 5}" for i in range(40)]
    (tmp_path / "train.libsvm").write_text("\n".join(lines))
    (tmp_path / "new.libsvm").write_text("0 1:1.5 2:1\n0 1:30.5 2:2\n")
    run("cluster", tmp_path / "train.libsvm", "-k", 2, "--save", tmp_path / "model.skm")
    shown = run("predict", tmp_path / "model.skm", tmp_path / "new.libsvm")
    model = load(tmp_path / "model.skm")
    wanted = model.predict([[1.5, 1, 0], [30.5, 2, 0]]).tolist()
    assert [int(line.split(",")[1]) for line in shown.stdout.splitlines()[1:]] == wanted
