"""Rules of proofs: blocks, cuts and blocks of samples against what can be written down densely."""

import copy
import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from oracles import objective
from sketchmeans.certificate.alike import _chosen, _residuals
from sketchmeans.certificate.blockwise import Blockwise, _Found
from sketchmeans.certificate.joining import with_best_of
from sketchmeans.certificate.lift import Lifting, clipped
from sketchmeans.certificate.objective import exact_objective, memberships
from sketchmeans.certificate.parts import refuse_asymmetric
from sketchmeans.certificate.proving import Effort, Proof, _best_of, _state_of, prove
from sketchmeans.certificate.result import Certificate
from sketchmeans.certificate.spectral import EPS, centred_block, objective_bound, objective_of
from sketchmeans.certificate.triangles import (
    ASCENTS,
    _codes,
    _matrix,
    no_cuts,
    violated,
    with_new,
)
from sketchmeans.kernels import Linear
from sketchmeans.operators import CallableOperator, DataOperator

WEIGHTS = np.array([1.0, 4.0, 2.0, 0.5, 3.0])


def kernel(seed=0, n=5):
    F = np.random.default_rng(seed).normal(size=(n, 3))
    return F @ F.T


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_block_is_the_centred_kernel_and_knows_what_entries_are_off_by(weights):
    K, d = kernel(), np.ones(5) if weights is None else weights
    root = np.sqrt(d)
    u = root / np.linalg.norm(root)
    J, whole = np.eye(5) - np.outer(u, u), np.outer(root, root) * K
    block = centred_block(K.copy(), weights, 0.01)
    np.testing.assert_allclose(block.K, J @ whole @ J, atol=1e-12)
    np.testing.assert_allclose(block.u, u)
    assert block.trace == pytest.approx(np.trace(whole))
    assert block.size == pytest.approx(np.linalg.norm(whole))
    assert block.spread == pytest.approx(np.trace(J @ whole @ J))
    assert block.error == pytest.approx(2 * 0.01 * np.trace(whole))
    other = centred_block(K.copy(), weights, 0.01, is_psd=False, absolute=0.5)
    expected = (0.01 * np.abs(K).max() + 0.5) * d.sum() * (1 + np.sqrt(5))
    assert other.error == pytest.approx(expected)
    below = centred_block(-K, weights, 0.01)
    assert below.error == 0
    assert below.trace == pytest.approx(np.trace(whole))


def test_halves_of_a_block_that_differ_are_averaged():
    K = kernel()
    more = np.triu(np.full((5, 5), 0.5), 1)
    found = centred_block(K + 2 * more)
    np.testing.assert_allclose(found.K, centred_block(K + more + more.T).K, atol=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_spectral_bound_takes_the_leading_eigenvalues_and_its_slack_away(weights):
    block = centred_block(kernel(), weights, 0.01)
    values = np.linalg.eigvalsh(block.K)[::-1]
    for k in (1, 2, 3, 4):
        size = np.linalg.norm(block.K)
        slack = 5 * EPS * (np.sqrt(k) * (block.size + size) + block.trace) + block.error
        assert block.slack(size, k) == pytest.approx(slack, rel=1e-13)
        expected = max(block.spread - np.maximum(values[: k - 1], 0).sum() - slack, 0)
        assert objective_bound(block, block.K.copy(), k) == pytest.approx(expected, abs=1e-12)
    assert objective_bound(block, block.K.copy(), 5) == 0
    assert objective_bound(block, np.full((5, 5), np.inf), 2) == 0
    # What lies along u counts whole, and halves that differ are averaged.
    A = np.triu(2 * np.outer(block.u, block.u)) - np.diag(block.u**2)
    expected = block.spread - 1 - block.slack(1.0, 2)
    assert objective_bound(block, A, 2) == pytest.approx(expected, abs=1e-12)


def test_a_kernel_that_may_be_indefinite_is_bounded_below_zero_as_well():
    K = -np.eye(5)
    block = centred_block(K.copy(), is_psd=False)
    assert objective_bound(block, block.K.copy(), 1) == pytest.approx(-4)
    assert objective_bound(block, np.full((5, 5), np.nan), 2) == -np.inf
    # With a cluster for each sample there is nothing left but −tr K of the eigenvalues below zero.
    assert objective_bound(block, block.K.copy(), 5) == pytest.approx(-4)
    assert objective_bound(block, block.K.copy(), 7) == pytest.approx(-4)


def test_rounding_adds_units_of_both_matrices_and_of_the_trace():
    block = centred_block(kernel())
    expected = 5 * EPS * (2 * (block.size + 3.0) + block.trace)
    assert block.slack(3.0, 4) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_objective_of_labels_of_a_block_is_that_of_the_kernel(weights):
    block, labels = centred_block(kernel(), weights, 0.01), np.array([0, 5, 0, 5, 5])
    found, slack = objective_of(block, labels)
    assert found == pytest.approx(objective(kernel(), labels, weights))
    assert slack == pytest.approx(block.slack(0.0, 2))


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    [
        ([0.9, 0.4, -1.0], 2, [0.9, 0.4, 0.0]),
        ([1.5, 0.4, -1.0], 1, [1.0, 0.0, 0.0]),
        ([1.5, 0.9, 0.1], 1, [0.8, 0.2, 0.0]),
        ([5.0, 5.0, 5.0], 1, [1 / 3, 1 / 3, 1 / 3]),
        ([9.0, 5.0, 5.0], 2, [1.0, 0.5, 0.5]),
        ([1.0, 1.0], 2, [1.0, 1.0]),
    ],
)
def test_shares_are_the_nearest_that_sum_to_no_more(values, most, expected):
    np.testing.assert_allclose(clipped(np.array(values), most), expected, atol=1e-12)


