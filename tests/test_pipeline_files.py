"""Pipelines in model files: scikit-learn's steps before ours come back, and predict the same."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from forged_models import DELETE, apply, put_together, take_apart
from shell import sketchmeans as run
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans, load, save
from sketchmeans.models import ModelFileError, read_description
from test_model_files import JUNK, places


def numbers(dtype="float64"):
    X = np.random.default_rng(0).normal([0, 5, -300], [1, 20, 0.1], size=(80, 3))
    X[:40] += [3, 60, 0.3]
    return X.astype(dtype)


def gaps(dtype="float64"):
    X = numbers(dtype)
    X[[3, 50], 1] = X[7, 2] = np.nan
    return X


def words(kind=object):
    random = np.random.default_rng(1)
    columns = [random.choice(options, 80) for options in (["red", "blue"], ["x", "yy", "ö"])]
    return np.column_stack(columns).astype(kind)


def mixed():
    """A frame of text, whole numbers, truths and fractions, each of few values."""
    return pd.DataFrame(
        {
            "color": words()[:, 0],
            "count": np.arange(80) % 3,
            "on": np.arange(80) % 2 == 0,
            "half": np.where(np.arange(80) % 5, 0.5, np.nan),
        }
    )


def absent():
    X = words()
    X[[3, 9], 1] = None
    return X


def ours(**options):
    return KernelKMeans(2, random_state=0, **options)


PIPELINES = {
    "scaled": (lambda: [StandardScaler()], numbers),
    "scaled, not centered": (lambda: [StandardScaler(with_mean=False)], numbers),
    "centered alone": (lambda: [StandardScaler(with_std=False)], numbers),
    "neither": (lambda: [StandardScaler(with_mean=False, with_std=False)], numbers),
    "of sparse rows": (
        lambda: [StandardScaler(with_mean=False)],
        lambda: sparse.csr_matrix(numbers().round() % 3),
    ),
    "single precision": (lambda: [StandardScaler()], lambda: numbers("float32")),
    "filled in": (lambda: [SimpleImputer(), StandardScaler()], gaps),
    "scaled, then filled in": (lambda: [StandardScaler(), SimpleImputer()], gaps),
    "medians": (lambda: [SimpleImputer(strategy="median")], lambda: gaps("float32")),
    "most frequent": (lambda: [SimpleImputer(strategy="most_frequent")], lambda: gaps().round()),
    "a constant": (lambda: [SimpleImputer(strategy="constant", fill_value=7)], gaps),
    "gaps told": (lambda: [SimpleImputer(add_indicator=True)], gaps),
    "another mark": (
        lambda: [SimpleImputer(missing_values=-1)],
        lambda: np.nan_to_num(gaps(), nan=-1),
    ),
    "named": (
        lambda: [SimpleImputer(), StandardScaler()],
        lambda: pd.DataFrame(gaps(), columns=list("abö")),
    ),
    "named throughout": (
        lambda: [SimpleImputer().set_output(transform="pandas"), StandardScaler()],
        lambda: pd.DataFrame(gaps(), columns=list("abc")),
    ),
    "left out": (lambda: ["passthrough", StandardScaler(), None], numbers),
    "encoded": (lambda: [OneHotEncoder()], words),
    "encoded text of a fixed width": (lambda: [OneHotEncoder()], lambda: words("U5")),
    "encoded, dense, scaled": (
        lambda: [OneHotEncoder(sparse_output=False, dtype=np.float32), StandardScaler()],
        words,
    ),
    "encoded, the first left out": (lambda: [OneHotEncoder(drop="first")], mixed),
    "encoded, one of two left out": (lambda: [OneHotEncoder(drop="if_binary")], mixed),
    "encoded, unknown ignored": (lambda: [OneHotEncoder(handle_unknown="ignore")], mixed),
    "encoded in a given order": (
        lambda: [OneHotEncoder(categories=[["red", "none", "blue"], ["yy", "x", "ö"]])],
        words,
    ),
    "encoded with a missing one": (lambda: [OneHotEncoder()], absent),
    "texts filled in": (
        lambda: [SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder()],
        absent,
    ),
    "texts filled in by a word": (
        lambda: [
            SimpleImputer(strategy="constant", fill_value="none", missing_values=None),
            OneHotEncoder(),
        ],
        absent,
    ),
}


def learned(step):
    """All that a step holds, in a form that can be compared."""
    if not hasattr(step, "get_params"):
        return step
    found = {}
    for name, value in vars(step).items():
        value = learned(value) if hasattr(value, "get_params") else value
        if isinstance(value, list):
            value = [(str(one.dtype), one.tolist()) for one in map(np.asarray, value)]
        elif isinstance(value, np.ndarray):
            value = (str(value.dtype), value.tolist())
        found[name] = repr(value)  # NaN is not itself, and prints the same
    return found


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_comes_back_and_predicts_the_same_bits(name, tmp_path):
    make, data = PIPELINES[name]
    X = data()
    pipeline = make_pipeline(*make(), ours()).fit(X)
    save(pipeline, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    assert type(loaded) is Pipeline
    assert loaded.predict(X).tobytes() == pipeline.predict(X).tobytes()
    assert loaded.transform(X).tobytes() == pipeline.transform(X).tobytes()
    for (old, step), (new, again) in zip(pipeline.steps[:-1], loaded.steps[:-1], strict=True):
        assert old == new
        if step not in (None, "passthrough"):
            assert type(again) is type(step)
            if "given order" not in name and "fixed width" not in name:
                assert learned(again) == learned(step)
    save(loaded, tmp_path / "again.skm")
    assert (tmp_path / "again.skm").read_bytes() == (tmp_path / "model.skm").read_bytes()
    loaded.fit(X)  # it is a pipeline like any other


@pytest.mark.parametrize("make", [KernelEmbedding, FullKernelKMeans])
def test_any_of_our_estimators_may_stand_at_the_end(make, tmp_path):
    pipeline = make_pipeline(StandardScaler(), make(2, random_state=0)).fit(numbers())
    save(pipeline, tmp_path / "model.skm")
    method = "transform" if make is KernelEmbedding else "predict"
    wanted = getattr(pipeline, method)(numbers())
    assert getattr(load(tmp_path / "model.skm"), method)(numbers()).tobytes() == wanted.tobytes()


def test_steps_keep_their_names_and_refuse_other_columns(tmp_path):
    frame = pd.DataFrame(numbers(), columns=list("abc"))
    pipeline = Pipeline([("scale it", StandardScaler()), ("cluster it", ours())]).fit(frame)
    save(pipeline, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    assert list(loaded.named_steps) == ["scale it", "cluster it"]
    assert loaded.feature_names_in_.tolist() == list("abc")
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.rename(columns={"a": "z"}))
    described = read_description(tmp_path / "model.skm")["pipeline"]
    assert described["names"] == ["scale it", "cluster it"]


class MyScaler(StandardScaler):
    pass


REFUSED = {
    "another scaler": (lambda: [MinMaxScaler()], numbers, TypeError, r"a MinMaxScaler \(step 'min"),
    "a function": (lambda: [FunctionTransformer()], numbers, TypeError, "a FunctionTransformer"),
    "a subclass": (
        lambda: [MyScaler()],
        numbers,
        TypeError,
        r"a MyScaler \(step 'myscaler'\)",
    ),
    "columns apart": (
        lambda: [ColumnTransformer([("a", StandardScaler(), [0])])],
        numbers,
        TypeError,
        r"a ColumnTransformer .* there can be StandardScaler, SimpleImputer, OneHotEncoder",
    ),
    "infrequent": (
        lambda: [OneHotEncoder(max_categories=2)],
        words,
        ValueError,
        "OneHotEncoder with max_categories cannot be saved",
    ),
    "drop by name": (
        lambda: [OneHotEncoder(drop=["red", "x"])],
        words,
        ValueError,
        r"drop=\['red', 'x'\] of a OneHotEncoder cannot be saved",
    ),
    "large numbers": (
        lambda: [OneHotEncoder()],
        lambda: 2**53 + np.arange(80)[:, None] % 2,
        ValueError,
        "a OneHotEncoder of whole numbers beyond",
    ),
    "filled by bytes": (
        lambda: [SimpleImputer(fill_value=b"x")],
        gaps,
        ValueError,
        r"fill_value=b'x' of a SimpleImputer cannot be saved",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_steps_are_refused_by_name_and_nothing_is_written(name, tmp_path):
    make, data, kind, message = REFUSED[name]
    pipeline = make_pipeline(*make(), ours()).fit(data())
    with pytest.raises(kind, match=message):
        save(pipeline, tmp_path / "model.skm")
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_of_more_categories_than_a_file_holds_is_refused(tmp_path):
    X = np.array([[f"{index}"] * 8 for index in range(70_000)], object)
    encoder = OneHotEncoder(handle_unknown="ignore").fit(X)
    last = ours(kernel="linear").fit(np.eye(4))
    with pytest.raises(ValueError, match="8 columns of up to 70,000 categories are more than a fi"):
        save(make_pipeline(encoder, last), tmp_path / "model.skm")


def test_a_pipeline_that_also_transforms_other_arguments_is_refused(tmp_path):
    pipeline = make_pipeline(StandardScaler(), ours()).fit(numbers())
    pipeline.transform_input = ["sample_weight"]
    with pytest.raises(ValueError, match="a pipeline with transform_input cannot be saved"):
        save(pipeline, tmp_path / "model.skm")


def test_a_pipeline_that_is_not_fitted_or_not_ours_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(make_pipeline(StandardScaler(), ours()), tmp_path / "model.skm")
    with pytest.raises(NotFittedError):
        save(make_pipeline(StandardScaler(), ours().fit(numbers())), tmp_path / "model.skm")
    pipeline = make_pipeline(StandardScaler(), KMeans(2)).fit(numbers())
    with pytest.raises(TypeError, match="a pipeline that ends with a KMeans cannot be saved: only"):
        save(pipeline, tmp_path / "model.skm")


ENCODED, FILLED = "encoded, the first left out", "filled in"


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The bytes of the file of some pipelines."""
    folder = tmp_path_factory.mktemp("pipelines")
    found = {}
    for name in (
        "filled in",
        "gaps told",
        "encoded, the first left out",
        "texts filled in",
        "named",
    ):
        make, data = PIPELINES[name]
        save(make_pipeline(*make(), ours()).fit(data()), folder / "model.skm", overwrite=True)
        found[name] = (folder / "model.skm").read_bytes()
    return found


