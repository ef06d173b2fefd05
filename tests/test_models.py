"""Models that are saved and loaded: the same predictions, in another process, bit for bit."""

import io
import itertools
import json
import os
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oracles import EXAMPLES, dense_kernel
from sketchmeans import ColumnStream, FullKernelKMeans, KernelEmbedding, KernelKMeans, load, save
from sketchmeans.estimators.parts import parts_of, put_together
from sketchmeans.kernels import KERNELS
from sketchmeans.lowrank import METHODS, IndefiniteKernelWarning
from sketchmeans.models import read_description
from sketchmeans.operators import DataOperator, NeighborPoints

N, P = 90, 6
OTHER_TYPES = {"numpy.dtype", "scipy.sparse._csr.csr_matrix"}
MAKERS = {"dense": np.asarray, "sparse": sparse.csr_matrix}


def table(dtype="float64", make="dense"):
    """Three blobs in six dimensions, a third of the numbers zero."""
    random = np.random.default_rng(5)
    X = random.normal(size=(N, P)) + 2 * random.integers(0, 3, N)[:, None]
    X[np.abs(X) < 0.4] = 0
    return MAKERS[make](X.astype(dtype))


def kernel_matrix(dtype="float64", make="dense"):
    K = dense_kernel(DataOperator(table(), EXAMPLES["rbf"])).astype(dtype)
    return MAKERS[make](K)


def given(kernel, dtype, make):
    if kernel.startswith("table 2^"):
        return table(dtype, make) * 2.0 ** int(kernel.removeprefix("table 2^"))
    return (kernel_matrix if kernel == "precomputed" else table)(dtype, make)


