"""The paper's experiments from one command: the files, the figures in them, and their margins."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import shell
from sketchmeans.cli import cli
from sketchmeans.datasets import load_segmentation
from sketchmeans.reproduce import FILES, claims, experiments, reproduce
from sketchmeans.reproduce.theorem import adversarial, check_theorem, gap, partitions
from sketchmeans.reproduce.trials import Contender, Summary, run_trial

COMMAND = [sys.executable, "-m", "sketchmeans", "reproduce"]
KEPT = Path(__file__).parents[1] / "docs" / "reproduction"
"""What ``make reproduce`` left: a hundred trials, twenty of the local kernels."""
pytestmark = pytest.mark.timeout(900)  # the whole of it runs once, beside other tests


def halved(draw):
    def half(seed):
        X, y = draw(seed)
        return X[::2], y[::2]

    return half


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """What a run of two trials leaves, by the command line; of the local kernels, half the rows."""
    out = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # Python shows no such warnings of modules, pytest does: Matplotlib 3.8 has some.
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in ("digits", "scaled_segmentation"):
            patch.setattr(experiments, name, halved(getattr(experiments, name)))
        command = "sketchmeans reproduce --quick --trials 2 --seed 0 --out ."
        done = shell.here(command, out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "Written: README.md"
    assert done.stderr == ""  # progress is for terminals
    return out


@pytest.fixture(params=["fresh", "kept"])
def folder(request):
    """A run of today with few trials, and the kept one with many: the same must hold for both."""
    return KEPT if request.param == "kept" else request.getfixturevalue("fresh")


def results(folder, name):
    return json.loads((folder / f"{name}.json").read_text())["results"]


def rows(folder):
    return {row["method"]: row for row in results(folder, "table-1")}


def margin(summary):
    """Three standard errors of a mean."""
    return 3 * summary["sd"] / math.sqrt(summary["trials"])


def test_every_file_is_there_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_figures_are_pictures_with_something_in_them(folder):
    from matplotlib.image import imread

    for path in folder.glob("*.png"):
        pixels = imread(path)
        assert min(pixels.shape[:2]) > 500
        assert pixels[..., :3].std() > 0.05, f"{path.name} is blank"


def test_figures_show_every_method_in_every_panel(folder):
    both = ["exact decomposition", "one-pass, late"]
    expected = {
        "figure-1": ["centroids"],
        "figure-3": [
            *2 * (2 * both + ["Nyström, early", "Nyström, late", "RPCholesky"]),
            *2 * ["one-pass, early, as printed", "one-pass, late, two passes"],
            "one-pass, late, one refinement",
            "full kernel K-means",
        ],
        "local-kernels": 4
        * ["exact decomposition", "full kernel K-means", *experiments.LOCAL_CURVES],
    }
    for name, methods in expected.items():
        drawing = ElementTree.parse(folder / f"{name}.svg").getroot()
        drawn = [group.get("id") for group in drawing.iter() if group.get("id") in set(methods)]
        assert sorted(drawn) == sorted(methods), name
    for name, panels in (("figure-1", 1), ("figure-2", 6)):  # points are pictures in the drawing
        drawing = ElementTree.parse(folder / f"{name}.svg").getroot()
        assert sum(element.tag.endswith("}image") for element in drawing.iter()) == panels


def test_the_page_shows_every_figure_and_every_row_of_the_paper(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")
    for name in ("figure-1", "figure-2", "figure-3", "local-kernels"):
        assert f"]({name}.png)" in page
    few, many = "--quick --trials 2 --seed 0", "--trials 100 --seed 0"
    assert f"sketchmeans reproduce {many if folder == KEPT else few}" in page
    table = page[page.index("## Table 1") : page.index("## Figure 3")]
    for method, printed in (
        ("exact decomposition", ["0.40", "0.99"]),
        ("one-pass, late", ["0.40", "0.99"]),
        ("Nyström, early, m = 20", ["0.56", "0.74"]),
        ("Nyström, early, m = 100", ["0.44", "0.75"]),
        ("K-means, no kernel", ["0.53"]),
    ):
        line = next(line for line in table.splitlines() if line.startswith(f"| {method}"))
        assert re.findall(r"\| (0\.\d\d) +(?=\|)", line) == printed


def test_table_1_has_the_figures_of_the_paper(folder):
    found = rows(folder)
    exact = found["exact decomposition"]
    assert exact["accuracy"]["trials"] == (100 if folder == KEPT else 2)
    assert abs(exact["error"]["mean"] - 0.40) <= 0.01
    assert exact["accuracy"]["mean"] >= 0.97
    ours = found["one-pass, late (r' = 12)"]
    assert abs(ours["error"]["mean"] - exact["error"]["mean"]) <= 0.005
    assert ours["accuracy"]["mean"] >= exact["accuracy"]["mean"] - 0.03
    plain = found["K-means, no kernel"]["accuracy"]
    assert 0.50 <= plain["mean"] <= 0.55 + margin(plain)
    for m in (20, 100):
        rival = found[f"Nyström, early, m = {m}"]
        assert rival["error"]["mean"] > ours["error"]["mean"] + 0.005
        if folder == KEPT:  # a mean over two draws says little of it
            assert rival["accuracy"]["mean"] < ours["accuracy"]["mean"] - 0.01


def test_the_printed_algorithm_misses_the_table_and_late_nystrom_does_not(folder):
    found = rows(folder)
    exact = found["exact decomposition"]
    printed = found["one-pass, early (r' = 12), as printed"]
    assert printed["error"]["mean"] > exact["error"]["mean"] + 0.01
    for m in (12, 20, 100):
        late = found[f"Nyström, late, m = {m}"]
        assert late["error"]["mean"] == pytest.approx(exact["error"]["mean"], abs=1e-6)


def test_figure_3_has_the_order_of_the_paper(folder):
    figure = results(folder, "figure-3")
    lines = {row["method"]: row for row in figure["lines"]}
    full = lines["full kernel K-means"]["accuracy"]
    assert abs(full["mean"] - 0.46) <= 0.02 + margin(full)
    fifty = next(row for row in figure["curves"]["Nyström, early"] if row["numbers"] == 50)
    ours = lines["one-pass, late"]
    assert ours["error"]["mean"] < fifty["error"]["mean"]
    assert ours["accuracy"]["mean"] > fifty["accuracy"]["mean"]
    best = lines["exact decomposition"]["error"]["mean"]
    approximations = [
        *(row for row in figure["lines"] if row["error"]),
        *(row for curve in figure["curves"].values() for row in curve),
    ]
    assert min(row["error"]["mean"] for row in approximations) >= best - 1e-9


def test_every_claim_has_a_verdict_and_the_theorem_holds(folder):
    found = results(folder, "claims")
    verdicts = [claim["verdict"] for claim in found["claims"]]
    assert verdicts[:5] == [*["partly true"] * 4, "true"]  # the sixth is a time
    assert verdicts[6] == "true"
    assert all(claim["parts"] for claim in found["claims"][:5])
    theorem = found["measured"]["theorem"]
    assert theorem["violations"] == theorem["violations_of_ours"] == 0
    assert theorem["cases"] == (400 if folder == KEPT else 40)
    growth = found["measured"]["growth"]
    assert growth["within_budget"]
    assert growth["peak_bytes"][1] <= 2.1 * growth["peak_bytes"][0]
    assert growth["peak_bytes"][1] < 0.01 * 8 * (2 * growth["n"]) ** 2


def test_on_local_kernels_the_sketch_beats_landmarks_drawn_at_random(folder):
    panels = {
        (panel["data"], panel["multiple"]): panel for panel in results(folder, "local-kernels")
    }
    assert len(panels) == 4
    for key in (("handwritten digits", 4), ("image segmentation", 16)):
        curves = panels[key]["curves"]
        at = {name: curve[0]["nmi"]["mean"] for name, curve in curves.items()}
        for rival in ("Nyström, uniform", "RPCholesky", "greedy Cholesky"):
            assert at["one pass"] > at[rival] + 0.05
            assert at["two passes"] > at[rival] + 0.1
    for panel in panels.values():
        first = {name: curve[0]["nmi"]["mean"] for name, curve in panel["curves"].items()}
        assert first["two passes"] > first["Nyström, uniform"]


def test_a_verdict_needs_all_parts_to_hold():
    def claim(*held):
        return claims.Claim("", tuple(("", holds) for holds in held), "").verdict

    assert claim(True, True) == "true"
    assert claim(True, False) == "partly true"
    assert claim(False, False) == "not true"
    assert claim() == "not measured"


def test_the_memory_of_both_methods_is_counted(folder):
    for equal, n in zip(results(folder, "claims")["measured"]["equal"], (4000, 2310), strict=True):
        for form in ("early", "late"):
            row = equal[form]
            assert row["kept_bytes"] == 8 * n * row["numbers"]
        assert equal["early"]["kept_bytes"] >= 10 * equal["sketch_bytes"]
        assert equal["late"]["error"]["mean"] <= equal["error"] + claims.SAME_ERROR


def test_too_few_trials_are_refused(tmp_path):
    with pytest.raises(ValueError, match="trials=0 is too few: a spread needs at least 2"):
        reproduce(tmp_path / "out", trials=0)
    assert not (tmp_path / "out").exists()


def test_trials_do_not_depend_on_the_processes_that_run_them(fresh):
    seeds = np.random.default_rng(0).integers(2**31 - 1, size=2)
    for contender in (experiments.PLAIN, experiments.TABLE_1[1]):
        alone = [run_trial(experiments.RINGS, contender, int(seed)) for seed in seeds]
        found = Summary(**rows(fresh)[contender.name]["accuracy"])
        assert found == Summary.of(outcome.accuracy for outcome in alone)


DIGITS, _ = next(experiments._local_problems())
AGAIN = {
    "table-1, one pass": (
        *(experiments.RINGS, experiments.TABLE_1[1], 100),
        lambda: rows(KEPT)["one-pass, late (r' = 12)"],
    ),
    "claims": (
        *(experiments.SEGMENTATION, experiments.sketch("Nyström", 7, method="nystrom"), 20),
        lambda: results(KEPT, "claims")["measured"]["equal"][1]["late"],
    ),
    "local kernels": (
        *(DIGITS, experiments.sketch("one pass", 20, 10), 20),
        lambda: results(KEPT, "local-kernels")[0]["curves"]["one pass"][1],
    ),
}


@pytest.mark.parametrize("name", AGAIN)
def test_the_kept_run_has_what_all_of_its_trials_give_today(name):
    """Up to 1e-3: rounding on another machine may move a sample that is between two clusters."""
    problem, contender, trials, kept = AGAIN[name]
    seeds = np.random.default_rng(0).integers(2**31 - 1, size=trials)
    today = [run_trial(problem, contender, int(seed)) for seed in seeds]
    found = kept()
    assert found["method"] == contender.name
    assert found["numbers"] == today[0].numbers
    for quantity in ("accuracy", "nmi", "error"):
        values = [getattr(one, quantity) for one in today]
        if found[quantity] is None:
            assert set(values) == {None}
        else:
            assert asdict(Summary.of(values)) == pytest.approx(found[quantity], abs=1e-3)


def test_no_small_kernel_breaks_the_theorem():
    found = check_theorem(cases=100, seed=1)
    assert found.cases == 100
    assert found.violations == found.violations_of_ours == 0


def test_a_trial_measures_the_error_of_the_whole_matrix():
    contender = Contender("one-pass", {"rank": 2, "oversampling": 5})
    outcome = run_trial(experiments.SEGMENTATION, contender, 5)
    X, _ = experiments.unit_segmentation(0)
    from sketchmeans import KernelKMeans

    model = KernelKMeans(
        7, **experiments.SQUARED_DOT, rank=2, oversampling=5, max_iter=20, random_state=5
    ).fit(X)
    K = np.square(X @ X.T)
    Y = model.embedding_
    assert outcome.error == pytest.approx(np.linalg.norm(K - Y @ Y.T) / np.linalg.norm(K), rel=1e-6)


def test_partitions_are_as_many_as_stirling_counts():
    assert [len(partitions(7, k)) for k in (1, 2, 3)] == [1, 63, 301]
    for P in partitions(5, 3):
        np.testing.assert_allclose(P @ P, P, atol=1e-12)
        assert np.trace(P) == pytest.approx(3)


@pytest.mark.parametrize("n", [4, 8])
def test_the_bound_without_the_factor_two_is_reached(n):
    K, approximation = adversarial(n, epsilon=1e-6)
    size = np.abs(np.linalg.eigvalsh(K - approximation)).sum()
    assert gap(K, approximation, 2) == pytest.approx((1 - 1e-6) * size)


def test_segmentation_has_the_attributes_and_classes_of_the_paper():
    X, y = load_segmentation()
    assert X.shape == (2310, 19)
    assert (X[:, 2] == 9).all()
    assert sorted(np.unique(y, return_counts=True)[1]) == [330] * 7


def test_an_earlier_run_is_not_overwritten_without_being_told(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    start = time.perf_counter()
    with pytest.raises(FileExistsError, match=r"README.md exists already.*overwrite=True"):
        reproduce(tmp_path)
    assert time.perf_counter() - start < 5
    shown = CliRunner().invoke(cli, ["reproduce", "--out", str(tmp_path)])
    assert shown.exit_code == 1
    assert "README.md exists already. Choose another folder, or give --force." in shown.output
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("missing", ["river", "matplotlib"])
def test_a_missing_package_is_named_before_any_work(missing, tmp_path, monkeypatch):
    for name in (missing, f"{missing}.datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    done = shell.here("sketchmeans reproduce --out out", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert missing in done.stderr
    assert 'pip install "sketchmeans[reproduce]"' in done.stderr
    assert not (tmp_path / "out").exists()


def test_ctrl_c_leaves_whole_files_only(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "--quick", "--trials", "2", "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=shell.heeding,
    )
    deadline = time.perf_counter() + 100
    while not (tmp_path / "table-1.md").exists():
        assert time.perf_counter() < deadline, "the first table never came"
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= set(FILES)
    assert "README.md" not in left
    for path in map(Path, tmp_path.glob("*.json")):
        json.loads(path.read_text())
