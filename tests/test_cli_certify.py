"""``sketchmeans certify``: clusters from a file, a column or a model, and what it says of them."""

import json

import numpy as np
import pandas as pd
import pytest

from shell import sketchmeans as run
from sketchmeans import load
from sketchmeans.certificate.lift import Lifting
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.cli.certify import EFFORTS

CHOSEN = ["--columns", "x,y", "--kernel", "rbf", "--gamma", "2"]
FAST = ["--effort", "lifted", "--json"]


def certificate(*arguments):
    return json.loads(run("certify", *arguments).stdout)["certificate"]


def test_choices_of_effort_are_those_of_the_library():
    assert ("auto", *LEVELS) == EFFORTS


def test_clusters_may_stand_in_a_file_a_column_or_a_model(rings, tmp_path):
    labels, model = tmp_path / "labels.csv", tmp_path / "model.skm"
    run("cluster", rings, "-k", 2, *CHOSEN, "--id-column", "point", "-o", labels, "--save", model)
    by_id = certificate(rings, "--labels", labels, "--id-column", "point", *CHOSEN, *FAST)
    by_model = certificate(rings, "--model", model, "--id-column", "point", *FAST)
    # pandas before 3 reads other last digits than were written, unless it is asked not to.
    data = pd.read_csv(rings, float_precision="round_trip").merge(pd.read_csv(labels), on="point")
    data.to_csv(tmp_path / "both.csv", index=False)
    by_column = certificate(tmp_path / "both.csv", "--cluster-column", "cluster", *CHOSEN, *FAST)
    np.save(tmp_path / "labels.npy", data["cluster"].to_numpy())
    by_order = certificate(rings, "--labels", tmp_path / "labels.npy", *CHOSEN, *FAST)
    assert by_id == by_column == by_order
    for name in ("objective", "optimum_lower", "relative_gap"):
        assert by_model[name] == pytest.approx(by_id[name], rel=1e-9)
    assert by_id["level"] == "lifted"
    assert 0 <= by_id["relative_gap"] < 1


def test_rows_are_matched_by_id_in_any_order_and_by_number(rings, tmp_path):
    data = pd.read_csv(rings)
    data["cluster"] = (data["x"] > 0).astype(int)
    known = certificate(
        rings, "--labels", _written(data[["point", "cluster"]], tmp_path), "--id-column", "point",
        *CHOSEN, *FAST,
    )  # fmt: skip
    shuffled = data[["point", "cluster"]].sample(frac=1, random_state=0)
    names = shuffled.assign(cluster=np.where(shuffled["cluster"], "right", "left"))
    for table in (shuffled, names):
        found = certificate(
            rings, "--labels", _written(table, tmp_path), "--id-column", "point", *CHOSEN, *FAST
        )
        assert found == known
    numbered = data.assign(row=np.arange(1, len(data) + 1))[["row", "cluster"]]
    path = _written(numbered.iloc[::-1], tmp_path)
    assert certificate(rings, "--labels", path, *CHOSEN, *FAST) == known
    short = _written(shuffled.iloc[1:], tmp_path)
    said = run("certify", rings, "--labels", short, "--id-column", "point", *CHOSEN, code=1).stderr
    assert "has no label for point" in said
    said = run("certify", rings, "--labels", short, *CHOSEN, code=1).stderr
    assert "names rows by 'point'. Say --id-column" in said


def _written(frame, folder):
    path = folder / "some.csv"
    frame.to_csv(path, index=False)
    return path


def test_what_contradicts_itself_is_refused(rings, tmp_path):
    assert "in one place" in run("certify", rings, "--kernel", "rbf", code=2).stderr
    said = run("certify", rings, "--cluster-column", "ring", "--columns", "x,y", code=2).stderr
    assert "--kernel linear for plain K-means" in said
    said = run(
        "certify", rings, "--cluster-column", "ring", *CHOSEN, "--report", rings, code=2
    ).stderr
    assert "are the same file" in said
    model = tmp_path / "model.skm"
    run("cluster", rings, "-k", 2, *CHOSEN, "--save", model)
    said = run("certify", rings, "--model", model, "--kernel", "linear", code=1).stderr
    assert "--kernel cannot be given with a model" in said


