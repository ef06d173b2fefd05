"""Data and weights of any size: float64 where float32 fails, and an error where nothing is left."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.kernels import KERNELS, Statistic
from sketchmeans.lowrank import METHODS
from sketchmeans.lowrank.nystrom import SAMPLINGS

BLOBS = np.repeat(np.arange(3), 20)
X = 3 * np.eye(3)[BLOBS] + 0.3 * np.random.default_rng(0).normal(size=(60, 3))
OPTIONS = {"kernel": "rbf", "n_init": 2, "random_state": 0}
LAYOUTS = {"dense": np.asarray, "sparse": sparse.csr_matrix}
FITS = {
    **{
        method: lambda method=method: KernelKMeans(3, method=method, **OPTIONS)
        for method in METHODS
    },
    "full": lambda: FullKernelKMeans(3, **OPTIONS),
    "full, sketch": lambda: FullKernelKMeans(3, init="sketch", **OPTIONS),
    "nystrom, kmeans": lambda: KernelKMeans(3, method="nystrom", sketch="kmeans", **OPTIONS),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
each_fit = pytest.mark.parametrize("make", FITS.values(), ids=FITS)
quiet = pytest.mark.filterwarnings(
    "error", "ignore::sketchmeans.lowrank.result.IndefiniteKernelWarning"
)


def check_close(value, expected, tolerance):
    """Compare two bounds, where there are two: an indefinite kernel has none."""
    if value is not None and expected is not None:
        assert value == pytest.approx(expected, rel=tolerance)


def outcome(run):
    """Return what a call gives, and the message of its ValueError instead."""
    try:
        return run(), None
    except ValueError as error:
        return None, str(error)


@each_kernel
@each_layout
@pytest.mark.parametrize("scale", [1e-30, 1e-25, 1e-20, 1e-10, 1e10, 1e20, 1e25, 1e30])
@quiet
def test_float32_data_of_any_scale_find_what_float64_finds(kernel, layout, scale):
    single = layout((scale * X).astype(np.float32))
    one = KernelKMeans(3, **OPTIONS | {"kernel": kernel}).fit(single)
    other = KernelKMeans(3, precision="float64", **OPTIONS | {"kernel": kernel})
    other.fit(single.astype(np.float64))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.predict(single), one.labels_)
    tolerance = 2e-6 if one.stats_["precision"] == "float64" else 1e-3
    np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=tolerance)
    check_close(one.certificate_.optimum_lower, other.certificate_.optimum_lower, 10 * tolerance)


@each_kernel
@each_fit
@pytest.mark.parametrize("scale", [1e-30, 1e30])
@quiet
def test_every_method_takes_float32_data_of_any_scale(make, kernel, scale):
    small = make().set_params(kernel=kernel).fit((scale * X).astype(np.float32))
    plain = make().set_params(kernel=kernel).fit(X.astype(np.float32))
    assert adjusted_rand_score(small.labels_, plain.labels_) == 1.0
    assert np.isfinite(small.inertia_)


@each_layout
def test_gamma_of_float32_data_is_that_of_the_same_numbers_in_float64(layout):
    for scale in (1e-30, 1.0, 1e30):
        for gamma in ("median", "scale"):
            single = layout((scale * X).astype(np.float32))
            one, other = (
                KernelEmbedding(3, gamma=gamma, precision="float64", random_state=0).fit(data)
                for data in (single, single.astype(np.float64))
            )
            np.testing.assert_allclose(one.gamma_, other.gamma_, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_float32_that_was_asked_for_and_cannot_hold_the_data_is_refused(scale):
    model = KernelKMeans(3, precision="float32", **OPTIONS)
    with pytest.raises(ValueError, match=r'precision="float32" cannot hold.*precision="float64"'):
        model.fit(scale * X)


@each_kernel
@each_layout
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-160, 1e160, 1e200, 1e307])
@quiet
def test_values_that_are_too_small_or_large_give_labels_or_one_clear_error(kernel, layout, scale):
    data = layout(scale * X)
    named = f"{abs(scale * X).max():g}"
    for make in FITS.values():
        model = make().set_params(kernel=kernel)
        error = outcome(lambda model=model: model.fit(data))[1]
        if error is not None:
            assert re.search(r"[Rr]escale X", error), error
            assert named in error or re.search(r"row \d+ of X has norm", error), error
        else:
            cls = KERNELS[kernel]
            assert cls.unit_rows or cls.statistic is Statistic.MANHATTAN
            assert adjusted_rand_score(model.labels_, BLOBS) == 1.0
            np.testing.assert_array_equal(model.predict(data), model.labels_)


def test_values_that_collapse_are_refused_before_the_pass(monkeypatch):
    monkeypatch.setattr(
        "sketchmeans.estimators.sketched.approximate", lambda *a, **k: pytest.fail("a pass")
    )
    with pytest.raises(ValueError, match=r"values up to 3.*e-200 .*vanishes: 0 .*X / 3.*e-200"):
        KernelKMeans(3, kernel="rbf").fit(1e-200 * X)
    with pytest.raises(ValueError, match=r"values up to 3.*e\+200 .*overflows: inf .*X / 3"):
        KernelKMeans(3, kernel="rbf").fit(1e200 * X)


@each_layout
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.0}, r"gamma=0 makes any two samples alike: kernel='rbf' would be the same "),
        ({"gamma": 1e-20}, r"rbf kernel is 1 .* to gamma=1e-20 .* is nothing. Rescale"),
        ({"kernel": "laplacian", "gamma": 1e-20}, r"laplacian kernel is 1 for all pairs"),
        ({"kernel": "polynomial", "gamma": 1e-20}, r"polynomial kernel is 1 for all pairs"),
        ({"kernel": "sigmoid", "gamma": 1e-20}, r"sigmoid kernel is 0.761594 for all pairs"),
        ({"kernel": "sigmoid", "gamma": 1e9}, r"sigmoid kernel is 1 .* too much. Rescale"),
    ],
    ids=str,
)
@quiet
def test_a_kernel_that_is_the_same_for_all_pairs_is_refused(options, message, layout):
    for make in FITS.values():
        with pytest.raises(ValueError, match=message):
            make().set_params(**options).fit(layout(np.abs(X) + 1))


@each_layout
def test_one_sample_that_differs_is_seen_wherever_it_is(layout):
    data = 1e-12 * np.random.default_rng(0).normal(size=(1000, 2))
    data[123] = 5.0
    model = KernelKMeans(2, gamma=1.0, **OPTIONS).fit(layout(data))
    assert (model.labels_ == model.labels_[123]).sum() == 1


@each_kernel
@each_layout
@pytest.mark.parametrize("value", [0.0, 1e-200, 1.0])
def test_samples_that_are_all_equal_are_no_error(kernel, layout, value):
    data = layout(np.full((30, 2), value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for make in FITS.values():
            model = make().set_params(kernel=kernel).fit(data)
            assert model.inertia_ == pytest.approx(0, abs=1e-12)


@quiet
def test_new_points_that_are_far_away_give_a_label_or_an_error_and_no_warning():
    for kernel in KERNELS:
        for dtype in (np.float32, np.float64):
            model = KernelKMeans(3, **OPTIONS | {"kernel": kernel}).fit(X.astype(dtype))
            for scale in (1e20, 1e30, 1e100, 1e200, 1e307):
                if scale < float(np.finfo(dtype).max) / 10:
                    far = (scale * X).astype(dtype)
                    labels, error = outcome(lambda m=model, far=far: m.predict(far))
                    assert set(labels) <= {0, 1, 2} if error is None else "not finite" in error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@quiet
def test_every_sampling_takes_weights_of_any_scale(dtype, sampling):
    make = KernelKMeans(3, method="nystrom", sketch=sampling, **OPTIONS)
    for weight in (2.0**-300, 2.0**300):
        model = make.fit(X.astype(dtype), sample_weight=np.full(60, weight))
        assert adjusted_rand_score(model.labels_, BLOBS) == 1.0


@each_fit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "precomputed"])
@quiet
def test_the_scale_of_weights_scales_the_objective_and_nothing_else(make, dtype, kernel):
    weights = np.random.default_rng(1).uniform(0.5, 2, 60)
    data = X.astype(dtype)
    if kernel == "precomputed":
        data = np.exp(-0.2 * np.square(data[:, None] - data).sum(axis=2))
    model = make().set_params(kernel=kernel)
    if kernel == "precomputed" and getattr(model, "sketch", "") == "kmeans":
        model.set_params(sketch="auto")  # there are no data to put landmarks among
    model.fit(data, sample_weight=weights)
    labels, inertia = model.labels_, model.inertia_
    lower = model.certificate_.optimum_lower
    for scale in (2.0**-320, 2.0**-60, 2.0**60, 2.0**320):
        model.fit(data, sample_weight=scale * weights)
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_allclose(model.inertia_, scale * inertia, rtol=1e-3)
        check_close(
            model.certificate_.optimum_lower, lower if lower is None else scale * lower, 1e-2
        )
        np.testing.assert_allclose(
            model.score(data, sample_weight=scale * weights), -scale * inertia, rtol=1e-3
        )


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        (np.full(60, 1e300), "6e+301"),
        (np.full(60, 1e-300), "6e-299"),
        (np.full(60, 5e-324), "2.96439e-322"),
        (np.full(60, 1e308), "inf"),
        (np.where(BLOBS == 0, 1e300, 1.0), "2e+301"),
    ],
    ids=["large", "small", "subnormal", "sum overflows", "ratio"],
)
@each_fit
@quiet
def test_weights_whose_squares_are_no_numbers_are_refused(make, weights, named):
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match=f"sums to {re.escape(named)}, outside .* Divide all"):
            make().fit(X.astype(dtype), sample_weight=weights)


@each_fit
@pytest.mark.parametrize("light", [5e-324, 1e-300, 1e-60, 1e-25, 1e-19, 1e-12])
@quiet
def test_samples_of_hardly_any_weight_get_the_nearest_cluster(make, light):
    weights = np.where(np.arange(60) % 3 == 0, light, 1.0)
    left_out = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    for dtype in (np.float32, np.float64):
        model = make().fit(X.astype(dtype), sample_weight=weights)
        other = make().fit(X.astype(dtype), sample_weight=left_out)
        assert adjusted_rand_score(model.labels_, BLOBS) == 1.0
        np.testing.assert_allclose(model.inertia_, other.inertia_, rtol=0.2)
        if light < 1e-20:
            np.testing.assert_array_equal(model.labels_, other.labels_)


def test_a_kernel_and_weights_that_overflow_only_together_are_refused():
    with pytest.raises(ValueError, match=r"times the largest sample_weight, 1e\+90, is outside .*"):
        KernelKMeans(3, kernel="linear").fit(1e40 * X, sample_weight=np.full(60, 1e90))
    with pytest.raises(ValueError, match=r"the precomputed kernel, .*: rescale it"):
        KernelKMeans(3, kernel="precomputed").fit(1e200 * X @ X.T)
