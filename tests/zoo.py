"""Difficult inputs, in the manner of LAPACK's test matrices: as data, each with what may be said.

An animal is rows of samples, or a kernel matrix. ``refused`` names the kernels ("*": every one)
that may answer with a ValueError, and what it says; all else must give a result.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import hilbert

from sketchmeans.graphs import normalized

N = 30
OVERFLOWS = r"overflows: .* is outside|float64 cannot square it"
VANISHES = r"vanishes: .* is outside|float64 cannot square it"
ALIKE = r"kernel is .* for all pairs of samples, although they differ"


@dataclass(frozen=True)
class Animal:
    """A difficult input."""

    make: Callable[[np.dtype], Any]
    """Returns the samples in a dtype, or the kernel matrix."""
    n_clusters: int = 3
    given: bool = False
    """Whether it is a kernel matrix."""
    weights: Callable[[int], np.ndarray] | None = None
    refused: dict[str, str] = field(default_factory=dict)


def noise(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def blobs(n=N, p=4):
    return noise(n, p) + 6 * (np.arange(n) % 3)[:, None]


def with_spectrum(values, n=N):
    """Rows whose singular values are these, with random singular vectors."""
    left = np.linalg.qr(noise(n, len(values)))[0]
    right = np.linalg.qr(noise(len(values), len(values), seed=1))[0]
    return left * values @ right


def rows(X, **options):
    return Animal(lambda dtype: np.asarray(X).astype(dtype), **options)


def wide_or_narrow(X, large, small, **options):
    """Scale by what float64 holds, or by what float32 holds."""
    return Animal(
        lambda dtype: (X * (large if dtype == np.float64 else small)).astype(dtype), **options
    )


def thin(density, *, empty=(), p=40):
    """A sparse matrix, with empty rows."""
    X = sparse.random_array(
        (N, p), density=density, random_state=np.random.default_rng(0), format="lil"
    )
    for row in empty:
        X[row] = 0
    return Animal(lambda dtype: sparse.csr_matrix(X.astype(dtype)))


def explicit_zeros(dtype):
    """Zeros that are stored, and columns in no order."""
    X = sparse.csr_matrix(np.where(np.abs(blobs()) > 1, blobs(), 0).astype(dtype))
    X.data[::5] = 0
    for row in range(0, N, 2):
        part = slice(X.indptr[row], X.indptr[row + 1])
        X.indices[part], X.data[part] = X.indices[part][::-1].copy(), X.data[part][::-1].copy()
    X.has_sorted_indices = False
    return X


def matrix(K, **options):
    return Animal(lambda dtype: np.asarray(K).astype(dtype), given=True, **options)


def gram(values, n=N):
    """A kernel matrix with these eigenvalues."""
    Q = np.linalg.qr(noise(n, n))[0][:, : len(values)]
    K = Q * values @ Q.T
    return (K + K.T) / 2


def path_graphs(*lengths, isolated=0):
    """The normalized kernel of paths that are not connected, and of lone vertices."""
    A = sparse.block_diag([*map(path, lengths), *([np.zeros((1, 1))] * isolated)], format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says what the graph is
        K = normalized(A).kernel
    return lambda dtype: K.astype(dtype)


def path(length):
    return sparse.diags_array([1.0, 1.0], offsets=(-1, 1), shape=(length, length))


def degrees(*lengths, isolated=0):
    return lambda n: np.r_[
        np.concatenate([np.asarray(path(size).sum(axis=1)) for size in lengths]), np.zeros(isolated)
    ]


def outlier(size):
    X = blobs()
    X[7] = size
    return X


def next_numbers(dtype):
    """Ten rows, and the numbers next to theirs on either side."""
    X = noise(10, 3).astype(dtype)
    return np.concatenate([X, np.nextafter(X, dtype.type(9)), np.nextafter(X, dtype.type(-9))])


def near(step):
    """Ten rows, three of each, that differ by so little."""
    return np.repeat(noise(10, 3), 3, axis=0) * (1 + step * noise(N, 1, seed=2))


def signs(n, density):
    K = np.sign(noise(n, n)) * (np.random.default_rng(3).random((n, n)) < density)
    return np.triu(K, 1) + np.triu(K, 1).T + np.eye(n)


SAMPLES = {
    "constant": rows(np.full((N, 3), 2.5)),
    "zeros": rows(np.zeros((N, 3))),
    "one feature, constant": rows(np.full((N, 1), -1.0)),
    "duplicated": rows(np.repeat(noise(6, 3), 5, axis=0)),
    "fewer distinct rows than clusters": rows(np.repeat(noise(2, 3), 15, axis=0), n_clusters=4),
    "two rows, opposite": rows(np.repeat([[1.0, 2.0], [-1.0, -2.0]], 15, axis=0)),
    "rank one": rows(np.outer(noise(N), noise(5, seed=1))),
    "rank one, of one sign": rows(np.outer(np.arange(1.0, N + 1), np.ones(4))),
    "rank two of ten": rows(noise(N, 2) @ noise(2, 10, seed=1)),
    "one large singular value": rows(with_spectrum(np.r_[1.0, np.full(7, 1e-7)])),
    "one small singular value": rows(with_spectrum(np.r_[np.ones(7), 1e-7])),
    "equal singular values": rows(with_spectrum(np.ones(8))),
    "geometric singular values": rows(with_spectrum(10.0 ** -np.arange(8))),
    "arithmetic singular values": rows(with_spectrum(np.arange(8, 0, -1) / 8)),
    "clustered singular values": rows(with_spectrum(np.repeat([1, 1e-3, 1e-6], [3, 3, 2]))),
    "huge": wide_or_narrow(blobs(), 1e34, 1e17),
    "tiny": wide_or_narrow(blobs(), 1e-34, 1e-17),
    "beyond float64's squares": wide_or_narrow(
        blobs(), 1e155, 1e17, refused={"*": OVERFLOWS + "|" + ALIKE}
    ),
    "below float64's squares": wide_or_narrow(
        blobs(), 1e-160, 1e-17, refused={"*": VANISHES + "|" + ALIKE}
    ),
    "denormal": wide_or_narrow(
        blobs(), 1e-310, 1e-40, refused={"*": VANISHES + "|" + ALIKE + "|one over it is no float"}
    ),
    "far from the origin": rows(blobs() + 1e4),
    "very far from the origin": rows(
        blobs() + 1e8, refused={"sigmoid": ALIKE, "linear": ALIKE, "polynomial": ALIKE}
    ),
    "one column far away": rows(np.c_[blobs(), np.full(N, 1e7)]),
    "an outlier": rows(outlier(1e3)),
    "an outlier far away": rows(outlier(1e8)),
    "mixed scales of columns": rows(blobs(p=7) * 10.0 ** np.arange(-6, 8, 2)),
    "mixed scales of rows": rows(blobs() * 10.0 ** np.linspace(-6, 6, N)[:, None]),
    "near-duplicates": rows(near(1e-6)),
    "nearer duplicates": rows(near(1e-12)),
    "next numbers": Animal(next_numbers),
    "sparse": thin(0.2),
    "sparse, nearly empty": thin(0.02),
    "sparse with empty rows": thin(0.2, empty=(0, 7, 8, 29)),
    "sparse zeros": Animal(lambda dtype: sparse.csr_matrix((N, 5), dtype=dtype)),
    "sparse, stored badly": Animal(explicit_zeros),
    "rows of zeros": rows(blobs() * (np.arange(N) % 4 > 0)[:, None]),
    "n = 1": rows(noise(1, 3), n_clusters=1),
    "n = 1, zero": rows(np.zeros((1, 2)), n_clusters=1),
    "n = 2": rows(noise(2, 3), n_clusters=2),
    "n = 2, equal": rows(np.ones((2, 3)), n_clusters=2),
    "n = 3": rows(noise(3, 1), n_clusters=2),
    "as many clusters as samples": rows(noise(9, 2), n_clusters=9),
    "one cluster": rows(blobs(), n_clusters=1),
    "one feature": rows(noise(N, 1)),
    "a line of equal steps": rows(np.arange(float(N))[:, None]),
    "a grid": rows(np.array(np.meshgrid(range(6), range(5))).reshape(2, -1).T),
    "more features than samples": rows(noise(12, 400)),
    "orthogonal": rows(np.eye(N)),
    "antipodes": rows(np.r_[noise(15, 3), -noise(15, 3)]),
    "on a sphere": rows(noise(N, 3) / np.linalg.norm(noise(N, 3), axis=1)[:, None]),
    "Hilbert's rows": rows(hilbert(N)),
    "weights of all sizes": rows(blobs(), weights=lambda n: 10.0 ** np.linspace(-8, 8, n)),
    "weights of zero": rows(blobs(), weights=lambda n: (np.arange(n) % 3 == 0).astype(float)),
    "one weight": rows(blobs(), n_clusters=1, weights=lambda n: np.eye(n)[3]),
    "not in order": Animal(
        lambda dtype: np.asfortranarray(blobs(2 * N, 8).astype(dtype))[::2, ::2]
    ),
}
"""Samples, for every kernel."""

LATER = {
    "one feature, constant",
    "two rows, opposite",
    "rank one, of one sign",
    "rank two of ten",
    "equal singular values",
    "arithmetic singular values",
    "beyond float64's squares",
    "below float64's squares",
    "one column far away",
    "an outlier",
    "nearer duplicates",
    "sparse, nearly empty",
    "sparse zeros",
    "n = 1, zero",
    "n = 2, equal",
    "one cluster",
    "one feature",
    "a line of equal steps",
    "antipodes",
    "on a sphere",
    "Hilbert's rows",
    "one weight",
    "not in order",
    "one small singular value",
    "huge",
}
"""Kin of others: ``python -m soak zoo`` alone visits these."""

INDEFINITE = {
    "hollow": matrix(np.ones((N, N)) - np.eye(N)),
    "signs": matrix(signs(N, 1.0)),
    "few signs": matrix(signs(N, 0.1)),
    "hardly negative": matrix(gram(np.r_[np.ones(N - 1), -1e-3])),
}
"""Kernel matrices that are not positive semidefinite."""

MATRICES = {
    "zero matrix": matrix(np.zeros((N, N))),
    "identity": matrix(np.eye(N)),
    "all ones": matrix(np.ones((N, N))),
    "one by one": matrix([[2.0]], n_clusters=1),
    "two by two": matrix([[1.0, -1.0], [-1.0, 1.0]], n_clusters=2),
    "Hilbert's": matrix(hilbert(N)),
    "hardly positive": matrix(gram(np.r_[np.ones(N - 1), 1e-15])),
    "decaying": matrix(gram(10.0 ** -np.arange(16))),
    "two eigenvalues": matrix(gram(np.r_[np.full(N // 2, 1.0), np.full(N // 2, 1e-4)])),
    "blocks of ones": matrix(np.kron(np.eye(3), np.ones((10, 10)))),
    "a large mean": matrix(1e6 + gram(np.arange(1.0, N + 1))),
    "unequal diagonal": matrix(np.diag(10.0 ** np.linspace(-5, 5, N))),
    "disconnected graphs": Animal(
        path_graphs(10, 9, 6), given=True, weights=degrees(10, 9, 6), n_clusters=3
    ),
    "more components than clusters": Animal(
        path_graphs(6, 6, 6, 6), given=True, weights=degrees(6, 6, 6, 6), n_clusters=2
    ),
    "isolated vertices": Animal(
        path_graphs(12, 8, isolated=3), given=True, weights=degrees(12, 8, isolated=3), n_clusters=2
    ),
    "negative": matrix(-np.eye(N), refused={"*": r"is negative: a kernel matrix has a non-neg"}),
    **INDEFINITE,
}
"""Kernel matrices, for kernel="precomputed"."""

ZOO = SAMPLES | MATRICES
