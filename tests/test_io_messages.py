"""Data files: how CSV is understood, and what is said of files that are not."""

import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from shell import sketchmeans
from sketchmeans.io import read_table
from sketchmeans.io.delimited import DelimitedSource
from sketchmeans.text import called
from tables import NAMES, X, frame, full_frame, write_numbers

TEXT = {
    "plain": "a,b\n1,2\n3,4\n",
    "carriage returns": "a,b\r\n1,2\r\n3,4\r\n",
    "no end of line": "a,b\n1,2\n3,4",
    "blank lines": "\n\na,b\n\n1,2\n\n3,4\n\n",
    "byte order mark": "\ufeffa,b\n1,2\n3,4\n",
    "quotes": '"a","b"\n"1","2"\n"3","4"\n',
    "spaces": "a, b\n1, 2\n 3 ,4\n",
    "semicolons": "a;b\n1;2\n3;4\n",
    "tabs": "a\tb\n1\t2\n3\t4\n",
    "signs and exponents": "a,b\n+1,2e0\n3.,.4e1\n",
    "a line break in the header": '"a","b\nc"\n1,2\n3,4\n',
}


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
@pytest.mark.parametrize("reader", ["pyarrow", "plain"])
def test_the_ways_to_write_csv_are_understood(text, reader, tmp_path, monkeypatch):
    if reader == "plain":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "data.csv").write_bytes(text.encode())
    table = read_table(tmp_path / "data.csv")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    assert table.names[0] == "a"


def test_the_fast_reader_is_used_and_agrees_with_the_plain_one(tmp_path, monkeypatch):
    data = full_frame()
    data.loc[3, "b"] = np.nan
    data.loc[4, "id"] = 'quo"ted,\nid'
    data.loc[5, "id"] = "NA"
    path = tmp_path / "data.csv"
    data.to_csv(path, index=False)
    options = {"id_column": "id", "label_column": "side", "impute": 7.0}
    plain = DelimitedSource._read_plain
    monkeypatch.setattr(DelimitedSource, "_read_plain", lambda *args: pytest.fail("slow"))
    fast = read_table(path, **options)
    monkeypatch.setattr(DelimitedSource, "_read_plain", plain)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    slow = read_table(path, **options)
    np.testing.assert_array_equal(fast.X, slow.X)
    assert fast.X[3, 1] == 7
    assert list(fast.ids) == list(slow.ids) == list(data["id"])
    assert list(fast.labels) == list(slow.labels)


