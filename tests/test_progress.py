"""Progress: on a terminal, without one, and through scikit-learn's callbacks."""

import io
import itertools
import os
import re
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forked
import shell
from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.engine.run import Run
from sketchmeans.estimators.fitted import predicted
from sketchmeans.estimators.progress import Bar, FitProgress, WholeFit
from sketchmeans.kernels import KERNELS
from sketchmeans.kernels.definitions import Gaussian
from sketchmeans.lowrank import METHODS
from sketchmeans.lowrank.one_pass import one_pass
from sketchmeans.operators.data import DataOperator
from sketchmeans.sketches import make_sketch


@pytest.fixture
def blobs():
    return np.random.default_rng(0).normal(size=(500, 4))


FITS = """
import sys
import numpy as np
from sketchmeans import KernelKMeans
X = np.random.default_rng(0).normal(size=(3000, 3))
for verbose in (0, 1, 1):
    KernelKMeans(3, n_refine=1, verbose=verbose).fit(X)
    sys.stderr.write(chr(0))
    if verbose:
        for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
            sys.modules[name] = None  # as if it were not installed
"""


def test_verbose_draws_a_bar_on_a_terminal_or_a_line_where_rich_is_not_installed():
    out, err = shell.on_a_terminal([sys.executable, "-c", FITS])
    assert out == ""
    silent, bar, line, _ = err.split(chr(0))
    assert silent == ""
    for stage in ("kernel passes", "K-means", "refine"):
        assert stage in bar
    assert "100%" in bar
    assert "━" in bar
    assert "kernel passes: 100%" in line
    assert "━" not in line


def test_verbose_writes_a_line_a_stage_where_there_is_no_terminal(capsys):
    X = np.random.default_rng(0).normal(size=(3000, 3))
    KernelKMeans(3, n_refine=1, verbose=1).fit(X)
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        "prepare",
        "kernel passes",
        "embed",
        "K-means",
        "refine",
        "certify",
    ]