def test_the_report_and_the_model_hold_what_was_proved(rings, tmp_path):
    model, page = tmp_path / "model.skm", tmp_path / "page.html"
    shown = run("cluster", rings, "-k", 2, *CHOSEN, "--certify", 3, "--save", model).stdout
    assert "lifted semidefinite bound" in shown
    kept = load(model).certificate_
    assert kept.level in ("lifted", "triangles")
    assert (kept.n_blocks, kept.block_size) == (1, 300)
    shown = run("certify", rings, "--model", model, "--seconds", 3, "--report", page).stdout
    assert f"Report: {page}" in shown
    assert "lifted semidefinite bound" in page.read_text()
    asked = [*CHOSEN, "--cluster-column", "ring", "--effort", "lifted", "--report", page]
    run("certify", rings, *asked, "--force")
    assert "by a lifted semidefinite bound of all samples" in page.read_text()
    assert "exists already" in run("certify", rings, *asked, code=1).stderr


def test_ctrl_c_writes_what_is_known_and_ends_with_130(rings, monkeypatch):
    steps = iter(range(1000))
    step = Lifting.step

    def tired(self):
        if next(steps) == 40:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Lifting, "step", tired)
    asked = ["--cluster-column", "ring", *CHOSEN, "--seconds", 60, "--json"]
    shown = run("certify", rings, *asked, code=130)
    assert json.loads(shown.stdout)["certificate"]["interrupted"] is True


def test_ids_in_a_file_of_labels_are_found_by_the_name_that_is_given_or_without_one(
    rings, tmp_path
):
    data = pd.read_csv(rings)
    data["cluster"] = (data["x"] > 0).astype(int)
    asked = ["--id-column", "point", *CHOSEN, *FAST]
    known = certificate(
        rings, "--labels", _written(data[["point", "cluster"]], tmp_path), *asked
    )  # fmt: skip
    shuffled = data.sample(frac=1, random_state=0)
    other = shuffled.assign(run=7)[["run", "point", "cluster"]]
    assert certificate(rings, "--labels", _written(other, tmp_path), *asked) == known
    bare = tmp_path / "bare.csv"
    shuffled[["point", "cluster"]].to_csv(bare, index=False, header=False)
    assert certificate(rings, "--labels", bare, *asked) == known
    shuffled[["point", "cluster"]].to_csv(bare, index=False, sep=";")
    assert certificate(rings, "--labels", bare, *asked) == known
    alone = tmp_path / "alone.csv"
    data[["cluster"]].to_csv(alone, index=False, header=False)
    assert certificate(rings, "--labels", alone, *asked) == known


def test_noise_is_refused_in_a_file_and_in_a_column(rings, tmp_path):
    data = pd.read_csv(rings)
    data["cluster"] = np.where(np.arange(len(data)) < 3, -1, data["x"] > 0)
    labels, both = _written(data[["point", "cluster"]], tmp_path), tmp_path / "both.csv"
    data.to_csv(both, index=False)
    for asked in (
        [rings, "--labels", labels, "--id-column", "point"],
        [both, "--cluster-column", "cluster"],
    ):
        said = run("certify", *asked, *CHOSEN, *FAST, code=1).stderr
        assert "hold -1 for 3 of" in said


def test_ctrl_c_during_the_proof_of_a_fit_writes_its_files_and_ends_with_130(
    rings, tmp_path, monkeypatch
):
    steps, step = iter(range(1000)), Lifting.step

    def tired(self):
        if next(steps) == 40:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Lifting, "step", tired)
    labels, model = tmp_path / "labels.csv", tmp_path / "model.skm"
    asked = ["-k", 2, *CHOSEN, "--certify", 60, "-o", labels, "--save", model, "--json"]
    shown = run("cluster", rings, *asked, code=130)
    assert json.loads(shown.stdout)["certificate"]["interrupted"] is True
    assert len(pd.read_csv(labels)) == 300
    assert load(model).certificate_.interrupted
