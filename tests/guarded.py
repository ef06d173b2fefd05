"""Arrays that end where readable memory ends: to read past them kills the process.

Run as a script, it computes native tiles and transforms on such arrays, for ragged shapes.
"""

import ctypes
import mmap

import numpy as np

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


def check(statistic, rows, columns, features, width, dtype):
    """Compute a tile whose every array ends at the edge, and compare it with NumPy."""
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
    truth *= weights[0][:, None] * weights[1].astype(float)
    W = [guarded(np.zeros((count, width))) for count in (rows, columns)]
    diagonal = guarded(np.zeros(min(rows, columns)))
    squares = native.tile(
        statistic,
        left,
        *(guarded(np.zeros(count, dtype)) for count in (rows, columns)),
        panels(omegas[1]),
        W[0],
        right=None if given else panels(Y),
        features=features,
        left_weight=guarded(weights[0]),
        right_weight=guarded(weights[1]),
        left_omega=panels(omegas[0]),
        right_W=W[1],
        diagonal=diagonal,
    )
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"atol": 1e-10}
    np.testing.assert_allclose(W[0], truth @ omegas[1], **tolerance)
    np.testing.assert_allclose(W[1], truth.T @ omegas[0], **tolerance)
    np.testing.assert_allclose(diagonal, np.diagonal(truth), **tolerance)
    np.testing.assert_allclose(squares, np.square(truth).sum(), rtol=1e-4)


def main():
    """Run over levels, precisions, statistics and ragged shapes."""
    for level in native.levels():
        native.use(level)
        for dtype in (np.float32, np.float64):
            for statistic in (native.DOT, native.MANHATTAN, native.GIVEN):
                for rows, columns in ((1, 1), (15, 17), (16, 16), (33, 7), (3, 345), (50, 200)):
                    for features, width in ((1, 1), (3, 7), (17, 13)):
                        check(statistic, rows, columns, features, width, dtype)
            for rows, columns in ((1, 1), (2, 3), (8, 1), (64, 17), (256, 5), (4096, 1)):
                matrix = guarded(np.ones((rows, columns), dtype))
                native.transform(matrix, 0, columns)
                assert matrix[0, 0] == rows
                native.apply_map(native.EXP2, 1, matrix)
                if matrix.size % 8 == 0:
                    native.combine_eighths(matrix, 0, matrix.size // 8)
    print("nothing was read past an end")


if __name__ == "__main__":
    main()