HEADERS = [
    (FILLED, "pipeline is not described by names", {"pipeline": None}),
    (FILLED, "pipeline is not described by names", {"pipeline.code": "os.system"}),
    (FILLED, "no list of at most 8 steps", {"pipeline.steps": "StandardScaler"}),
    (FILLED, "have not a name each", {"pipeline.names": ["a", "b"]}),
    (FILLED, "have not a name each", {"pipeline.names": ["a", "a", "b"]}),
    (FILLED, "have not a name each", {"pipeline.names": ["a", "b", "\x1b[2J"]}),
    (FILLED, "have not a name each", {"pipeline.names": ["a", "b", "c__d"]}),
    (FILLED, "verbose=1 is neither", {"pipeline.verbose": 1}),
    (FILLED, "'os.system' is not one of StandardScaler", {"pipeline.steps.0.kind": "os.system"}),
    (FILLED, "is not one of StandardScaler", {"pipeline.steps.0": ["StandardScaler"]}),
    (FILLED, "described by other fields", {"pipeline.steps.0.kind": "StandardScaler"}),
    (FILLED, "described by other fields", {"pipeline.steps.1.code": 1}),
    (FILLED, "are not those that are kept", {"pipeline.steps.1.parameters": {}}),
    (FILLED, "with_mean='yes' is neither", {"pipeline.steps.1.parameters.with_mean": "yes"}),
    (FILLED, "strategy='exec' is not one", {"pipeline.steps.0.parameters.strategy": "exec"}),
    (FILLED, "n_features=0 is too small", {"pipeline.steps.0.n_features": 0}),
    (FILLED, "would agree with the header", {"pipeline.steps.0.n_features": 4}),
    (FILLED, "would agree with the header", {"pipeline.steps.1.n_features": 10**9}),
    (FILLED, "output='html' is not one of", {"pipeline.steps.0.output": "html"}),
    (FILLED, "a scaler does not learn", {"pipeline.steps.1.learned": ["pickle"]}),
    (FILLED, "lacks arrays or has too many: step1_", {"pipeline.steps.1.learned": []}),
    (FILLED, "dtype='object_' is not one", {"pipeline.steps.0.dtype": "object_"}),
    (FILLED, "what is no value", {"pipeline.steps.0.missing_values": {"a": 1}}),
    (FILLED, "what is no value", {"pipeline.steps.0.fill_value": [1]}),
    (FILLED, "lacks arrays .*: step0_statistics", {"pipeline.steps.0.of_text": True}),
    (FILLED, "lacks arrays .*: step0_indicator", {"pipeline.steps.0.indicator": True}),
    (FILLED, "lacks arrays .*: step0_names", {"pipeline.steps.0.named": True}),
    (ENCODED, "does not say of 4 columns", {"pipeline.steps.0.counts": [2]}),
    (ENCODED, "categories are not of type", {"pipeline.steps.0.dtypes.0": "V8"}),
    (ENCODED, "counts=0 is too small", {"pipeline.steps.0.counts.0": 0}),
    (ENCODED, "would agree with the header", {"pipeline.steps.0.counts.0": 3}),
    (ENCODED, "are more than a file holds", {"pipeline.steps.0.counts.0": 10**9}),
    (ENCODED, "is no missing category", {"pipeline.steps.0.missing.0": "null"}),
    (ENCODED, "type int64 cannot be missing", {"pipeline.steps.0.missing.1": "nan"}),
    (ENCODED, "dtype='object' is not one of", {"pipeline.steps.0.dtype": "object"}),
    (ENCODED, "drop='last' is not one of", {"pipeline.steps.0.parameters.drop": "last"}),
    (ENCODED, "chosen=2 is neither", {"pipeline.steps.0.chosen": 2}),
]
ARRAYS = [
    (FILLED, "step1_scale_", "<f8", 0.0, "scale_ holds 0, and no finite number of at least"),
    (FILLED, "step1_mean_", "<f8", np.nan, "mean_ holds nan"),
    (FILLED, "step0_statistics", "<f8", np.inf, "statistics holds inf"),
    ("gaps told", "step0_indicator", "<i8", 3, "indicator holds 3, and no finite number from 0"),
    (ENCODED, "step0_numbers", "<f8", np.nan, "numbers holds nan"),
    (ENCODED, "step0_numbers", "<f8", 0.5, "categories of type int64 are none"),
    (ENCODED, "step0_numbers", "<f8", 1.0, "has a category twice"),
    (ENCODED, "step0_categories_ends", "<i8", -1, "categories do not end one after the other"),
    ("named", "step0_names_ends", "<i8", 99, "names do not end one after the other"),
]