def cases():
    """Every kernel × method × dense or sparse × precision; the other options take turns."""
    product = itertools.product([*KERNELS, "precomputed"], METHODS, MAKERS, ["float32", "float64"])
    for index, (kernel, method, make, dtype) in enumerate(product):
        weighted = index % 3 == 0
        options = {"kernel": kernel, "method": method, "rank": 5, "n_init": 1, "random_state": 0}
        options["n_refine"] = (index // 2) % 3
        if kernel in ("polynomial", "sigmoid"):
            options["gamma"] = 0.001 if kernel == "sigmoid" else "scale"
        if "n_passes" in METHODS[method].reads:
            options["n_passes"] = 1 + weighted
        yield KernelKMeans(3, **options), kernel, dtype, make, weighted
    for kernel, make, dtype in itertools.product(
        [*KERNELS, "precomputed"], MAKERS, ["float32", "float64"]
    ):
        gamma = {"gamma": 0.001} if kernel == "sigmoid" else {}
        embedding = KernelEmbedding(4, kernel=kernel, random_state=1, **gamma)
        yield embedding, kernel, dtype, make, dtype == "float32"
        full = FullKernelKMeans(3, kernel=kernel, n_init=1, random_state=1, **gamma)
        yield full, kernel, dtype, make, make == "sparse"
    for options in (
        {"truncation": "early"},
        {"method": "nystrom", "truncation": "early"},
        {"method": "nystrom", "sketch": "kmeans", "n_refine": 1},
        {"rank": 0.6},
        {"rank": 0.6, "method": "greedy-cholesky"},
        {"precision": "float32"},
        {"kernel": "linear", "precision": "float32"},
        {"sketch": "gaussian", "n_passes": 3},
    ):
        for make in MAKERS:
            options = {"kernel": "rbf", "random_state": 2} | options
            yield KernelKMeans(3, **options), "", "float64", make, False


def neighbor_cases():
    """Every metric × dense or sparse × precision × weights × refined or not, and other anchors."""
    product = itertools.product(["euclidean", "cosine"], MAKERS, ["float32", "float64"], [0, 2])
    for index, (metric, make, dtype, refine) in enumerate(product):
        for weighted in (False, True):
            # All samples are anchors, sparse ones where the data are; some are; the default.
            some = [{"n_anchors": N}, {"n_anchors": 12, "n_neighbors": 3, "n_graphs": 2}, {}]
            params = {"metric": metric, **some[(index + weighted) % 3]}
            options = {"kernel": "neighbors", "kernel_params": params, "random_state": 0}
            yield KernelKMeans(3, n_refine=refine, **options), "", dtype, make, weighted
            if not refine:
                yield KernelEmbedding(4, **options), "", dtype, make, weighted
    for exponent in (-300, 100):  # far from one: the frame scales
        options = {"kernel": "neighbors", "random_state": 3}
        yield KernelKMeans(3, **options), f"table 2^{exponent}", "float64", "dense", False
        yield KernelKMeans(3, **options), f"table 2^{exponent}", "float64", "sparse", False


def answers(model, X):
    """Everything that a model says of points, as bytes."""
    said = []
    if not isinstance(model, KernelEmbedding):
        said += [model.predict(X), np.float64(model.score(X))]
        said.append(np.float64(model.score(X, sample_weight=np.arange(1.0, N + 1))))
    if not isinstance(model, FullKernelKMeans):
        said.append(model.transform(X))
    if not isinstance(model._new_points, DataOperator | NeighborPoints):
        return [part.tobytes().hex() for part in said]
    far = X[:20] * 1.5  # points that were not in the training data
    said.append((model.predict if hasattr(model, "predict") else model.transform)(far))
    return [part.tobytes().hex() for part in said]


def answer_all(folder):
    """Load every model of a folder and print what it says; run in a process of its own."""
    with open(os.path.join(folder, "cases.json")) as file:
        listed = json.load(file)
    said = {}
    for name, data in listed.items():
        model = load(os.path.join(folder, name))
        said[name] = answers(model, given(*data))
    print(json.dumps(said))


def in_another_process(code, **environment):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=os.path.dirname(__file__),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.filterwarnings("ignore::sketchmeans.lowrank.IndefiniteKernelWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_says_the_same_in_another_process_bit_for_bit(tmp_path):
    expected, listed = {}, {}
    weights = np.arange(N) % 3 + 0.5
    every = itertools.chain(cases(), neighbor_cases())
    for index, (model, kernel, dtype, make, weighted) in enumerate(every):
        X = given(kernel, dtype, make)
        model.fit(X, sample_weight=weights if weighted else None)
        name = f"{index}.skm"
        save(model, tmp_path / name)
        expected[name], listed[name] = answers(model, X), [kernel, dtype, make]
    (tmp_path / "cases.json").write_text(json.dumps(listed))
    said = in_another_process(f"import test_models as t; t.answer_all({str(tmp_path)!r})")
    assert len(expected) > 200
    assert [name for name in expected if said[name] != expected[name]] == []


def test_sets_of_sparse_and_of_dense_anchors_stand_in_one_file(tmp_path):
    """Of ten frequent rows and a rare one: ten anchors are rows where the rare one is not drawn."""
    X = np.tile(np.arange(20.0).reshape(10, 2) ** 1.5, (600, 1))
    X[77] = 500
    X = sparse.csr_matrix(X)
    params = {"n_anchors": 10, "n_neighbors": 3, "n_graphs": 12}
    model = KernelKMeans(3, kernel="neighbors", kernel_params=params, random_state=0).fit(X)
    save(model, tmp_path / "model.skm")
    described = read_description(tmp_path / "model.skm")["new_points"]
    assert set(described["sparse"]) == {True, False}
    loaded = load(tmp_path / "model.skm")
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()
    assert loaded.predict(X[:99] * 0.9).tolist() == model.predict(X[:99] * 0.9).tolist()
    assert loaded.score(X) == model.score(X)


def test_a_model_with_more_sets_of_anchors_than_a_file_holds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.models.anchors.MOST_GRAPHS", 3)
    model = KernelKMeans(3, kernel="neighbors", kernel_params={"n_graphs": 4}).fit(table())
    with pytest.raises(ValueError, match=r"has 4 sets of anchors, .* at most 3\. Lower n_graphs"):
        save(model, tmp_path / "model.skm")
    assert list(tmp_path.iterdir()) == []


def everything(model):
    """All attributes of an estimator, in a form that can be compared."""
    found = {}
    for name, value in vars(model).items():
        if name in ("_new_points", "_samples", "_centroids"):
            value = type(value).__name__
        elif isinstance(value, np.ndarray):
            value = (value.dtype, value.shape, value.tolist())
        found[name] = value
    return found


BY_NEIGHBORS = {"kernel": "neighbors", "kernel_params": {"n_neighbors": 4, "metric": "cosine"}}


@pytest.mark.parametrize("make", [KernelKMeans, FullKernelKMeans, KernelEmbedding])
@pytest.mark.parametrize("options", [{}, {"n_refine": 1}, BY_NEIGHBORS], ids=str)
def test_every_attribute_comes_back(tmp_path, make, options):
    if make is not KernelKMeans:
        options = {}
    names = ["a", "b", "größe", "<script>", "", "\ud800"]
    X = pd.DataFrame(table(), columns=pd.Index(names, dtype=object))
    model = make(3, n_jobs=2, memory_limit="2GB", random_state=np.int64(7), **options).fit(X)
    save(model, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    assert type(loaded) is make
    assert everything(loaded) == everything(model)
    assert loaded.feature_names_in_.tolist() == names
    if make is not KernelEmbedding:
        assert str(loaded.certificate_) == str(model.certificate_)
    again = loaded.fit(X)  # a loaded model is an estimator like any other
    np.testing.assert_array_equal(
        getattr(again, "labels_", again.stats_["passes"]),
        getattr(model, "labels_", model.stats_["passes"]),
    )


@pytest.mark.parametrize("options", [{}, {"n_refine": 1}, BY_NEIGHBORS], ids=str)
@pytest.mark.parametrize("make", [KernelKMeans, FullKernelKMeans, KernelEmbedding])
def test_a_model_that_is_taken_apart_and_put_together_is_the_same(make, options):
    X = table()
    model = make(3, random_state=0, **(options if make is KernelKMeans else {})).fit(X)
    if make is KernelEmbedding:
        model.set_output(transform="pandas")
    again = put_together(make, model.get_params(), parts_of(model))
    assert everything(again) == everything(model)
    if make is KernelEmbedding:
        pd.testing.assert_frame_equal(again.transform(X), model.transform(X))
    else:
        assert answers(again, X) == answers(model, X)


def test_names_and_the_kind_of_output_are_as_before(tmp_path):
    X = pd.DataFrame(table(), columns=list("abcdef"))
    model = KernelEmbedding(2, random_state=0).set_output(transform="pandas").fit(X)
    save(model, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    pd.testing.assert_frame_equal(loaded.transform(X), model.transform(X))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.transform(X.rename(columns={"a": "z"}))


def test_how_columns_were_standardized_comes_back_and_must_make_sense(tmp_path):
    X = table()
    model = KernelKMeans(3, random_state=0, kernel="rbf").fit(X)
    model.standard_center_, model.standard_scale_ = X.mean(axis=0), X.std(axis=0)
    save(model, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    np.testing.assert_array_equal(loaded.standard_center_, model.standard_center_)
    np.testing.assert_array_equal(loaded.standard_scale_, model.standard_scale_)
    assert read_description(tmp_path / "model.skm")["standardized"]
    model.standard_scale_ = np.zeros(6)
    save(model, tmp_path / "model.skm", overwrite=True)
    with pytest.raises(ValueError, match="standard_scale_"):
        load(tmp_path / "model.skm")
    model.standard_scale_ = np.ones(5)
    with pytest.raises(ValueError, match="standard_scale_ has shape"):
        save(model, tmp_path / "model.skm", overwrite=True)


def test_what_was_filled_in_comes_back_and_must_make_sense(tmp_path):
    path, model = tmp_path / "model.skm", KernelKMeans(3, random_state=0, kernel="rbf").fit(table())
    model.fill_values_ = np.arange(6.0)
    save(model, path)
    assert path.read_bytes()[8] == 5  # older versions say that a newer one is needed
    np.testing.assert_array_equal(load(path).fill_values_, model.fill_values_)
    assert read_description(path)["imputed"]
    model.fill_values_ = np.full(6, np.nan)
    save(model, path, overwrite=True)
    with pytest.raises(ValueError, match="fill_values_ holds nan"):
        load(path)
    model.fill_values_ = np.ones(5)
    with pytest.raises(ValueError, match="fill_values_ has shape"):
        save(model, path, overwrite=True)


def test_a_model_of_a_stream_predicts_from_rows_of_the_kernel(tmp_path):
    K = kernel_matrix()
    stream = ColumnStream(N, width=20, random_state=0)
    stream.add_columns(0, K)
    model = KernelKMeans(3, rank=5, random_state=0).fit(stream)
    save(model, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    np.testing.assert_array_equal(loaded.predict(K[:7]), model.predict(K[:7]))
    with pytest.raises(ValueError, match="expecting 90 features"):
        loaded.predict(table())


def test_the_samples_of_a_refined_model_are_stored_once(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 30))
    model = KernelKMeans(3, rank=3, n_refine=1, n_init=1, random_state=0, kernel="rbf").fit(X)
    save(model, tmp_path / "model.skm")
    assert (tmp_path / "model.skm").stat().st_size < 1.5 * X.nbytes
    loaded = load(tmp_path / "model.skm")
    assert loaded._samples is loaded._new_points
    landmarks = KernelKMeans(
        3, rank=3, method="nystrom", n_init=1, random_state=0, kernel="rbf"
    ).fit(X)
    save(landmarks, tmp_path / "landmarks.skm")
    assert (tmp_path / "landmarks.skm").stat().st_size < 0.3 * X.nbytes


def test_a_matrix_with_wide_indices_comes_back(tmp_path):
    X = table(make="sparse")
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    model = KernelKMeans(3, random_state=0, kernel="rbf").fit(sparse.csr_array(X))
    save(model, tmp_path / "model.skm")
    np.testing.assert_array_equal(
        load(tmp_path / "model.skm").transform(X[:9]), model.transform(X[:9])
    )


def test_a_callable_kernel_cannot_be_saved_and_the_error_says_what_can(tmp_path):
    def kernel(A, B):
        return A @ B.T

    model = KernelKMeans(3, kernel=kernel).fit(table())
    with pytest.raises(
        ValueError, match=r"a model file holds no code\. Fit with a named kernel.*precomputed"
    ):
        save(model, tmp_path / "model.skm")
    with pytest.raises(ValueError, match="holds no code"):
        save(model.set_params(kernel="linear"), tmp_path / "model.skm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.mtrand._rand])
def test_a_generator_is_not_saved_and_that_is_said(tmp_path, state):
    model = KernelKMeans(3, random_state=state, kernel="rbf").fit(table())
    with pytest.warns(UserWarning, match="the loaded model has random_state=None"):
        save(model, tmp_path / "model.skm")
    loaded = load(tmp_path / "model.skm")
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.predict(table()), model.predict(table()))


def test_what_is_no_fitted_estimator_of_ours_is_refused(tmp_path):
    path = tmp_path / "model.skm"
    with pytest.raises(NotFittedError):
        save(KernelKMeans(3, kernel="rbf"), path)
    scaler = StandardScaler().fit(table())
    with pytest.raises(TypeError, match=r"a StandardScaler cannot be saved: only KernelEmbedding,"):
        save(scaler, path)
    with pytest.raises(TypeError, match=r"a pipeline that ends with a StandardScaler cannot be s"):
        save(make_pipeline(scaler), path)
    model = KernelKMeans(3, kernel="rbf").fit(table())
    with pytest.raises(ValueError, match="n_init='x' is not known"):
        save(model.set_params(n_init="x"), path)
    model.set_params(n_init=1).labels_ = model.labels_[:-1]
    with pytest.raises(ValueError, match=r"not as fit left it: its array labels_ has shape"):
        save(model, path)
    model.labels_, model.stats_ = model.predict(table()), {"eta": float("nan")}
    with pytest.raises(ValueError, match="cannot be saved: Out of range float values"):
        save(model, path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "model.skm"
    model = KernelKMeans(3, random_state=0, kernel="rbf").fit(table())
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"exists already.*overwrite=True"):
        save(model, path)
    assert path.read_text() == "precious"
    save(model, path, overwrite=True)
    np.testing.assert_array_equal(load(str(path)).labels_, model.labels_)
    assert [item.name for item in tmp_path.iterdir()] == ["model.skm"]


def test_data_without_any_structure_can_be_saved(tmp_path):
    """One sample, equal samples, a kernel of zeros: every scalar of theirs must be finite."""
    for index, (X, k) in enumerate([(np.ones((1, 2)), 1), (np.ones((9, 2)), 2)]):
        for kernel in ("rbf", "linear", "cosine", "neighbors"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = KernelKMeans(k, kernel=kernel, random_state=0).fit(X)
            path = tmp_path / f"{index}-{kernel}.skm"
            save(model, path)
            np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    zeros = np.zeros((9, 2))
    model = KernelKMeans(1, kernel="linear", random_state=0).fit(zeros)
    save(model, tmp_path / "zeros.skm")
    np.testing.assert_array_equal(load(tmp_path / "zeros.skm").transform(zeros), np.zeros((9, 1)))


MEMORY = """
import json, os, sys
import numpy as np
from sketchmeans import KernelKMeans, load, save
def peak():  # ru_maxrss would begin at the peak of the process that started this one
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(lines["VmHWM"].split()[0])
folder, step = sys.argv[1:]
small, large = os.path.join(folder, "small.skm"), os.path.join(folder, "large.skm")
random = np.random.default_rng(0)
def fit(n):
    return KernelKMeans(
        2, kernel="rbf", rank=20, n_init=1, n_refine=1, max_iter=2, random_state=0
    ).fit(
        random.normal(size=(n, 60)).astype(np.float32))
if step == "save":
    save(fit(500), small)
    model = fit(500)
    # As many samples as it takes to see a copy: predictions of this model are not asked for.
    n = 300_000
    for name in ("labels_", "embedding_"):
        old = getattr(model, name)
        setattr(model, name, np.zeros((n, *old.shape[1:]), old.dtype))
    from sketchmeans.estimators.lloyd import FeatureCentroids
    from sketchmeans.operators import DataOperator
    old = model._centroids
    model._centroids = FeatureCentroids(model.labels_, None, old.sizes, old.squared_norms)
    model._dual = np.ones((n, 25))[:, :20]  # not contiguous
    X = np.ones((n, 60), np.float32)
    model._new_points = model._samples = DataOperator(X, model._new_points.kernel)
    before = peak()
    save(model, large)
else:
    load(small)
    before = peak()
    load(large)
print(json.dumps([peak() - before, os.path.getsize(large)]))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)
def test_saving_takes_a_constant_and_loading_the_size_of_the_file_and_a_constant(tmp_path):
    used = {}
    for step in ("save", "load"):
        out = subprocess.run(
            [sys.executable, "-c", MEMORY, str(tmp_path), step],
            capture_output=True,
            text=True,
            check=True,
        )
        used[step], size = json.loads(out.stdout)
    assert size > 130e6
    assert used["save"] < 12e6
    assert 0.9 * size < used["load"] < size + 12e6


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kernel", [*KERNELS, "neighbors", "precomputed"])
def test_estimators_survive_joblib(kernel, make):
    X = given(kernel, "float64", make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        model = KernelKMeans(3, kernel=kernel, n_refine=1, random_state=0).fit(X)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    loaded = joblib.load(file)
    assert answers(loaded, X) == answers(model, X)
    assert everything(loaded) == everything(model)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kernel", [*KERNELS, "neighbors", "precomputed"])
@pytest.mark.parametrize("estimator", [KernelKMeans, FullKernelKMeans, KernelEmbedding])
def test_estimators_survive_skops(estimator, kernel, make):
    if estimator is FullKernelKMeans and kernel == "neighbors":
        pytest.skip("full Lloyd iterations take no kernel with anchors")
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    X = given(kernel, "float64", make)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        model = estimator(3, kernel=kernel, random_state=0).fit(X)
    stored = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=stored)
    assert {name for name in trusted if not name.startswith("sketchmeans.")} <= OTHER_TYPES
    loaded = skops.loads(stored, trusted=trusted)
    assert answers(loaded, X) == answers(model, X)
