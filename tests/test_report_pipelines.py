"""Reports of pipelines, and without a command: values as they were, and how to repeat the fit."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from pages import read
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.report import write_report

WINE = load_wine(as_frame=True)


@pytest.fixture(scope="module")
def people():
    """A table as people have it: numbers with a gap, and text."""
    X, y = make_blobs(150, 2, centers=3, random_state=0)
    frame = pd.DataFrame({
        "age": np.round(40 + 5 * X[:, 0]),
        "income": np.round(30_000 + 4_000 * X[:, 1]),
        "town": np.array(["Ulm", "Bern", "Graz"])[y],
    })  # fmt: skip
    frame.loc[7, "income"] = np.nan
    frame.loc[9, "town"] = None
    return frame, y


def mixed(model):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    towns = (OneHotEncoder(), ["town"])
    return make_pipeline(make_column_transformer((numbers, ["age", "income"]), towns), model)


@pytest.mark.parametrize(
    "model", [KernelKMeans(3, random_state=0), FullKernelKMeans(3, n_init=2, random_state=0)]
)
def test_values_are_shown_as_they_were_before_the_pipeline(people, tmp_path, model):
    frame, y = people
    pipeline = mixed(model).fit(frame)
    page = read(write_report(tmp_path / "r.html", pipeline, frame, truth=y))
    picture, labels = page.picture, pipeline[-1].labels_
    assert picture["cluster"] == labels.tolist()
    values = dict(zip(picture["features"], picture["values"], strict=True))
    for name in ("age", "income"):
        shown = np.array(values[name], float)  # None is NaN
        np.testing.assert_array_equal(shown, frame[name].to_numpy())
    (town,) = picture["texts"]
    assert town["name"] == "town"
    told = [town["names"][code] for code in town["of"]]
    assert told == frame["town"].fillna("(missing)").tolist()
    # Text is no axis to begin with, and its ones and zeros stand beside the word no second time.
    assert page.drawn("features")["start"] == [0, 1]
    kept = [picture["features"][place] for place in picture["indicators"]]
    counts = {name: told.count(name) for name in sorted(set(told))}
    assert kept == [f"town = {name}" for name in sorted(counts, key=lambda name: -counts[name])]
    members = page.table("cluster", "sample")
    assert members[0] == [
        "cluster", "sample", "distance", "true label", "town", "age", "income"
    ]  # fmt: skip
    row = next(line for line in members[2:] if line[0].isdigit() and len(line) == 6)
    given = frame.iloc[int(row[0])]
    assert row[3:5] == [given["town"], f"{given['age']:.0f}"]
    assert float(row[5]) == pytest.approx(given["income"], abs=1)
    asked = {line[0]: line[1] for line in page.table("samples")}
    assert asked["features"] == "3 (2 of numbers, 1 of text)"
    assert asked["prepared by"] == (
        "SimpleImputer, StandardScaler, OneHotEncoder to 6 columns; values are shown as they were "
        "before"
    )


def test_profiles_tell_the_share_of_a_text_and_leave_gaps_out(people, tmp_path):
    frame, _ = people
    pipeline = mixed(KernelKMeans(3, random_state=0)).fit(frame)
    page = read(write_report(tmp_path / "r.html", pipeline, frame))
    heat = {row[0]: row[1:] for row in page.table("mean")[1:]}
    labels = pipeline[-1].labels_
    for k in range(3):
        inside = frame[labels == k]
        assert heat["town = Ulm"][k].split()[0] == f"{(inside['town'] == 'Ulm').mean():.0%}"
        assert float(heat["income"][k].split()[0]) == pytest.approx(inside["income"].mean(), abs=1)
    assert float(heat["income"][3]) == pytest.approx(frame["income"].mean(), abs=1)


def test_a_scaled_pipeline_is_not_told_to_standardize_and_an_unscaled_one_is(tmp_path):
    model = KernelKMeans(3, random_state=0)
    for steps, told in (
        ([StandardScaler()], False),
        ([SimpleImputer()], True),
        ([PCA(5)], False),  # somebody has decided on the scales
        ([], True),
    ):
        pipeline = make_pipeline(*steps, model).fit(WINE.data)
        page = read(write_report(tmp_path / "r.html", pipeline, WINE.data, overwrite=True))
        assert ("proline is " in page.text) == told, steps
        assert ("× wider than" in page.text) == told, steps
        heat = {row[0]: row for row in page.table("mean")[1:]}
        assert heat["proline"][4] == f"{WINE.data['proline'].mean():.3g}"


@pytest.mark.parametrize("kind", ["array", "sparse", "polars", "list"])
def test_a_pipeline_takes_tables_of_any_kind(tmp_path, kind):
    frame = WINE.data
    X = {
        "array": frame.to_numpy(),
        "sparse": sparse.csc_matrix(frame.to_numpy()),
        "polars": pl.from_pandas(frame),
        "list": frame.to_numpy().tolist(),
    }[kind]
    pipeline = make_pipeline(StandardScaler(with_mean=False), KernelKMeans(3, random_state=0))
    page = read(write_report(tmp_path / "r.html", pipeline.fit(X), X))
    name = "alcohol" if kind == "polars" else "feature 0"
    values = dict(zip(page.picture["features"], page.picture["values"], strict=True))
    np.testing.assert_allclose(values[name], frame["alcohol"], rtol=1e-4)


def test_without_its_data_a_pipeline_shows_the_embedding_alone(tmp_path):
    pipeline = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(WINE.data)
    page = read(write_report(tmp_path / "r.html", pipeline))
    assert [one["id"] for one in page.picture["pictures"]] == ["embedding"]
    assert "there are no values to show" in page.text
    assert "there is no advice on them" in page.text


def test_a_pipeline_without_clusters_at_its_end_is_refused(tmp_path):
    pipeline = make_pipeline(StandardScaler(), KernelEmbedding(3)).fit(WINE.data)
    with pytest.raises(ValueError, match="KernelEmbedding has no clusters to report"):
        write_report(tmp_path / "r.html", pipeline, WINE.data)
    pipeline = make_pipeline(StandardScaler(), KernelKMeans(3)).fit(WINE.data)
    with pytest.raises(ValueError, match="X has 9 rows, but the model was fitted to 178 samples"):
        write_report(tmp_path / "r.html", pipeline, WINE.data[:9])
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_long_texts_stays_below_two_megabytes_too(tmp_path):
    random = np.random.default_rng(0)
    n = 5000
    columns = {'"' * 300 + str(at): 1e9 - random.normal(size=n) * 10 for at in range(12)}
    words = [f"{'<' * 30}{word}" for word in range(1000)]
    columns |= {"<" * 300 + str(at): random.choice(words, n) for at in range(6)}
    frame = pd.DataFrame(columns)
    prepare = make_column_transformer((StandardScaler(), list(frame.columns[:12])))
    model = KernelKMeans(120, kernel="rbf", n_init=1, max_iter=5, random_state=0)
    pipeline = make_pipeline(prepare, model).fit(frame)
    path = write_report(
        tmp_path / "r.html", pipeline, frame, ids=["<" * 99] * n, truth=random.choice(words, n)
    )
    assert 1_000_000 < path.stat().st_size < 2_000_000


def doubled(X):
    return 2 * X


def test_without_a_command_the_report_tells_how_to_repeat_the_fit_in_python(tmp_path):
    X = WINE.data.to_numpy()
    model = KernelKMeans(3, kernel="rbf", gamma="4*median", random_state=0).fit(X)
    page = read(write_report(tmp_path / "a.html", model, X))
    code = "KernelKMeans(gamma='4*median', kernel='rbf', n_clusters=3, random_state=0).fit(X)"
    assert code in page.text
    again = eval(code, {"KernelKMeans": KernelKMeans, "X": X})  # what it says can be run
    np.testing.assert_array_equal(again.labels_, model.labels_)
    # An object without a name has an address, which would differ from run to run.
    pipeline = make_pipeline(FunctionTransformer(doubled), StandardScaler(), KernelKMeans(3)).fit(X)
    page = read(write_report(tmp_path / "b.html", pipeline, X))
    assert "FunctionTransformer(func=<function doubled>)" in page.text
    K = X @ X.T
    given = KernelKMeans(3, kernel="precomputed", random_state=0).fit(K)
    assert ".fit(K)" in read(write_report(tmp_path / "c.html", given)).text


def test_the_report_needs_no_matplotlib(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np\n"
        "from sketchmeans import KernelKMeans\n"
        "from sketchmeans.report import write_report\n"
        "X = np.random.default_rng(0).normal(size=(50, 3))\n"
        f"write_report({str(tmp_path / 'r.html')!r}, KernelKMeans(2, random_state=0).fit(X), X)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "r.html").exists()