def change(header, changes):
    """As ``apply``, where a step of a path may be the number of an element."""
    for path, value in changes.items():
        target = header
        *steps, last = path.split(".")
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        key = int(last) if last.isdigit() else last
        target[key] = value


@pytest.mark.parametrize(("name", "message", "changes"), HEADERS, ids=[str(h[2]) for h in HEADERS])
def test_a_forged_description_of_a_pipeline_is_refused(name, message, changes, contents, tmp_path):
    header, parts = take_apart(contents[name])
    change(header, changes)
    (tmp_path / "model.skm").write_bytes(put_together(header, parts))
    with pytest.raises(ModelFileError, match=message) as caught:
        load(tmp_path / "model.skm")
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(("name", "array", "dtype", "value", "message"), ARRAYS)
def test_forged_numbers_of_a_pipeline_are_refused(
    name, array, dtype, value, message, contents, tmp_path
):
    header, parts = take_apart(contents[name])
    forged = np.frombuffer(parts[array], dtype).copy()
    forged[0] = value
    if value == 1.0 and array == "step0_numbers":
        forged[1] = value
    parts[array] = forged.tobytes()
    (tmp_path / "model.skm").write_bytes(put_together(header, parts))
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model.skm")


def test_any_forgery_of_a_pipeline_is_refused_or_can_be_used(contents, tmp_path):
    random = np.random.default_rng(2)
    path, loaded, count = tmp_path / "forged.skm", 0, 300
    for index in range(count):
        name = list(contents)[index % len(contents)]
        header, parts = take_apart(contents[name])
        if index % 2:
            chosen = list(places(header["pipeline"]))
            value, key = chosen[random.integers(len(chosen))]
            value[key] = JUNK[random.integers(len(JUNK))]
        else:
            array = [key for key in parts if key.startswith("step") and parts[key]]
            array = array[random.integers(len(array))]
            changed = bytearray(parts[array])
            changed[random.integers(len(changed))] = random.integers(256)
            parts[array] = bytes(changed)
        path.write_bytes(put_together(header, parts))
        try:
            model = load(path)
        except ModelFileError:
            continue
        loaded += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.predict(PIPELINES[name][1]())
            except (ValueError, TypeError):
                continue
    assert 20 < loaded < count - 50


