"""Text as people have it: decimal commas, delimiters, gaps, truths, dates, names, empty ends."""

import re
import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shell import sketchmeans
from sketchmeans.io import read_table
from sketchmeans.io.delimited import DelimitedSource
from sketchmeans.io.values import MISSING, is_date

WANTED = [[1.5, 2.0], [-3.25, 400.0]]


@pytest.fixture(params=["pyarrow", "plain"])
def reader(request, monkeypatch):
    """Either reader: what a file means must not depend on what is installed."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return request.param


def written(folder, text, name="data.csv"):
    (folder / name).write_bytes(text.encode())
    return folder / name


EUROPEAN = {
    "semicolons": "a;b\n1,5;2\n-3,25;4e2\n",
    "no header": "1,5;2\n-3,25;4e2\n",
    "tabs": "a\tb\n1,5\t2\n-3,25\t4e2\n",
    "bars": "a|b\n1,5|2\n-3,25|4e2\n",
    "spaces": "a b\n1,5   2\n-3,25 4e2\n",
    "quotes": 'a,b\n"1,5","2"\n"-3,25","4e2"\n',
    "two decimals and none": "a;b\n1,5;2\n-3,25;400\n",
}


@pytest.mark.parametrize("text", EUROPEAN.values(), ids=EUROPEAN)
def test_decimal_commas_are_recognised_and_told(text, reader, tmp_path):
    table = read_table(written(tmp_path, text))
    np.testing.assert_array_equal(table.X, WANTED)
    (note,) = table.notes
    assert "has decimal commas: '1,5' is read as 1.5. Say decimal='.'" in note
    again = read_table(tmp_path / "data.csv", decimal=",")
    np.testing.assert_array_equal(again.X, WANTED)
    assert again.notes == ()
    with pytest.raises(ValueError, match=r"holds '1,5' in row 1.*decimals, say decimal=','"):
        read_table(tmp_path / "data.csv", decimal=".")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('a,b\n"1,500",2\n', None),
        ("a;b\n1.5;2\n1,5;3\n", None),
        ("a,b\n1,500\n", [[1, 500]]),
        ('a,b\n"1,5",2.5\n', None),
    ],
    ids=["thousands", "both marks", "a delimiter", "a point elsewhere"],
)
def test_a_comma_that_may_be_something_else_is_not_taken_for_a_decimal_mark(text, wanted, tmp_path):
    path = written(tmp_path, text)
    if wanted is None:
        with pytest.raises(ValueError, match="which is no number"):
            read_table(path)
    else:
        table = read_table(path)
        assert table.notes == ()
        np.testing.assert_array_equal(table.X, wanted)


def test_with_a_decimal_comma_a_point_is_no_decimal_mark(reader, tmp_path):
    path = written(tmp_path, "a;b\n1,5;2\n1.234,5;3\n")
    with pytest.raises(ValueError, match=r"holds '1.234,5' in row 2.*without marks between thous"):
        read_table(path)


def test_a_decimal_comma_beyond_the_first_rows_is_told_with_the_way_out(tmp_path):
    path = written(tmp_path, "a;b\n" + "1;2\n" * 1500 + "1,5;2\n")
    with pytest.raises(ValueError, match=r"holds '1,5' in row 1501.*say decimal=','"):
        read_table(path)
    assert read_table(path, decimal=",").X[-1].tolist() == [1.5, 2]


DELIMITED = {
    ("a;b\n1;2\n", None): ["a", "b"],
    ("a b;c d\n1;2\n", None): ["a b", "c d"],
    ("a, b\n1, 2\n", None): ["a", "b"],
    ("Bonn, Germany;a\n1;2\n", None): ["Bonn, Germany", "a"],
    ("a:b\n1:2\n", ":"): ["a", "b"],
    ("a^b\n1^2\n", "^"): ["a", "b"],
    ("a\tb\n1\t2\n", "tab"): ["a", "b"],
    ("a;b,c\n1;2,3\n", "comma"): ["a;b", "c"],
    ("a  b\n1     2\n", "space"): ["a", "b"],
}


@pytest.mark.parametrize(("case", "names"), DELIMITED.items(), ids=[repr(c) for c in DELIMITED])
def test_delimiters_are_found_or_given(case, names, tmp_path):
    text, delimiter = case
    if delimiter == "comma":
        text = text.replace("1;2,3", "12,3")
    assert list(read_table(written(tmp_path, text), delimiter=delimiter).names) == names


@pytest.mark.parametrize("delimiter", ["", "ab", "a", '"', "\n", "§", "7"])
def test_what_is_no_delimiter_is_refused(delimiter, tmp_path):
    with pytest.raises(ValueError, match=r"is no delimiter: it is one character such as ';', or"):
        read_table(written(tmp_path, "a,b\n1,2\n"), delimiter=delimiter)


def test_one_mark_is_not_both_delimiter_and_decimal(tmp_path):
    with pytest.raises(ValueError, match=r"decimal=',' and delimiter=',' are the same mark"):
        read_table(written(tmp_path, "1,2\n"), decimal=",", delimiter=",")
    with pytest.raises(ValueError, match=r"decimal=';' is neither"):
        read_table(tmp_path / "data.csv", decimal=";")


SPACED = {
    "aligned": "   a      b\n 1.5      2\n-3.25   4e2\n",
    "tabs and spaces": "a \t b\n1.5\t 2\n-3.25  \t4e2\t\n",
    "no header": "1.5 2\n-3.25 4e2\n",
    "empty lines": "\n  \na b\n\n1.5 2\n   \n-3.25 4e2\n",
    "savetxt": "# a b\n1.5 2\n-3.25 4e2\n",
    "quotes": '"a" "b"\n"1.5" 2\n-3.25 4e2\n',
}


@pytest.mark.parametrize("text", SPACED.values(), ids=SPACED)
@pytest.mark.parametrize("name", ["data.txt", "data.dat", "data.data", "data.csv"])
def test_files_with_spaces_between_fields_are_read(text, name, reader, tmp_path):
    table = read_table(written(tmp_path, text, name))
    np.testing.assert_array_equal(table.X, WANTED)
    assert table.names in (("a", "b"), ("column 1", "column 2"))
    assert table.notes == ()


def test_one_column_of_decimal_commas_is_one_column(reader, tmp_path):
    table = read_table(written(tmp_path, "x\n1,5\n-2,25\n"))
    assert (table.names, table.X.tolist()) == (("x",), [[1.5], [-2.25]])
    assert "has decimal commas" in table.notes[0]


def test_a_row_between_spaces_that_is_too_short_is_told(reader, tmp_path):
    path = written(tmp_path, "a b c\n1 2 3\n4 5\n6 7 8\n", "data.txt")
    with pytest.raises(ValueError, match="row 2 has 2 fields where 3 are expected"):
        read_table(path)


def test_one_name_of_two_words_is_one_column(tmp_path):
    table = read_table(written(tmp_path, "body mass\n70\n80\n"))
    assert (table.names, table.X.tolist()) == (("body mass",), [[70], [80]])


def test_the_names_of_rows_that_r_writes_without_a_name_are_no_feature(tmp_path):
    path = written(tmp_path, '"a" "b"\n"Ann" 1 2\n"Bob, jr" 3 4\n', "data.txt")
    with pytest.raises(ValueError, match=r"column 1 has no name.*id_column='column 1'"):
        read_table(path)
    table = read_table(path, id_column="column 1")
    assert table.ids.tolist() == ["Ann", "Bob, jr"]
    assert (table.names, table.X.tolist()) == (("a", "b"), [[1, 2], [3, 4]])


@pytest.mark.parametrize("text", MISSING)
def test_texts_that_stand_for_nothing_are_missing(text, reader, tmp_path):
    table = read_table(written(tmp_path, f"a,b\n1,{text}\n2,3\n"), impute=7)
    np.testing.assert_array_equal(table.X, [[1, 7], [2, 3]])
    assert {"-", ".", "NA", "n/a", "?"} <= set(MISSING)


def test_further_missing_values_are_given_in_any_format(reader, tmp_path):
    path = written(tmp_path, "a,b\n1,none of it\n-999,3\n-999.0,4\n")
    for values in ("none of it,-999", ["none of it", "-999"]):
        table = read_table(path, na_values=values, impute=0)
        np.testing.assert_array_equal(table.X, [[1, 0], [0, 3], [0, 4]])
        assert table.n_imputed == 3
    with pytest.raises(ValueError, match="'b' holds 'none of it'"):
        read_table(path, na_values="-999", impute=0)
    np.save(tmp_path / "data.npy", np.array([[1, -999], [2, 3.0]]))
    assert read_table(tmp_path / "data.npy", na_values="-999", drop_missing=True).n_dropped == 1


def test_missing_numbers_of_sparse_and_typed_files_are_found(tmp_path):
    parquet.write_table(pa.table({"a": [1, -9, 3], "b": [1.0, 2, -9]}), tmp_path / "data.parquet")
    (tmp_path / "data.libsvm").write_text("1 1:5 9:-9\n2 1:7 9:8\n")
    assert read_table(tmp_path / "data.parquet", na_values="-9", impute=0).n_imputed == 2
    assert read_table(tmp_path / "data.libsvm", na_values="-9", impute=0).n_imputed == 1


def test_true_and_false_are_one_and_zero(reader, tmp_path):
    text = "a,b,c\ntrue,1.5,TRUE\nFalse,2,\nTrue,3,false\n"
    table = read_table(written(tmp_path, text), impute=0.5)
    np.testing.assert_array_equal(table.X, [[1, 1.5, 1], [0, 2, 0.5], [1, 3, 0]])
    table = read_table(written(tmp_path, "true,false\nfalse,true\n"))
    np.testing.assert_array_equal(table.X, [[1, 0], [0, 1]])


def test_truths_are_read_by_the_fast_reader_and_numbers_among_them_by_the_other(
    tmp_path, monkeypatch
):
    path = written(tmp_path, "a,b\n" + "true,1\nfalse,2\n" * 800)
    mixed = written(tmp_path, "a,b\n" + "true,1\nfalse,2\n" * 800 + "7,3\n", "mixed.csv")
    assert read_table(mixed).X[-1].tolist() == [7, 3]
    monkeypatch.setattr(DelimitedSource, "_read_plain", lambda *args: pytest.fail("slow"))
    assert read_table(path).X.sum() == 800 + 2400


DATES = [
    "2024-02-29",
    "2024-02-29 12:30",
    "2024-02-29T12:30:15.25Z",
    "29.02.2024",
    "2/29/24",
    "29-Feb-2024",
    "5. März 2024",
    "March 5, 2024",
    "Mon, 05 Feb 2024 10:00:00 +0100",
    "2024-02",
    "12:30",
    "7:45 pm",
]


@pytest.mark.parametrize("text", DATES)
def test_dates_and_times_are_called_what_they_are(text, tmp_path):
    quoted = f'"{text}"'
    path = written(tmp_path, f"a,when,b\n1,{quoted},2\n3,{quoted},4\n")
    with pytest.raises(
        ValueError,
        match=r"column 'when' holds .* in row 1, which is a date or a time, and no number \(1 more "
        r"row with text\)\. Leave the column out: columns='a,b'; or turn it into numbers first, "
        r"such as days since a first day\. If it names the rows, say id_column='when'\.",
    ) as caught:
        read_table(path)
    assert repr(text) in str(caught.value)
    assert "LIBSVM" not in str(caught.value)


@pytest.mark.parametrize("text", ["12", "1.5", "1.2.3", "a 1:2", "1-2", "Marching on", "99"])
def test_what_is_no_date_is_not_called_one(text):
    assert not is_date(text)


def test_dates_in_typed_columns_are_called_what_they_are(tmp_path):
    days = np.array(["2024-02-29", "2024-03-01"], "M8[D]")
    kinds = {
        "day": days,
        "moment": days.astype("M8[ns]") + 7,
        "span": (days - days[0]).astype("m8[s]"),
    }
    for name, values in kinds.items():
        table = pa.table({"a": [1.0, 2.0], name: values})
        parquet.write_table(table, tmp_path / "data.parquet")
        feather.write_feather(table, tmp_path / "data.feather")
        for file in ("data.parquet", "data.feather"):
            with pytest.raises(ValueError, match=f"'{name}' holds .* which is a date or a time, a"):
                read_table(tmp_path / file)


def test_columns_of_one_name_go_by_number(tmp_path):
    path = written(tmp_path, "a,b,a,c,a\n1,2,3,4,5\n6,7,8,9,0\n")
    table = read_table(path)
    assert table.names == ("a (1)", "b", "a (2)", "c", "a (3)")
    assert "has 3 columns called 'a': they go by 'a (1)' and 'a (2)' and so on" in table.notes[0]
    for columns in ("1,3", "a (1),a (2)"):
        np.testing.assert_array_equal(read_table(path, columns=columns).X, [[1, 3], [6, 8]])
    for options in ({"columns": "b,a"}, {"id_column": "a"}, {"expected": ["a"], "n_features": 1}):
        with pytest.raises(
            ValueError, match=r"has 3 columns called 'a': the columns 1, 3, 5\. Name them by these"
        ):
            read_table(path, **options)


def test_columns_of_one_name_in_other_formats_go_by_number(tmp_path):
    table = pa.table([[1.0, 6], [2.0, 7], ["x", "y"]], names=["a", "a", "a"])
    parquet.write_table(table, tmp_path / "data.parquet")
    with pa.ipc.new_file(tmp_path / "data.arrow", table.schema) as writer:
        writer.write_table(table)
    np.savez(tmp_path / "data.npz", X=np.array([[1.0, 2, 3], [6, 7, 8]]), names=["a", "a", "b"])
    for name in ("data.parquet", "data.arrow"):
        found = read_table(tmp_path / name, columns="2,1", id_column="3")
        np.testing.assert_array_equal(found.X, [[2, 1], [7, 6]])
        assert found.ids.tolist() == ["x", "y"]
    found = read_table(tmp_path / "data.npz", columns="2-3")
    assert found.names == ("a (2)", "b")


TRAILING = {
    "every line": ("a,b,\n1,2,\n3,4,\n", 1),
    "not the header": ("a,b\n1,2,\n3,4,\n", 1),
    "the header alone": ("a,b,\n1,2\n3,4\n", 1),
    "several": ("a,b,,,\n1,2,,,\n3,4,,,\n", 3),
    "no header": ("1,2,\n3,4,\n", 1),
    "semicolons": ("a;b;\n1;2;\n3;4;\n", 1),
    "spaces": ("a,b, \n1,2, \n3,4, \n", 1),
}


@pytest.mark.parametrize(("text", "count"), TRAILING.values(), ids=TRAILING)
def test_empty_columns_at_the_end_are_left_out_with_a_word(text, count, reader, tmp_path):
    table = read_table(written(tmp_path, text))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    said = "the empty column" if count == 1 else f"{count} empty columns"
    assert re.fullmatch(
        rf"{said} at the end of the lines of .* (is|are) left out\.", table.notes[0]
    )


def test_a_last_column_that_has_values_is_not_left_out(reader, tmp_path):
    table = read_table(written(tmp_path, "a,b,\n1,2,\n3,4,5\n"), impute=0)
    assert table.X.tolist() == [[1, 2, 0], [3, 4, 5]]
    assert table.names == ("a", "b", "column 3")
    path = written(tmp_path, "a,b,\n" + "1,2,\n" * 1500 + "3,4,5\n")
    with pytest.raises(ValueError, match=r"row 1501 holds '5' in a column without a name that is"):
        read_table(path)


def test_what_was_guessed_is_printed_as_notes_and_quiet_silences_them(tmp_path):
    written(tmp_path, "größe;b;\n1,5;2;\n-3,25;4e2;\n")
    shown = sketchmeans("cluster", tmp_path / "data.csv", "-k", 2)
    notes = shown.stderr.splitlines()
    assert [note.split()[0] for note in notes] == ["Note:", "Note:"]
    assert "has decimal commas: '1,5' is read as 1.5. Say --decimal . if that is wrong." in notes[0]
    assert "the empty column at the end of the lines" in notes[1]
    assert sketchmeans("cluster", tmp_path / "data.csv", "-k", 2, "-q").stderr == ""


def test_options_of_text_reach_the_reader_from_the_command_line(tmp_path):
    path = written(tmp_path, "a:b\n1,5:x\n2,5:3\n4:5\n")
    options = ["--delimiter", ":", "--decimal", ",", "--na-values", "x", "--drop-missing"]
    shown = sketchmeans("cluster", path, "-k", 2, *options)
    assert shown.stdout.startswith("2 rows of 2 columns")
    assert shown.stderr == "Note: dropped for a missing value: 1 of 3 rows.\n"
    for flag, value in (("--delimiter", ":"), ("--decimal", ","), ("--encoding", "utf-8")):
        np.save(tmp_path / "data.npy", np.eye(3))
        shown = sketchmeans("cluster", tmp_path / "data.npy", "-k", 2, flag, value, code=1)
        assert re.search(f"{flag} is for CSV, TSV.*not for npy", shown.stderr)


def test_a_plain_table_is_read_without_a_word(reader, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(written(tmp_path, "a,b\n1.5,2\n-3.25,4e2\n"))
    assert table.notes == ()
    np.testing.assert_array_equal(table.X, WANTED)
