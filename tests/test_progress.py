"""Progress: on a terminal, without one, and through scikit-learn's callbacks."""

import subprocess
import sys

import numpy as np
import pytest

import shell
from sketchmeans import KernelKMeans
from sketchmeans.engine.run import Run
from sketchmeans.kernels.definitions import Gaussian
from sketchmeans.lowrank.one_pass import one_pass
from sketchmeans.operators.data import DataOperator
from sketchmeans.sketches import make_sketch


@pytest.fixture
def blobs():
    return np.random.default_rng(0).normal(size=(500, 4))


def run_on_a_terminal(code):
    out, shown = shell.on_a_terminal([sys.executable, "-c", code])
    assert out == ""
    return shown


FIT = (
    "import numpy as np; from sketchmeans import KernelKMeans; "
    "KernelKMeans(3, n_refine=1, verbose={verbose}).fit("
    "np.random.default_rng(0).normal(size=(3000, 3)))"
)


def test_verbose_draws_a_bar_on_a_terminal():
    shown = run_on_a_terminal(FIT.format(verbose=1))
    for stage in ("kernel passes", "K-means", "refine"):
        assert stage in shown
    assert "100%" in shown
    assert "━" in shown
    assert run_on_a_terminal(FIT.format(verbose=0)) == ""


def test_verbose_draws_a_line_where_rich_is_not_installed():
    hide = "import sys; sys.modules['rich'] = sys.modules['rich.console'] = None; "
    shown = run_on_a_terminal(hide + FIT.format(verbose=1))
    assert "kernel passes: 100%" in shown
    assert "━" not in shown


def test_verbose_writes_a_line_a_stage_where_there_is_no_terminal():
    result = subprocess.run(
        [sys.executable, "-c", FIT.format(verbose=1)], capture_output=True, text=True, check=True
    )
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == [
        "prepare",
        "kernel passes",
        "embed",
        "K-means",
        "refine",
        "certify",
    ]


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


def test_the_progress_of_several_passes_only_rises():
    seen = []
    run = Run(2, progress=lambda done, total: seen.append(done / total))
    operator = DataOperator(np.random.default_rng(0).normal(size=(900, 3)), Gaussian(0.5))
    one_pass(operator, make_sketch("hadamard", 900, 8, 0), rank=4, n_passes=3, run=run)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert sum(1 / 3 < share < 2 / 3 for share in seen) > 1
