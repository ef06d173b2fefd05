"""Advice and reports of very many rows look at some of them, drawn by the seed, and say so."""

import numpy as np
import pytest

from sketchmeans import KernelKMeans
from sketchmeans.advice import few
from sketchmeans.advice.guidance import guidance
from sketchmeans.advice.plain import plain_kmeans
from sketchmeans.plotting.given import Columns
from sketchmeans.report import write_report
from sketchmeans.report.content import Preparation, Samples, seen_rows
from sketchmeans.report.profiles import profiles

N = 2000


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    y = np.arange(N) % 3
    X = random.normal(size=(N, 4)) + 8 * np.eye(3, 4)[y]
    X[:, 3] *= 100
    return KernelKMeans(3, kernel="rbf", gamma=0.05, random_state=0).fit(X), X


class Counted(np.ndarray):
    """An array that remembers how many rows were taken from it."""

    taken = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if self.ndim == 2 and found.ndim == 2:
            Counted.taken += len(found)
        return found.view(np.ndarray) if isinstance(found, np.ndarray) else found


def test_plain_k_means_clusters_rows_that_are_drawn_and_states_no_objective(fitted, monkeypatch):
    model, X = fitted
    everything = plain_kmeans(model, X)
    assert everything.rows is None
    assert everything.objective is not None
    monkeypatch.setattr("sketchmeans.advice.plain.MOST", 500)
    Counted.taken = 0
    some = plain_kmeans(model, X.view(Counted))
    assert Counted.taken == 500
    assert some.objective is None
    assert len(some.rows) == len(some.labels) == 500
    assert np.array_equal(some.rows, plain_kmeans(model, X).rows)
    said = guidance(model, X, plain=some, standardized=True)
    assert any("500 rows drawn" in line for line in said)


def test_the_line_about_scales_says_how_many_rows_it_saw(fitted, monkeypatch):
    model, X = fitted
    assert "rows drawn" not in guidance(model, X)[0]
    monkeypatch.setattr("sketchmeans.advice.guidance.ROWS", 200)
    line = guidance(model, X)[0]
    assert "wider than" in line
    assert "among 200 rows drawn." in line


def test_a_report_looks_at_some_samples_and_says_so(fitted, monkeypatch, tmp_path):
    model, X = fitted
    write_report(tmp_path / "all.html", model, X)
    assert "Looked at are" not in (tmp_path / "all.html").read_text()
    monkeypatch.setattr("sketchmeans.report.content.SEEN", 300)
    monkeypatch.setattr("sketchmeans.advice.plain.MOST", 300)
    write_report(tmp_path / "some.html", model, X)
    page = (tmp_path / "some.html").read_text()
    assert page.count("Looked at are 300 of 2,000 samples, drawn by the seed 0.") == 2
    assert "Plain K-means had 300 samples drawn" in page


def test_clusters_of_few_samples_are_seen_and_count_by_their_size(monkeypatch):
    random = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], [1200, 797, 3])
    X = random.normal(size=(N, 2)) + labels[:, None]
    monkeypatch.setattr("sketchmeans.report.content.SEEN", 400)
    seen = seen_rows(labels, 3, 0)
    assert np.count_nonzero(labels[seen] == 2) == 3
    found = profiles(
        Samples(Columns(X, ["a", "b"], 2), None, Preparation()), labels, 3, [0, 1], seen
    )
    means = np.array([X[seen][labels[seen] == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(found.means, means)
    np.testing.assert_allclose(found.overall, [1200, 797, 3] @ means / N)
    assert seen_rows(labels[:400], 3, 0) is None


def test_sizes_that_docs_and_help_state_are_those_of_the_code():
    from pathlib import Path

    from sketchmeans.advice import guidance as lines
    from sketchmeans.advice import plain, together
    from sketchmeans.cli import cli
    from sketchmeans.report import content

    page = " ".join(Path(__file__).parents[1].joinpath("docs/out_of_core.md").read_text().split())
    for said in (
        f"`choose` looks at {together.ROWS:,} rows at the most where it compares kernels",
        f"and {few.CHOSEN:,} with one that is given",
        f"`compare` takes {few.COMPARED:,}",
        f"the advice of `cluster` {lines.ROWS:,}",
        f"means, typical members and plain K-means of the report {content.SEEN:,}",
    ):
        assert said in page
    assert content.SEEN == plain.MOST
    assert f"{few.COMPARED:,} rows" in " ".join(cli.get_command(None, "compare").help.split())
    assert f"{few.CHOSEN:,} with one" in " ".join(cli.get_command(None, "choose").help.split())
    assert f"{content.SEEN:,} rows" in " ".join(cli.get_command(None, "cluster").help.split())
