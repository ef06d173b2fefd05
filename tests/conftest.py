"""Data and oracles that several tests share."""

import gc
import os
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from sketchmeans.datasets import make_rings

LONG = (
    *("reproduce", "dask", "threads", "memory_limits", "selection", "native", "docs", "certify"),
    *("zoo", "neighbors", "cli_help", "many_rows", "dask_proof", "models", "estimators", "bounds"),
    *("native_neighbors", "memory", "landmarks", "disk_files", "proof", "dask_memory", "scales"),
    *("checkpoint_files", "choosing", "files", "guidance", "checkpoints", "fit_properties"),
    *("certificate", "determinism", "neighbor_anchors", "progress", "dask_faults", "layouts"),
    *("benchmarks", "plans", "report_browser", "sketches", "disk", "walks", "sparse_kernels"),
)
"""Files of tests that take longest; a worker that began one last would leave the others idle."""
THREADED = {"test_determinism", "test_engine", "test_threads"}
"""Files whose subject is threads: BLAS has as many in them as it would have anywhere."""
FEW_STARTS = {
    f"test_{name}"
    for name in (
        *("bounds", "categories", "certificate", "cli", "cli_limits", "cli_neighbors"),
        *("cli_outputs", "cli_predict", "degenerate", "disk", "disk_outputs", "disk_sources"),
        *("estimators", "filtered", "fit_properties", "graphs", "landmarks"),
        *("layouts", "metrics", "model_files", "neighbor_anchors", "pipeline_files", "plotting"),
        *("predict_classes", "report", "report_pipelines", "sparse_kernels"),
    )
}
"""Files whose subject is not K-means: where nobody says how many, it has two starts in them."""


DRAWS = os.environ.get("SKETCHMEANS_SEED")
"""Draws for the statistical tests, those that take ``seeds``: one, "7", or several, "0-9".

Then these tests alone are run, each once a draw.
"""


@pytest.fixture
def seeds(request):
    """Return so many seeds: 0, 1, …, or those of a draw that SKETCHMEANS_SEED names."""
    first = 10_000 * getattr(request, "param", 0)
    return lambda count: range(first, first + count)


def pytest_generate_tests(metafunc):
    """Run a statistical test once for each draw that is asked for."""
    if DRAWS is not None and "seeds" in metafunc.fixturenames:
        first, _, last = DRAWS.partition("-")
        draws = range(int(first), int(last or first) + 1)
        names = [f"draw={draw}" for draw in draws]
        metafunc.parametrize("seeds", draws, ids=names, indirect=True)


def pytest_collection_modifyitems(items):
    """Begin with the long files; xdist hands files out in this order, see pyproject.toml."""
    if DRAWS is not None:
        items[:] = [item for item in items if "seeds" in getattr(item, "fixturenames", ())]
    names = [f"test_{name}" for name in LONG]
    items.sort(key=lambda item: names.index(item.path.stem) if item.path.stem in names else 99)


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    gc.disable()


def pytest_collection_finish():
    """Leave what was imported and collected out of later collections of garbage: it stays."""
    gc.enable()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread(request):
    """Keep BLAS to one thread: those of two workers on two cores mostly wait for each other."""
    limit = None if request.path.stem in THREADED else 1
    with threadpool_limits(limit, user_api="blas"):
        yield


@pytest.fixture(scope="module", autouse=True)
def few_starts(request):
    """Ten starts to thirty would be most of the time of fits of few samples."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem in FEW_STARTS:
            for name in ("STARTS", "MOST_STARTS"):
                patch.setattr(f"sketchmeans.estimators.deciding.{name}", 2)
        yield


@pytest.fixture
def untraced():
    """For tests that interrupt at any moment: in a tracer, that would leave its lock taken."""
    before = sys.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    yield
    sys.settrace(before)
    threading.settrace(before)


@pytest.fixture(scope="session")
def digits():
    """Scikit-learn's digits, scaled to [0, 1]; labels; median squared distance."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * X @ X.T
    return X, y, float(np.median(distances[np.triu_indices(len(X), 1)]))


@pytest.fixture
def points():
    return np.random.default_rng(7).normal(size=(300, 6)) + 2.0


@pytest.fixture
def rings(tmp_path):
    """A CSV of two rings with ids and the ring of each point."""
    X, ring = make_rings(300, random_state=0)
    data = pd.DataFrame(X, columns=["x", "y"])
    data.insert(0, "point", [f"p{index}" for index in range(300)])
    data["ring"] = np.where(ring == 0, "inner", "outer")
    data.to_csv(tmp_path / "rings.csv", index=False)
    return tmp_path / "rings.csv"
