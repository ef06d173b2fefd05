"""The benchmarks themselves, on small sizes: their rivals, their records and their plots."""

import copy
import json

import numpy as np
import pytest
from benchmarks import (
    drawing,
    end_to_end,
    kernel_methods,
    kernel_tables,
    kernels,
    processes,
    record,
    rivals,
)
from benchmarks.data import cores_and_shells, median_rbf, noisy_blobs
from benchmarks.kernel_sets import SETS, scored
from benchmarks.timing import Report, Target, environment
from matplotlib.figure import Figure
from sklearn.metrics import normalized_mutual_info_score

OTHER_CLUSTERS = {"K-means, no kernel", "SpectralClustering", "tslearn KernelKMeans"}
"""Those that cannot tell a core from its shell, or do not find it from their starts."""


def ratio(figure, *, at_most=False):
    return Target("speed", figure, 2.0, at_most=at_most)


@pytest.mark.parametrize(
    ("new", "old", "shown"),
    [
        (ratio(2.0), ratio(2.5), "-20% ◀ WORSE"),
        (ratio(2.4), ratio(2.5), "-4%"),
        (ratio(3.0), ratio(2.5), "+20%"),
        (ratio(3.0, at_most=True), ratio(2.5, at_most=True), "+20% ◀ WORSE"),
        (ratio(2.0, at_most=True), ratio(2.5, at_most=True), "-20%"),
        (ratio(2.0), None, "new"),
    ],
)
def test_a_regression_stands_out_and_noise_does_not(new, old, shown):
    assert record.change(new, old) == shown


def test_a_target_says_whether_it_was_met():
    assert str(ratio(1.5)) == "speed: 1.5 × (target ≥ 2 ×): MISSED"
    assert str(ratio(1.5, at_most=True)) == "speed: 1.5 × (target ≤ 2 ×): met"


@pytest.fixture
def run(capsys):
    passes, whole = Report(), Report(arguments=["--full"])
    rows = [["RBF, float32", "native", 0.1, 1.0], ["RBF, float32", "KeOps", 3.6, 36.0]]
    passes.table(["pass", "by", "seconds", "over native's"], rows)
    passes.conclude([ratio(1.5)])
    cells = [
        {"n": n, "method": method, "seconds": n / 1e3, "peak": 1e3 * n, "nmi": 1.0}
        for n in (1000, 2000)
        for method in end_to_end.METHODS
    ]
    cells.append({"n": 4000, "method": "one pass", "left out": "about 99 s"})
    whole.data["cells"] = cells
    reports = {"native_tile": passes, "end_to_end": whole}
    return record.record_of("command", 61.0, environment(), reports)


def test_a_record_is_kept_as_json_as_a_page_and_as_plots(run, tmp_path):
    record.write(run, tmp_path)
    drawing.draw_all(run, tmp_path)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept == json.loads(json.dumps(run))
    assert {"numpy", "scikit-learn", "sketchmeans"} <= kept["environment"]["versions"].keys()
    page = (tmp_path / "results.md").read_text()
    assert "`python -m benchmarks.end_to_end --full`" in page
    assert "| RBF, float32 | KeOps | 3.6 | 36 |" in page
    assert "- speed: 1.5 × (target ≥ 2 ×): MISSED" in page
    for name in ("passes", "growth"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()


def test_plots_show_every_rival_and_every_method(run):
    figure = Figure()
    drawing.draw_passes(figure, run["benchmarks"]["native_tile"]["tables"][0]["rows"])
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["native", "KeOps"]
    assert [bar.get_width() for bar in axes.patches] == [1.0, 36.0]
    figure = Figure()
    drawing.draw_growth(figure, run["benchmarks"]["end_to_end"]["data"]["cells"])
    assert [line.get_label() for line in figure.axes[0].lines] == list(end_to_end.METHODS)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), [1000, 2000])


def test_the_comparison_has_a_row_a_target_also_for_one_that_was_lost(run):
    kept = copy.deepcopy(run["benchmarks"])
    (row,) = record.comparison(run, run)
    assert row == ["native_tile: speed", "1.5 ×", "≥ 2", "MISSED", "1.5 ×", "+0%"]
    (row,) = record.comparison(run, None)
    assert row[-1] == "new"
    run["benchmarks"]["native_tile"]["targets"].clear()
    (row,) = record.comparison(run, {"benchmarks": kept})
    assert row == ["native_tile: speed", "", "≥ 2", "NOT MEASURED", "1.5 ×", ""]


