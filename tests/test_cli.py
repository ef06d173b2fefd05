"""The command line: what it reads, prints and writes, and how it ends."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import shell
from forged_models import apply, put_together, take_apart
from pages import Text
from shell import sketchmeans as run
from sketchmeans import KernelKMeans, choose, compare, load
from sketchmeans.datasets import make_rings
from tables import KINDS, write_numbers


def test_every_format_gives_the_same_labels(tmp_path):
    X, _ = make_rings(400, random_state=1)
    X = np.column_stack([X, X @ [1.0, 2.0]])
    wanted = KernelKMeans(3, gamma=2.0, random_state=0, kernel="rbf").fit(X).labels_
    for kind in KINDS:
        write_numbers(tmp_path / f"data.{kind}", X)
    options = "-k 3 --kernel rbf --gamma 2 --quiet -o"
    given = [(kind, None) for kind in KINDS]
    given += [("-", tmp_path / f"data.{kind}") for kind in ("csv", "csv.gz", "parquet", "npz")]
    for kind, piped in given:
        data = kind if piped else f"data.{kind}"
        result = shell.here(f"sketchmeans cluster {data} {options} labels.npy", tmp_path, piped)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), (kind, piped)
        np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), wanted, err_msg=kind)
        (tmp_path / "labels.npy").unlink()


def test_a_newcomer_is_led_from_error_to_report(tmp_path):
    random = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "plant": [f"plant-{index}" for index in range(90)],
            "height": random.normal(size=90) + np.repeat([0, 6, 12], 30),
            "width": random.normal(size=90) + np.repeat([0, 6, 0], 30),
            "garden": ["north", "south", "east"] * 30,
        }
    )
    data.loc[6, "width"] = np.nan
    data.to_csv(tmp_path / "plants.csv", index=False)

    def step(command, code):
        shown = shell.typed(command, tmp_path)
        assert shown.returncode == code, shown.stderr
        return shown

    assert "cluster    cluster the rows of a data file" in step("sketchmeans --help", 0).stdout
    assert "sketchmeans cluster rings.csv -k 2" in step("sketchmeans cluster --help", 0).stdout
    shown = step("sketchmeans cluster plants.csv", 2)
    assert shown.stderr.startswith("Usage: sketchmeans cluster [OPTIONS] DATA\n")
    assert shown.stderr.endswith("\nError: Missing option '-k' / '--clusters'.\n")
    shown = step("sketchmeans cluster plants.csv -k 3", 1)
    assert shown.stderr == (
        "Error: plants.csv: column 'plant' holds 'plant-0' in row 1, which is no number (89 more "
        "rows with text). The same goes for 'garden'. If it names the rows, say --id-column plant; "
        "if it holds true classes, --label-column plant; if it holds categories, "
        "--categorical one-hot; to leave it out, choose columns: --columns height,width.\n"
    )
    assert shown.stdout == ""
    shown = step("sketchmeans cluster plants.csv -k 3 --id-column plant", 1)
    assert shown.stderr == (
        "Error: plants.csv: column 'garden' holds 'north' in row 1, which is no number (89 more "
        "rows with text). If it names the rows, say --id-column garden; if it holds true classes, "
        "--label-column garden; if it holds categories, --categorical one-hot; to leave it out, "
        "choose columns: --columns height,width.\n"
    )
    so_far = "sketchmeans cluster plants.csv -k 3 --id-column plant --columns height,width"
    shown = step(so_far, 1)
    assert shown.stderr == (
        "Error: plants.csv: column 'width' has no value in row 7. Leave such rows out with "
        "--drop-missing, or fill them in with --impute mean (or median, or a number).\n"
    )
    last = f"{so_far} --drop-missing -o labels.csv --report plants.html"
    shown = step(last, 0)
    assert shown.stderr == "Note: dropped for a missing value: 1 of 90 rows.\n"
    assert shown.stdout.startswith(
        "89 rows of 2 columns in 3 clusters: neighbors kernel, 4 sets of 50 anchors"
    )
    assert "\n\nLabels: labels.csv\nReport: plants.html\n\nWhat to do next\n- " in shown.stdout

    joined = data.merge(pd.read_csv(tmp_path / "labels.csv"), on="plant", how="left")
    assert joined.loc[joined["cluster"].isna(), "plant"].tolist() == ["plant-6"]
    groups = joined.dropna().groupby(np.repeat([0, 1, 2], 30)[joined.dropna().index])["cluster"]
    assert (groups.nunique() == 1).all()
    report = (tmp_path / "plants.html").read_text()
    assert last in report
    assert "plant-0" in report

    shown = step(last, 1)
    assert shown.stderr == (
        "Error: labels.csv exists already. Say --force to overwrite it, or choose another name.\n"
    )
    assert step(f"{last} --force", 0).stdout


def test_json_is_one_object_that_agrees_with_the_library(rings):
    arguments = ["cluster", rings, "-k", 2, "--id-column", "point", "--label-column", "ring"]
    found = json.loads(
        run(*arguments, "--kernel", "rbf", "--gamma", "4*median", "--passes", 2, "--json").stdout
    )
    X, _ = make_rings(300, random_state=0)
    model = KernelKMeans(2, gamma="4*median", n_passes=2, random_state=0, kernel="rbf").fit(X)
    sizes = [cluster["rows"] for cluster in found["clusters"]]
    assert sizes == np.bincount(model.labels_).tolist()
    assert found["inertia"] == model.inertia_
    assert found["gamma"] == model.gamma_
    assert found["certificate"]["trace_kernel"] == model.certificate_.trace_kernel
    assert 0 <= found["agreement"]["NMI"] <= 1
    assert found["command"].startswith("sketchmeans cluster ")
    assert "--kernel rbf --gamma '4*median' --passes 2 --json" in found["command"]


def test_options_reach_the_estimator(rings, tmp_path):
    path = tmp_path / "model.skm"
    run(
        *("cluster", rings, "-k", 3, "--columns", "x,y", "--save", path, "--kernel", "sigmoid"),
        *("--gamma", 0.5, "--coef0", 0.25, "--method", "one-pass", "--rank", 5, "--passes", 2),
        *("--refine", 1, "--memory-limit", "2GB", "--jobs", 2, "--seed", 7),
    )
    wanted = {
        "n_clusters": 3,
        "kernel": "sigmoid",
        "gamma": 0.5,
        "coef0": 0.25,
        "method": "one-pass",
        "rank": 5,
        "n_passes": 2,
        "n_refine": 1,
        "memory_limit": "2GB",
        "n_jobs": 2,
        "random_state": 7,
    }
    found = load(path).get_params()
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Usage: "),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
        (["clutser"], 2, "No such command 'clutser'. Did you mean 'cluster'?"),
        (["cluster", "rings.csv"], 2, "Missing option '-k'"),
        (["cluster", "rings.csv", "-k", "two"], 2, "'two' is not a valid integer"),
        (
            ["cluster", "rings.csv", "-k", "2", "--kernel", "gauss"],
            2,
            "'gauss' is not one of 'neighbors', 'rbf'",
        ),
        (
            ["cluster", "rings.csv", "-k", "2", "--rank", "all"],
            2,
            "no finite number, and not 'auto'",
        ),
        (
            ["cluster", "rings.csv", "-k", "2", "--impute", "nan"],
            2,
            "no finite number, and not 'm",
        ),
        (["cluster", "rings.csv", "-k", "2", "-o", "-", "--json"], 2, "Choose one of them"),
        (
            ["cluster", "rings.csv", "-k", "2", "--report", "-"],
            2,
            "--report - would be standard output. Name a file.",
        ),
        (["cluster", "rings.csv", "-k", "2", "--save", "-"], 2, "--save - would be standard out"),
        (
            ["cluster", "rings.csv", "-k", "2", "-o", "a.csv", "--save", "./a.csv"],
            2,
            "--output and --save are the same file, ./a.csv. Name two files.",
        ),
        (
            ["cluster", "rings.csv", "-k", "2", "-o", "rings.csv", "--force"],
            2,
            "DATA and --output are the same file, rings.csv. Name two files.",
        ),
        (
            ["predict", "model.skm", "rings.csv", "-o", "./rings.csv", "--force"],
            2,
            "DATA and --output are the same file",
        ),
        (
            ["cluster", "rings.csv", "-k", "2", "--save", "/proc/model.skm"],
            1,
            "/proc/model.skm cannot be written: ",
        ),
        (["choose", "rings.csv", "-k", "1-4"], 2, "must hold numbers from 2 to 1000"),
        (["choose", "rings.csv", "-k", "some"], 2, "is no range such as 2-10"),
        (["cluster", "nowhere.csv", "-k", "2"], 1, "there is no file nowhere.csv"),
        (["cluster", "n_clusters.csv", "-k", "2"], 1, "there is no file n_clusters.csv"),
        (["cluster", "rings.csv", "-k", "2", "--columns", "n_jobs"], 1, "no column 'n_jobs'"),
        (["cluster", "rings.csv", "-k", "0", "--columns", "x"], 1, "--clusters=0 is too small"),
        (["cluster", "rings.csv", "-k", "999", "--columns", "x"], 1, "exceeds n_samples=300"),
        (["cluster", "rings.csv", "-k", "2", "--columns", "z"], 1, "no column 'z'"),
        (
            [
                "cluster",
                "rings.csv",
                "-k",
                "2",
                "--columns",
                "x,y",
                "--kernel",
                "rbf",
                "--gamma",
                "wide",
            ],
            1,
            "gamma='wide' is not understood",
        ),
        (
            ["cluster", "rings.csv", "-k", "2", "--columns", "x,y", "--memory-limit", "1kB"],
            1,
            "--memory-limit=1 kB cannot be kept",
        ),
        (["cluster", "rings.csv", "-k", "2", "-o", "labels.xlsx"], 1, "must end in .csv, .tsv"),
        (["cluster", "rings.csv", "-k", "2", "-o", "no/labels.csv"], 1, "folder no does not exist"),
        (["info", "rings.csv"], 1, "rings.csv cannot be loaded: it is no sketchmeans model: it b"),
        (["info", "nowhere.skm"], 1, "Error: there is no file nowhere.skm. Look at its name.\n"),
        (["predict", "rings.csv", "rings.csv"], 1, "rings.csv cannot be loaded"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_have_a_code_and_a_message(arguments, code, message, rings, monkeypatch):
    monkeypatch.chdir(rings.parent)
    shown = run(*arguments, code=code)
    assert message in shown.stderr
    assert shown.stdout == ""
    assert "Traceback" not in shown.stderr


def test_compare_prints_the_table_of_the_library(rings):
    chosen = ["--methods", "one-pass; nystrom, kmeans", "--seeds", 2]
    arguments = ["compare", rings, "-k", 2, "--columns", "x,y", "--label-column", "ring", *chosen]
    rows = json.loads(run(*arguments, "--json").stdout)["rows"]
    X, ring = make_rings(300, random_state=0)
    table = compare(
        X, 2, y=ring, variants=["one-pass", "nystrom, kmeans"], n_seeds=2, random_state=0
    )
    for row, wanted in zip(rows, table, strict=True):
        for name in ("method", "numbers a sample", "objective", "NMI", "kernel entries"):
            assert row[name] == wanted[name]
    shown = run(*arguments).stdout
    assert "| nystrom, kmeans " in shown
    assert (
        "unknown"
        in run("compare", rings, "-k", 2, "--columns", "x", "--methods", "unknown", code=1).stderr
    )


def test_compare_leaves_out_the_exact_method_where_its_matrix_would_be_large(tmp_path, monkeypatch):
    monkeypatch.setattr("sketchmeans.cli.compare.EXACT_LIMIT", 100)
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(101, 2)))
    shown = run(
        *("compare", tmp_path / "data.npy", "-k", 2, "--kernel", "linear", "--rank", 2),
        *("--seeds", 1, "--width", 4),
    )
    assert "matrix of 101 × 101 and is left out" in shown.stderr
    assert "| exact" not in shown.stdout
    assert "| greedy-cholesky" in shown.stdout


def test_choose_prints_the_choice_of_the_library(rings):
    arguments = ["choose", rings, "--columns", "x,y", "-k", "2-4", "--kernel", "rbf"]
    arguments += ["--gammas", "median,8*median"]
    X, _ = make_rings(300, random_state=0)
    found = choose(X, n_clusters=[2, 3, 4], gammas=["median", "8*median"], random_state=0)
    command = f"sketchmeans cluster {rings} --columns x,y -k {found.n_clusters} --kernel rbf"
    command += f" --gamma {shlex.quote(found.width)} --rank {found.rank}"
    assert run(*arguments).stdout == f"{found.running(command)}\n"
    said = json.loads(run(*arguments, "--json").stdout)
    assert (said["n_clusters"], said["rank"]) == (found.n_clusters, found.rank)
    assert len(said["table"]) == 6


def test_info_tells_what_is_in_a_model(rings, tmp_path):
    path = tmp_path / "model.skm"
    run(
        "cluster",
        rings,
        "-k",
        2,
        "--columns",
        "x,y",
        "--standardize",
        "--kernel",
        "rbf",
        "--save",
        path,
    )
    shown = run("info", path).stdout
    assert f"{path}: KernelKMeans, written by sketchmeans" in shown
    assert "Columns: 2, known by name, standardized." in shown
    assert "n_clusters=2" in shown
    assert f"Fitted to 300 rows: rank {load(path).rank_}, gamma {load(path).gamma_:.4g}." in shown
    assert "_dual" not in shown
    assert "feature_names_ends" not in shown
    assert "| labels_ " in shown
    assert "Certificate for 2 clusters" in shown
    found = json.loads(run("info", path, "--json").stdout)
    assert found["bytes"] == path.stat().st_size
    assert found["arrays"]["labels_"] == [[300], "<i4"]


def test_text_in_a_model_cannot_act_on_the_terminal(rings, tmp_path):
    path = tmp_path / "model.skm"
    run("cluster", rings, "-k", 2, "--columns", "x,y", "--save", path)
    good = path.read_bytes()
    escape = "\x1b]0;title\x07\x1b[2J"
    places = (
        "written_by",
        "certificate_.reason",
        f"stats_.{escape}",
        "stats_.engine",
        "n_features_in_",
    )
    for place in places:
        for text in (escape, "\x9b2J", "y" * 900_000):
            header, parts = take_apart(good)
            apply(header, {place: text})
            path.write_bytes(put_together(header, parts))
            for arguments in (["info", path], ["info", path, "--json"], ["predict", path, rings]):
                shown = run(*arguments, code=1)
                assert shown.stderr.startswith(f"Error: {path} cannot be loaded: ")
                assert shown.stdout == ""
                assert len(shown.stderr) < 1500
                assert shown.stderr.rstrip("\n").isprintable()


def test_the_report_tells_of_preparation_and_shows_the_data_as_they_were(rings, tmp_path):
    data = pd.read_csv(rings)
    data["x"] = 1e6 + 1000 * data["x"]
    data.loc[[3, 5], "y"] = np.nan
    data.to_csv(rings, index=False)
    path = tmp_path / "report.html"
    arguments = ["cluster", rings, "-k", 2, "--columns", "x,y", "--standardize", "--id-column"]
    arguments += ["point", "--report", path, "--force"]
    run(*arguments, "--drop-missing")
    page = Text(path.read_text(encoding="utf-8"))
    asked = dict(page.table("data"))
    assert asked["features"] == "2 (float64), standardized for clustering, shown as they were"
    assert asked["rows dropped"] == "2 of 300, for a missing value"
    assert "values filled in" not in asked
    known = data.set_index("point")
    typical = next(table for table in page.tables if table[0][1:2] == ["sample"])
    members = {row[-4]: row[-2:] for row in typical[1:] if row[-4] in known.index}
    assert len(members) == 10
    for point, values in members.items():
        assert [float(value) for value in values] == pytest.approx(
            known.loc[point, ["x", "y"]].tolist(), rel=1e-4
        )
    labels = load_labels(rings, arguments, tmp_path)
    for cluster, row in enumerate(r for r in typical if "mean of the cluster" in r):
        mean = known.loc[labels[labels == cluster].index, ["x", "y"]].mean()
        assert [float(value) for value in row[-2:]] == pytest.approx(mean.tolist(), rel=1e-4)
    drawn = dict(zip(page.picture["id"], page.picture["values"][0], strict=True))
    assert drawn["p7"] == pytest.approx(known.loc["p7", "x"], abs=1)
    run(*arguments, "--impute", "mean")
    asked = dict(Text(path.read_text(encoding="utf-8")).table("data"))
    assert asked["values filled in"] == "2"
    assert "rows dropped" not in asked


def load_labels(rings, arguments, folder):
    """Return the clusters of the rows that are left, by their ids."""
    run(*arguments, "--drop-missing", "-o", folder / "labels.csv")
    return pd.read_csv(folder / "labels.csv", index_col="point")["cluster"]


def test_demo_writes_files_to_try_and_keeps_those_that_exist(tmp_path):
    shown = run("demo", "--write", tmp_path / "examples")
    names = [line.rsplit("/", 1)[1] for line in shown.stdout.splitlines()]
    assert names == ["rings.csv", "digits.csv", "new-digits.csv"]
    digits = pd.read_csv(tmp_path / "examples" / "digits.csv")
    assert digits.shape == (1500, 66)
    assert digits["digit"].nunique() == 10
    assert pd.read_csv(tmp_path / "examples" / "new-digits.csv").shape == (297, 65)
    (tmp_path / "examples" / "rings.csv").write_text("precious")
    assert "exists already" in run("demo", "--write", tmp_path / "examples", code=1).stderr
    assert (tmp_path / "examples" / "rings.csv").read_text() == "precious"
    run("demo", "--write", tmp_path / "examples", "--force")
    assert pd.read_csv(tmp_path / "examples" / "rings.csv").shape == (2000, 3)