def test_a_line_is_written_when_its_stage_has_ended_though_the_stream_is_buffered():
    held = io.BytesIO()
    bar = Bar(io.TextIOWrapper(io.BufferedWriter(held)))
    bar.show("kernel passes", 1, 1)
    assert held.getvalue().startswith(b"kernel passes: done at ")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_time_left_is_that_of_the_whole_fit(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr("sketchmeans.estimators.progress.time.perf_counter", lambda: next(clock))
    whole = WholeFit({"kernel passes": (10.0, 1), "K-means": (30.0, 1)}, now=0.0)
    assert whole.left("kernel passes", 0.5, 10.0) == 70
    whole.finish("kernel passes")
    assert whole.left("K-means", 0.0, 20.0) == 60
    assert whole.left("K-means", 0.5, 100.0, anew=True) is None  # a checkpoint had that
    assert whole.left("K-means", 0.75, 130.0) == 30
    with FitProgress(KernelKMeans(3, verbose=1), 2) as progress:
        progress.expect({"kernel passes": (10.0, 1), "K-means": (30.0, 1)})
        with progress.stage("kernel passes") as tick:
            tick(1, 2)
    assert re.search(r"kernel passes:  50% (\d+ min )?\d+ s left in all", sys.stderr.getvalue())


def test_what_is_expected_of_a_fit_names_its_stages(blobs, monkeypatch):
    told = []
    monkeypatch.setattr(FitProgress, "expect", lambda self, work: told.append(work))
    KernelKMeans(3, kernel="rbf", method="one-pass", n_refine=2, random_state=0).fit(blobs)
    KernelKMeans(3, n_init=2, random_state=0).fit(blobs)
    KernelEmbedding(3, method="nystrom").fit(blobs)
    stages = ["kernel passes", "K-means", "refine"]
    assert [list(work) for work in told] == [stages, stages, stages[:1]]
    passes, refinement = told[0]["kernel passes"][0], told[0]["refine"][0]
    assert refinement == pytest.approx(2 * passes, rel=0.1)


def test_scikit_learns_callbacks_are_told(blobs):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

    class Listener:
        def __init__(self):
            self.begun, self.ended, self.torn = [], [], 0

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            self.ended.append(context.task_name)

        def teardown(self, estimator, context):
            self.torn += 1

    listener = Listener()
    KernelKMeans(3, random_state=0, kernel="rbf").set_callbacks(listener).fit(blobs)
    stages = ["fit", "prepare", "kernel passes", "embed", "K-means", "certify"]
    assert [name for name in listener.begun if name != "tiles"] == stages
    assert sorted(listener.begun) == sorted(listener.ended)
    assert listener.begun.count("tiles") == 250
    assert listener.torn == 1


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_progress_of_several_passes_only_rises(n_threads):
    seen = []
    run = Run(n_threads, progress=lambda done, total: seen.append(done / total))
    operator = DataOperator(np.random.default_rng(0).normal(size=(900, 3)), Gaussian(0.5))
    one_pass(operator, make_sketch("hadamard", 900, 8, 0), rank=4, n_passes=3, run=run)
    assert seen == sorted(seen)
    assert {1 / 3, 2 / 3, 1} <= set(seen)
    # Of several threads another may do all of a pass while the one that tells waits for its turn.
    assert n_threads > 1 or sum(1 / 3 < share < 2 / 3 for share in seen) > 1


def models():
    """Return every way to predict: kernels, methods, refinement, and a matrix that is given."""
    yield "neighbors", KernelKMeans(3)
    yield "neighbors, not refined", KernelKMeans(3, n_refine=0)
    for kernel, method in itertools.product(KERNELS, METHODS):
        yield f"{kernel}, {method}", KernelKMeans(3, kernel=kernel, method=method)
    for kernel in (*KERNELS, "precomputed"):
        yield f"{kernel}, refined", KernelKMeans(3, kernel=kernel, method="one-pass", n_refine=1)
        yield f"{kernel}, full", FullKernelKMeans(3, kernel=kernel, n_init=1)


@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive semidefinite")
@pytest.mark.parametrize("name", dict(models()))
def test_every_prediction_tells_of_its_rows_and_is_the_same(name):
    model = dict(models())[name]
    X = np.random.default_rng(0).normal(size=(400, 4))
    new = np.random.default_rng(1).normal(size=(9000, 4))
    if model.kernel == "precomputed":
        X, new = X @ X.T, new @ X.T
    model.set_params(random_state=0, n_jobs=1).fit(X)
    seen = []
    labels = predicted(model, new, lambda done, total: seen.append(done / total))
    np.testing.assert_array_equal(labels, model.predict(new))
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with data that every command takes some seconds for, and a model."""
    folder = tmp_path_factory.mktemp("long")
    random = np.random.default_rng(0)
    np.save(folder / "many.npy", random.normal(size=(150_000, 20)))
    np.save(folder / "some.npy", random.normal(size=(9_000, 20)))
    np.save(folder / "more.npy", random.normal(size=(36_000, 20)))  # ten bars a second show some
    options = "-k 5 --kernel rbf --method one-pass --refine 1 --save model.skm --quiet"
    assert shell.here(f"sketchmeans cluster some.npy {options}", folder).returncode == 0
    return folder


def test_predict_counts_its_rows_on_a_terminal_and_nowhere_else(folder):
    command = "sketchmeans predict model.skm more.npy -o labels.npy --force"
    commands = [command, f"{command} --quiet"]
    (out, shown), quiet = forked.several_on_a_terminal(commands, folder)
    assert out == "36,000 rows. Labels: labels.npy\n"
    counts = [int(rows.replace(",", "")) for rows in re.findall(r"([\d,]+) of 36,000 rows", shown)]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert any(0 < count < 36_000 for count in counts)
    assert counts[-1] == 36_000
    assert quiet == ("", "")
    assert shell.here(command, folder).stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        "cluster many.npy -k 5 -o labels.csv",
        "cluster many.npy -k 5 --kernel rbf --method one-pass -o labels.csv",
        "predict model.skm many.npy -o labels.csv",
        "compare some.npy -k 5 --seeds 3",
        "choose many.npy -k 2-6",
    ],
)
def test_ctrl_c_ends_any_command_with_130_and_leaves_no_file(command, folder):
    before = set(os.listdir(folder))
    code, shown = forked.ctrl_c_on_a_terminal(f"sketchmeans {command}", folder)
    assert code == 130, shown
    assert "Interrupted." in shown
    assert "Traceback" not in shown
    assert set(os.listdir(folder)) == before


def test_a_pipeline_tells_of_its_rows_too():
    X = np.random.default_rng(0).normal(size=(400, 4)) * 100
    for steps in ([StandardScaler()], []):
        model = make_pipeline(*steps, KernelKMeans(3, random_state=0, n_jobs=1)).fit(X)
        seen = []
        labels = predicted(model, X, lambda done, total, seen=seen: seen.append(done / total))
        np.testing.assert_array_equal(labels, model.predict(X))
        assert seen[-1] == 1
