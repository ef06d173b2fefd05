"""Files of clusters: what they may hold, and what is said of those that cannot be meant."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shell import sketchmeans as run
from sketchmeans.io.clusters import read_clusters
from sketchmeans.io.limits import DataError

LABELS = [0, 0, 1, 10]
ROWS = SimpleNamespace(n_rows=4, rows=np.arange(1, 5), ids=None)
NAMED = SimpleNamespace(n_rows=4, rows=np.arange(1, 5), ids=["ä", "b", "c", "d"])


def _table(**columns):
    return pa.table(columns)


def _npy(path, content):
    np.save(path, content, allow_pickle=True)


WRITERS = {
    ".npy": _npy,
    ".csv": lambda path, content: path.write_bytes(content),
    ".tsv": lambda path, content: path.write_bytes(content),
    ".json": lambda path, content: path.write_bytes(content),
    ".parquet": lambda path, content: parquet.write_table(content, path),
    ".feather": lambda path, content: feather.write_feather(content, path),
}


def _written(folder, ending, content):
    path = folder / f"labels{ending}"
    (type(path).write_bytes if isinstance(content, bytes) else WRITERS[ending])(path, content)
    return path


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".npy", np.array(LABELS)),
        (".npy", np.array(LABELS, np.uint8)),
        (".csv", b"0\n0\n1\n10\n"),
        (".csv", b"row;cluster\n4;10\n3;1\n1;0\n2;0\n"),
        (".tsv", b"cluster\n0\n0\n1\n10\n"),
        (".parquet", _table(row=[1, 2, 3, 4], other=list("abcd"), labels=LABELS)),
        (".feather", _table(label=LABELS)),
    ],
)
def test_the_same_clusters_are_read_from_any_format(ending, content, tmp_path):
    found = read_clusters(_written(tmp_path, ending, content)).of(ROWS)
    assert found.dtype == int
    assert found.tolist() == LABELS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_ids_are_read_in_any_encoding_and_a_guess_is_told(encoding, tmp_path):
    text = "id,cluster\nb,0\nä,1\nc,1\nd,0\n"
    path = _written(tmp_path, ".csv", text.encode(encoding))
    if encoding.startswith("utf-8"):
        found = read_clusters(path).of(NAMED)
    else:
        with pytest.warns(UserWarning, match=r"labels\.csv is .*read as"):
            found = read_clusters(path).of(NAMED)
    assert found.tolist() == [1, 0, 1, 0]


def test_a_letter_far_behind_the_start_settles_the_encoding(tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.io.encoding.LOOKED_AT", 64)
    lines = [f"row {number},{number % 2}" for number in range(20)]
    text = "\n".join(["id,cluster", *lines, "ä,1\n"])
    with pytest.warns(UserWarning, match="is not UTF-8 and is read as cp1252"):
        found = read_clusters(_written(tmp_path, ".csv", text.encode("cp1252")))
    assert found.keys[-1] == "ä"
    with pytest.raises(DataError, match="is not UTF-8 text: byte 0xe4"):
        read_clusters(tmp_path / "labels.csv", encoding="ascii")


def test_texts_of_numbers_that_differ_are_clusters_that_differ(tmp_path):
    path = _written(tmp_path, ".csv", b"cluster\n1\n01\n1_0\n99999999999999999999\n")
    assert read_clusters(path).of(ROWS).tolist() == ["1", "01", "1_0", "99999999999999999999"]


def test_a_cluster_that_is_missing_is_empty_and_no_name(tmp_path):
    path = _written(tmp_path, ".parquet", _table(cluster=[0, None, 1, 1]))
    assert read_clusters(path).of(ROWS).tolist() == ["0", "", "1", "1"]


@pytest.mark.parametrize(
    ("ending", "content", "said"),
    [
        (".npy", b"", r"labels\.npy is empty"),
        (".npy", b"hello", r"labels\.npy cannot be read as npy: .*its name must end as its format"),
        (".npy", b"PK\5\6" + bytes(18), r"labels\.npy is packed by zip"),
        (".npy", np.array([1, "a", None], object), r"holds Python objects.* it is never done"),
        (".npy", np.zeros((4, 1)), r"an array of shape \(4, 1\): one label a row"),
        (".csv", b"", r"labels\.csv is empty"),
        (".csv", b"\n\n", r"labels\.csv is empty"),
        (".csv", b"id,cluster\na,1,2\n", r"has 3 fields in row 2, and 2 before"),
        (".csv", b"id,cluster\n" + b"x" * 200_000 + b",1\n", r"labels\.csv cannot be read as csv"),
        (".csv", b"cluster,cluster\n0,1\n", r"labels\.csv has 2 columns 'cluster'"),
        (".csv", b"id,id,cluster\na,b,1\n", r"labels\.csv has 2 columns 'id'"),
        (".parquet", _table(), r"labels\.parquet has no columns"),
        (".parquet", b"PAR1 and no more", r"labels\.parquet cannot be read as parquet"),
        (".feather", b"nothing", r"labels\.feather cannot be read as feather"),
        (".json", b"[]", r"labels are not read from .*labels\.json: give \.csv"),
    ],
)
def test_what_holds_no_clusters_is_named_and_refused(ending, content, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read_clusters(_written(tmp_path, ending, content))


def test_clusters_that_do_not_match_the_rows_are_refused(tmp_path):
    short = _written(tmp_path, ".npy", np.zeros(3))
    with pytest.raises(DataError, match="has 3 labels and no ids, and the data 4 rows"):
        read_clusters(short).of(ROWS)
    twice = _written(tmp_path, ".csv", b"id,cluster\nb,1\nb,2\n")
    with pytest.raises(DataError, match="has 'b' twice, in two clusters"):
        read_clusters(twice).of(NAMED)
    with pytest.raises(DataError, match=r"names rows by 'id'\. Say id_column"):
        read_clusters(twice).of(ROWS)


def test_the_command_ends_with_one_line_on_a_damaged_file_of_labels(rings, tmp_path):
    path = _written(tmp_path, ".npy", b"")
    shown = run("certify", rings, "--labels", path, "--kernel", "linear", code=1).stderr
    assert shown == f"Error: {path} is empty.\n"
