"""What is wrong with data on a cluster is the error of a local fit, with the row among all."""

import re

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sketchmeans
from clusters import opened
from sketchmeans import dask as placed

dataframes = pytest.importorskip("dask.dataframe")

N = 60
RAGGED = ((1, 29, 0, 10, 20), -1)
QUICK = {"kernel": "rbf", "method": "nystrom", "n_init": 1, "random_state": 0}


@pytest.fixture(scope="module")
def client():
    with opened(1) as client:
        yield client


@pytest.fixture(scope="module")
def table():
    values = np.random.default_rng(0).normal(size=(N, 3))
    values[30:] += 5
    return pd.DataFrame(values, columns=list("abc"))


def lazily(X):
    """Return a table as a Dask collection of some blocks."""
    if isinstance(X, pd.DataFrame):
        return dataframes.from_pandas(X, npartitions=4)
    return da.from_array(X, chunks=RAGGED)


def local(X, **given):
    return sketchmeans.KernelKMeans(3, **QUICK).fit(X, **given)


def on_cluster(X, **given):
    return placed.KernelKMeans(3, **QUICK).fit(X, **given)


@pytest.fixture(scope="module")
def model(client, table):
    return on_cluster(lazily(table))


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_columns_of_another_order_or_name_are_refused_as_locally(model, table, method):
    fitted = local(table)
    for other in (
        table[["c", "a", "b"]],
        table.rename(columns={"a": "z"}),
        table[["a", "b"]],
        table.assign(d=1.0),
    ):
        with pytest.raises(ValueError, match="feature names should match") as expected:
            getattr(fitted, method)(other)
        with pytest.raises(ValueError, match=re.escape(str(expected.value))):
            getattr(model, method)(lazily(other))


def test_names_are_kept_and_compared_as_scikit_learn_does(model, table):
    labels = local(table).predict(table)
    np.testing.assert_array_equal(model.predict(lazily(table)).compute(), labels)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = model.predict(lazily(table.to_numpy()))
    np.testing.assert_array_equal(found.compute(), labels)
    assert not hasattr(on_cluster(lazily(table.set_axis([0, 1, 2], axis=1))), "feature_names_in_")
    with pytest.raises(TypeError, match="Feature names are only supported if all"):
        on_cluster(lazily(table.set_axis([0, "b", 2], axis=1)))
    with pytest.raises(ValueError, match="1 dimensions"):
        model.predict(lazily(table)["a"])


def test_masked_values_are_refused_by_their_row(client, table):
    X = table.to_numpy()
    masked = np.ma.masked_array(X, np.zeros(X.shape, bool))
    np.testing.assert_array_equal(on_cluster(lazily(masked)).labels_, local(X).labels_)
    masked[47, 2] = np.ma.masked
    with pytest.raises(ValueError, match="X is a masked array with 1 masked value"):
        local(masked)
    with pytest.raises(ValueError, match=r"X is a masked array with .* in row 47, column 2"):
        on_cluster(lazily(masked))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_imaginary_part_is_refused_and_not_dropped(client, table, kind):
    X = table.to_numpy() + 1j
    lazy = lazily(X)
    if kind == "sparse":
        X, lazy = sparse.csr_matrix(X), lazy.map_blocks(sparse.csr_matrix)
    for fit, data in ((local, X), (on_cluster, lazy)):
        with pytest.raises(ValueError, match="Complex data not supported"):
            fit(data)


def with_missing(table):
    return table.assign(a=table["a"].round().astype("Int64").mask(np.arange(N) == 47, pd.NA))


def with_text(table):
    return table.assign(b=["x" if row == 47 else 1.0 for row in range(N)])


def objects(table):
    X = table.to_numpy().astype(object)
    X[47, 2] = "x"
    return X


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_missing, "Column 'a' holds <NA> in row 47"),
        (with_text, "Column 'b' holds 'x' in row 47"),
        (objects, "Column 2 holds 'x' in row 47"),
    ],
)
def test_what_is_no_number_is_named_by_its_row_and_column(client, table, change, said):
    X = change(table)
    for fit, data in ((local, X), (on_cluster, lazily(X))):
        with pytest.raises(ValueError, match=f"{said}: kernels need numbers"):
            fit(data)


def test_the_column_of_what_is_not_finite_is_named_too(client, table):
    holes = table.copy()
    holes.loc[47, "b"] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: the first is in row 47, column 'b'"):
        on_cluster(lazily(holes))
    blocks = lazily(holes.to_numpy()).map_blocks(sparse.csr_matrix)
    with pytest.raises(ValueError, match=r"contains NaN: the first is in row 47, column 1"):
        on_cluster(blocks)


def test_no_columns_are_refused_as_locally(client):
    for fit, data in ((local, np.zeros((10, 0))), (on_cluster, da.zeros((10, 0)))):
        with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\) \(shape=\(10, 0\)"):
            fit(data)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_weights_of_a_score_are_checked_once_and_may_be_zero_in_a_block(model, table):
    X = table.to_numpy()
    fitted, lazy = local(X), lazily(X)
    weights = np.random.default_rng(0).uniform(size=N)
    weights[:35] = 0  # of whole blocks
    for given in (weights, da.from_array(weights, chunks=13), 2.0):
        expected = fitted.score(X, sample_weight=given if np.ndim(given) == 0 else weights)
        assert model.score(lazy, sample_weight=given) == pytest.approx(expected, rel=1e-9)
    for bad, said in (
        (weights[:5], r"sample_weight has shape \(5,\), where \(60,\)"),
        (np.append(weights, 1), r"sample_weight has shape \(61,\), where \(60,\)"),
        (0 * weights, "zero for all samples"),
        (-weights, "is negative"),
    ):
        with pytest.raises(ValueError, match=said):
            model.score(lazy, sample_weight=bad)


def test_labels_and_weights_of_another_shape_are_not_flattened(client, table):
    X = lazily(table.to_numpy())
    with pytest.raises(ValueError, match=r"sample_weight has shape \(30, 2\)"):
        on_cluster(X, sample_weight=da.ones((30, 2)))
    with pytest.raises(ValueError, match=r"labels of shape \(30, 2\)"):
        placed.certify(X, da.zeros((30, 2), dtype=int), kernel="rbf")


def test_complex_weights_are_refused_everywhere(client, table):
    X, weights = table.to_numpy(), np.ones(N) + 1j
    for fit, data, given in (
        (local, X, weights),
        (on_cluster, lazily(X), weights),
        (on_cluster, lazily(X), da.from_array(weights, chunks=7)),
    ):
        with pytest.raises(ValueError, match="sample_weight holds complex numbers"):
            fit(data, sample_weight=given)
