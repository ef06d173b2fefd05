"""Arrays that end where readable memory ends: to read past them kills the process.

Run as a script, it computes native tiles, transforms and sparse products on such arrays.
"""

import ctypes
import mmap

import numpy as np
from scipy import sparse
from scipy.linalg import hadamard

from sketchmeans.engine import _native as native

_KEPT = []


def guarded(array):
    """Return a copy of an array that ends at a page which may not be touched."""
    array = np.ascontiguousarray(array)
    page = mmap.PAGESIZE
    length = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, length + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + length), page, 0) == 0
    _KEPT.append(memory)
    offset = length - array.nbytes
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


def panels(matrix):
    """Return a matrix in panels, at the edge of memory."""
    size = native.PANEL_BYTES // matrix.itemsize
    out = guarded(np.empty((-(-len(matrix) // size), matrix.shape[1], size), matrix.dtype))
    native.pack(guarded(matrix), out)
    return out


def check(statistic, rows, columns, features, width, dtype, *, once):
    """Compute a tile whose every array ends at the edge, and compare it with NumPy.

    ``once`` leaves out what a tile on the diagonal and those of new points do without.
    """
    random = np.random.default_rng(rows * columns)
    X, Y = random.normal(size=(rows, features)), random.normal(size=(columns, features))
    X, Y = X.astype(dtype), Y.astype(dtype)
    if statistic == native.MANHATTAN:
        truth = np.abs(X[:, None].astype(float) - Y).sum(axis=2)
    else:
        truth = X.astype(float) @ Y.T.astype(float)
    given = statistic == native.GIVEN
    left = guarded(truth.astype(dtype)) if given else panels(X)
    omegas = [random.normal(size=(count, width)).astype(dtype) for count in (rows, columns)]
    weights = [random.uniform(1, 2, count).astype(dtype) for count in (rows, columns)]
    W = [guarded(np.zeros((count, width))) for count in (rows, columns)]
    diagonal = guarded(np.zeros(min(rows, columns)))
    weighted = {"left_weight": guarded(weights[0]), "right_weight": guarded(weights[1])}
    both = {"left_omega": panels(omegas[0]), "right_W": W[1], "diagonal": diagonal}
    if once:
        weighted, both = {}, {}
    else:
        truth *= weights[0][:, None] * weights[1].astype(float)
    squares = native.tile(
        statistic,
        left,
        *(guarded(np.zeros(count, dtype)) for count in (rows, columns)),
        panels(omegas[1]),
        W[0],
        right=None if given else panels(Y),
        features=features,
        **weighted,
        **both,
    )
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"atol": 1e-10}
    np.testing.assert_allclose(W[0], truth @ omegas[1], **tolerance)
    np.testing.assert_allclose(squares, np.square(truth).sum(), rtol=1e-4)
    if not once:
        np.testing.assert_allclose(W[1], truth.T @ omegas[0], **tolerance)
        np.testing.assert_allclose(diagonal, np.diagonal(truth), **tolerance)


def check_transform(rows, columns, dtype):
    """Transform a matrix at the edge, whole and as threads share it, and compare with SciPy's."""
    numbers = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype(dtype)
    expected = hadamard(rows) @ numbers  # whole numbers: exact in any order
    whole = guarded(numbers)
    native.transform(whole)
    np.testing.assert_array_equal(whole, expected)
    if rows >= 8:
        shared = guarded(numbers)
        native.transform(shared, guarded(np.zeros(2, np.uint32)))
        np.testing.assert_array_equal(shared, expected)


def check_sparse(rows, inner, columns, dtype):
    """Multiply sparse matrices at the edge, and compare with SciPy's product."""
    random = np.random.default_rng(rows)
    shapes = (rows, inner), (inner, columns)
    one, other = (
        sparse.random_array(s, density=0.3, random_state=random, format="csr") for s in shapes
    )
    arrays = [
        guarded(array)
        for matrix in (one, other)
        for array in (*map(np.int32, (matrix.indptr, matrix.indices)), matrix.data.astype(dtype))
    ]
    out = guarded(np.full((rows, columns), np.nan, dtype))
    native.sparse_dots(*arrays, out)
    np.testing.assert_allclose(out, (one @ other).toarray(), rtol=1e-5, atol=1e-6)


def main():
    """Run over levels, precisions, statistics and ragged shapes."""
    for level in native.levels():
        native.use(level)
        for dtype in (np.float32, np.float64):
            for statistic in (native.DOT, native.MANHATTAN, native.GIVEN):
                for rows, columns in ((1, 1), (15, 17), (16, 16), (33, 7), (3, 345), (50, 200)):
                    for features, width in ((1, 1), (3, 7), (17, 13)):
                        for once in (False, True):
                            check(statistic, rows, columns, features, width, dtype, once=once)
            for rows, columns in ((1, 1), (2, 3), (8, 1), (64, 17), (256, 5), (4096, 1)):
                check_transform(rows, columns, dtype)
            for shape in ((1, 1, 1), (5, 40, 3), (33, 7, 65)):
                check_sparse(*shape, dtype)
            for map_ in (native.EXP2, native.TANH, native.POWER):
                for count in (1, 15, 17):
                    numbers = guarded(np.zeros(count, dtype))
                    native.apply_map(map_, 2, numbers)
                    assert (numbers == (map_ == native.EXP2)).all()
    print("nothing was read past an end")


if __name__ == "__main__":
    main()
