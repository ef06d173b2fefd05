"""Rules of certificates: what they say of numbers that can be checked by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

from oracles import objective
from sketchmeans.certificate.above import _gained, objective_above
from sketchmeans.certificate.blockwise import block_bytes, size_for
from sketchmeans.certificate.bracket import (
    approximate_objective,
    bracket,
    streamed_objective,
)
from sketchmeans.certificate.cut import cut_certificate
from sketchmeans.certificate.gap import _leading_error, gap_bound, signed_leading, truncated
from sketchmeans.certificate.intervals import intervals, verdict
from sketchmeans.certificate.moments import Moments, moments
from sketchmeans.certificate.optimum import (
    _Vessel,
    leading_sum_bound,
    optimum_lower_bound,
)
from sketchmeans.certificate.probable import norm_bound, probable_gap, probable_optimum
from sketchmeans.certificate.proving import Effort, _Clock, _Schedule
from sketchmeans.certificate.result import Certificate
from sketchmeans.certificate.sampling import geometric_bound
from sketchmeans.engine import ALONE
from sketchmeans.kernels import Gaussian
from sketchmeans.lowrank.core import EPS
from sketchmeans.lowrank.result import Cost, Facts, LowRank
from sketchmeans.operators import DataOperator
from sketchmeans.operators.features import Gram


def known(**changes):
    """Moments of a kernel of six samples, whose K̂ has the eigenvalues 4, 3, 2, 1."""
    numbers = {
        "count": 5,
        "trace_lower": 12.0,
        "trace_upper": 12.0,
        "squares": np.inf,
        "centred": np.diag([4.0, 3.0, 2.0, 1.0]),
        "size": 4.0,
        "slack": 0.0,
        "drop": 0.0,
        "error": 0.0,
    }
    return Moments(**{**numbers, **changes})


def low_rank(factor, rank, *, facts=None, eta=0.0, early=None):
    values = np.square(factor).sum(axis=0)
    facts = facts or Facts(float(values.sum()), 0.0)
    return LowRank(factor, values, rank, factor[:, :rank], facts, eta, Cost(), early=early)


@pytest.mark.parametrize(
    ("floor", "zeros", "total", "expected"),
    [
        ([3, 1], 2, 4.0, 10.0),
        ([3, 1], 2, 5.0, 10.5),
        ([3, 1], 2, 6.0, 12.0),
        ([3, 1], 2, 7.0, 9 + 3 * (4 / 3) ** 2),
        ([3, 1], 2, 12.0, 36.0),
        ([3, 1], 2, 16.0, 64.0),
        ([3, 1], 0, 5.0, 13.0),
        ([3, 1], 0, 8.0, 32.0),
        ([], 4, 8.0, 16.0),
        ([], 0, 0.0, 0.0),
        ([3, 1], 2, 3.9, np.inf),
        ([3, 1], 0, 4 - 1e-13, 10.0),
        ([3, 1], 2, 4 - 1e-11, np.inf),
        ([1e-9], 0, -1.0, np.inf),
    ],
)
def test_water_rises_to_one_level_over_the_floors(floor, zeros, total, expected):
    found = _Vessel(np.array(floor, float), zeros).squares(total)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("theta", "k", "t", "f2", "m", "expected"),
    [
        ([], 0, 10.0, 26.0, 5, 0.0),
        ([], 5, 10.0, 26.0, 5, 10.0),
        ([], 2, 10.0, 26.0, 5, (20 + np.sqrt(6 * 30)) / 5),
        ([], 1, 4.0, 8.0, 2, 2.0),  # a single point is possible
        ([], 1, 4.0, 7.0, 2, 4.0),  # none is: the trace holds all the same
        ([3, 2, 1], 1, 7.0, 19.0, 3, 3 + (np.sqrt(5) - 1) / 2),
        ([3, 2, 1], 1, 7.0, 21.0, 3, 4.0),
        ([3, 2, 1], 1, 7.0, 99.0, 3, 4.0),
        ([3, 2], 1, 4.0, 99.0, 2, 3.0),
        ([3, 2, 1, 1], 1, 5.0, 99.0, 2, 3.0),  # no more floors than eigenvalues
        ([3, -1], 1, 4.0, 99.0, 2, 4.0),
        ([3, 1, 1], 2, 9.0, 99.0, 4, 8.0),
    ],
)
def test_the_largest_sum_that_trace_and_squares_allow(theta, k, t, f2, m, expected):
    assert leading_sum_bound(np.array(theta, float), k, t, f2, m) == pytest.approx(expected)


def test_the_best_is_bounded_by_what_is_beyond_the_leading_eigenvalues():
    def bound(n_clusters, **changes):
        return optimum_lower_bound(known(**changes), n_clusters)

    assert bound(2) == 6
    assert bound(1) == 10
    assert bound(2, drop=0.2, slack=0.5, error=0.1) == pytest.approx(5.4)
    assert bound(2, drop=0.2, slack=0.7, error=0.1) == pytest.approx(5.3)
    assert bound(2, error=7.0) == 0
    # All that is known, 3 + a, 2 and 2 − a, has the squares 19 where a² + a = 1.
    some = {"centred": np.diag([3.0, 2.0, 1.0]), "count": 3, "trace_lower": 7.0}
    assert bound(2, **some, squares=19.0, error=0.1) == pytest.approx(
        7 - 3 - (np.sqrt(5) - 1) / 2 - 0.1
    )
    assert bound(2, **some, squares=99.0, error=0.1) == pytest.approx(2.9)
    assert bound(2, **some, squares=99.0, error=9.0) == 0


def test_what_an_approximation_leaves_is_never_below_zero_and_has_its_slack():
    assert known(trace_upper=13.0, slack=0.5).residual == 3.5
    assert known(trace_upper=9.0, slack=0.5).residual == 0.5
    np.testing.assert_allclose(known(drop=1.5).theta, [2.5, 1.5, 0.5, 0])


def test_the_error_of_leading_eigenvalues_follows_from_trace_and_squares():
    M = np.diag([2.0, 1.0])

    def error(k, **changes):
        numbers = {"trace_lower": 13.0, "trace_upper": 13.0, "squares": 26.0 + 5}
        return _leading_error(known(**{**numbers, **changes}), M, k)

    assert error(2) == pytest.approx((20 + np.sqrt(6 * 30)) / 5)
    assert error(1, trace_lower=0.0, squares=30.0) == 5  # the least favourable trace
    assert error(1, trace_lower=0.0, trace_upper=7.0, squares=30.0) == 4
    assert error(1, squares=np.inf) == 10
    assert error(5) == 10
    assert error(4) == 10  # 10² < 4 · 26: so much trace can be in four
    assert error(4, squares=26.0) == pytest.approx((40 + np.sqrt(4 * 5)) / 5)
    assert error(4, squares=25.1) == pytest.approx((40 + np.sqrt(4 * 0.5)) / 5)
    assert error(2, trace_lower=15.0, trace_upper=15.5) == 12.5  # 12² > 5 · 26: a contradiction
    assert error(2, trace_upper=2.0, squares=np.inf) == 0
    assert error(5, slack=0.25) == 10.5
    assert error(1, trace_lower=0.0, squares=28.0, slack=0.25) == 5.25  # 23 + 2 · ¼ · 4 = 25
    assert error(1, trace_lower=15.0, squares=4.0, slack=0.25) == 10.5


def test_the_gap_has_the_error_what_was_truncated_and_what_storing_rounds():
    factor = np.diag([2.0, np.sqrt(3), np.sqrt(2), 1.0, 0.0, 0.0])[:, :4]
    low, u = low_rank(factor, 2), np.full(6, 6**-0.5)
    assert truncated(known(), 2, 1) == 2
    assert truncated(known(), 2, 5) == 3
    stored = 2 * float(np.finfo(np.float32).eps) * 7
    assert gap_bound(low, known(), 1, np.float32, u) == 0
    assert gap_bound(low, known(), 2, np.float32, u) == pytest.approx(4 + stored, rel=1e-12)
    # Of all columns 2 are left, 3 more are truncated; the first two alone leave 5.
    assert gap_bound(low, known(slack=0.5), 3, np.float64, u) == pytest.approx(5 + 2 * 0.5)


def test_an_early_form_adds_what_it_differs_by_from_both_sides():
    random = np.random.default_rng(0)
    F, Y = random.normal(size=(8, 3)), random.normal(size=(8, 4))
    u = np.sqrt(np.arange(1.0, 9) / 36)
    J = np.eye(8) - np.outer(u, u)
    values = np.sort(np.linalg.eigvalsh(J @ (F @ F.T - Y @ Y.T) @ J))
    for k in (1, 2, 6):
        above = np.maximum(values[::-1][:k], 0).sum()
        below = np.maximum(-values[:k], 0).sum()
        assert signed_leading(F, Y, u, k) == pytest.approx(above + below)
    factor = np.diag([2.0, np.sqrt(3), np.sqrt(2), 1.0, 0.0, 0.0])[:, :4]
    early, v = np.zeros((6, 1)), np.full(6, 6**-0.5)
    early[5] = 1.0
    found = gap_bound(low_rank(factor, 1, early=early), known(slack=0.5), 2, np.float64, v)
    change = signed_leading(factor, early, v, 1)
    assert found == pytest.approx(3 + change + 0.5)  # 2, twice the slack, the change, the slack


@pytest.mark.parametrize("size", [1.0, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_moments_are_those_of_the_centred_kernel_with_room_for_rounding(weighted, size):
    random = np.random.default_rng(0)
    F = size * (random.normal(size=(6, 6)) + 1)
    root = np.sqrt(random.uniform(0.5, 2, 6)) if weighted else None
    K, factor = F @ F.T, F[:, :2]
    carried = np.ones(6) if root is None else root
    u = carried / np.linalg.norm(carried)
    J = np.eye(6) - np.outer(u, u)
    trace, squares = np.trace(K), np.square(K).sum()

    def found(eta, rounding, **some):
        return moments(low_rank(factor, 2, facts=Facts(trace, rounding, **some), eta=eta), root)

    met = {"row_sums": K @ carried, "sum_of_squares": float(squares)}
    exact = found(0.0, 0.0, **met)
    assert exact.count == 5
    assert exact.trace_lower == exact.trace_upper == pytest.approx(np.trace(J @ K @ J))
    assert exact.squares == pytest.approx(np.square(J @ K @ J).sum())
    np.testing.assert_allclose(exact.centred, factor.T @ J @ factor, atol=1e-12)
    top = float(np.linalg.eigvalsh(factor @ factor.T)[-1])
    assert exact.size == pytest.approx(top)
    assert (exact.slack, exact.drop, exact.error) == (0, 0, 0)
    eta, off = 1e-3, 1e-2 * trace
    near = found(eta, 1e-2, **met)
    assert near.slack == pytest.approx(4 * eta * top + off)
    assert near.drop == pytest.approx(16 * eta * top + off)
    assert near.error == pytest.approx(2 * off)
    assert near.trace_lower == pytest.approx(max(exact.trace_lower - 2 * off, 0))
    assert near.trace_upper == pytest.approx(exact.trace_upper + 2 * off)
    along, norm = float(u @ K @ u), float(np.linalg.norm(K @ u))
    more = 8 * eta * squares + 2 * off * (2 * norm + along) + 3 * off**2
    assert near.squares == pytest.approx((np.sqrt(exact.squares + more) + off) ** 2)
    apart = found(eta, 1e-2)
    held = float(np.square(factor.T @ u).sum())
    assert (apart.trace_lower, apart.squares) == (0, np.inf)
    assert apart.trace_upper == pytest.approx(trace + off - held + near.slack)
    nothing = moments(low_rank(np.zeros((6, 0)), 0, facts=Facts(trace, 0.0), eta=eta), root)
    assert (nothing.size, nothing.slack) == (0, 0)
    for name, value in met.items():  # one of the two alone says nothing
        assert found(eta, 1e-2, **{name: value}).squares == np.inf


def test_a_likely_bound_takes_the_norm_from_each_leading_eigenvalue():
    some = known(slack=0.5, error=0.25)
    expected = 3 / np.sqrt(chi2.ppf(0.05, 10)) + 0.5
    assert norm_bound(3.0, some, 0.05) == pytest.approx(expected)
    assert probable_optimum(some, 3, 0.5) == pytest.approx(12 - 7 - 1 - 0.25)
    factor = np.zeros((6, 4))
    assert probable_gap(low_rank(factor, 2), some, 3, 0.5) == pytest.approx(3 + 1 + 0.5)
    early = low_rank(factor, 2, early=np.zeros((6, 2)))
    assert probable_gap(early, some, 3, 0.5) == np.inf


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([2, 8], 4.0),  # ¼ · 4, and the root of ¼ · 4 · 16
        ([32, 2], 16.0),
        ([0.5, 2], 1.0),
        ([0.5, 2, 0], 1.0),
        ([2, 8, 0, 99], 4.0),
        ([2, 8, -1, 99], 4.0),
        ([0, 8], 0.0),
        ([], 0.0),
    ],
)
def test_the_mean_of_drawn_blocks_takes_the_best_beginning(bounds, expected):
    assert geometric_bound(np.array(bounds, float), 0.5, 0.25) == pytest.approx(expected)


def test_the_size_of_blocks_follows_from_the_time_for_a_sample():
    # 0.85 · 180 s for 100,000 samples: 1.7 times what a block of a thousand takes.
    assert size_for(100_000, 90.0, 2) == int(1000 * 1.7 ** (1 / 1.4))
    assert size_for(100_000, 1.0, 1) == 100
    assert size_for(100_000, 1000.0, 2) == 2400
    assert size_for(3000, 100.0, 1) == 3000
    assert size_for(3001, 100.0, 1) == 2400
    assert size_for(2800, 1.0, 1) < 2400
    assert size_for(50, 1e-6, 1) == 50
    assert block_bytes(10, "lifted") == 6400
    assert block_bytes(10, "triangles") == 1_206_400


def ends(certificate, plain=None, **more):
    return [(one.low, one.high) for one in intervals(certificate, plain, **more)]


def test_intervals_of_objectives_do_not_contradict_each_other():
    def certificate(lower, upper, best, n_clusters=2, **more):
        more |= {"objective_lower": lower, "objective_upper": upper, "optimum_lower": best}
        return Certificate(n_clusters, 10.0, 1.0, **more)

    assert ends(certificate(3.0, 5.0, 2.0)) == [(3, 5), (2, 5)]
    assert ends(certificate(1.0, 5.0, 2.0)) == [(2, 5), (2, 5)]
    assert ends(certificate(3.0, 5.0, 7.0)) == [(5, 5), (5, 5)]
    assert ends(certificate(3.0, 5.0, 2.0), 4.0) == [(3, 5), (4, 4), (2, 4)]
    assert ends(certificate(3.0, 5.0, 2.0), 1.0) == [(3, 5), (1, 1), (2, 2)]
    assert ends(certificate(3.0, 5.0, 2.0, objective=4.0)) == [(4, 4), (2, 4)]
    assert ends(certificate(3.0, 5.0, 2.0, n_clusters=1)) == []
    for missing in ((None, 5.0, 2.0), (3.0, None, 2.0), (3.0, 5.0, None)):
        assert ends(certificate(*missing)) == []
    told = [one.told for one in intervals(certificate(3.0, 5.0, 2.0), 4.0, at_most=True)]
    assert told == ["between 3 and 5", "at most 4", "at least 2"]
    first = intervals(certificate(3.0, 5.0, 2.0))[0]
    assert first.words == f"{first.name}: between 3 and 5"


def test_intervals_of_cuts_stand_beside_labels_at_random():
    def certificate(cut, least, **more):
        more |= {"normalized_cut": cut, "normalized_cut_lower": least, "objective_upper": 1.0}
        return Certificate(3, 10.0, 1.0, **more)

    assert ends(certificate(0.3, 0.1)) == [(0.3, 0.3), (0.1, 0.3), (2, 2)]
    assert ends(certificate(0.1, 0.3)) == [(0.1, 0.1), (0.1, 0.1), (2, 2)]
    assert ends(certificate(0.3, 0.1), 0.2) == [(0.3, 0.3), (0.2, 0.2), (0.1, 0.2)]
    assert ends(certificate(2e-6, 1e-6))[:2] == [(0, 0), (0, 0)]
    assert ends(certificate(3e-6, 1e-6))[0] == (3e-6, 3e-6)
    assert "no clustering cuts less" in verdict(certificate(2e-6, 0.0))
    assert "Normalized cut 0.3, 15.00%" in verdict(certificate(0.3, 0.1))


def test_a_gap_is_useful_up_to_twice_the_best():
    def told(gap, **more):
        return verdict(Certificate(2, 10.0, 1.0, objective_upper=5.0, relative_gap=gap, **more))

    assert told(2.0).startswith("The objective is at most")
    assert told(np.nextafter(2, 3)).startswith("No useful bound")
    assert told(None).startswith("No useful bound")


def rounds(level, notes, least_gain=0.25):
    """Return a schedule after these rounds, of what they gained and what is left, found = 4."""
    schedule = _Schedule(Effort(2, level, least_gain=least_gain))
    for gained, left in notes:
        schedule.note(gained, left, -4.0)
    return schedule


def test_a_lift_ends_when_a_round_gains_too_little():
    assert not rounds("lifted", [(2.0, 1000.0)]).is_over  # 0.001 · 1000 + 0.25 · 4
    assert rounds("lifted", [(np.nextafter(2, 0), 1000.0)]).is_over
    assert not rounds("lifted", [(1.1, 1.0)]).is_over
    assert not rounds("lifted", [(5e-4, 0.1)], least_gain=0.0).is_over
    assert rounds("lifted", [(9.0, 4e-7)]).is_over
    assert not rounds("lifted", [(9.0, 5e-7)]).is_over
    assert rounds("lifted", [(9.0, -1.0)]).is_over
    assert not rounds("lifted", [(9.0, 1000.0)] * 13).is_over
    assert rounds("lifted", [(9.0, 1000.0)] * 14).is_over
    assert rounds("lifted", []).level == "lifted"


def test_cuts_come_once_a_lift_gains_little_and_end_after_three_rounds_that_do_not():
    assert rounds("triangles", [(0.0, 1000.0)]).level == "lifted"
    assert rounds("triangles", [(0.0, 1000.0)] * 2).level == "triangles"
    assert rounds("triangles", [(50.0, 1000.0)] * 2).level == "lifted"
    assert rounds("triangles", [(49.9, 1000.0)] * 2).level == "triangles"
    assert rounds("triangles", [(90.0, 1000.0)] * 13).level == "lifted"
    assert rounds("triangles", [(90.0, 1000.0)] * 14).level == "triangles"
    begun = [(0.0, 1000.0)] * 2
    gain, none = (11.0, 1000.0), (10.9, 1000.0)  # 0.01 · 1000 + 0.25 · 4
    assert not rounds("triangles", [*begun, none, none]).is_over
    assert rounds("triangles", [*begun, none, none, none]).is_over
    assert not rounds("triangles", [*begun, none, none, gain, none]).is_over
    assert not rounds("triangles", begun + [gain] * 15).is_over
    assert rounds("triangles", begun + [gain] * 16).is_over


def test_a_search_that_finds_no_cut_ends_what_gains_nothing():
    begun = [(0.0, 1000.0)] * 2
    stale, fresh = ([*begun, (gained, 1000.0)] for gained in (0.0, 99.0))
    for notes, count, over in ((stale, 0, True), (stale, 1, False), (fresh, 0, False)):
        schedule = rounds("triangles", notes)
        schedule.note_cuts(count)
        assert schedule.is_over is over
    other = rounds("triangles", [])
    other.restore(rounds("triangles", [*stale, (0.0, 1000.0)]).state())
    other.note(0.0, 1000.0, 4.0)
    assert other.is_over


def test_a_clock_keeps_time_for_one_more_evaluation():
    clock = _Clock(1000.0, lambda: False)
    assert 0 <= clock.spent < 500
    assert not clock.is_over()
    assert not clock.is_over(400.0)
    assert clock.is_over(1000.0)
    clock.evaluation = 700.0  # and half as much again
    assert clock.is_over()
    assert _Clock(1000.0, lambda: True).is_over()
    assert _Clock(None, lambda: True).is_over()
    assert _Clock(None, lambda: False).is_over(1e9) is False


def test_a_clock_is_over_beyond_its_time_and_not_at_it(monkeypatch):
    now = iter([5.0, 15.0, np.nextafter(15, 16)])
    clock = SimpleNamespace(perf_counter=lambda: next(now))
    monkeypatch.setattr("sketchmeans.certificate.proving.time", clock)
    clock = _Clock(10.0, lambda: False)
    assert [clock.is_over(), clock.is_over()] == [False, True]


def test_landmarks_gain_what_clusters_hold_less_twice_what_rounding_can_add():
    A, members = 2 * np.eye(4), np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0.0]])
    sizes, reach = members.sum(axis=0), np.sqrt(2) * members.sum(axis=0)
    assert _gained(A, A @ members, sizes, reach, 0.0) == pytest.approx(4)
    # A cluster: 2 · √2 · 2√2 + 2 · (√2)² = 12 times ε, and twice that is taken away.
    assert _gained(A, A @ members, sizes, reach, 0.01) == pytest.approx(4 - 2 * 0.24)
    # A direction that rounding may have made says nothing: below 10 ε of the largest, or 10⁻¹⁰.
    A[3, 3] = 1e-11
    assert _gained(A, A @ members, sizes, reach, 0.0) == pytest.approx(3)
    A[3, 3] = 0.18
    assert _gained(A, A @ members, sizes, reach, 0.0) == pytest.approx(3.09)
    assert _gained(A, A @ members, sizes, 0 * reach, 0.01) == pytest.approx(3 - 0.08 - 0.02)
    spread = np.diag([4.0, 1.0, 1e-3, 1e-9])  # below 10 · 0.0001 of 4, two are
    found = _gained(spread, spread, np.ones(4), np.zeros(4), 1e-4)
    assert found == pytest.approx(5 - 2e-4 * 5, rel=1e-6)
    A[3, 3] = 0.22
    second = 0.04 * ((np.sqrt(2) + np.sqrt(0.22)) / 2) ** 2
    assert _gained(A, A @ members, sizes, 0 * reach, 0.01) == pytest.approx(3.11 - 0.08 - second)


def test_an_objective_from_above_has_room_for_what_entries_are_off_by():
    operator = DataOperator(np.random.default_rng(0).normal(size=(40, 2)), Gaussian(0.1))
    exact, trace = objective_above(operator, np.arange(40) % 3, 0.0, ALONE)
    found, _ = objective_above(operator, np.arange(40) % 3, 1e-3, ALONE)
    # The trace alone may be off by 0.001 of it, and what clusters gain by more.
    assert trace == 40
    assert found - exact > 2e-3 * trace


def test_an_objective_lies_between_that_of_the_approximation_and_what_it_leaves():
    some = known(trace_upper=12.0, slack=0.125, error=0.25)
    assert bracket(1.0, some) == (0.625, 1 + 2.125 + 0.25)
    assert bracket(0.25, some)[0] == 0


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.5, 3.0, 1.5])])
def test_the_approximate_objective_is_that_of_its_kernel_stored_or_streamed(weights):
    F, labels = np.random.default_rng(0).normal(size=(5, 2)), np.array([0, 3, 0, 3, 1])
    d = np.ones(5) if weights is None else weights
    expected = objective(F @ F.T, labels, weights)
    weighted, u = F * np.sqrt(d)[:, None], np.sqrt(d / d.sum())
    assert approximate_objective(weighted, labels, weights) == pytest.approx(expected)
    J = np.eye(5) - np.outer(u, u)
    gram = Gram(
        weighted.T @ weighted,
        weighted.T @ J @ weighted,
        weighted.T @ u,
        np.square(weighted).sum(axis=1),
    )
    members = (labels[:, None] == np.arange(4)) * np.sqrt(d)[:, None]
    sizes = np.square(members).sum(axis=0)
    assert streamed_objective(gram, weighted.T @ members, sizes) == pytest.approx(expected)


def test_a_cut_is_that_of_clusters_with_members_and_bounded_by_their_number_of_eigenvalues():
    def certificate(eigenvalues, trace=1.5, sums=((1, 0, 0), (0, 1, 0)), weights=None):
        low = low_rank(np.zeros((4, len(eigenvalues))), 1, facts=Facts(trace, 0.0))
        low = replace(low, eigenvalues=np.array(eigenvalues))
        return cut_certificate(np.array([0, 0, 1, 1]), low, np.array(sums, float), weights)

    rounding = 4 * (4 + 16 * 2) * EPS
    found = certificate([1.0, 0.4, 0.1])
    assert found.n_clusters == 2
    assert found.objective == found.objective_upper - 3.5 * rounding == 0.5
    assert found.objective_lower == pytest.approx(0.5 - 3.5 * rounding, rel=1e-15)
    assert found.optimum_lower == pytest.approx(0.1 - 3.5 * rounding, rel=1e-14)
    assert found.optimum_lower < 1.5 - 1.4
    assert found.normalized_cut == 1
    assert found.normalized_cut_lower == pytest.approx(0.6 - 2 * rounding, rel=1e-15)
    assert found.normalized_cut_lower < 0.6
    # Of an eigenvalue that is not known, the last that is known is a bound.
    assert certificate([1.0]).normalized_cut_lower == 0
    assert certificate([0.9]).normalized_cut_lower == pytest.approx(0.2)
    # What rounding brings below zero is zero.
    low = certificate([1.0, 1.0], trace=0.75)
    assert (low.objective, low.objective_lower, low.optimum_lower) == (0, 0, 0)
    assert low.objective_upper == pytest.approx(2.75 * rounding)
    assert certificate([1.0], sums=((2, 0, 0), (0, 2, 0))).normalized_cut == 0
    heavy = certificate([1.0, 0.4], weights=np.array([1.0, 3.0, 2.0, 2.0]))
    assert heavy.normalized_cut == 1.5
