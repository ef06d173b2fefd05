"""JSON lines and Excel: which cells are numbers, names, gaps, dates; which sheet."""

import datetime
import json
import re
import sys

import numpy as np
import openpyxl
import pandas as pd
import pytest

from hostile_files import xlsx_bytes
from shell import sketchmeans
from sketchmeans.io import read_table
from sketchmeans.io.workbook import MOST_COLUMNS, column_of


def lines(folder, *rows):
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def workbook(folder, *rows, **sheets):
    """Write rows to the first sheet, and others to sheets of their own."""
    book = openpyxl.Workbook()
    book.active.title = "first"
    for row in rows:
        book.active.append(row)
    for name, content in sheets.items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(folder / "data.xlsx")
    return folder / "data.xlsx"


def test_neither_format_needs_a_library(tmp_path, monkeypatch):
    paths = lines(tmp_path, {"a": 1}), workbook(tmp_path, ["a"], [1])
    for library in ("pyarrow", "pandas", "openpyxl", "lxml"):
        monkeypatch.setitem(sys.modules, library, None)
    for path in paths:
        assert read_table(path).X.tolist() == [[1]]


def test_objects_a_line_are_rows_and_their_names_columns(tmp_path):
    path = lines(tmp_path, {"a": 1, "b": 2.5}, {"b": -3, "a": 4}, {"a": True, "b": "7.5"})
    table = read_table(path)
    assert (table.names, table.named) == (("a", "b"), True)
    np.testing.assert_array_equal(table.X, [[1, 2.5], [4, -3], [1, 7.5]])


def test_arrays_a_line_are_rows_without_names(tmp_path):
    table = read_table(lines(tmp_path, [1, 2], [3, 4.5]))
    assert (table.names, table.named) == (("column 1", "column 2"), False)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4.5]])


def test_a_name_that_is_null_or_absent_is_missing_wherever_it_turns_up_first(tmp_path):
    path = lines(tmp_path, {"a": 1}, {"b": 2, "a": None}, {"a": "NA", "c": 3}, {"a": float("nan")})
    table = read_table(path, impute=9)
    assert table.names == ("a", "b", "c")
    np.testing.assert_array_equal(table.X, [[1, 9, 9], [9, 2, 9], [9, 9, 3], [9, 9, 9]])
    assert table.n_imputed == 9


def test_text_in_json_is_told_and_carried_along(tmp_path):
    path = lines(tmp_path, {"id": "x", "a": 1}, {"id": "y", "a": 2}, {"id": 7, "a": 3})
    with pytest.raises(ValueError, match=r"column 'id' holds 'x' in row 1, .*\(1 more row"):
        read_table(path)
    assert read_table(path, id_column="id").ids.tolist() == ["x", "y", "7"]


def test_long_whole_numbers_keep_their_digits_as_ids(tmp_path):
    path = lines(tmp_path, {"id": 2**60 + 1, "a": 1}, {"id": 5, "a": 2})
    assert read_table(path, id_column="id").ids.tolist() == [str(2**60 + 1), "5"]
    assert read_table(path, columns="id").X[0, 0] == float(2**60 + 1)
    path = lines(tmp_path, {"id": 3, "a": 1}, {"id": 5, "a": 2})
    assert read_table(path, id_column="id").ids.tolist() == [3, 5]


def test_a_workbook_that_pandas_writes_is_read(tmp_path):
    frame = pd.DataFrame({"id": ["x", "y"], "a": [1.5, np.nan], "on": [True, False], "n": [3, 4]})
    frame.to_excel(tmp_path / "data.xlsx", index=False)
    table = read_table(tmp_path / "data.xlsx", id_column="id", impute=0)
    assert (table.names, table.ids.tolist()) == (("a", "on", "n"), ["x", "y"])
    np.testing.assert_array_equal(table.X, [[1.5, 1, 3], [0, 0, 4]])
    frame.to_excel(tmp_path / "data.xlsx")
    with pytest.raises(ValueError, match=r"column 1 has no name, as the row index"):
        read_table(tmp_path / "data.xlsx")


def test_a_table_may_begin_anywhere_in_a_sheet_and_have_empty_rows(tmp_path):
    rows = [[], [], [None, "a", None, "b"], [None, 1, None, 2], [], [None, 3, None, 4], []]
    table = read_table(workbook(tmp_path, *rows))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_numbers_without_a_header_are_rows_and_a_header_can_be_forced(tmp_path):
    path = workbook(tmp_path, [1.5, 2], [3, 4])
    assert read_table(path).X.shape == (2, 2)
    table = read_table(path, header=True)
    assert (table.names, table.X.tolist()) == (("1.5", "2"), [[3, 4]])


def test_sheets_go_by_name_or_number_and_more_than_one_is_told(tmp_path):
    path = workbook(tmp_path, ["a"], [1], second=[["b"], [2]], third=[["c"], [3]])
    table = read_table(path)
    assert table.names == ("a",)
    assert "has the sheets 'first', 'second', 'third', and the first is read. Say" in table.notes[0]
    for sheet in ("third", "3"):
        assert read_table(path, sheet=sheet).names == ("c",)
    assert read_table(path, sheet="2").notes == ()
    with pytest.raises(ValueError, match=r"no sheet 'thirt'. Did you mean 'third'. Its sheets are"):
        read_table(path, sheet="thirt")
    with pytest.raises(ValueError, match=r"no sheet '4'"):
        read_table(path, sheet="4")