PREPARED = [
    ("libsvm_base=2 is neither 0 nor 1", {"libsvm_base": 2}),
    ("libsvm_base=True is neither", {"libsvm_base": True}),
    ("not described by first and count", {"encoded": [0, 2]}),
    ("is no list of numbers", {"encoded": {"first": 0, "count": [2]}}),
    ("is no list of numbers", {"encoded": {"first": [], "count": []}}),
    ("a first feature each and a number", {"encoded": {"first": [0], "count": [1, 1]}}),
    ("overlap, or go beyond", {"encoded": {"first": [0, 1], "count": [2, 2]}}),
    ("overlap, or go beyond", {"encoded": {"first": [4], "count": [2]}}),
    ("first=-1 is too small", {"encoded": {"first": [-1], "count": [2]}}),
    ("count=0 is too small", {"encoded": {"first": [0], "count": [0]}}),
    ("would agree with the header", {"encoded": {"first": [0], "count": [3]}}),
    ("lacks arrays .*: encoded_columns_ends", {"encoded": DELETE}),
]


@pytest.mark.parametrize(("message", "changes"), PREPARED, ids=range(len(PREPARED)))
def test_a_forged_preparation_is_refused(message, changes, tmp_path):
    model = ours().fit(np.column_stack([numbers(), numbers()[:, :2] > 0]))
    model.encoded_columns_, model.libsvm_base_ = ((3, "c", ("x", "y")),), 1
    save(model, tmp_path / "model.skm")
    assert load(tmp_path / "model.skm").encoded_columns_ == model.encoded_columns_
    header, parts = take_apart((tmp_path / "model.skm").read_bytes())
    apply(header, changes)
    (tmp_path / "model.skm").write_bytes(put_together(header, parts))
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "model.skm")


