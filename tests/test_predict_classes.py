"""``predict`` beside true classes; what it keeps of the training file; models of format 4."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shell import sketchmeans as run
from sketchmeans import load, save
from sketchmeans.advice.comparing import accuracy
from sketchmeans.report.content import agreement
from tables import libsvm_text

OLD = Path(__file__).parent / "models"


def blobs(n=90):
    random = np.random.default_rng(0)
    y = np.arange(n) % 3
    return random.normal(size=(n, 2)) + 4 * np.eye(3, 2)[y], y


def written(folder, X, y, kind):
    path = folder / f"data.{kind}"
    if kind == "csv":
        pd.DataFrame(X, columns=["a", "b"]).assign(kind=[f"k{c}" for c in y]).to_csv(
            path, index=False
        )
    elif kind == "npz":
        np.savez(path, X=X, y=y)
    else:
        path.write_text(libsvm_text(X, y))
    return path


def line_of(X, y, model, name):
    labels = model.predict(X)
    found = agreement(y, labels, 3)
    return (
        f"Agreement with {name!r}: accuracy {accuracy(found.codes, labels):.3f}, NMI "
        f"{found.nmi:.3f}, ARI {found.ari:.3f}.\n"
    )


@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        ("csv", ["--label-column", "kind"], "kind"),
        ("npz", [], "y"),
        ("libsvm", [], "label"),
    ],
)
def test_predict_prints_the_agreement_as_cluster_does(kind, options, name, tmp_path):
    X, y = blobs()
    y[::10] = (y[::10] + 1) % 3  # some classes are not as the clusters
    path, model = written(tmp_path, X, y, kind), tmp_path / "model.skm"
    trained = run("cluster", path, "-k", 3, *options, "--save", model).stdout
    said = line_of(X, y, load(model), name)
    assert said in trained
    assert "accuracy 0.8" in said
    shown = run("predict", model, path, *options, "-o", tmp_path / "labels.csv")
    assert shown.stdout == f"90 rows. Labels: {tmp_path / 'labels.csv'}\n{said}"
    # Labels on standard output stay alone there.
    shown = run("predict", model, path, *options)
    assert shown.stdout == (tmp_path / "labels.csv").read_text()
    assert shown.stderr == said
    quiet = run("predict", model, path, *options, "-q")
    assert (quiet.stdout, quiet.stderr) == (shown.stdout, "")
    shown = run("predict", model, path, *options, "--json", "-o", tmp_path / "x.csv")
    found = json.loads(shown.stdout)["agreement"]
    assert found["with"] == name
    assert f"accuracy {found['accuracy']:.3f}, NMI {found['NMI']:.3f}" in said


def test_without_classes_predict_says_nothing_of_them(tmp_path):
    X, y = blobs()
    path, model = written(tmp_path, X, y, "csv"), tmp_path / "model.skm"
    run("cluster", path, "-k", 3, "--label-column", "kind", "--save", model)
    shown = run("predict", model, path, "-o", tmp_path / "labels.csv")
    assert shown.stdout == f"90 rows. Labels: {tmp_path / 'labels.csv'}\n"
    same = tmp_path / "same.libsvm"
    same.write_text(libsvm_text(X))  # every label is 0, which says nothing
    shown = run("predict", model, same, "-o", tmp_path / "labels.csv", "--force", "--json")
    assert "agreement" not in json.loads(shown.stdout)


def test_the_label_column_of_new_rows_is_no_feature_of_a_model_without_names(tmp_path):
    X, y = blobs()
    np.savetxt(tmp_path / "data.csv", np.column_stack([X, y]), delimiter=",")
    model, options = tmp_path / "model.skm", ["--no-header", "--label-column", "3"]
    run("cluster", tmp_path / "data.csv", "-k", 3, *options, "--save", model)
    shown = run("predict", model, tmp_path / "data.csv", *options)
    assert shown.stderr.startswith("Agreement with 'column 3': accuracy ")


def counting_from(base, X):
    return "".join(
        "0 " + " ".join(f"{j + base}:{value!r}" for j, value in enumerate(row)) + "\n"
        for row in X.tolist()
    )


@pytest.mark.parametrize("base", [0, 1])
def test_the_base_of_libsvm_is_kept_in_the_model(base, tmp_path):
    X, _ = blobs()
    X = np.column_stack([X, X[:, 0] ** 2])
    train, model = tmp_path / "train.libsvm", tmp_path / "model.skm"
    train.write_text(counting_from(base, X))
    run("cluster", train, "-k", 3, "--save", model)
    assert load(model).libsvm_base_ == base
    assert f"counted from {base} in LIBSVM" in run("info", model).stdout
    # Rows without a first feature: their indices alone do not say where they count from.
    new = X[:20].copy()
    new[:, 0] = 0
    few = tmp_path / "few.libsvm"
    few.write_text(counting_from(base + 1, new[:, 1:]))
    wanted = load(model).predict(new).tolist()
    shown = run("predict", model, few)
    assert [int(line.split(",")[1]) for line in shown.stdout.splitlines()[1:]] == wanted
    assert shown.stderr == ""


def test_a_file_that_counts_from_another_base_than_the_model_is_refused_or_told(tmp_path):
    X, _ = blobs()
    train, model, other = (tmp_path / name for name in ("one.libsvm", "model.skm", "zero.libsvm"))
    train.write_text(counting_from(1, X))
    other.write_text(counting_from(0, X))
    wanted = run("cluster", train, "-k", 3, "--save", model, "-o", "-").stdout
    shown = run("predict", model, other, code=1).stderr
    assert shown == (
        f"Error: {other} has the index 0, but the model was fitted to a file that counts from 1. "
        "If this one counts from 0, say --libsvm-base 0.\n"
    )
    shown = run("predict", model, other, "--libsvm-base", 0)
    assert shown.stdout == wanted
    assert shown.stderr == (
        f"Note: {other} counts from 0, and the file that the model was fitted to from 1.\n"
    )
    pd.DataFrame(X).to_csv(tmp_path / "x.csv", index=False, header=False)
    assert run("predict", model, tmp_path / "x.csv").stdout == wanted


def test_a_file_of_the_fourth_format_loads_and_predicts(tmp_path):
    path, again = OLD / "format-4.skm", tmp_path / "again.skm"
    assert path.read_bytes()[8] == 4
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2)).round(3)
    X[:20] += 3
    data = pd.DataFrame(X, columns=["x", "y"])
    data.loc[4, "y"] = np.nan
    data.to_csv(tmp_path / "old.csv", index=False)
    model = load(path)
    assert not hasattr(model, "libsvm_base_")
    assert not hasattr(model, "encoded_columns_")
    run("predict", path, tmp_path / "old.csv", "-o", tmp_path / "labels.npy")
    assert np.load(tmp_path / "labels.npy").tolist() == model.labels_.tolist()
    save(model, again)
    assert again.read_bytes()[8] == 5
    run("predict", again, tmp_path / "old.csv", "-o", tmp_path / "labels.npy", "--force")
    assert np.load(tmp_path / "labels.npy").tolist() == model.labels_.tolist()
