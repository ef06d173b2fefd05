"""Data files: every format gives the same table; what is wrong with a file is said."""

import gzip
import io
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy import sparse

from sketchmeans.io import TableData, read_table, write_labels
from sketchmeans.io.delimited import DelimitedSource

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(60, 4)) * [1, 10, 1e-3, 1e6]
NAMES = ["a", "b", "c", "d"]
IDS = [f"r{index}" for index in range(60)]
CLASSES = ["left", "right"] * 30


def frame():
    return pd.DataFrame(X, columns=NAMES)


def full_frame():
    data = frame()
    data.insert(0, "id", IDS)
    data["side"] = CLASSES
    return data


def libsvm_text(X, y=None):
    y = np.zeros(len(X), int) if y is None else y
    return "".join(
        f"{label} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row.tolist(), 1)) + "\n"
        for row, label in zip(X, y, strict=True)
    )


def write_numbers(path, X, names=None):
    """Write the numbers of X in the format of the path's extension."""
    names = names or [f"x{index}" for index in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    kind = path.name.split(".", 1)[1]
    if kind in ("csv", "csv.gz", "tsv", "tsv.gz"):
        table.to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
    elif kind == "parquet":
        parquet.write_table(pa.Table.from_pandas(table), path)
    elif kind == "feather":
        feather.write_feather(pa.Table.from_pandas(table), path)
    elif kind == "arrow":
        with pa.ipc.new_stream(path, pa.Table.from_pandas(table).schema) as writer:
            writer.write_table(pa.Table.from_pandas(table))
    elif kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez_compressed(path, X=X)
    elif kind == "libsvm":
        path.write_text(libsvm_text(X))
    elif kind == "libsvm.gz":
        path.write_bytes(gzip.compress(libsvm_text(X).encode()))
    else:
        raise AssertionError(kind)
    return path


KINDS = [
    "csv",
    "csv.gz",
    "tsv",
    "tsv.gz",
    "parquet",
    "feather",
    "arrow",
    "npy",
    "npz",
    "libsvm",
    "libsvm.gz",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_numbers(kind, tmp_path):
    table = read_table(write_numbers(tmp_path / f"data.{kind}", X))
    assert isinstance(table, TableData)
    np.testing.assert_array_equal(table.X, X)
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.rows, np.arange(1, 61))
    assert table.n_dropped == table.n_imputed == 0


@pytest.mark.parametrize("kind", ["parquet", "feather", "npy", "npz"])
def test_single_precision_stays_single(kind, tmp_path):
    single = X.astype(np.float32)
    path = tmp_path / f"data.{kind}"
    if kind in ("npy", "npz"):
        write_numbers(path, single)
    else:
        table = pa.table({name: single[:, index] for index, name in enumerate(NAMES)})
        (parquet.write_table if kind == "parquet" else feather.write_feather)(table, path)
    found = read_table(path)
    assert found.X.dtype == np.float32
    np.testing.assert_array_equal(found.X, single)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather"])
def test_ids_and_labels_are_carried_along(kind, tmp_path):
    path = tmp_path / f"data.{kind}"
    if kind in ("csv", "tsv"):
        full_frame().to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    else:
        table = pa.Table.from_pandas(full_frame())
        (parquet.write_table if kind == "parquet" else feather.write_feather)(table, path)
    table = read_table(path, id_column="id", label_column="side")
    assert list(table.ids) == IDS
    assert list(table.labels) == CLASSES
    assert (table.id_name, table.label_name) == ("id", "side")
    assert table.names == tuple(NAMES)
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize(
    ("columns", "names"),
    [("b,d", "bd"), ("d,b", "db"), (["c"], "c"), ("2-4", "abc"), ("5, 2", "da"), ("a,4-5", "acd")],
)
def test_columns_go_by_name_number_or_range(columns, names, tmp_path):
    full_frame().to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", columns=columns)
    assert table.names == tuple(names)
    np.testing.assert_array_equal(table.X, frame()[list(names)])


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
    with pytest.warns(UserWarning, match=r"holds 'P0' and '6.25': it was taken as data. Say --hea"):
        table = read_table(path, columns="2", id_column="1")
    assert (table.ids.tolist(), table.X.tolist()) == (["P0", "P1"], [[6.25], [5.5]])
    path.write_text("city,2019,2020\nBonn,5.5,6\n")
    with pytest.warns(
        UserWarning, match=r"holds 'city' and '2019': it was taken as names. Say --n"
    ):
        table = read_table(path, id_column="city")
    assert (table.ids.tolist(), table.names) == (["Bonn"], ("2019", "2020"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, id_column="city", header=True).X.shape == (1, 2)
        assert read_table(path, id_column="1", header=False, columns="2-3").X.shape == (2, 2)
        path.write_text("city,a,\nBonn,5.5,6\n")
        read_table(path, id_column="city")


def test_the_index_that_pandas_writes_is_not_taken_for_a_feature(tmp_path):
    frame().to_csv(tmp_path / "data.csv")
    with pytest.raises(ValueError, match=r"column 1 has no name.*--id-column 'column 1'"):
        read_table(tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv", id_column="column 1")
    assert list(table.ids[:3]) == ["0", "1", "2"]
    np.testing.assert_array_equal(table.X, X)
    shuffled = frame().set_index(np.arange(1, 61) ** 2)
    shuffled.to_parquet(tmp_path / "data.parquet")
    message = r"column 5 has no name.*--id-column __index_level_0__, or choose .*--columns a,b,c,d"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet", id_column="__index_level_0__")
    assert table.ids[:3].tolist() == [1, 4, 9]
    np.testing.assert_array_equal(table.X, X)


def test_a_column_that_counts_the_rows_is_warned_of(tmp_path):
    data = frame()
    data.insert(0, "row number", range(1, 61))
    data.to_csv(tmp_path / "data.csv", index=False)
    with pytest.warns(UserWarning, match="'row number' counts the rows.*--id-column 'row number'"):
        read_table(tmp_path / "data.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(tmp_path / "data.csv", id_column="row number")


def test_missing_values_are_refused_dropped_or_filled_in(tmp_path):
    data = full_frame()
    data.loc[[3, 7], "b"] = np.nan
    data.loc[7, "d"] = np.nan
    for kind in ("csv", "parquet", "feather"):
        path = tmp_path / f"data.{kind}"
        {"csv": lambda p: data.to_csv(p, index=False)}.get(
            kind, data.to_parquet if kind == "parquet" else data.to_feather
        )(path)
        options = {"id_column": "id", "columns": "a,b,c,d"}
        with pytest.raises(
            ValueError,
            match=r"column 'b' has no value in row 4; 3 values are missing, in 2 rows and 2 columns"
            r".*--drop-missing.*--impute mean",
        ):
            read_table(path, **options)
        table = read_table(path, drop_missing=True, **options)
        kept = np.delete(np.arange(60), [3, 7])
        np.testing.assert_array_equal(table.X, X[kept])
        np.testing.assert_array_equal(table.rows, kept + 1)
        assert list(table.ids) == [IDS[index] for index in kept]
        assert table.n_dropped == 2
        for impute, value in (("mean", data["b"].mean()), ("median", data["b"].median()), (5, 5)):
            table = read_table(path, impute=impute, **options)
            assert table.n_imputed == 3
            np.testing.assert_allclose(table.X[[3, 7], 1], value, rtol=1e-12)


def test_columns_are_standardized_and_others_in_the_same_way(tmp_path):
    data = frame()
    data["same"] = 1e9 + 0.1
    data.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(tmp_path / "data.csv", standardize=True)
    np.testing.assert_allclose(table.X[:, :4].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(table.X[:, :4].std(axis=0), 1, rtol=1e-12)
    np.testing.assert_array_equal(table.X[:, 4], 0)
    again = read_table(tmp_path / "data.csv").standardized(table.center, table.scale)
    np.testing.assert_array_equal(again.X, table.X)


def test_sparse_files_stay_sparse(tmp_path):
    S = sparse.random(50, 40, 0.05, random_state=0, format="csr")
    sparse.save_npz(tmp_path / "data.npz", S)
    lines = []
    for row in range(50):
        pairs = sorted(zip(S[row].indices.tolist(), S[row].data.tolist(), strict=True))
        lines.append("1 " + " ".join(f"{index + 1}:{value!r}" for index, value in pairs))
    (tmp_path / "data.libsvm").write_text("\n".join(lines))
    for name in ("data.npz", "data.libsvm"):
        table = read_table(tmp_path / name, n_features=40)
        assert sparse.issparse(table.X)
        np.testing.assert_array_equal(table.X.toarray(), S.toarray())
    scaled = read_table(tmp_path / "data.npz", standardize=True).X
    assert scaled.nnz == S.nnz
    deviations = scaled.toarray().std(axis=0)
    np.testing.assert_allclose(deviations[S.toarray().any(axis=0)], 1, rtol=1e-9)


def test_libsvm_counts_from_one_unless_zero_is_used(tmp_path):
    path = tmp_path / "data.libsvm"
    path.write_text("1 1:5 2:6 3:1\n2 1:7 2:8 3:1\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.X, [[5, 6, 1], [7, 8, 1]])
    assert list(table.labels) == [1, 2]
    path.write_text("1 0:5 1:6 2:1 # a comment\n\n1 0:7 1:8 2:1\n")
    np.testing.assert_array_equal(read_table(path).X, [[5, 6, 1], [7, 8, 1]])
    assert read_table(path).labels is None
    path.write_text("1 1:5 2:1\n" * 1500 + "2 1:6 2:1\n" * 5)  # sorted by their labels
    assert np.bincount(read_table(path).labels).tolist() == [0, 1500, 5]


def test_libsvm_counts_from_where_it_is_told(tmp_path):
    path = tmp_path / "data.libsvm"
    path.write_text("1 1:5 2:6\n2 1:7 2:8\n")
    np.testing.assert_array_equal(read_table(path, libsvm_base=0).X, [[0, 5, 6], [0, 7, 8]])
    np.testing.assert_array_equal(read_table(path, libsvm_base=1).X, [[5, 6], [7, 8]])
    with pytest.warns(UserWarning, match=r"indices of .* run from 1 to 2, where the model has 3 "):
        np.testing.assert_array_equal(read_table(path, n_features=3).X, [[5, 6, 0], [7, 8, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(path, n_features=3, libsvm_base=1)
    path.write_text("1 0:5\n")
    with pytest.raises(ValueError, match="has the index 0, but --libsvm-base 1 was said"):
        read_table(path, libsvm_base=1)


@pytest.mark.parametrize("options", [{"columns": "1,3"}, {"id_column": "2"}])
def test_chosen_columns_of_libsvm_are_never_widened(options, tmp_path):
    (tmp_path / "data.libsvm").write_text("1 1:5 2:6 3:7\n2 1:7 2:8 3:9\n")
    with pytest.raises(ValueError, match="2 feature columns, and the model was fitted to 3"):
        read_table(tmp_path / "data.libsvm", n_features=3, **options)


def test_a_name_that_begins_with_a_space_can_be_chosen(tmp_path):
    frame().rename(columns={"b": " b"}).to_parquet(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet", columns="a, b, c")
    assert table.names == ("a", " b", "c")


def test_odd_names_in_messages_are_escaped_cut_and_given_by_number(tmp_path):
    odd = {"a": "\x1b[2J", "b": "x" * 100_000}
    data = full_frame()[["id", *NAMES]].rename(columns=odd)
    data.to_parquet(tmp_path / "data.parquet")
    for options in ({}, {"columns": "e"}, {"expected": ["y" * 100_000], "n_features": 1}):
        with pytest.raises(ValueError) as caught:
            read_table(tmp_path / "data.parquet", **options)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600
    with pytest.raises(ValueError, match=r"--columns 2-5\."):
        read_table(tmp_path / "data.parquet")


def test_types_of_columns_become_numbers(tmp_path):
    table = pa.table(
        {
            "whole": pa.array([1, 2, None], pa.int8()),
            "large": pa.array([2**60, 1, 2], pa.int64()),
            "flag": pa.array([True, None, False]),
            "money": pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
            "category": pa.array([5.0, 6.0, 5.0]).dictionary_encode(),
            "half": pa.array(np.float16([1, 2, 3])),
            "nothing": pa.nulls(3),
        }
    )
    wanted = [[1, 2**60, 1, 1, 5, 1, 9], [2, 1, 9, 2, 6, 2, 9], [9, 2, 0, 3, 5, 3, 9]]
    parquet.write_table(table, tmp_path / "data.parquet")
    feather.write_feather(table, tmp_path / "data.feather")
    for name in ("data.parquet", "data.feather"):
        np.testing.assert_array_equal(read_table(tmp_path / name, impute=9).X, wanted)


def test_many_row_groups_and_batches_are_put_together(tmp_path):
    many = RANDOM.normal(size=(5000, 3))
    table = pa.table({f"x{index}": many[:, index] for index in range(3)})
    parquet.write_table(table, tmp_path / "data.parquet", row_group_size=700)
    feather.write_feather(table, tmp_path / "data.feather", chunksize=300, compression="zstd")
    for name in ("data.parquet", "data.feather"):
        np.testing.assert_array_equal(read_table(tmp_path / name).X, many)


def test_labels_and_names_of_an_archive_are_read(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, y=np.arange(60) % 3, names=np.array(NAMES))
    table = read_table(tmp_path / "data.npz", columns="b,c")
    assert table.names == ("b", "c")
    assert table.label_name == "y"
    np.testing.assert_array_equal(table.labels, np.arange(60) % 3)
    np.testing.assert_array_equal(table.X, X[:, 1:3])


def test_names_of_an_archive_may_be_bytes(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, names=np.array([name.encode() for name in "aöcd"]))
    assert read_table(tmp_path / "data.npz").names == ("a", "ö", "c", "d")


@pytest.mark.parametrize("order", ["<", ">"])
def test_ids_of_arrays_keep_all_their_digits(order, tmp_path):
    wanted = [2**53 + 1, 2**63 - 1, -7]
    table = np.column_stack([wanted, [1, 2, 3]]).astype(f"{order}i8")
    np.save(tmp_path / "data.npy", table)
    np.savez(tmp_path / "data.npz", X=table)
    for name in ("data.npy", "data.npz"):
        found = read_table(tmp_path / name, id_column="1")
        assert found.ids.tolist() == wanted
        assert found.ids.dtype.isnative
        np.testing.assert_array_equal(found.X, [[1.0], [2.0], [3.0]])


def test_a_column_of_floats_is_whole_only_where_floats_tell_whole_numbers_apart(tmp_path):
    for values, wanted in (
        ([1.0, 2.0], [1, 2]),
        ([1.0, 1e300], [1.0, 1e300]),
        ([1.0, 2.0**53], [1.0, 2.0**53]),
        ([1.0, np.inf], [1.0, np.inf]),
        ([1.0, 0.5], [1.0, 0.5]),
    ):
        np.save(tmp_path / "data.npy", np.column_stack([values, [3.0, 4.0]]))
        found = read_table(tmp_path / "data.npy", id_column="1").ids.tolist()
        assert found == wanted
        assert [type(value) for value in found] == [type(value) for value in wanted]
    (tmp_path / "data.libsvm").write_text("1e300 1:1\n1 1:2\n")
    assert read_table(tmp_path / "data.libsvm").labels.tolist() == [1e300, 1.0]


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npy"])
def test_standard_input_is_recognised_by_its_first_bytes(kind, tmp_path, monkeypatch):
    content = write_numbers(tmp_path / f"data.{kind}", X).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    np.testing.assert_array_equal(read_table("-").X, X)


BAD_TABLES = {
    "text": (
        "id,a,city\nr1,1,Bonn\nr2,2,Oslo\n",
        {},
        r"column 'id' holds 'r1' in row 1, which is no number \(1 more row with text\). The same "
        r"goes for 'city'. If it names the rows, say --id-column id; if it holds true classes, "
        r"--label-column id; to leave it out, choose columns: --columns a\.",
    ),
    "decimal comma": (
        "a;b\n1,5;2\n",
        {},
        r"column 'a' holds '1,5' in row 1.*decimal point: replace the comm",
    ),
    "underscore": ("a,b\n1,2\n1_0,3\n", {}, r"column 'a' holds '1_0' in row 2"),
    "ragged": ("a,b\n1,2\n3\n", {}, r"row 2 has 1 field where 2 are expected.*line 3"),
    "libsvm": ("1 1:2\n1 1:3\n", {}, r"It looks like LIBSVM: say --format libsvm"),
    "infinite": ("a,b\n1,2\n3,inf\n", {}, r"column 'b' holds an infinite value in row 2"),
    "no rows": ("a,b\n", {}, r"holds no rows"),
    "blank": ("\n\n", {}, r"holds no rows"),
    "same name": ("a,a\n1,2\n", {}, r"two columns called 'a'"),
    "all missing": ("a,b\n1,\n2,\n", {"drop_missing": True}, r"every row has a missing value"),
    "empty column": ("a,b\n1,\n2,\n", {"impute": "mean"}, r"'b' has no value at all"),
    "no such column": (
        "ape,bee\n1,2\n",
        {"columns": "bees"},
        r"no column 'bees'. Did you mean 'bee'",
    ),
    "beyond": ("a,b\n1,2\n", {"columns": "0-1"}, r"--columns 0-1 goes beyond .*counted from 1"),
    "twice": ("a,b\n1,2\n", {"columns": "a,1"}, r"column 'a' is asked for twice"),
    "id as feature": ("a,b\n1,2\n", {"columns": "a", "id_column": "a"}, r"'a' is asked for twice"),
    "id as label": (
        "a,b\n1,2\n",
        {"id_column": "a", "label_column": "a"},
        r"'a' is asked for twice",
    ),
    "base": ("a,b\n1,2\n", {"libsvm_base": 0}, r"--libsvm-base is for LIBSVM, not for csv"),
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
    (tmp_path / "data.dat").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"cannot be told from its name. Say --format with one of"):
        read_table(tmp_path / "data.dat")
    assert read_table(tmp_path / "data.dat", format="csv").X.shape == (1, 2)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather", "npy"])
@pytest.mark.parametrize("with_ids", [True, False])
def test_labels_come_back_beside_their_rows(kind, with_ids, tmp_path):
    data = full_frame()
    data.loc[2, "a"] = np.nan
    data.to_csv(tmp_path / "data.csv", index=False)
    table = read_table(
        tmp_path / "data.csv",
        columns=NAMES,
        id_column="id" if with_ids else None,
        drop_missing=True,
    )
    labels = np.arange(59, dtype=np.int32) % 5
    path = tmp_path / f"labels.{kind}"
    write_labels(path, table, labels)
    if kind == "npy":
        assert np.load(path).tolist() == [0, 1, -1, *labels[2:]]
        return
    read = {
        "csv": pd.read_csv,
        "tsv": lambda p: pd.read_csv(p, sep="\t"),
        "parquet": pd.read_parquet,
        "feather": pd.read_feather,
    }[kind]
    found = read(path)
    first = [IDS[index - 1] for index in table.rows] if with_ids else table.rows.tolist()
    assert found.columns.tolist() == ["id" if with_ids else "row", "cluster"]
    assert found.iloc[:, 0].tolist() == first
    assert found["cluster"].tolist() == labels.tolist()