@pytest.mark.parametrize(
    ("text", "header", "rows", "names"),
    [
        ("1,2\n3,4\n", None, 2, ("column 1", "column 2")),
        ("1,2\n3,4\n", True, 1, ("1", "2")),
        ("x,y\n3,4\n", None, 1, ("x", "y")),
        ("0,1\n3,4\n", None, 1, ("0", "1")),  # pandas writes such a header for a frame of numbers
        ("0,1\n3,4\n", False, 2, ("column 1", "column 2")),
        ("NA,2\n3,4\n", None, 2, ("column 1", "column 2")),
        ("x|y\n3|4\n", None, 1, ("x", "y")),
        ("2019_1,2019_2\n3,4\n", None, 1, ("2019_1", "2019_2")),  # Python reads 20191 and 20192
    ],
)
def test_a_header_is_recognised_or_told(text, header, rows, names, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    table = read_table(tmp_path / "data.csv", header=header, impute=0)
    assert (table.X.shape[0], table.names) == (rows, names)


def test_a_first_row_of_names_and_numbers_is_warned_of(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("P0,6.25,b\nP1,5.5,c\n")
    with pytest.warns(
        UserWarning, match=r"holds 'P0' and '6.25': it was taken as data. Say header=T"
    ):
        table = read_table(path, columns="2", id_column="1")
    assert (table.ids.tolist(), table.X.tolist()) == (["P0", "P1"], [[6.25], [5.5]])
    path.write_text("city,2019,2020\nBonn,5.5,6\n")
    with pytest.warns(
        UserWarning, match=r"holds 'city' and '2019': it was taken as names. Say header=F"
    ):
        table = read_table(path, id_column="city")
    assert (table.ids.tolist(), table.names) == (["Bonn"], ("2019", "2020"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, id_column="city", header=True).X.shape == (1, 2)
        assert read_table(path, id_column="1", header=False, columns="2-3").X.shape == (2, 2)
        path.write_text("city,a,\nBonn,5.5,6\n")
        read_table(path, id_column="city")


def test_a_column_that_counts_the_rows_is_warned_of(tmp_path):
    data = frame()
    data.insert(0, "row number", range(1, 61))
    data.to_csv(tmp_path / "data.csv", index=False)
    with pytest.warns(UserWarning, match="'row number' counts the rows.*id_column='row number'"):
        read_table(tmp_path / "data.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(tmp_path / "data.csv", id_column="row number")


def test_odd_names_in_messages_are_escaped_cut_and_given_by_number(tmp_path):
    odd = {"a": "\x1b[2J", "b": "x" * 100_000}
    data = full_frame()[["id", *NAMES]].rename(columns=odd)
    data.to_parquet(tmp_path / "data.parquet")
    for options in ({}, {"columns": "e"}, {"expected": ["y" * 100_000], "n_features": 1}):
        with pytest.raises(ValueError) as caught:
            read_table(tmp_path / "data.parquet", **options)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600
    with pytest.raises(ValueError, match=r"columns='2-5'\."):
        read_table(tmp_path / "data.parquet")


BAD_TABLES = {
    "text": (
        "id,a,city\nr1,1,Bonn\nr2,2,Oslo\n",
        {},
        r"column 'id' holds 'r1' in row 1, which is no number \(1 more row with text\). The same "
        r"goes for 'city'. If it names the rows, say id_column='id'; if it holds true classes, "
        r"label_column='id'; if it holds categories, categorical='one-hot'; to leave it out, "
        r"choose columns: columns='a'\.",
    ),
    "decimal comma": (
        "a;b\n1,5;2\n",
        {"decimal": "."},
        r"column 'a' holds '1,5' in row 1.*If the comma marks decimals, say decimal=','; if thous",
    ),
    "underscore": ("a,b\n1,2\n1_0,3\n", {}, r"column 'a' holds '1_0' in row 2"),
    "ragged": ("a,b\n1,2\n3\n", {}, r"row 2 has 1 field where 2 are expected.*line 3"),
    "libsvm": ("1 1:2\n1 1:3\n", {}, r"It looks like LIBSVM: say format='libsvm'"),
    "infinite": ("a,b\n1,2\n3,inf\n", {}, r"column 'b' holds an infinite value in row 2"),
    "no rows": ("a,b\n", {}, r"holds no rows"),
    "blank": ("\n\n", {}, r"holds no rows"),
    "same name": ("a,a\n1,2\n", {"columns": "a"}, r"2 columns called 'a': the columns 1, 2\. Name"),
    "all missing": ("a,b\n1,\n2,\n", {"drop_missing": True}, r"every row has a missing value"),
    "empty column": ("a,b\n1,\n2,\n", {"impute": "mean"}, r"'b' has no value at all"),
    "no such column": (
        "ape,bee\n1,2\n",
        {"columns": "bees"},
        r"no column 'bees'. Did you mean 'bee'",
    ),
    "beyond": ("a,b\n1,2\n", {"columns": "0-1"}, r"columns='0-1' goes beyond .*counted from 1"),
    "twice": ("a,b\n1,2\n", {"columns": "a,1"}, r"column 'a' is asked for twice"),
    "id as feature": ("a,b\n1,2\n", {"columns": "a", "id_column": "a"}, r"'a' is asked for twice"),
    "id as label": (
        "a,b\n1,2\n",
        {"id_column": "a", "label_column": "a"},
        r"'a' is asked for twice",
    ),
    "base": ("a,b\n1,2\n", {"libsvm_base": 0}, r"libsvm_base is for LIBSVM, not for csv"),
    "nothing left": ("a\n1\n", {"id_column": "a"}, r"no column left to cluster by"),
    "both": ("a\n1\n", {"drop_missing": True, "impute": "mean"}, r"exclude each other"),
    "a number is no name": (
        "a,b\n1,2\n",
        {"expected": ["a", "2"], "n_features": 2},
        r"no column '2', which the model was fitted to",
    ),
    "another number": ("a,b\n1,2\n", {"n_features": 3}, r"2 feature columns.*fitted to 3"),
}


@pytest.mark.parametrize(("text", "options", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_what_is_wrong_with_a_table_is_said(text, options, message, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "data.csv", **options)


FLAGGED = {
    "text": (
        "row id,a,city\nr1,1,Bonn\nr2,2,Oslo\n",
        [],
        "If it names the rows, say --id-column 'row id'; if it holds true classes, --label-column "
        "'row id'; if it holds categories, --categorical one-hot; to leave it out, choose columns: "
        "--columns a.",
    ),
    "libsvm": ("1 1:2\n1 1:3\n", [], "It looks like LIBSVM: say --format libsvm."),
    "missing": (
        "a,b\n1,\n2,3\n",
        [],
        "out with --drop-missing, or fill them in with --impute mean (",
    ),
    "all missing": ("a,b\n1,\n2,\n", ["--drop-missing"], "so --drop-missing leaves nothing."),
    "both": ("a\n1\n", ["--drop-missing", "--impute", 1], "--drop-missing and --impute exclude"),
    "beyond": ("a,b\n1,2\n", ["--columns", "0-1"], "--columns 0-1 goes beyond the 2 columns"),
    "base": ("a,b\n1,2\n", ["--libsvm-base", 0], "--libsvm-base is for LIBSVM, not for csv."),
    "header": ("PAR1", ["--format", "npy", "--header"], "--header and --no-header are for CSV"),
    "clusters": ("a,b\n1,2\n", ["-k", 3], "--clusters=3 exceeds n_samples=1: "),
    "jobs": ("a,b\n1,2\n", ["--jobs", 0], "--jobs=0 is no number of threads"),
}


@pytest.mark.parametrize(("text", "options", "message"), FLAGGED.values(), ids=FLAGGED)
def test_the_command_line_names_its_flags_and_only_while_it_runs(text, options, message, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    assert (
        message in sketchmeans("cluster", tmp_path / "data.csv", "-k", 1, *options, code=1).stderr
    )
    assert called("n_clusters") == "n_clusters"


def test_text_in_typed_columns_is_named(tmp_path):
    data = full_frame()
    data.to_parquet(tmp_path / "data.parquet")
    data.to_feather(tmp_path / "data.feather")
    for name in ("data.parquet", "data.feather"):
        with pytest.raises(ValueError, match=r"'id' holds 'r0' in row 1.*goes for 'side'.*a,b,c,d"):
            read_table(tmp_path / name)
    nested = pa.table({"a": [1.0, 2.0], "list": [[1], [2, 3]], "s": [{"x": 1, "y": 2}] * 2})
    parquet.write_table(nested, tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=r"'list' holds \[1\] in row 1.*goes for 's'"):
        read_table(tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet", columns="a").X.shape == (2, 1)


def test_formats_that_need_pyarrow_say_so(tmp_path, monkeypatch):
    path = write_numbers(tmp_path / "data.parquet", X)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "sketchmeans\[files\]"'):
        read_table(path)


def test_paths_that_are_no_data_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*missing.csv"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="/dev/zero is a device"):
        read_table("/dev/zero", format="csv")
    (tmp_path / "data.bin").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"cannot be told from its name. Say format with one of"):
        read_table(tmp_path / "data.bin")
    assert read_table(tmp_path / "data.bin", format="csv").X.shape == (1, 2)
