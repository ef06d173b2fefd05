"""Encodings of text: recognised and told, or given; what is no text is refused."""

import codecs
import json
import sys

import numpy as np
import pytest

from shell import sketchmeans
from sketchmeans.io import read_table

TEXT = "größe,straße\n1,2\n3,4\n"
NAMES = ("größe", "straße")
MARKED = {
    "utf-8": TEXT.encode(),
    "utf-8 with a mark": TEXT.encode("utf-8-sig"),
    "utf-16 little-endian": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "utf-16 big-endian": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "utf-32": codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
    "cp1252": TEXT.encode("cp1252"),
}


@pytest.mark.parametrize("reader", ["pyarrow", "plain"])
@pytest.mark.parametrize("kind", MARKED)
def test_encodings_are_recognised_and_told(kind, reader, tmp_path, monkeypatch):
    if reader == "plain":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "data.csv").write_bytes(MARKED[kind])
    table = read_table(tmp_path / "data.csv")
    assert table.names == NAMES
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    if kind.startswith("utf-8"):
        assert table.notes == ()
    elif kind == "cp1252":
        (note,) = table.notes
        assert "is not UTF-8 and is read as cp1252: byte 0xf6 is taken for 'ö'. Say enc" in note
    else:
        (note,) = table.notes
        assert f"is read as {kind[:6].upper()}, by the mark that it begins with" in note


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "cp850", "mac-roman", "UTF8", "gb18030"])
def test_an_encoding_that_is_given_is_taken_without_a_word(encoding, tmp_path):
    text = "id,x\ngröße,1\nmaß,2\n"
    (tmp_path / "data.csv").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "data.csv", encoding=encoding, id_column="id")
    assert table.ids.tolist() == ["größe", "maß"]
    assert table.notes == ()


def test_a_letter_beyond_the_first_megabyte_is_enough_to_tell(tmp_path):
    text = "id,x\n" + "plain,1\n" * 200_000 + "größe,2\n"
    (tmp_path / "data.csv").write_bytes(text.encode("cp1252"))
    table = read_table(tmp_path / "data.csv", id_column="id")
    assert table.ids[-1] == "größe"
    assert "is read as cp1252" in table.notes[0]
    (tmp_path / "data.csv").write_bytes(text.encode())
    table = read_table(tmp_path / "data.csv", id_column="id")
    assert (table.ids[-1], table.notes) == ("größe", ())


def test_a_letter_that_a_look_at_the_file_cuts_is_no_reason_for_doubt(tmp_path):
    for shift in range(3):
        text = "id,x\n" + "a" * shift + "ö" * (1 << 20) + ",1\n"
        (tmp_path / "data.csv").write_bytes(text.encode())
        assert read_table(tmp_path / "data.csv", columns="x").notes == ()


def test_an_encoding_that_does_not_fit_says_which_byte_is_wrong(tmp_path):
    (tmp_path / "data.csv").write_bytes("a,b\n1,2\nö,3\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"is not UTF-8 text: byte 0xf6 after line .*Say encoding"):
        read_table(tmp_path / "data.csv", encoding="utf-8")
    with pytest.raises(ValueError, match=r"is not ascii text|is not UTF-8 text"):
        read_table(tmp_path / "data.csv", encoding="ascii")


@pytest.mark.parametrize("name", ["klingon", "rot13", "zlib"])
def test_a_name_that_is_no_encoding_of_text_is_refused(name, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        ValueError, match=rf"encoding='{name}' is not the name of an encoding of te"
    ):
        read_table(tmp_path / "data.csv", encoding=name)


def test_bytes_that_are_no_text_are_not_taken_for_western_letters(tmp_path):
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,\xf6\x00\n")
    with pytest.raises(ValueError, match=r"is not UTF-8 text: byte 0xf6"):
        read_table(tmp_path / "data.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_json_lines_are_read_in_any_encoding(encoding, tmp_path):
    lines = [{"größe": 1.5, "id": "ä"}, {"größe": 2.5, "id": "ß"}]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (tmp_path / "data.jsonl").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "data.jsonl", id_column="id")
    assert (table.names, table.ids.tolist()) == (("größe",), ["ä", "ß"])
    assert len(table.notes) == (encoding != "utf-8")


def test_the_command_line_takes_an_encoding_and_tells_a_guess(tmp_path):
    (tmp_path / "data.csv").write_bytes("straße,x\n1,2\n3,4\n".encode("cp1252"))
    shown = sketchmeans("cluster", tmp_path / "data.csv", "-k", 2)
    assert "Note: " in shown.stderr
    assert "byte 0xdf is taken for 'ß'. Say --encoding if that is wrong." in shown.stderr
    shown = sketchmeans("cluster", tmp_path / "data.csv", "-k", 2, "--encoding", "latin-1")
    assert shown.stderr == ""


def test_json_lines_whose_first_letters_are_plain_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.io.encoding.LOOKED_AT", 64)
    rows = [json.dumps({"id": str(row), "a": row**2}) for row in range(20)]
    path = tmp_path / "data.jsonl"
    path.write_bytes("\n".join([*rows, '{"id": "Zoë", "a": 400}']).encode("cp1252"))
    table = read_table(path, id_column="id")
    assert table.ids[-1] == "Zoë"
    assert table.X.ravel().tolist() == [row**2 for row in range(21)]
    assert "is not UTF-8 and is read as cp1252: byte 0xeb" in table.notes[0]
