"""Samples in their own features: two moons look like two moons, and the pair that tells shows."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.plotting import (
    CertificateDisplay,
    EmbeddingDisplay,
    FeaturesDisplay,
    SpectrumDisplay,
)
from sketchmeans.plotting.given import columns_of
from sketchmeans.plotting.telling import alike, best_pair

mpl.use("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    X, _ = make_moons(400, noise=0.05, random_state=0)
    return X, KernelKMeans(2, random_state=0).fit(X)


def test_two_moons_are_drawn_as_two_moons(moons):
    X, model = moons
    display = FeaturesDisplay.from_estimator(model, X, feature_names=["x", "y"])
    for cluster, scatter in enumerate(display.scatters_):
        np.testing.assert_array_equal(scatter.get_offsets(), X[model.labels_ == cluster])
    assert display.ax_.get_xlabel() == "x"
    assert display.ax_.get_ylabel() == "y"
    assert display.ax_.get_aspect() == 1.0  # one unit is as long up as across
    assert display.ax_.get_title() == "400 samples in 2 clusters"
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == [f"{k}  ({np.sum(model.labels_ == k)})" for k in range(2)]


def test_features_of_other_units_fill_the_frame():
    random = np.random.default_rng(0)
    X = np.column_stack([random.uniform(20, 80, 50), random.uniform(0, 1e5, 50)])
    display = FeaturesDisplay.from_predictions(X, np.arange(50) % 2)
    assert display.ax_.get_aspect() == "auto"
    assert alike(2.0, 1.0)
    assert not alike(1.0, 3.0)


@pytest.mark.parametrize("shape", ["circles", "blobs"])
def test_the_pair_is_that_in_whose_plane_neighbours_share_a_cluster(shape):
    random = np.random.default_rng(0)
    if shape == "circles":  # no single feature tells, and no variance lies between the clusters
        plane, y = make_circles(600, factor=0.4, noise=0.05, random_state=0)
    else:
        plane, y = make_blobs(600, centers=[[0, 0], [0, 6], [6, 0], [6, 6]], random_state=0)
    X = random.normal(size=(600, 8)) * 3
    X[:, [6, 2]] = plane
    rows = np.arange(600)
    assert best_pair(X, y, rows, range(8)) == [2, 6]
    assert best_pair(X * 1e200, y, rows, range(8)) == [2, 6]
    thin = sparse.csr_matrix(X)
    assert FeaturesDisplay.from_predictions(thin, y).feature_names == ["feature 2", "feature 6"]


def test_features_of_two_values_or_of_one_are_no_hindrance():
    y = np.repeat([0, 1], 200)
    X = np.random.default_rng(0).integers(0, 2, (400, 4)).astype(float)
    X[:, 3] = y
    X[:, 0] = 7
    assert best_pair(X, y, np.arange(400), range(4))[1] == 3
    assert best_pair(np.ones((9, 3)), np.arange(9) % 2, np.arange(9), range(3)) == [0, 1]


def test_a_pair_can_be_chosen_by_name_or_by_number(moons):
    X, model = moons
    frame = pd.DataFrame({"cost in $": X[:, 0], "b": X[:, 1], "c": X[:, 0] ** 2})
    by_name = FeaturesDisplay.from_estimator(model, frame, features=["c", "b"])
    assert by_name.feature_names == ["c", "b"]
    assert FeaturesDisplay.from_estimator(model, frame, features=(2, 1)).feature_names == ["c", "b"]
    dollars = FeaturesDisplay.from_estimator(model, frame, features=(0, 1))
    dollars.figure_.canvas.draw()
    assert dollars.ax_.get_xlabel() == "cost in $"
    for wrong in (["c", "d"], (0, 3), (0,), "first", (0, 1, 2)):
        with pytest.raises(ValueError, match=r"must be \"auto\" or two columns of numbers"):
            FeaturesDisplay.from_estimator(model, frame, features=wrong)


def test_one_feature_is_a_strip_a_cluster():
    X, y = make_blobs(90, 1, centers=3, random_state=0)
    display = FeaturesDisplay.from_predictions(X, y)
    for cluster, scatter in enumerate(display.scatters_):
        places = scatter.get_offsets()
        np.testing.assert_array_equal(places[:, 0], X[y == cluster, 0])
        assert np.abs(places[:, 1] - cluster).max() < 0.31
    assert display.ax_.get_ylabel() == "cluster"


def test_of_many_samples_a_seeded_choice_is_drawn(moons):
    X, model = moons
    one, same, other = (
        FeaturesDisplay.from_estimator(model, X, max_points=50, random_state=seed)
        for seed in (0, 0, 1)
    )
    assert one.ax_.get_title() == "400 samples in 2 clusters; 50 of them drawn"
    np.testing.assert_array_equal(one.values, same.values)
    assert not np.array_equal(one.values, other.values)


def test_what_has_no_features_or_no_clusters_is_refused(moons):
    X, model = moons
    with pytest.raises(ValueError, match=r"X has 7 rows, but there are 400 labels.*predict"):
        FeaturesDisplay.from_estimator(model, X[:7])
    with pytest.raises(ValueError, match="KernelEmbedding has no clusters to colour"):
        FeaturesDisplay.from_estimator(KernelEmbedding(2).fit(X), X)
    K = X @ X.T
    given = KernelKMeans(2, kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match="a model of a precomputed kernel has no features"):
        FeaturesDisplay.from_estimator(given, K)
    with pytest.raises(ValueError, match="X has no column of numbers to draw"):
        FeaturesDisplay.from_predictions(np.array([["a"], ["b"]]), [0, 1])


@pytest.fixture(scope="module")
def mixed():
    """A frame with text and gaps, and a Pipeline of all that the issue names."""
    X, y = make_blobs(120, 2, centers=3, random_state=0)
    frame = pd.DataFrame({"height": X[:, 0], "weight": X[:, 1], "town": np.array(list("abc"))[y]})
    frame.loc[5, "height"] = np.nan
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["height", "weight"]),
        (OneHotEncoder(), ["town"]),
    )
    return frame, make_pipeline(prepare, KernelKMeans(3, random_state=0)).fit(frame)


def test_displays_take_a_pipeline(mixed):
    frame, pipeline = mixed
    last = pipeline[-1]
    own = EmbeddingDisplay.from_estimator(last, axes=(1, 2))
    for X in (None, frame):
        display = EmbeddingDisplay.from_estimator(pipeline, X, axes=(1, 2))
        for ours, theirs in zip(display.scatters_, own.scatters_, strict=True):
            np.testing.assert_allclose(ours.get_offsets(), theirs.get_offsets(), atol=1e-9)
    shown = FeaturesDisplay.from_estimator(pipeline, frame)
    assert shown.feature_names == ["height", "weight"]  # text is left out, numbers as they were
    np.testing.assert_array_equal(shown.values, frame[["height", "weight"]].to_numpy())
    shown.figure_.canvas.draw()  # the gap is no point
    values = SpectrumDisplay.from_estimator(pipeline).kept_.get_ydata()
    np.testing.assert_array_equal(values, last.eigenvalues_)
    names = [one.name for one in CertificateDisplay.from_estimator(pipeline, frame).intervals_]
    assert names == ["found", "plain K-means", "best possible"]


def test_full_kernel_k_means_in_a_pipeline_is_drawn_too(moons):
    X, _ = moons
    pipeline = make_pipeline(StandardScaler(), FullKernelKMeans(2, n_init=1, random_state=0))
    pipeline.fit(X)
    alone = EmbeddingDisplay.from_estimator(pipeline[-1], StandardScaler().fit_transform(X))
    piped = EmbeddingDisplay.from_estimator(pipeline, X)
    for ours, theirs in zip(piped.scatters_, alone.scatters_, strict=True):
        np.testing.assert_array_equal(ours.get_offsets(), theirs.get_offsets())


def test_columns_of_text_become_ones_and_zeros_with_their_gaps_kept():
    frame = pd.DataFrame({
        "age": pd.array([30, None, 50], dtype="Int64"),
        "town": ["Ulm", None, "Bern"],
        "member": [True, False, True],
    })  # fmt: skip
    for given in (frame, pl.from_pandas(frame)):
        table = columns_of(given)
        assert table.n_numeric == 2
        assert table.names == [
            "age", "member", "town = (missing)", "town = Bern", "town = Ulm",
        ]  # fmt: skip
        np.testing.assert_array_equal(
            table.X, [[30, 1, 0, 0, 1], [np.nan, 0, 1, 0, 0], [50, 1, 0, 1, 0]]
        )
        (town,) = table.texts
        assert [town.names[code] for code in town.codes] == ["Ulm", "(missing)", "Bern"]
