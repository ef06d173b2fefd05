"""``cluster --dry-run``: what a fit would do and cost, and nothing else."""

import json

import pytest

from shell import sketchmeans as run
from sketchmeans import KernelKMeans


@pytest.fixture
def asked(rings, monkeypatch):
    monkeypatch.setattr("sketchmeans.planning.planning.PATIENCE", 0.0)
    return ["cluster", rings, "-k", 2, "--columns", "x,y", "--dry-run"]


def test_a_dry_run_tells_of_the_fit_and_writes_nothing(asked, rings):
    before = sorted(path.name for path in rings.parent.iterdir())
    outputs = ["-o", rings.parent / "labels.csv", "--save", rings.parent / "model.skm"]
    shown = run(*asked, "--kernel", "rbf", *outputs)
    assert "300 rows of 2 columns into 2 clusters: rbf kernel, method one-pass, " in shown.stdout
    assert "Passes over the kernel: 2." in shown.stdout
    assert "--method nystrom" in shown.stdout
    assert sorted(path.name for path in rings.parent.iterdir()) == before


def test_a_dry_run_fits_only_a_few_rows_and_names_options_as_they_are_typed(asked, monkeypatch):
    fitted = []
    fit = KernelKMeans.fit
    monkeypatch.setattr(KernelKMeans, "fit", lambda self, X: fitted.append(self) or fit(self, X))
    shown = run(*asked)
    assert "neighbors kernel, method exact" in shown.stdout
    assert "--graphs 1" in shown.stdout
    assert all(model.n_init <= 2 for model in fitted)


def test_a_dry_run_speaks_json(asked):
    found = json.loads(run(*asked, "--json").stdout)["plan"]
    assert found["method"] == "exact"
    assert found["distances"] > 0
    assert found["memory"] == max(found["memory_by_stage"].values())
    assert found["seconds"] == pytest.approx(sum(found["seconds_by_stage"].values()))
    assert found["alternatives"][0]["asked_by"].startswith("--graphs 1")


def test_a_dry_run_ends_with_1_where_the_limit_cannot_be_kept(asked):
    shown = run(*asked, "--memory-limit", "1MB", code=1)
    assert shown.stdout == ""
    assert "--memory-limit=1 MB cannot be kept: 300 samples with 400 anchors in all need" in (
        shown.stderr
    )
    assert "No other method keeps it either." in shown.stderr
    shown = run(*asked, "--memory-limit", "30MB", code=1)
    assert "The cheapest change that keeps --memory-limit: --graphs 1" in shown.stderr