def test_the_kept_run_is_a_full_one_and_has_every_figure_that_was_promised(tmp_path):
    kept = record.kept_record()
    assert kept is not None
    assert kept["command"] == "python -m benchmarks --full"
    record.write(kept, tmp_path)
    for name in ("results.json", "results.md"):  # neither is edited, nor of another run
        assert (record.KEPT.parent / name).read_text() == (tmp_path / name).read_text()
    promised = (
        "native against NumPy tiles",
        "native against scikit-learn",
        "native against KeOps",
        "share of the roofline",
        "float64 against NumPy tiles",
        "Laplacian against scikit-learn",
        "two threads against one",
        "transform at 2^20 against SciPy's DCT",
        "batch of transforms, two threads",
        "a million samples, width 24: peak of the process",
    )
    names = [name.split(": ", 1)[1] for name in record.targets_in(kept)]
    assert set(promised) <= set(names)
    cells = kept["benchmarks"]["end_to_end"]["data"]["cells"]
    assert any(cell["n"] == end_to_end.MILLION and "seconds" in cell for cell in cells)


def test_the_rivals_of_a_pass_make_the_same_product():
    X = noisy_blobs(700, 5, "float32")
    gamma = median_rbf(X).gamma
    Omega = np.random.default_rng(0).normal(size=(700, 3)).astype("float32")
    squares = np.square(X[:, None].astype(float) - X[None]).sum(axis=2)
    expected = np.exp(-gamma * squares) @ Omega
    tasks = rivals.in_blocks(X, Omega, gamma)
    assert len(tasks) > len(rivals.CHUNKS)
    for name, task in tasks.items():
        np.testing.assert_allclose(task(), expected, rtol=1e-3, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("name", end_to_end.METHODS)
def test_every_method_clusters(name):
    method = end_to_end.METHODS[name]
    if not rivals.installed(method.needs):
        pytest.skip(f"{method.needs} is not installed: it comes with the group bench")
    X, y = cores_and_shells(1000, end_to_end.FEATURES, "float32")
    labels = method.prepare(median_rbf(X, end_to_end.FACTOR).gamma)(X)
    agreement = normalized_mutual_info_score(y, labels)
    assert agreement > (0.6 if name in OTHER_CLUSTERS else 0.9)


def test_objectives_of_labellings_from_one_pass_are_those_of_the_dense_kernel():
    X, y = cores_and_shells(300, end_to_end.FEATURES, "float32")
    random = np.random.default_rng(0).integers(end_to_end.CLUSTERS, size=300)
    gamma = median_rbf(X, end_to_end.FACTOR).gamma
    K = np.exp(-gamma * np.square(X[:, None].astype(float) - X[None]).sum(axis=2))
    expected = []
    for labels in (y, random):
        Z = (labels[:, None] == np.arange(end_to_end.CLUSTERS)).astype(float)
        expected.append(np.trace(K) - ((Z.T @ K @ Z).diagonal() / Z.sum(axis=0)).sum())
    np.testing.assert_allclose(end_to_end.objectives(300, [y, random]), expected, rtol=1e-5)


def test_a_method_ends_where_it_would_take_too_long_or_too_much():
    stop = end_to_end.reason_to_stop
    quadratic = end_to_end.Method(end_to_end.full, 2)
    last = {"n": 1000, "seconds": 1.0}
    assert stop(quadratic, 2000, last, limit=5) is None
    assert stop(quadratic, 3000, last, limit=5) == "about 9 s"
    holder = end_to_end.Method(end_to_end.full, 2, holds_matrix=True)
    assert "GB" in stop(holder, 10_000_000, None, limit=5)
    assert stop(end_to_end.Method(end_to_end.full, 1, needs="nothing_of_that_name"), 9, None, 5)
    assert stop(quadratic, 9, {"n": 1, "left out": "died", "failed": True}, limit=5) == "died"
    free = end_to_end.Method(end_to_end.full, 2, unlimited=True)
    assert stop(free, 3000, last, limit=5) is None


def test_a_fit_is_measured_in_a_process_of_its_own(tmp_path):
    labels = tmp_path / "labels.npy"
    arguments = {"method": "one pass", "n": 500, "labels": str(labels)}
    found = processes.measured("benchmarks.end_to_end:fit", **arguments)
    assert found["nmi"] > 0.9
    assert 0 < found["peak"] < found["whole"]
    assert np.load(labels).shape == (500,)
    with pytest.raises(processes.Failed, match="KeyError"):
        processes.measured("benchmarks.end_to_end:fit", method="none", n=500, labels=str(labels))


@pytest.mark.parametrize("name", SETS)
def test_every_set_for_kernels_has_its_clusters_and_drawn_ones_change_with_the_seed(name):
    if name.startswith("segmentation") and not rivals.installed("river"):
        pytest.skip("river is not installed: it comes with the group dev")
    (X, y, k), (again, labels, _), (other, _, _) = (SETS[name](seed) for seed in (0, 0, 1))
    assert X.shape[0] == len(y)
    np.testing.assert_array_equal(np.unique(y[scored(y)]), np.arange(k))
    np.testing.assert_array_equal(y, labels)
    assert abs(X - again).max() == 0
    assert (abs(X - other).max() == 0) == SETS[name].real
    if not SETS[name].real:
        assert (y[:50] != y[0]).any()  # the order tells nothing


def test_kernels_are_compared_with_rivals_and_a_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    file, fitted = tmp_path / "kernels.json", []

    def counted(function, **arguments):
        fitted.append((arguments["method"], arguments["seeds"]))
        if len(fitted) == 1:
            return processes.measured(function, **arguments)
        assert function == "benchmarks.kernel_methods:fits"  # the others may run here
        return json.loads(json.dumps(kernel_methods.fits(**arguments)))

    monkeypatch.setattr(kernels, "measured", counted)
    run = ["--seeds", "2", "--sets", "iris", "--out", str(file)]
    report = kernels.main([*run, "--kernel", "rbf", "--only", "rbf,KMeans"])
    assert fitted == [("rbf", [0, 1]), ("KMeans", [0, 1])]
    cells = json.loads(file.read_text())["cells"]["iris"]
    for fits in cells.values():
        assert all(0.6 < fits[seed]["nmi"] < 0.9 and fits[seed]["seconds"] > 0 for seed in "01")
        assert fits["0"]["peak"] >= 0
    (row, average) = report.tables[0]["rows"]
    assert row[1:] == [f"{np.mean([fits[s]['nmi'] for s in '01']):.2f}" for fits in cells.values()]
    assert average[0] == "mean"
    assert (
        "| NMI | rbf | best rival | its NMI | ours / best |" in file.with_suffix(".md").read_text()
    )

    first = fitted.copy()
    del cells["rbf"]["1"]
    cells["KMeans"]["0"] = {"failed": "ImportError: while someone was editing"}
    file.write_text(json.dumps({"cells": {"iris": cells}}))
    kernels.main([*run, "--only", "rbf,KMeans", "--resume"])
    kernels.main([*run, "--only", "rbf"])
    assert fitted == [*first, ("rbf", [1]), ("KMeans", [0]), ("rbf", [0, 1])]
    rival = json.loads(file.read_text())["cells"]["iris"]["KMeans"]
    assert "nmi" in rival["0"]
    assert rival["1"] == cells["KMeans"]["1"]
    with pytest.raises(SystemExit, match="--sets 'rings' is not known"):
        kernels.main(["--sets", "rings"])


def test_a_fit_that_failed_counts_as_nothing_found_and_says_why(capsys):
    good = [{"nmi": 0.9, "ari": 0.9, "seconds": 1.0, "peak": 2e6}, {"failed": "ValueError: no"}]
    bad = [{"failed": "ValueError: never"}] * 2
    found = {
        "moons": {"neighbors": good, "rbf": good[:1], "KMeans": bad, "HDBSCAN": good[:1]},
        "wine": {"neighbors": good[:1], "rbf": bad, "KMeans": good[:1], "HDBSCAN": good[:1]},
    }
    assert kernel_tables.means(found, "nmi")["KMeans"] == pytest.approx(0.45)
    report = kernel_tables.show(found, "neighbors", Report())
    moons, wine, average = report.tables[0]["rows"]
    assert moons == ["moons", "0.45", "0.90", "failed", "0.90"]
    assert wine == ["wine", "0.90", "failed", "0.90", "0.90"]
    assert average == ["mean", "0.675", "0.450", "0.450", "–"]
    notes = report.data["notes"]
    assert "KMeans on moons failed, 2 of 2: ValueError: never" in notes
    assert "sets where neighbors loses more than 0.05 to best rival: none" in notes
    assert "sets where neighbors loses more than 0.05 to rbf: moons (0.45, rbf 0.90)" in notes
    assert [target.met for target in report.targets] == [True, True, True, True]
