"""The compiled scalar maps against longdouble, on every level that this processor can run."""

import numpy as np
import pytest

native = pytest.importorskip("sketchmeans.engine._native", reason="the native engine was not built")

RANGE = {np.float32: (-160.0, 135.0), np.float64: (-1090.0, 1030.0)}


@pytest.fixture(params=native.levels())
def level(request):
    before = native.use(request.param)
    yield request.param
    native.use(before)


def mapped(code, numbers, degree=1):
    out = numbers.copy()
    native.apply_map(code, degree, out)
    return out


def off_by(found, truth):
    """Return the largest error in ulp of the found precision, and the largest relative error."""
    error = np.abs(found.astype(np.longdouble) - truth)
    ulp = np.spacing(np.abs(truth).astype(found.dtype)).astype(np.longdouble)
    normal = np.abs(truth) > np.finfo(found.dtype).tiny
    return float((error / ulp).max()), float((error[normal] / np.abs(truth[normal])).max())


def between(low, high, dtype, count=1_000_003):
    """Return numbers all over a range, and the neighbours of its whole and half numbers."""
    even = np.linspace(low, high, count)
    halves = np.arange(np.ceil(2 * low), np.floor(2 * high) + 1) / 2
    halves = halves.astype(dtype)
    around = [np.nextafter(halves, dtype(side)) for side in (-np.inf, np.inf)]
    return np.concatenate([even.astype(dtype), halves, *around])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_two_are_right_as_stated_down_to_the_subnormal_ones(level, dtype):
    t = between(*RANGE[dtype], dtype)
    truth = np.exp2(t.astype(np.longdouble))
    found = mapped(native.EXP2, t)
    largest = np.longdouble(np.finfo(dtype).max)
    finite = truth <= largest
    ulp, relative = off_by(found[finite], truth[finite])
    if dtype is np.float32:
        assert ulp <= 2
    else:
        assert relative <= 5e-16
    assert np.isinf(found[truth > largest * (1 + np.finfo(dtype).eps)]).all()
    tiny = (truth < np.finfo(dtype).tiny) & (truth > 0)
    assert (found[tiny] > 0).any(), "subnormal results are not flushed to zero"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exponential_at_the_ends_of_its_range(level, dtype):
    t = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 1e30, -1e30], dtype)
    expected = np.array([0, np.inf, np.nan, 1, 1, 2, 0.5, np.inf, 0], dtype)
    np.testing.assert_array_equal(mapped(native.EXP2, t), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_is_right_as_stated_down_to_the_smallest_numbers(level, dtype):
    small = np.geomspace(np.finfo(dtype).tiny, 25, 500_001).astype(dtype)
    x = np.concatenate([between(-25, 25, dtype), small, -small])
    ulp, relative = off_by(mapped(native.TANH, x), np.tanh(x.astype(np.longdouble)))
    if dtype is np.float32:
        assert ulp <= 2
    else:
        assert relative <= 5e-16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_at_the_ends_of_its_range(level, dtype):
    x = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, 1e30, -1e30], dtype)
    found = mapped(native.TANH, x)
    np.testing.assert_array_equal(found, np.array([-1, 1, np.nan, 0, 0, 1, -1], dtype))
    np.testing.assert_array_equal(np.signbit(found[3:5]), [False, True])


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 6, 7, 8, 13, 32, 255])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_err_by_a_rounding_for_each_of_their_multiplications(level, degree, dtype):
    x = np.random.default_rng(degree).uniform(0.8, 1.2, 10_001).astype(dtype)
    x[::2] *= -1
    found = mapped(native.POWER, x, degree)
    truth = x.astype(np.longdouble) ** degree
    # One rounding of half an ulp a multiplication, doubled by every squaring that follows.
    bound = (degree - 1) * np.finfo(dtype).eps / 2 * 1.01
    assert off_by(found, truth)[1] <= bound


def test_arrays_of_any_length_are_mapped_to_the_last_number(level):
    for count in range(0, 40):
        numbers = np.linspace(-3, 3, count)
        np.testing.assert_allclose(mapped(native.EXP2, numbers), np.exp2(numbers), rtol=1e-15)