def test_the_command_line_predicts_by_a_pipeline_and_describes_it(tmp_path):
    frame = pd.DataFrame(gaps(), columns=list("abc"))
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), ours()).fit(frame)
    save(pipeline, tmp_path / "model.skm")
    frame.assign(other="text")[["c", "other", "b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    shown = run("predict", tmp_path / "model.skm", tmp_path / "new.csv")
    labels = [int(line.split(",")[1]) for line in shown.stdout.splitlines()[1:]]
    assert labels == pipeline.predict(frame).tolist()
    assert "Warning" not in shown.stderr
    shown = run("info", tmp_path / "model.skm").stdout
    assert "Pipeline: SimpleImputer, then StandardScaler, then KernelKMeans." in shown
    found = json.loads(run("info", tmp_path / "model.skm", "--json").stdout)
    assert [step["kind"] for step in found["pipeline"]["steps"]] == [
        "SimpleImputer",
        "StandardScaler",
    ]
    save(make_pipeline(OneHotEncoder(), ours()).fit(words()), tmp_path / "words.skm")
    shown = run("predict", tmp_path / "words.skm", tmp_path / "new.csv", code=1).stderr
    assert re.search("a pipeline whose OneHotEncoder takes text.*Predict in Python", shown)


def test_a_pipeline_of_more_columns_than_a_header_describes_is_refused(tmp_path, monkeypatch):
    pipeline = make_pipeline(OneHotEncoder(), ours()).fit(words())
    save(pipeline, tmp_path / "model.skm")
    monkeypatch.setattr("sketchmeans.models.saving.MOST_DESCRIBED", 900)
    with pytest.raises(ValueError, match=r"its description takes .* characters, and a file has"):
        save(pipeline, tmp_path / "other.skm")
    monkeypatch.setattr("sketchmeans.models.encoders.MOST_COLUMNS", 1)
    with pytest.raises(ValueError, match="2 columns of up to 3 categories are more than a file ho"):
        load(tmp_path / "model.skm")
