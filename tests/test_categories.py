"""One-hot columns: from text to zeros and ones, kept in the model, the same for new rows."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.preprocessing import OneHotEncoder

from shell import sketchmeans as run
from sketchmeans import load
from sketchmeans.io import read_table
from sketchmeans.io.categories import MOST

COLORS, SHAPES = ["red", "blue", "green"], ["round", "square"]


def frame(n=60):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": [f"r{index}" for index in range(n)],
            "color": random.choice(COLORS, n),
            "size": random.normal(size=n).round(3),
            "shape": random.choice(SHAPES, n),
            "code": random.integers(1, 4, n),
        }
    )


def write(folder, data, kind):
    path = folder / f"data.{kind}"
    if kind == "csv":
        data.to_csv(path, index=False)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in data.to_dict("records")))
    elif kind == "xlsx":
        data.to_excel(path, index=False)
    else:
        table = pa.Table.from_pandas(data)
        (parquet.write_table if kind == "parquet" else pa.feather.write_feather)(table, path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx", "parquet"])
def test_every_format_gives_what_scikit_learn_gives(kind, tmp_path):
    data = frame()
    path = write(tmp_path, data, kind)
    table = read_table(path, id_column="id", categorical="one-hot")
    encoder = OneHotEncoder(sparse_output=False).fit(data[["color", "shape"]])
    encoded = encoder.transform(data[["color", "shape"]])
    wanted = np.column_stack([encoded[:, :3], data["size"], encoded[:, 3:], data["code"]])
    np.testing.assert_array_equal(table.X, wanted)
    assert table.names == (
        *("color=blue", "color=green", "color=red", "size", "shape=round", "shape=square", "code"),
    )
    assert [tuple(column) for column in table.encoded] == [
        (0, "color", ("blue", "green", "red")),
        (4, "shape", ("round", "square")),
    ]
    named = read_table(path, id_column="id", categorical="one-hot:color, 4,code")
    assert named.names[-3:] == ("code=1", "code=2", "code=3")
    np.testing.assert_array_equal(named.X[:, :6], wanted[:, :6])
    np.testing.assert_array_equal(named.X[:, 6:], data["code"].to_numpy()[:, None] == [1, 2, 3])


def test_text_that_turns_up_late_makes_its_column_one_of_categories_too(tmp_path):
    text = "a,b\n" + "1,2\n" * 1500 + "x,3\n"
    (tmp_path / "data.csv").write_text(text)
    table = read_table(tmp_path / "data.csv", categorical="one-hot")
    assert table.names == ("a=1", "a=x", "b")
    assert table.X.sum(axis=0).tolist() == [1500, 1, 3003]


def test_all_columns_may_be_categories_and_single_precision_stays(tmp_path):
    parquet.write_table(
        pa.table({"c": ["x", "y"], "a": np.float32([1, 2])}), tmp_path / "data.parquet"
    )
    table = read_table(tmp_path / "data.parquet", categorical="one-hot")
    assert (table.X.tolist(), table.X.dtype) == ([[1, 0, 1], [0, 1, 2]], np.float32)
    table = read_table(tmp_path / "data.parquet", columns="c", categorical="one-hot")
    np.testing.assert_array_equal(table.X, np.eye(2))


def test_numbers_of_sparse_files_can_be_categories(tmp_path):
    (tmp_path / "data.libsvm").write_text("".join(f"1 2:{i % 3} 50:{i}.5\n" for i in range(9)))
    table = read_table(tmp_path / "data.libsvm", categorical="one-hot:2")
    assert table.X.shape == (9, 52)
    np.testing.assert_array_equal(table.X[:, 1:4].toarray(), np.tile(np.eye(3), (3, 1)))
    np.testing.assert_array_equal(table.X[:, 51].toarray()[:, 0], np.arange(9) + 0.5)


def test_a_missing_category_is_refused_dropped_or_filled_in_as_one_value(tmp_path):
    (tmp_path / "data.csv").write_text("c,a\nred,1\n,2\nblue,3\nNA,4\nred,5\nodd,6\n")
    path = tmp_path / "data.csv"
    options = {"categorical": "one-hot", "na_values": "odd"}
    with pytest.raises(
        ValueError, match=r"column 'c' has no value in row 2; 3 values are missing, in 3 rows and 1"
    ):
        read_table(path, **options)
    table = read_table(path, drop_missing=True, **options)
    np.testing.assert_array_equal(table.X, [[0, 1, 1], [1, 0, 3], [0, 1, 5]])
    table = read_table(path, impute="mean", **options)
    assert table.n_imputed == 3
    np.testing.assert_allclose(table.X[[1, 3, 5], :2], [[1 / 3, 2 / 3]] * 3)


@pytest.mark.parametrize(
    ("text", "categorical", "message"),
    [
        ("c,a\nx,1\ny,2\n", "dummy", r"categorical='dummy' is not understood. Say .*'one-hot' for"),
        ("c,a\nx,1\ny,2\n", "one-hot:", r"is not understood"),
        ("c,a\nx,1\ny,2\n", "one-hot:d", r"has no column 'd'"),
        (
            "c,a\n" + "".join(f"n{i},{i}\n" for i in range(12)),
            "one-hot",
            r"'c' holds in every row another text, such as 'n0'.*say id_column='c'",
        ),
        (
            "c,a\n" + "".join(f"n{i},{i}\n" for i in range(MOST + 1)),
            "one-hot:c",
            rf"'c' holds {MOST + 1} different text, such as 'n0', and at most {MOST}",
        ),
        ("c,a\n2024-01-05,x\n2024-01-06,y\n", "one-hot", r"which is a date or a time"),
        ("c,a\nNA,1\n-,2\n", "one-hot:c", r"'c' has no value at all, and so no categories"),
    ],
)
def test_what_cannot_be_categories_is_said(text, categorical, message, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "data.csv", categorical=categorical)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx", "parquet"])
def test_dates_are_categories_only_where_they_are_named(kind, tmp_path):
    data = pd.DataFrame({"day": ["2024-01-05", "2024-01-06"] * 2, "c": ["x", "y", "y", "x"]})
    path = write(tmp_path, data, kind)
    with pytest.raises(ValueError, match="'day' holds '2024-01-05' in row 1, which is a date"):
        read_table(path, categorical="one-hot")
    assert read_table(path, categorical="one-hot:day,c").X.shape == (4, 4)


def test_a_column_that_is_no_feature_is_no_category(tmp_path):
    (tmp_path / "data.csv").write_text("c,a\nx,1\ny,2\n")
    with pytest.raises(ValueError, match=r"'c' is to be one-hot and is no feature. Add it to"):
        read_table(tmp_path / "data.csv", columns="a", categorical="one-hot:c")
    table = read_table(tmp_path / "data.csv", columns="a", categorical="one-hot")
    assert table.notes == ("no column holds text: categorical='one-hot' changes nothing.",)


@pytest.fixture
def model(tmp_path):
    """A model of two columns of text and two of numbers, by the command line."""
    path = write(tmp_path, frame(), "csv")
    labels = tmp_path / "labels.csv"
    shown = run(
        *("cluster", path, "-k", 3, "--id-column", "id", "--categorical", "one-hot"),
        *("--standardize", "--save", tmp_path / "model.skm", "-o", labels),
    )
    assert "60 rows of 7 columns in 3 clusters" in shown.stdout
    return tmp_path / "model.skm"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx", "parquet"])
def test_predict_gives_the_columns_of_the_model_whatever_the_new_rows_hold(kind, model, tmp_path):
    data = frame()
    wanted = pd.read_csv(tmp_path / "labels.csv")
    few = data[data["color"] != "blue"].iloc[::-1][["code", "shape", "id", "size", "color"]]
    path = write(tmp_path, few, kind)
    run("predict", model, path, "--id-column", "id", "-o", tmp_path / "new.csv")
    found = pd.read_csv(tmp_path / "new.csv")
    merged = found.merge(wanted, on="id", suffixes=("", "_trained"))
    assert len(merged) == len(few) > 20
    assert (merged["cluster"] == merged["cluster_trained"]).all()


def test_a_model_without_names_keeps_the_places_of_its_columns(tmp_path):
    data = frame()[["size", "color", "code"]]
    data.to_csv(tmp_path / "data.csv", index=False, header=False)
    options = ["--no-header", "--categorical", "one-hot:2"]
    shown = run(
        *("cluster", tmp_path / "data.csv", "-k", 2, *options),
        *("--save", tmp_path / "model.skm", "-o", "-"),
    )
    again = run("predict", tmp_path / "model.skm", tmp_path / "data.csv", "--no-header")
    assert again.stdout == shown.stdout
    assert load(tmp_path / "model.skm").encoded_columns_ == (
        (1, "column 2", ("blue", "green", "red")),
    )


def test_an_unknown_category_is_an_error_that_names_it_and_the_way_out(model, tmp_path):
    data = frame().head(8)
    data["color"] = data["color"].astype(object)
    data.loc[[2, 5], "color"] = "pink"
    path = write(tmp_path, data, "csv")
    shown = run("predict", model, path, code=1).stderr
    assert shown == (
        f"Error: {path}: column 'color' holds 'pink' in row 3 (1 more row like it), which the "
        "model has not met: its categories are 'blue', 'green', 'red'. Mend it, fit the model "
        "again with such rows, or leave them out: --na-values pink --drop-missing.\n"
    )
    shown = run("predict", model, path, "--na-values", "pink", "--drop-missing")
    assert shown.stderr == "Note: dropped for a missing value: 2 of 8 rows.\n"
    assert len(shown.stdout.splitlines()) == 7


def test_predict_names_the_column_of_text_that_is_absent(model, tmp_path):
    path = write(tmp_path, frame().drop(columns="shape"), "csv")
    shown = run("predict", model, path, code=1).stderr
    assert "has no column 'shape', which the model was fitted to" in shown


def test_a_model_that_fills_in_categories_fills_in_those_of_new_rows(tmp_path):
    data = frame()
    data.loc[3, "color"] = None
    path, model = write(tmp_path, data, "csv"), tmp_path / "model.skm"
    options = ["--id-column", "id", "--categorical", "one-hot", "--impute", "mean"]
    shown = run("cluster", path, "-k", 2, *options, "--save", model, "-o", "-")
    assert "missing values filled in: 1." in shown.stderr
    again = run("predict", model, path, "--id-column", "id")
    assert again.stdout == shown.stdout
    assert again.stderr == "Note: missing values filled in: 1.\n"


def test_info_tells_of_columns_of_text(model):
    said = "Columns: 7, known by name, 5 of them for 2 columns of text, standardized."
    assert said in run("info", model).stdout
    assert "encoded_columns" not in run("info", model).stdout