def quotients(P, u):
    return P / np.outer(u, u)


def test_a_cut_is_its_inequality_scaled_to_length_one():
    random = np.random.default_rng(0)
    u = np.sqrt(WEIGHTS / WEIGHTS.sum())
    triples = np.array([[0, 1, 2], [3, 1, 4], [2, 0, -1], [4, 2, 3], [1, 4, -1]])
    G, keys = _matrix(triples, None, 5, u)
    np.testing.assert_allclose(np.linalg.norm(G.toarray(), axis=1), 1)
    rows, columns = np.divmod(keys, 5)
    assert (rows <= columns).all()
    stretch = np.where(rows == columns, 1, np.sqrt(2))
    for _ in range(3):
        Z = random.normal(size=(5, 5))
        Z += Z.T
        Q = quotients(Z, u)
        found = G @ (Z.ravel()[keys] * stretch)
        for (i, j, k), value in zip(triples, found, strict=True):
            left = Q[i, j] - Q[i, i] if k < 0 else Q[i, j] + Q[i, k] - Q[i, i] - Q[j, k]
            E = np.zeros((5, 5))
            E[i, j] += 0.5 / (u[i] * u[j])
            E[i, i] -= 1 / u[i] ** 2
            if k >= 0:
                E[i, k] += 0.5 / (u[i] * u[k])
                E[j, k] -= 0.5 / (u[j] * u[k])
            off = E - np.diag(E.diagonal())
            length = np.linalg.norm(off + off.T + np.diag(E.diagonal()))
            assert value == pytest.approx(left / length)


def test_no_partition_violates_a_cut():
    u = np.sqrt(WEIGHTS / WEIGHTS.sum())
    every = [(i, j, k) for i in range(5) for j, k in itertools.combinations(range(5), 2)]
    triples = np.array([one for one in every if one[0] not in one[1:]])
    G, keys = _matrix(triples, None, 5, u)
    rows, columns = np.divmod(keys, 5)
    stretch = np.where(rows == columns, 1, np.sqrt(2))
    for labels in itertools.product(range(3), repeat=5):
        members = (np.array(labels)[:, None] == np.arange(3)) * u[:, None]
        sizes = np.square(members).sum(axis=0)
        P = members / np.where(sizes > 0, sizes, 1) @ members.T
        assert (G @ (P.ravel()[keys] * stretch)).max() <= 1e-12


def one_by_one(work, strips):
    for strip in strips:
        work(strip)


