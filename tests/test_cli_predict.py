"""``sketchmeans predict``: which columns it takes, and what it says of other ones."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from shell import sketchmeans as run
from sketchmeans import KernelEmbedding, load, save
from sketchmeans.cli import cli
from sketchmeans.datasets import make_rings
from tables import write_numbers


def test_predict_gives_the_labels_of_the_model(rings, tmp_path):
    data = pd.read_csv(rings)
    model, labels = tmp_path / "model.skm", tmp_path / "labels.csv"
    arguments = [
        "--columns",
        "x,y",
        "--id-column",
        "point",
        "--kernel",
        "rbf",
        "--gamma",
        "2",
        "--refine",
        1,
    ]
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


FILES = ["x.csv", "x.parquet", "x.feather", "x.npy", "x.npz", "x.libsvm", "sparse.npz"]


def in_every_format(folder, X):
    """Write the same rows as files of every kind, dense and sparse, and return their paths."""
    folder.mkdir(exist_ok=True)
    for name in FILES[:-1]:
        write_numbers(folder / name, X)
    lines = (
        "0 " + " ".join(f"{j + 1}:{row[j]!r}" for j in np.flatnonzero(row)) for row in X.tolist()
    )
    (folder / "x.libsvm").write_text("\n".join(lines))
    sparse.save_npz(folder / "sparse.npz", sparse.csr_matrix(X))
    return [folder / name for name in FILES]


def counts(n=120):
    """Rows of two kinds, mostly zeros, whose columns are far from having mean 0."""
    random = np.random.default_rng(0)
    kind = np.arange(n) % 2
    X = random.poisson(np.where(kind[:, None] == 1, [2, 0.3, 0.3, 0.3], [0.3, 0.3, 0.3, 2]))
    return X * [1.0, 20.0, 3.0, 0.5]


@pytest.mark.parametrize("kernel", ["rbf", "cosine", "linear"])
def test_the_same_rows_get_the_same_labels_in_any_format(kernel, tmp_path):
    files = in_every_format(tmp_path / "all", counts())
    options = ["-k", 2, "--kernel", kernel, "--standardize", "-o", "-", "-q"]
    wanted = run("cluster", files[0], *options, "--save", tmp_path / "x.csv.skm").stdout
    assert len({line.split(",")[1] for line in wanted.splitlines()[1:]}) == 2
    for path in files[1:]:
        model = tmp_path / f"{path.name}.skm"
        assert run("cluster", path, *options, "--save", model).stdout == wanted, path
    for trained in files:
        for path in files:
            shown = run("predict", tmp_path / f"{trained.name}.skm", path)
            assert shown.stdout == wanted, (trained, path)


def test_sparse_rows_that_would_be_too_large_are_refused(tmp_path, monkeypatch):
    files = dict(zip(FILES, in_every_format(tmp_path / "all", counts()), strict=True))
    model, options = tmp_path / "model.skm", ["-k", 2, "--standardize"]
    run("cluster", files["x.csv"], *options, "--save", model)
    monkeypatch.setattr("sketchmeans.io.table.MOST_DENSE", 3839)
    limit = "120 sparse rows of 4 columns would take 3.84 kB once they are standardized"
    shown = run("cluster", files["sparse.npz"], *options, code=1).stderr
    assert limit in shown
    assert "Leave --standardize out" in shown
    shown = run("predict", model, files["sparse.npz"], code=1).stderr
    assert limit in shown
    assert "Split the rows among several files" in shown
    monkeypatch.setattr("sketchmeans.io.table.MOST_DENSE", 3840)
    run("predict", model, files["sparse.npz"])


@pytest.mark.parametrize("impute", ["mean", "median", 7])
@pytest.mark.parametrize("more", [[], ["--standardize"]], ids=["as they are", "standardized"])
def test_missing_values_are_filled_in_as_they_were_for_the_model(impute, more, tmp_path):
    X = counts()
    X[[3, 8], 1] = np.nan
    trained = in_every_format(tmp_path / "trained", X)
    new = counts()[:30]
    new[2, 1] = new[5, 3] = new[9, 0] = np.nan  # where the training rows had values, too
    filled = new.copy()
    values = {"mean": np.nanmean, "median": np.nanmedian}
    fillers = values[impute](X, axis=0) if impute in values else np.full(4, impute)
    filled[np.isnan(new)] = fillers[np.nonzero(np.isnan(new))[1]]
    hand, *_ = in_every_format(tmp_path / "filled", filled)
    for data in trained:
        model = tmp_path / f"{data.name}.skm"
        options = ["-k", 2, "--kernel", "linear", "--impute", impute, *more, "--save", model]
        run("cluster", data, *options)
        np.testing.assert_allclose(load(model).fill_values_, fillers, rtol=1e-14)
        wanted = run("predict", model, hand)
        assert "filled in" not in wanted.stderr
        for path in in_every_format(tmp_path / "new", new):
            shown = run("predict", model, path)
            assert shown.stdout == wanted.stdout
            assert shown.stderr == "Note: missing values filled in: 3.\n"
    shown = run("predict", model, path, "-o", tmp_path / "labels.csv", "--json")
    assert json.loads(shown.stdout)["values_imputed"] == 3
    dropped = run("predict", model, path, "--drop-missing")
    assert dropped.stderr == "Note: dropped for a missing value: 3 of 30 rows.\n"
    assert len(dropped.stdout.splitlines()) == 28
    assert "Columns: 4, missing values filled in" in run("info", model).stdout


def test_a_model_of_complete_rows_knows_what_to_fill_in_where_it_was_asked_for(rings, tmp_path):
    model, new = tmp_path / "model.skm", tmp_path / "new.csv"
    new.write_text("x,y\n1,\n,\n")
    run("cluster", rings, "-k", 2, "--columns", "x,y", "--impute", "median", "--save", model)
    medians = pd.read_csv(rings)[["x", "y"]].median()
    np.testing.assert_allclose(load(model).fill_values_, medians, rtol=1e-14)
    assert "missing values filled in: 3" in run("predict", model, new).stderr
