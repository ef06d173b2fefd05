"""What people are told of files and plans that cannot be: the file, the row, and the way out."""

import errno

import numpy as np
import pytest

from sketchmeans import KernelEmbedding, KernelKMeans, plan
from sketchmeans.io import read_table
from sketchmeans.io.room import Room
from test_disk import Recorded, rows


def test_a_plan_refuses_data_as_the_fit_does():
    X = rows(300)
    bad = X.copy()
    bad[200, 3] = np.nan
    for given, options in (
        (X[:, :0], {}),
        (X[:0], {}),
        (X, {"kernel": "precomputed"}),
        (bad, {"kernel": "rbf"}),
        (bad.astype(np.float32), {"kernel": "laplacian"}),
        (np.ma.masked_array(X, X > 3), {}),
        (np.ma.masked_array(X, X > 3), {"kernel": "rbf"}),
        (Recorded(bad), {"kernel": "rbf"}),
        (Recorded(X[:, :0]), {}),
    ):
        model = KernelKMeans(3, random_state=0, **options)
        with pytest.raises(ValueError) as fitted:
            model.fit(given)
        with pytest.raises(ValueError) as planned:
            plan(given, model, measure=False)
        assert str(planned.value) == str(fitted.value)


@pytest.mark.parametrize("row", [0, 70])
def test_a_bad_number_of_new_points_is_named_by_its_row_wherever_it_is(row, tmp_path):
    X = rows(300)
    models = [KernelEmbedding(3, kernel="rbf", random_state=0).fit(X), KernelKMeans(3).fit(X)]
    X = X.copy()  # models may have theirs
    X[row, 2] = np.nan
    np.save(tmp_path / "rows.npy", X)
    for model in models:
        with pytest.raises(ValueError, match=rf"row {row} of X holds NaN in column 2"):
            model.transform(tmp_path / "rows.npy")


def test_a_damaged_page_of_parquet_names_its_file(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({f"c{place}": column for place, column in enumerate(rows(3000).T)})
    path = tmp_path / "rows.parquet"
    parquet.write_table(table, path, use_dictionary=False)
    held = bytearray(path.read_bytes())
    held[4:600] = bytes(596)
    path.write_bytes(held)
    with pytest.raises(ValueError, match=r"rows\.parquet' cannot be read as Parquet: .* write it"):
        KernelKMeans(3).fit(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"rows\.parquet' cannot be read as Parquet: "):
        KernelKMeans(3).fit(path)


class Full:
    """A file on a disk that is full."""

    def write(self, _):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_not_taken_for_a_damaged_file(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000)
    monkeypatch.setattr("sketchmeans.io.room.tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(OSError, match=r"there is no room for the rows of .*rows\.csv in a"):
        read_table(path, room=Room(10, np.empty))


def test_a_refusal_says_what_a_map_takes_without_a_limit(tmp_path):
    np.save(tmp_path / "rows.npy", rows(40_000))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    options = {"kernel_params": {"n_graphs": 1, "n_anchors": 5}, "measure": False}
    with pytest.raises(MemoryError, match="beside the pages of the file, which do not count"):
        plan(X, 3, memory_limit="2MB", **options)


def test_parquet_files_of_a_folder_that_do_not_go_together_are_refused(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    first = {"a": np.arange(9.0), "b": np.arange(9.0)}
    for name, second, said in (
        ("other", {"a": np.arange(9.0), "c": np.arange(9.0)}, r"different columns: \['a', 'c'\]"),
        ("typed", {"a": np.arange(9.0), "b": np.arange(9)}, "have different columns"),
    ):
        (tmp_path / name).mkdir()
        parquet.write_table(pa.table(first), tmp_path / name / "0.parquet")
        parquet.write_table(pa.table(second), tmp_path / name / "1.parquet")
        with pytest.raises(ValueError, match=said):
            KernelKMeans(2).fit(tmp_path / name)
    parquet.write_table(pa.table({"a": [1.0], "word": ["x"]}), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match=r"column 'word' of .* holds string, and kernels need num"):
        KernelKMeans(2).fit(tmp_path / "text.parquet")


def test_slices_that_are_no_rows_are_refused():
    class Odd(Recorded):
        def __getitem__(self, rows):
            return super().__getitem__(rows)[:, :-1]

    with pytest.raises(ValueError, match=r"came as an array of shape .* X\[start:stop\] must give"):
        KernelKMeans(3, random_state=0).fit(Odd(rows(300)))