@pytest.mark.parametrize("seed", range(3))
def test_all_cuts_that_are_violated_are_found_the_worst_first_and_once(seed):
    b = 20
    random = np.random.default_rng(seed)
    u = np.sqrt(random.uniform(0.5, 2, b))
    u /= np.linalg.norm(u)
    Z = np.maximum(random.normal(size=(b, b)), 0)
    Z += Z.T
    Q = quotients(Z, u)
    least = 1e-3 * Q.diagonal().mean()
    expected = {}
    for i in range(b):
        others = [j for j in range(b) if j != i and Q[i, j] > least]
        for j in others:
            expected[i, j, -1] = Q[i, j] - Q[i, i]
        for j, k in itertools.combinations(others, 2):
            expected[i, j, k] = Q[i, j] + Q[i, k] - Q[i, i] - Q[j, k]
    expected = {one: amount for one, amount in expected.items() if amount > least}
    assert len(expected) > 200
    found = violated(lambda rows: Z[rows], u, no_cuts(b, np.float64), one_by_one)
    codes = [tuple(one) for one in found.tolist()]
    assert len(set(codes)) == len(codes)
    assert set(codes) == set(expected)
    amounts = [expected[one] for one in codes]
    assert (np.diff(amounts) <= 1e-12).all()
    # Those that hold something are kept, and not found again.
    old = with_new(no_cuts(b, np.float64), found[:50], u)
    assert len(old) == 50
    again = violated(lambda rows: Z[rows], u, old, one_by_one)
    assert {tuple(one) for one in again.tolist()} == set(codes[50:])
    old.mu[:10] = 0.5
    more = with_new(old, again[:5], u)
    assert [tuple(one) for one in more.triples.tolist()] == codes[:10] + codes[50:55]
    np.testing.assert_allclose(more.mu, [0.5] * 10 + [0.0] * 5)
    norm = np.linalg.norm(more.G.toarray(), 2)
    assert 0.9 / norm**2 <= more.step * (1 + 1e-12) <= 0.95 / norm**2 * (1 + 1e-2)


def test_no_two_cuts_have_the_same_code():
    triples = np.array(list(itertools.product(range(5), range(5), range(-1, 5))))
    assert len(np.unique(_codes(triples, 5))) == len(triples)


def test_cuts_are_few_for_a_sample_and_in_all(monkeypatch):
    b = 20
    Z = np.maximum(np.random.default_rng(0).normal(size=(b, b)), 0)
    Z += Z.T
    u = np.full(b, b**-0.5)

    def found(old=None, **limits):
        with monkeypatch.context() as patch:
            for name, value in limits.items():
                patch.setattr(f"sketchmeans.certificate.triangles.{name}", value)
            return violated(lambda rows: Z[rows], u, old or no_cuts(b, np.float64), one_by_one)

    every = found()
    some = {tuple(one) for one in found(ROW_CUTS=4).tolist()}
    for i in range(b):
        assert some & {tuple(one) for one in every.tolist() if one[0] == i} == {
            tuple(one) for one in every[every[:, 0] == i][:4].tolist()
        }
    for i, j, k in found(NEAR=3).tolist():
        others = [other for other in np.argsort(-Z[i]) if other != i][:3]
        assert {j, k} <= {*others, -1}
    np.testing.assert_array_equal(found(NEW_CUTS=2), every[: 2 * b])
    old = with_new(no_cuts(b, np.float64), every[:15], u)
    assert len(found(old, MOST_CUTS=1)) == b
    old.mu[:5] = 1.0
    np.testing.assert_array_equal(found(old, MOST_CUTS=1), every[15 : 15 + b - 5])
    old.mu[:] = 1.0
    assert len(found(old, MOST_CUTS=0)) == 0


@pytest.mark.parametrize("with_cuts", [False, True])
def test_a_lift_goes_on_from_what_it_has_kept(with_cuts):
    block = centred_block(kernel(1, 8))
    lifting, other = (Lifting(block, 2, dtype=np.float64) for _ in range(2))
    for _ in range(3):
        lifting.step()
    if with_cuts:
        lifting.add_cuts()
        lifting.step()
    state = {name: np.array(value) for name, value in lifting.state().items()}
    other.restore(state)
    np.testing.assert_array_equal(other.fractional, lifting.fractional)
    for one in (lifting, other):
        one.step()
        one.add_cuts()
        one.step()
    np.testing.assert_array_equal(other.T, lifting.T)
    np.testing.assert_array_equal(other.cuts.triples, lifting.cuts.triples)
    np.testing.assert_array_equal(other.cuts.mu, lifting.cuts.mu)
    assert other.cuts.step == lifting.cuts.step


