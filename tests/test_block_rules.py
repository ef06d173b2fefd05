"""Rules of blocks of samples: which there are, how they grow, and what an interrupt leaves."""

from types import SimpleNamespace

import numpy as np
from scipy import sparse

from sketchmeans.certificate.alike import blocks_alike
from sketchmeans.certificate.blockwise import (
    Blockwise,
    Bound,
    lower_bound,
    part_bound,
    sum_of_blocks,
)
from sketchmeans.certificate.parts import stratified
from sketchmeans.certificate.proving import Effort
from sketchmeans.kernels import Linear
from sketchmeans.operators import CallableOperator, DataOperator, PrecomputedOperator


def test_blocks_grow_while_five_times_what_they_took_is_left(monkeypatch):
    room, sizes, now = "sketchmeans.certificate.blockwise", [], [0.0]

    def tried(ask, blocks, deadline):
        sizes.append(len(blocks[0]))
        now[0] += 10.0
        return Bound(float(sizes[-1]), "lifted", 1, sizes[-1])

    monkeypatch.setattr(f"{room}.time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(f"{room}.size_for", lambda *given: 100)
    monkeypatch.setattr(f"{room}.sum_of_blocks", tried)
    monkeypatch.setattr(Blockwise, "blocks", lambda self, size: [np.arange(size)])
    X = np.zeros((1000, 1))
    ask = Blockwise(DataOperator(X, Linear()), np.zeros(1000, int), Effort(2), 0.0)
    for block_size, seconds, expected in (
        (None, 59.0, [100]),
        (None, 60.0, [100, 200]),
        (None, 71.0, [100, 200, 400]),
        (None, 900.0, [100, 200, 400, 800, 1000]),
        (150, 900.0, [150]),
    ):
        sizes.clear()
        assert lower_bound(ask, block_size, seconds).block_size == expected[-1]
        assert sizes == expected


def test_an_interrupt_while_blocks_are_dealt_leaves_what_was_known(monkeypatch):
    def interrupted(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("sketchmeans.certificate.blockwise.blocks_alike", interrupted)
    ask = Blockwise(DataOperator(np.eye(9), Linear()), np.zeros(9, int), Effort(2), 0.0)
    assert lower_bound(ask, None, 60.0) == Bound(0.0, "blocks", 0, 0, interrupted=True)
    monkeypatch.setattr("sketchmeans.certificate.blockwise.part_bound", interrupted)
    found = sum_of_blocks(ask, [np.arange(4), np.arange(4, 9)])
    assert found == Bound(0.0, "blocks", 2, 5, interrupted=True)


def test_samples_without_weight_are_in_no_block():
    weights = np.ones(9)
    weights[[0, 4]] = 0
    X = np.random.default_rng(0).normal(size=(9, 2))
    ask = Blockwise(DataOperator(X, Linear(), weights=weights), np.zeros(9, int), Effort(2), 0.0)
    for size in (3, 9):
        blocks = ask.blocks(size)
        assert sorted(np.concatenate(blocks).tolist()) == [1, 2, 3, 5, 6, 7, 8]


def test_where_there_are_no_dense_rows_clusters_have_their_shares_in_blocks():
    X, labels = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 3
    operators = (
        PrecomputedOperator(X @ X.T),
        CallableOperator(X, lambda A, B: A @ B.T),
        DataOperator(sparse.csr_matrix(X), Linear()),
    )
    expected = stratified(labels, 6, 5)
    for operator in operators:
        found = blocks_alike(operator, labels, 6, 5)
        assert [block.tolist() for block in found] == [block.tolist() for block in expected]


def test_up_to_three_thousand_samples_are_one_block_and_more_are_cut_by_thousands(monkeypatch):
    monkeypatch.setattr(Blockwise, "blocks", lambda self, size: size)
    monkeypatch.setattr("sketchmeans.certificate.blockwise.sum_of_blocks", lambda ask, size: size)
    for n, asked, expected in ((3000, None, 3000), (3001, None, 1000), (3001, 70, 70)):
        operator = DataOperator(np.zeros((n, 1)), Linear())
        ask = Blockwise(operator, np.zeros(n, int), Effort(2), 0.0)
        assert lower_bound(ask, asked, None) == expected


def test_a_block_that_has_time_enough_is_bounded_as_without_a_limit():
    X = np.random.default_rng(0).normal(size=(12, 2))
    ask = Blockwise(DataOperator(X, Linear()), np.arange(12) % 2, Effort(2, "lifted"), 0.0)
    part = ask.part(np.arange(12))
    limited = part_bound(part, Effort(2, "lifted", seconds=60.0))
    expected = part_bound(part, Effort(2, "lifted"))
    assert (limited.bound, limited.steps) == (expected.bound, expected.steps)
    assert expected.steps > 0


def test_blocks_that_are_alike_are_a_function_of_rows_and_labels_alone():
    X, labels = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 3
    operator = DataOperator(X, Linear())
    for size in (6, 10):  # four blocks, and two
        one, two = (blocks_alike(operator, labels, size, seed) for seed in (0, 1))
        assert [block.tolist() for block in one] == [block.tolist() for block in two]
        assert sorted(np.concatenate(one).tolist()) == list(range(20))


def test_blocks_on_threads_share_the_time_that_is_left_with_those_that_wait(monkeypatch):
    room, seconds = "sketchmeans.certificate.blockwise", {}

    def bounded(block, effort, **more):
        seconds[int(block[0])] = effort.seconds

    monkeypatch.setattr(f"{room}.time", SimpleNamespace(perf_counter=lambda: 100.0))
    monkeypatch.setattr(f"{room}.part_bound", bounded)
    monkeypatch.setattr(Blockwise, "part", lambda self, block: block)
    operator, labels = DataOperator(np.eye(10), Linear()), np.zeros(10, int)
    ask = Blockwise(operator, labels, Effort(2), 0.0, n_threads=2)
    sum_of_blocks(ask, [np.arange(first, 10, 5) for first in range(5)], deadline=190.0)
    # Two side by side: three turns for all five, two for the last three.
    assert seconds == {0: 30.0, 1: 45.0, 2: 45.0, 3: 90.0, 4: 90.0}
