"""Rules of rows that are elsewhere: what stays with them, and what time their blocks have."""

from types import SimpleNamespace

import numpy as np
import pytest

from sketchmeans.certificate.alike import blocks_alike
from sketchmeans.certificate.blockwise import Blockwise, of_one_part, part_bound, sum_of_blocks
from sketchmeans.certificate.proving import Effort, Proof
from sketchmeans.certificate.sampling import drawn_block, drawn_bound, geometric_bound
from sketchmeans.disk import FileRows, as_source
from sketchmeans.disk.streams import Desk
from sketchmeans.kernels import Gaussian, Linear
from sketchmeans.operators import DataOperator, FeatureMapOperator
from sketchmeans.rows import Rows
from sketchmeans.sketches import RademacherSketch


class Elsewhere(FileRows):
    """Rows as those of a file, that remember what was asked of them."""

    def __init__(self, X):
        super().__init__(as_source(X), Desk())
        self.stayed, self.asked = [], []

    def tournament(self, *given, stay=False, **more):
        self.stayed.append(stay)
        return super().tournament(*given, stay=stay, **more)

    def of_groups(self, work, groups, given, *, seconds=None, name="groups"):
        self.asked.append((len(groups), work.work.keywords["effort"].seconds, seconds))
        return super().of_groups(work, groups, given, seconds=seconds, name=name)


EFFORT = Effort(2, "blocks")


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(60, 3))


def test_what_a_sketch_makes_stays_and_what_an_array_makes_comes_back(X):
    Omega, sketch = np.random.default_rng(1).normal(size=(60, 2)), RademacherSketch(60, 2, 0)
    rows = Elsewhere(X)
    for right in (Omega, sketch):
        DataOperator(rows, Gaussian(0.1)).multiply(right)
    assert rows.stayed == [False, True]
    features = FeatureMapOperator(Elsewhere(X), Linear())
    assert isinstance(features.multiply(sketch).W, Rows)
    W = features.multiply(Omega).W
    np.testing.assert_allclose(W, X @ (X.T @ Omega), atol=1e-12)
    assert isinstance(features.product(np.eye(3)), Rows)
    np.testing.assert_allclose(features.product(np.eye(3))[:], X)
    features.hold()
    assert features.holds
    np.testing.assert_array_equal(features.held[:], X)
    lengths = features.gram(np.zeros(3)).lengths
    assert isinstance(lengths, np.ndarray)
    np.testing.assert_allclose(lengths, np.square(X).sum(axis=1))


def test_blocks_elsewhere_share_the_time_by_how_many_run_one_after_the_other(X, monkeypatch):
    def ask(rows):
        labels = np.arange(60) % 2
        return Blockwise(DataOperator(rows, Linear()), labels, EFFORT, 0.0, n_threads=2)

    blocks, rows = [np.arange(first, 60, 5) for first in range(5)], Elsewhere(X)
    found = sum_of_blocks(ask(rows), blocks, deadline=None)
    assert found.value == sum_of_blocks(ask(X), blocks).value > 0
    assert rows.asked.pop() == (5, None, None)
    still = SimpleNamespace(perf_counter=lambda: 100.0)
    monkeypatch.setattr("sketchmeans.certificate.blockwise.time", still)
    sum_of_blocks(ask(rows), blocks, deadline=190.0)
    assert rows.asked == [(5, 30.0, 90.0)]  # three times two side by side


def test_twice_as_many_blocks_are_drawn_for_elsewhere_as_there_may_be_time_for(X):
    rows = Elsewhere(X)
    labels, kernel = np.arange(60) % 2, DataOperator(rows, Linear())
    ask = Blockwise(kernel, labels, EFFORT, 0.0, n_threads=2)
    drawn_bound(ask, 12, 2.0, 0.1)  # 8.9 in two seconds on two threads, and one each
    drawn_bound(ask, 12, 2.0, 0.1, most=4)
    assert rows.asked == [(10, 2.0, 2.0), (4, 2.0, 2.0)]


def test_blocks_that_are_drawn_are_bounded_by_their_geometric_mean(X):
    labels = np.arange(60) % 2
    alone = [
        part_bound(Blockwise(DataOperator(X, Linear()), labels, EFFORT, 0.0).part(block), EFFORT)
        for block in (drawn_block(60, 12, 0, index) for index in range(5))
    ]
    expected = geometric_bound(np.array([proof.bound for proof in alone]), 12 / 60, 0.1)
    for rows in (X, Elsewhere(X)):
        ask = Blockwise(DataOperator(rows, Linear()), labels, EFFORT, 0.0)
        found = drawn_bound(ask, 12, 60.0, 0.1, most=5)
        assert found.value == pytest.approx(expected, rel=1e-9)
        assert (found.n_blocks, found.block_size, found.failure_probability) == (5, 12, 0.1)
        assert not found.interrupted


def test_blocks_that_are_drawn_tell_the_highest_level_that_one_of_them_reached(X, monkeypatch):
    proofs = iter([Proof(1.0, "blocks"), Proof(1.0, "triangles"), Proof(1.0, "lifted")])
    room = "sketchmeans.certificate.sampling"
    monkeypatch.setattr(f"{room}.part_bound", lambda *given, **more: next(proofs))
    ask = Blockwise(DataOperator(X, Linear()), np.arange(60) % 2, EFFORT, 0.0)
    assert drawn_bound(ask, 12, 60.0, 0.1, most=3).level == "triangles"


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 60)])
def test_blocks_of_rows_elsewhere_are_those_of_rows_that_are_here(X, weights):
    labels = np.arange(60) % 3
    both = X, FileRows(as_source(X), Desk())
    here, there = (DataOperator(rows, Linear(), weights=weights) for rows in both)
    blocks, others = (blocks_alike(one, labels, 20, 0) for one in (here, there))
    assert [block.tolist() for block in blocks] == [block.tolist() for block in others]
    found = [of_one_part(one, labels, 0.0, _weight_and_rows) for one in (here, there)]
    assert found[0] == found[1]
    assert found[0][1] == 60


def _weight_and_rows(part):
    return None if part.weights is None else float(part.weights.sum()), len(part.rows)