class Kept:
    """A stage that takes all that it is offered, and goes on from what it is given."""

    def __init__(self, state=None):
        self.state, self.offered = state, []

    def offer(self, make):
        self.offered.append(copy.deepcopy(make()))


def test_a_proof_goes_on_from_any_state_that_it_has_offered():
    X, effort = np.random.default_rng(0).normal(size=(24, 2)), Effort(3, "triangles")
    block, labels, whole = centred_block(X @ X.T), np.arange(24) % 3, Kept()
    expected = prove(block, labels, effort, stage=whole)
    assert len(whole.offered) > 1
    for state in (whole.offered[0], whole.offered[-1]):
        found = prove(block, labels, effort, stage=Kept(state))
        assert found.bound == expected.bound
        assert (found.level, found.steps) == (expected.level, expected.steps)


def test_a_proof_counts_the_steps_of_the_lift(monkeypatch):
    made, told, step = [], [], Lifting.step
    monkeypatch.setattr(Lifting, "step", lambda self: made.append(1) or step(self))
    block = centred_block(kernel(0, 12))

    def tell(proof):
        told.append((proof.steps, len(made)))

    prove(block, np.arange(12) % 3, Effort(3, "lifted"), tell=tell)
    assert len(told) > 1
    assert all(steps == count for steps, count in told)


