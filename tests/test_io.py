"""Data files: every format gives the same table; what is wrong with a file is said."""

import io
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy import sparse

from sketchmeans.io import FORMATS, TableData, read_table, write_labels
from tables import CLASSES, IDS, KINDS, NAMES, RANDOM, X, frame, full_frame, write_numbers


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_numbers(kind, tmp_path):
    table = read_table(write_numbers(tmp_path / f"data.{kind}", X))
    assert isinstance(table, TableData)
    # openpyxl writes sixteen digits, as Excel does; a float may need seventeen.
    np.testing.assert_allclose(table.X, X, rtol=1e-15 if kind == "xlsx" else 0)
    assert table.X.dtype == np.float64
    assert table.X.flags.c_contiguous
    np.testing.assert_array_equal(table.rows, np.arange(1, 61))
    assert table.n_dropped == table.n_imputed == 0


def test_every_format_is_among_those_that_are_tested():
    assert {kind.split(".")[0] for kind in KINDS} == set(FORMATS)


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


def test_the_index_that_pandas_writes_is_not_taken_for_a_feature(tmp_path):
    frame().to_csv(tmp_path / "data.csv")
    with pytest.raises(ValueError, match=r"column 1 has no name.*id_column='column 1'"):
        read_table(tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv", id_column="column 1")
    assert list(table.ids[:3]) == ["0", "1", "2"]
    np.testing.assert_array_equal(table.X, X)
    shuffled = frame().set_index(np.arange(1, 61) ** 2)
    shuffled.to_parquet(tmp_path / "data.parquet")
    message = r"column 5 has no name.*id_column='__index_level_0__', or .*columns='a,b,c,d'"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet", id_column="__index_level_0__")
    assert table.ids[:3].tolist() == [1, 4, 9]
    np.testing.assert_array_equal(table.X, X)


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
            r".*drop_missing=True.*impute='mean'",
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
    again = read_table(tmp_path / "data.csv")
    again.standardize(table.center, table.scale)
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
    # Models of rows that were divided alone need no dense rows.
    table = read_table(tmp_path / "data.npz")
    table.standardize(np.zeros(40), np.full(40, 2.0))
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), S.toarray() / 2)


def test_sparse_columns_are_standardized_as_dense_ones_are(tmp_path):
    S = sparse.random(50, 40, 0.05, random_state=0, format="csr", dtype=np.float32)
    sparse.save_npz(tmp_path / "sparse.npz", S)
    np.save(tmp_path / "dense.npy", S.toarray())
    one, other = (
        read_table(tmp_path / name, standardize=True) for name in ("sparse.npz", "dense.npy")
    )
    for name in ("X", "center", "scale"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_sparse_columns_are_filled_in_as_dense_ones_are(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(2, 1, (41, 30)) * (random.random((41, 30)) < np.linspace(0.05, 1, 30))
    S = sparse.csr_matrix(X)
    S.data[random.random(S.nnz) < 0.2] = np.nan
    sparse.save_npz(tmp_path / "sparse.npz", S)
    np.save(tmp_path / "dense.npy", S.toarray())
    for impute in ("mean", "median", 3.5):
        one, other = (
            read_table(tmp_path / name, impute=impute) for name in ("sparse.npz", "dense.npy")
        )
        assert sparse.issparse(one.X)
        assert one.n_imputed == other.n_imputed > 50
        np.testing.assert_allclose(one.fill_values, other.fill_values, rtol=1e-14)
        np.testing.assert_allclose(one.X.toarray(), other.X, rtol=1e-14)


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
    with pytest.raises(ValueError, match="has the index 0, but libsvm_base=1 was said"):
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
