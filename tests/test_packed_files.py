"""Packed files: each kind is unpacked on the way; archives hold one file, its name is no path."""

import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from sketchmeans.io import read_table
from sketchmeans.io.packing import PACKINGS
from tables import X, pack, write_numbers

KINDS = ["gz", "bz2", "xz", "zst", "zip"]


def zipped(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def csv_bytes(folder):
    return write_numbers(folder / "plain.csv", X).read_bytes()


def test_every_packing_is_among_those_that_are_tested():
    assert {packing.extensions[0][1:] for packing in PACKINGS} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["csv", "tsv", "txt", "jsonl", "libsvm"])
def test_text_of_every_format_may_be_packed_in_every_way(kind, text, tmp_path):
    table = read_table(write_numbers(tmp_path / f"data.{text}.{kind}", X))
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_text_is_known_by_its_first_bytes_whatever_its_name(kind, tmp_path, monkeypatch):
    content = pack(kind, csv_bytes(tmp_path))
    (tmp_path / "data.csv").write_bytes(content)
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv").X, X)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    np.testing.assert_array_equal(read_table("-").X, X)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_several_packed_parts_are_one_file(kind, tmp_path):
    lines = csv_bytes(tmp_path).splitlines(keepends=True)
    parts = [b"".join(lines[:30]), b"".join(lines[30:])]
    (tmp_path / f"data.csv.{kind}").write_bytes(b"".join(pack(kind, part) for part in parts))
    np.testing.assert_array_equal(read_table(tmp_path / f"data.csv.{kind}").X, X)


def test_zeros_may_stand_between_the_parts_of_xz_and_after_them(tmp_path):
    content = pack("xz", b"a,b\n1,2\n") + bytes(8) + pack("xz", b"3,4\n") + bytes(4)
    (tmp_path / "data.csv.xz").write_bytes(content)
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv.xz").X, [[1, 2], [3, 4]])


def test_the_file_in_an_archive_tells_its_format(tmp_path):
    tsv = write_numbers(tmp_path / "plain.tsv", X).read_bytes()
    (tmp_path / "data.zip").write_bytes(zipped(("deep/inside/table.tsv", tsv)))
    np.testing.assert_array_equal(read_table(tmp_path / "data.zip").X, X)
    (tmp_path / "data.zip").write_bytes(zipped(("table", tsv)))
    with pytest.raises(ValueError, match=r"cannot be told from its name. Say format with one of"):
        read_table(tmp_path / "data.zip")
    np.testing.assert_array_equal(read_table(tmp_path / "data.zip", format="tsv").X, X)


def test_folders_and_what_macos_adds_to_an_archive_do_not_count(tmp_path):
    added = [("data/", b""), ("__MACOSX/data/._x.csv", b"\0\5\x16"), ("data/.DS_Store", b"\0")]
    (tmp_path / "data.zip").write_bytes(zipped(*added, ("data/x.csv", csv_bytes(tmp_path))))
    np.testing.assert_array_equal(read_table(tmp_path / "data.zip").X, X)


def test_an_archive_of_several_files_is_refused_and_lists_them(tmp_path):
    members = [(f"{index}.csv", b"1,2\n") for index in range(9)]
    (tmp_path / "data.zip").write_bytes(zipped(*members))
    with pytest.raises(
        ValueError, match=r"holds 9 files \('0.csv', .*'4.csv' and 4 more\), and on"
    ):
        read_table(tmp_path / "data.zip")


def test_names_in_an_archive_are_never_paths(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("../outside.csv", "/tmp/absolute.csv", "..\\outside.csv", "C:\\x.csv"):
        (inside / "data.zip").write_bytes(zipped((name, csv_bytes(tmp_path))))
        np.testing.assert_array_equal(read_table(inside / "data.zip").X, X)
    (tmp_path / "plain.csv").unlink()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["data.zip", "inside"]
    assert not os.path.exists("/tmp/absolute.csv")


@pytest.mark.parametrize("kind", KINDS)
def test_formats_that_pack_themselves_are_not_packed_again(kind, tmp_path):
    content = write_numbers(tmp_path / "plain.npy", X).read_bytes()
    path = tmp_path / f"data.npy.{kind}"
    path.write_bytes(pack(kind, content, "plain.npy"))
    with pytest.raises(
        ValueError, match=r"packed by \w+, which npy files are not. Unpack it first"
    ):
        read_table(path)


def test_an_archive_of_arrays_is_npz_and_a_workbook_is_excel_on_standard_input(
    tmp_path, monkeypatch
):
    for kind in ("npz", "xlsx"):
        content = write_numbers(tmp_path / f"data.{kind}", X).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        np.testing.assert_allclose(read_table("-").X, X, rtol=1e-15)


def test_zstandard_without_pyarrow_says_the_install_line(tmp_path, monkeypatch):
    path = write_numbers(tmp_path / "data.csv.zst", X)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = r'files packed by Zstandard \(.zst\) need pyarrow: pip install "sketchmeans\[files\]"'
    with pytest.raises(ImportError, match=message):
        read_table(path)


def test_the_programs_that_pack_make_what_is_read(tmp_path):
    content = csv_bytes(tmp_path)
    for program, ending in (("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz"), ("zstd", "zst")):
        try:
            packed = subprocess.run([program, "-c"], input=content, capture_output=True, check=True)
        except FileNotFoundError:
            continue
        (tmp_path / f"data.csv.{ending}").write_bytes(packed.stdout)
        np.testing.assert_array_equal(read_table(tmp_path / f"data.csv.{ending}").X, X)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("data.xls", "old format: save it as .xlsx or CSV"),
        ("data.json", "one object a line"),
        ("data.pkl", "a pickle can run any program"),
        ("data.unknown", "cannot be told from its name"),
    ],
)
def test_other_files_that_people_have_lead_to_a_way_out(name, message, tmp_path):
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)
