"""Arrays as they come: unaligned, in the other order of bytes, read-only, strided, or mapped."""

import numpy as np
import pytest
from scipy import sparse

from sketchmeans import FullKernelKMeans, KernelEmbedding, KernelKMeans
from sketchmeans.estimators.checks import plain_array, plain_csr
from sketchmeans.kernels import KERNELS
from sketchmeans.lowrank import METHODS

X = 3 * np.eye(3)[np.repeat(np.arange(3), 20)]
X += 0.3 * np.random.default_rng(0).normal(size=X.shape)
OPTIONS = {"kernel": "rbf", "n_init": 1, "random_state": 0}
FITS = {
    **{name: lambda name=name: KernelKMeans(3, method=name, **OPTIONS) for name in METHODS},
    "nystrom, kmeans": lambda: KernelKMeans(3, method="nystrom", sketch="kmeans", **OPTIONS),
    "full": lambda: FullKernelKMeans(3, **OPTIONS),
    "full, sketch": lambda: FullKernelKMeans(3, init="sketch", **OPTIONS),
}


def unaligned(array, *, writeable=True):
    raw = b"\0" + array.tobytes()
    found = np.frombuffer(bytearray(raw) if writeable else raw, array.dtype, offset=1)
    assert not found.flags.aligned
    return found.reshape(array.shape)


def read_only(array):
    found = array.copy()
    found.flags.writeable = False
    return found


def backwards(array):
    axes = tuple(range(array.ndim))
    return np.flip(np.flip(array, axes).copy(), axes)


LAYOUTS = {
    "unaligned": unaligned,
    "unaligned, read-only": lambda array: unaligned(array, writeable=False),
    "swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "swapped, unaligned": lambda array: unaligned(array.astype(array.dtype.newbyteorder())),
    "read-only": read_only,
    "backwards": backwards,
    "Fortran": np.asfortranarray,
    "every second": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
ignore = pytest.mark.filterwarnings("ignore::sketchmeans.lowrank.result.IndefiniteKernelWarning")


def rbf(A, B):
    return np.exp(-0.2 * np.square(A[:, None] - B[None]).sum(axis=2))


def results(model, data, weights=None):
    model.fit(data, sample_weight=weights)
    return model.labels_, model.predict(data), model.inertia_


def check_layouts(model, dtype, kernel, layouts):
    data = X.astype(dtype)
    model.set_params(kernel=kernel)
    if kernel == "precomputed":
        data = rbf(data, data)
        if getattr(model, "sketch", "") == "kmeans":
            model.set_params(sketch="auto")  # there are no data to put landmarks among
    expected = results(model, data)
    for layout in layouts:
        for one, other in zip(expected, results(model, LAYOUTS[layout](data)), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*KERNELS, "precomputed", rbf])
@ignore
def test_every_kernel_and_method_takes_arrays_that_begin_at_any_byte(make, dtype, kernel):
    check_layouts(make(), dtype, kernel, ["unaligned"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*KERNELS, "precomputed", rbf])
@ignore
def test_the_layout_of_an_array_changes_nothing(dtype, kernel):
    check_layouts(KernelKMeans(3, **OPTIONS), dtype, kernel, LAYOUTS)


@each_layout
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@ignore
def test_the_layout_of_a_sparse_matrix_changes_nothing(layout, part):
    plain = sparse.csr_matrix(np.where(np.abs(X) > 0.2, X, 0))
    odd = plain.copy()
    setattr(odd, part, layout(getattr(plain, part)))
    for kernel in KERNELS:
        model = KernelKMeans(3, **OPTIONS | {"kernel": kernel})
        expected = results(model, plain)
        for one, other in zip(expected, results(model, odd), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_the_layout_of_weights_changes_nothing(make):
    weights = np.random.default_rng(1).uniform(0, 3, 60)
    expected = results(make(), X, weights)
    for layout in LAYOUTS.values():
        for one, other in zip(expected, results(make(), X, layout(weights)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_plain_arrays_are_not_copied():
    matrix = sparse.csr_matrix(X)
    assert plain_array(X) is X
    assert plain_csr(matrix) is matrix
    assert KernelEmbedding(3).fit(X)._new_points.points.X is X
    assert KernelEmbedding(3).fit(matrix)._new_points.points.X is matrix


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["dense", "mapped", "sparse"])
@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_a_precomputed_kernel_that_is_not_finite_is_refused_by_every_method(
    make, kind, value, tmp_path
):
    model = make().set_params(kernel="precomputed")
    if getattr(model, "sketch", "") == "kmeans":
        model.set_params(sketch="column-norm")
    for i, j in ((7, 7), (3, 9)):
        K = rbf(X, X)
        K[i, j] = K[j, i] = value
        if kind == "sparse":
            K = sparse.csr_matrix(K)
        elif kind == "mapped":
            np.save(tmp_path / "K.npy", K)
            K = np.load(tmp_path / "K.npy", mmap_mode="r")
        if i == j:
            shown = "NaN" if np.isnan(value) else f"{value:g}"
            with pytest.raises(ValueError, match=rf"K\[7, 7\] is {shown} on the diagonal.*finite"):
                model.fit(K)
            continue
        # What is not on the diagonal is found where it is met: at the latest with all columns.
        model.set_params(**({"rank": 60} if hasattr(model, "rank") else {}))
        with pytest.raises(ValueError, match=r"NaN|infinit"):
            model.fit(K)