def test_a_proof_ends_in_time_though_an_evaluation_takes_longer_than_all_before(monkeypatch):
    room, now, took, step = "sketchmeans.certificate.proving", [0.0], [1.0, 5.0, 7.5], 0.125

    def evaluated(*given):
        evaluated.count += 1
        now[0] += took[min(evaluated.count, 3) - 1]
        return float(evaluated.count)

    def stepped(self):
        now[0] += step

    evaluated.count = 0
    monkeypatch.setattr(f"{room}.time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(f"{room}.objective_bound", evaluated)
    monkeypatch.setattr(f"{room}.objective_of", lambda *given: (10.0,))
    monkeypatch.setattr(Lifting, "step", stepped)
    found = prove(
        centred_block(kernel(0, 12)), np.arange(12) % 3, Effort(3, "lifted", seconds=20.0)
    )
    assert found.bound == 3  # there was time for a second round
    assert now[0] <= 20 + step


def test_a_proof_is_kept_with_its_rows():
    for rows in (None, np.ones((3, 2))):
        best = Proof(1.5, "lifted", 60, rows)
        again = _best_of(_state_of(best))
        assert (again.bound, again.level, again.steps) == (1.5, "lifted", 60)
        np.testing.assert_array_equal(again.fractional, rows)


def test_the_subspace_of_a_lift_widens_where_it_is_used_up():
    block = centred_block(kernel(0, 60))
    lifting = Lifting(block, 3, dtype=np.float64)
    assert lifting.width == 16
    assert Lifting(centred_block(kernel(0, 8)), 3).width == 7
    Q = lifting.V
    for used, width in ((10, 16), (11, 26), (16, 26)):
        wider = lifting._widened(Q, used)
        assert wider.shape == (60, width)
        np.testing.assert_allclose(wider.T @ wider, np.eye(width), atol=1e-12)
        np.testing.assert_allclose(block.u @ wider, 0, atol=1e-12)
        np.testing.assert_array_equal(wider[:, :16], Q)
    for columns, width in ((30, 45), (55, 59), (58, 59), (59, 59)):
        basis = np.random.default_rng(0).normal(size=(60, columns))
        basis = np.linalg.qr(basis - np.outer(block.u, block.u @ basis))[0]
        assert lifting._widened(basis, columns).shape[1] == width
    top = np.linalg.eigvalsh(block.K)[-1]
    assert lifting.scale == pytest.approx(top, rel=1e-6)


def test_multipliers_ascend_to_what_cuts_allow():
    u = np.full(6, 6**-0.5)
    random = np.random.default_rng(0)
    Z = random.uniform(0, 1, (6, 6))
    Z += Z.T
    cuts = no_cuts(6, np.float64)
    cuts = with_new(cuts, violated(lambda rows: Z[rows], u, cuts, one_by_one), u)
    G = cuts.G.toarray()
    target = Z.ravel()[cuts.keys] * cuts.stretch

    def value(mu):
        return -0.5 * np.square(np.maximum(target - G.T @ mu, 0)).sum()

    # Nesterov's bound, 2‖μ* − μ‖²/(step · (T + 1)²), against the end of many steps.
    before = value(cuts.mu)
    cuts.ascend(Z)
    after, first = value(cuts.mu), cuts.mu.copy()
    np.testing.assert_allclose(cuts.shift * cuts.stretch, G.T @ cuts.mu)
    for _ in range(300):
        cuts.ascend(Z)
    best = value(cuts.mu)
    assert before < after <= best + 1e-12
    assert best - after <= 2 * np.square(cuts.mu).sum() / (cuts.step * (ASCENTS + 1) ** 2)
    assert best - after <= 0.1 * (best - before)
    assert (first >= 0).all()
    shift, off = cuts.exact_shift(u)
    np.testing.assert_allclose(shift, cuts.shift[cuts.source])
    terms = np.count_nonzero(G, axis=0).max()
    size = np.linalg.norm(np.abs(G).T @ cuts.mu)
    assert off == pytest.approx((terms + 8) * EPS * size, rel=1e-9, abs=0)


def test_multipliers_take_the_accelerated_steps_of_beck_and_teboulle():
    u, Z = np.full(6, 6**-0.5), np.random.default_rng(0).uniform(0, 1, (6, 6))
    Z += Z.T
    cuts = no_cuts(6, np.float64)
    cuts = with_new(cuts, violated(lambda rows: Z[rows], u, cuts, one_by_one), u)
    G, target = cuts.G.toarray(), Z.ravel()[cuts.keys] * cuts.stretch
    before = ahead = np.zeros(len(cuts))
    t = 1.0
    for _ in range(ASCENTS):
        gradient = G @ np.maximum(target - G.T @ ahead, 0)
        now = np.maximum(ahead + cuts.step * gradient, 0)
        t, last = (1 + np.sqrt(1 + 4 * t**2)) / 2, t
        before, ahead = now, now + (last - 1) / t * (now - before)
    cuts.ascend(Z)
    np.testing.assert_allclose(cuts.mu, before, atol=1e-12)


def test_rows_of_multipliers_and_the_lifted_kernel_hold_what_cuts_shift():
    block = centred_block(kernel(1, 8))
    lifting = Lifting(block, 2, dtype=np.float64)
    for _ in range(5):
        lifting.step()
    assert lifting.add_cuts() == len(lifting.cuts) > 0
    for _ in range(5):
        lifting.step()
    cuts = lifting.cuts
    S = np.zeros(64)
    S[cuts.where] = cuts.shift[cuts.source]
    S = S.reshape(8, 8)
    np.testing.assert_allclose(S, S.T)
    assert np.abs(S).max() > 0
    expected = np.minimum(lifting.T, S)
    parts = [lifting.multipliers(rows) for rows in (slice(0, 3), slice(3, 8))]
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    A, off = lifting.matrix()
    np.testing.assert_allclose(A, block.K - lifting.scale * expected, atol=1e-9)
    exact = cuts.exact_shift(block.u)[1]
    assert off == pytest.approx(lifting.scale * exact * np.sqrt(2), rel=1e-9, abs=0)


def test_a_matrix_printed_with_few_digits_is_symmetric_enough():
    K = np.array([[2.0, 1.0], [1.0 + 2e-4, 2.0]])
    refuse_asymmetric(K)
    K[1, 0] += 1e-6
    with pytest.raises(ValueError, match=r"holds 1 and 1.0002"):
        refuse_asymmetric(K)
    refuse_asymmetric(np.zeros((0, 0)))


def test_each_sample_of_a_round_takes_the_cheapest_block_that_is_left():
    cost = np.array([[3.0, 1.0, 2.0], [5.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    assert _chosen(cost).tolist() == [1, 2, 0]


def test_residuals_are_taken_from_the_means_of_clusters_and_weighted():
    rows, labels = np.array([[1.0, 0], [3, 2], [7, 7], [9, 8]]), np.array([4, 4, 1, 0])
    found = _residuals(rows, labels, None)
    np.testing.assert_allclose(found, [[-1, -1], [1, 1], [0, 0], [0, 0]])
    found = _residuals(rows, labels, np.array([2.0, 3, 4, 5]))
    np.testing.assert_allclose(found, [[-2, -2], [3, 3], [0, 0], [0, 0]])
    wide = np.random.default_rng(0).normal(size=(4, 64))
    np.testing.assert_allclose(_residuals(wide, labels, None)[0], (wide[0] - wide[1]) / 2)
    assert _residuals(np.ones((4, 65)), labels, None).shape == (4, 64)


def test_the_objective_from_memberships_counts_no_empty_cluster():
    labels, K = np.array([0, 2, 0, 2, 2]), kernel()
    members = memberships(labels, None, 4)
    assert members.dtype == np.int8
    found = exact_objective(float(np.trace(K)), members, K @ members)
    assert found == pytest.approx(objective(K, labels))


def test_of_two_certificates_the_tighter_numbers_are_taken():
    def certificate(lower, upper, best, **more):
        names = {"objective_lower": lower, "objective_upper": upper, "optimum_lower": best}
        return Certificate(2, 10.0, 1.0, **names, **more)

    def numbers(one):
        return one.objective_lower, one.objective_upper, one.optimum_lower, one.relative_gap

    found, other = certificate(3.0, 6.0, 2.0, level="free"), certificate(4.0, 5.0, 2.5)
    assert numbers(with_best_of(found, other)) == (4, 5, 2.5, 1.0)
    assert numbers(with_best_of(found, other, same_labels=False)) == (3, 6, 2.5, 1.4)
    small = certificate(0.75, 1.5, 0.5), certificate(0.25, 1.0, 0.25)
    assert numbers(with_best_of(*small)) == (0.75, 1.0, 0.5, 1.0)
    worse = certificate(1.0, 9.0, 2.0, level="lifted", n_blocks=7)
    assert numbers(with_best_of(found, worse)) == (3, 6, 2, 2.0)
    assert with_best_of(found, worse).level == "free"
    better = certificate(1.0, 9.0, 3.5, level="lifted", n_blocks=7)
    joined = with_best_of(found, better)
    assert numbers(joined)[:3] == (3.5, 6, 3.5)
    assert (joined.level, joined.n_blocks) == ("lifted", 7)
    assert with_best_of(found, certificate(7.0, 9.0, 6.5)) is found  # a contradiction
    assert with_best_of(found, certificate(6.0, 9.0, 6.0)).relative_gap == 0
    assert with_best_of(certificate(0.0, 1.0, 0.0), certificate(0.0, 2.0, 0.0)).relative_gap is None
    assert with_best_of(certificate(0.0, 0.0, 0.0), certificate(0.0, 0.0, 0.0)).relative_gap == 0
    # Without a bound there is nothing to join; nor with a cut, or what rests on an assumption.
    for one, two in (
        (certificate(3.0, None, 2.0), other),
        (found, certificate(4.0, None, 2.5)),
        (found, certificate(4.0, 5.0, None)),
        (certificate(3.0, 6.0, 2.0, normalized_cut=1.0), other),
        (found, certificate(4.0, 5.0, 2.5, assumes_psd=True)),
    ):
        assert with_best_of(one, two) is one


def test_what_is_known_of_blocks_goes_on_from_a_checkpoint():
    blocks = [np.arange(3), np.arange(3, 6), np.arange(6, 9)]
    ask = Blockwise(DataOperator(np.eye(9), Linear()), np.zeros(9, int), Effort(2), 0.0)
    found, other = _Found(replace(ask, keep_fractional=True), blocks), _Found(ask, blocks)
    rows = np.ones((3, 2))
    found.note(0, Proof(1.5, "lifted", 30, rows))
    found.note(1, Proof(2.5, "triangles", 60))
    state = found.state(2)
    assert state["bounds"].tolist() == [1.5, 2.5]
    other.restore({**state, "done": 2})
    assert other.bound(interrupted=False).value == 4
    assert other.bound(interrupted=False).level == "triangles"
    np.testing.assert_array_equal(other.fractional[0][0], blocks[0])
    np.testing.assert_array_equal(other.fractional[0][1], rows)
    assert [proof and proof.steps for proof in other.proofs] == [30, 60, None]
    # Of nothing nothing is known, but that objectives of K ≽ 0 are not negative.
    assert _Found(ask, blocks).bound(interrupted=True).value == 0
    given = CallableOperator(np.eye(9), lambda A, B: A @ B.T)
    assert _Found(replace(ask, operator=given), blocks[:1]).bound(interrupted=True).value == -np.inf
    assert _Found(replace(ask, operator=given), blocks).bound(interrupted=True).value == 0