def test_the_sheet_is_an_option_of_excel_alone(tmp_path):
    path = workbook(tmp_path, ["x"], [0], second=[["a", "b"], [1, 2], [3, 4], [5, 6]])
    shown = sketchmeans("cluster", path, "-k", 2, "--sheet", "second")
    assert shown.stdout.startswith("3 rows of 2 columns")
    lines(tmp_path, {"a": 1})
    shown = sketchmeans("cluster", tmp_path / "data.jsonl", "-k", 1, "--sheet", "1", code=1)
    assert "--sheet is for Excel, not for jsonl" in shown.stderr


DATES = {
    datetime.date(2024, 2, 29): "2024-02-29",
    datetime.datetime(2024, 2, 29, 12, 30): "2024-02-29 12:30:00",
    datetime.time(12, 30): "12:30:00",
}


@pytest.mark.parametrize("moment", DATES, ids=str)
def test_dates_in_a_sheet_are_dates_and_no_numbers(moment, tmp_path):
    path = workbook(tmp_path, ["a", "when", "b"], [1, moment, 2], [3, moment, 4])
    message = f"column 'when' holds '{DATES[moment]}' in row 1, which is a date or a time"
    with pytest.raises(ValueError, match=message):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, columns="a,b").X, [[1, 2], [3, 4]])


def test_numbers_in_other_styles_stay_numbers(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["a", "b", "c"])
    book.active.append([1.5, 0.25, 12])
    for cell, style in zip("ABC", ["#,##0.00", "0%", '0.0" days"'], strict=True):
        book.active[f"{cell}2"].number_format = style
    book.save(tmp_path / "data.xlsx")
    np.testing.assert_array_equal(read_table(tmp_path / "data.xlsx").X, [[1.5, 0.25, 12]])


def test_errors_of_formulas_are_missing_and_texts_of_formulas_are_text(tmp_path):
    cells = (
        '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c>'
        '<c r="B1" t="inlineStr"><is><r><t>b</t></r><r><t>c</t></r></is></c></row>'
        '<row r="2"><c r="A2"><f>1+1</f><v>2</v></c><c r="B2" t="e"><v>#N/A</v></c></row>'
        '<row r="3"><c><v>3</v></c><c t="b"><v>1</v></c></row>'
        '<row r="4"><c r="B4"><v>5</v></c><c r="A4" t="str"><v>6.5</v></c></row>'
    )
    (tmp_path / "data.xlsx").write_bytes(xlsx_bytes(cells))
    table = read_table(tmp_path / "data.xlsx", impute=0)
    assert table.names == ("a", "bc")
    np.testing.assert_array_equal(table.X, [[2, 0], [3, 1], [6.5, 5]])


def test_years_from_1904_are_those_of_the_workbook(tmp_path):
    book = openpyxl.Workbook()
    book.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
    book.active.append(["when"])
    book.active.append([datetime.date(2024, 2, 29)])
    book.save(tmp_path / "data.xlsx")
    with pytest.raises(ValueError, match="holds '2024-02-29' in row 1, which is a date"):
        read_table(tmp_path / "data.xlsx")


def test_cells_are_where_their_letters_say():
    for column in (1, 26, 27, 52, 702, 703, MOST_COLUMNS):
        assert column_of(f"{openpyxl.utils.get_column_letter(column)}7") == column - 1


def test_odd_names_and_many_columns_come_through(tmp_path):
    names = ["<b>&", "größe", " spaces ", "日本"]
    table = read_table(workbook(tmp_path, names, [1, 2, 3, 4], [5, 6, 7, 8]))
    assert table.names == ("<b>&", "größe", "spaces", "日本")
    wide = [[f"x{index}" for index in range(1000)], list(range(1000)), list(range(1000, 2000))]
    np.testing.assert_array_equal(read_table(workbook(tmp_path, *wide)).X, wide[1:])


def test_texts_that_cells_share_are_read_as_excel_writes_them(tmp_path):
    # A header in two runs of letters, an id with its reading in another script, and one of spaces.
    words = (
        "<sst><si><t>name</t></si><si><r><t>wei</t></r><r><t>ght</t></r></si>"
        "<si><t>東京</t><rPh sb='0' eb='2'><t>トウキョウ</t></rPh></si>"
        '<si><t xml:space="preserve"> Oslo </t></si><si><t/></si></sst>'
    )
    cells = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
        '<row r="2"><c r="A2" t="s"><v>2</v></c><c r="B2"><v>1.5</v></c></row>'
        '<row r="3"><c r="A3" t="s"><v>3</v></c><c r="B3" t="s"><v>4</v></c></row>'
    )
    book = xlsx_bytes(cells, changed=[("xl/sharedStrings.xml", words)])
    (tmp_path / "data.xlsx").write_bytes(book)
    table = read_table(tmp_path / "data.xlsx", id_column="name", impute=9)
    assert table.names == ("weight",)
    assert [one.strip() for one in table.ids] == ["東京", "Oslo"]
    np.testing.assert_array_equal(table.X, [[1.5], [9]])


def test_a_date_far_beyond_all_years_is_told_in_days(tmp_path):
    styles = '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    cells = '<row r="1"><c r="A1" s="1"><v>{}</v></c></row><row r="2"><c r="A2"><v>1</v></c></row>'
    for value, shown in (("1e9", "1e+09 days"), ("45351", "2024-02-29"), ("0.5", "12:00:00")):
        book = xlsx_bytes(cells.format(value), changed=[("xl/styles.xml", styles)])
        (tmp_path / "data.xlsx").write_bytes(book)
        with pytest.raises(ValueError, match=f"holds '{re.escape(shown)}' in row 1"):
            read_table(tmp_path / "data.xlsx", header=False)
