"""Sketches: random test matrices Ω, each a distribution and a seed.

Any block of rows of Ω can be made alone, on any thread and in any process, with the same numbers:
rows are drawn in fixed chunks, each from a counter-based generator that is keyed by the seed and
set to the number of the chunk. ``SKETCHES`` is the registry that estimators and tests run over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from sketchmeans._arrays import Array
from sketchmeans.blocks import multiply_columns
from sketchmeans.engine import engine_name, fwht
from sketchmeans.engine.native import aligned_zeros

CHUNK = 1024
"""Rows of Ω drawn from one generator; fixed, for it decides the numbers."""

FWHT_MIN_WIDTH = {"numpy": {4: 384, 8: 320}, "native": {4: 192, 8: 128}}
"""Width from which the fast transform beats explicit rows, by engine and bytes per number.

Measured with ``python -m benchmarks.hadamard_switch``; docs/benchmarks keeps its table.
"""


class Sketch(ABC):
    """A random n × width matrix Ω that exists a block at a time.

    Parameters
    ----------
    n : int
        Rows: one per sample.
    width : int
        Columns, the paper's r'.
    seed : int
        Fixes every number.
    """

    name: ClassVar[str]
    dtype: ClassVar[Any] = np.int8
    """Of ``rows``: signs and zeros fit a byte, so Ω costs an eighth of W."""

    def __init__(self, n: int, width: int, seed: int) -> None:
        if width < 1 or n < 1:
            raise ValueError(f"a sketch needs at least one row and column, not {n} × {width}.")
        self.n, self.width, self.seed = n, width, seed
        self._key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._matrix: Array | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, width={self.width}, seed={self.seed})"

    def _generator(self, chunk: int, stream: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=self._key, counter=[0, 0, chunk, stream]))

    @abstractmethod
    def _chunk(self, start: int, stop: int, random: np.random.Generator) -> Array:
        """Make the rows [start, stop) of one chunk."""

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows [start, stop) of Ω."""
        out = np.empty((stop - start, self.width), self.dtype)
        for chunk in range(start // CHUNK, -(-stop // CHUNK)):
            first, last = chunk * CHUNK, min((chunk + 1) * CHUNK, self.n)
            block = self._chunk(first, last, self._generator(chunk))
            low, high = max(first, start), min(last, stop)
            out[low - start : high - start] = block[low - first : high - first]
        return out

    @property
    def matrix(self) -> Array:
        """The whole of Ω, made once: a pass meets each block of its rows n / tile times."""
        # NOTE: before Python 3.12 ``cached_property`` has a lock that all sketches share. A child
        # that was forked while another thread drew a sketch would wait for it for ever.
        matrix = self._matrix
        if matrix is None:
            matrix = self._matrix = self.rows(0, self.n)
        return matrix

    def release(self) -> None:
        """Drop the matrix; it is made again if it is asked for."""
        self._matrix = None

    def apply(self, columns: Array, *, n_threads: int = 1) -> Array:
        """Return columnsᵀΩ for whole columns of the kernel, an array of shape (n, m)."""
        del n_threads  # the product with explicit rows is BLAS's
        return multiply_columns(columns, self.matrix)


class HadamardSketch(Sketch):
    """Ω = DHR: random signs, Hadamard matrix, ``width`` of its columns without replacement.

    H[i, j] = (−1)^popcount(i AND j), so no transform is needed to make a block of rows. H has
    order N, the next power of two, and the n samples sit at N positions given by a seeded
    bijection.

    NOTE: the paper does not say how n is padded. With sample i at position i, two columns whose
    indices differ by N/2 agree on almost every row when n is just above a power of two: Ω comes
    out singular (test_the_padding_trap_is_real).
    """

    name = "hadamard"

    def __init__(self, n: int, width: int, seed: int) -> None:
        super().__init__(n, width, seed)
        self.order = 1 << max(n - 1, 0).bit_length()
        if width > self.order:
            raise ValueError(
                f"width={width} exceeds the {self.order} columns of the Hadamard matrix for "
                f"{n} samples. Lower the width, or take another sketch."
            )
        random = self._generator(0, stream=1)
        self._columns = random.choice(self.order, width, replace=False).astype(np.uint64)
        self._mix = random.integers(0, self.order, 5, dtype=np.uint64)
        self._mix[[0, 2, 4]] |= np.uint64(1)

    def positions(self, start: int, stop: int) -> Array:
        """Return where the samples [start, stop) sit among the N positions: a bijection."""
        mask = np.uint64(self.order - 1)
        shift = np.uint64((self.order.bit_length()) // 2)
        a1, b1, a2, b2, a3 = self._mix
        x = np.arange(start, stop, dtype=np.uint64)
        x = (a1 * x + b1) & mask
        x ^= x >> shift
        x = (a2 * x + b2) & mask
        x ^= x >> shift
        return (a3 * x) & mask

    def _chunk(self, start: int, stop: int, random: np.random.Generator) -> Array:
        parity = np.bitwise_count(self.positions(start, stop)[:, None] & self._columns) & 1
        return _signs(random, stop - start)[:, None] * (1 - 2 * parity.astype(np.int8))

    def apply(self, columns: Array, *, n_threads: int = 1) -> Array:
        """Return columnsᵀΩ: by the fast transform for wide sketches, else by explicit rows."""
        if self.width < FWHT_MIN_WIDTH[engine_name()][columns.dtype.itemsize]:
            return super().apply(columns, n_threads=n_threads)
        return self.apply_by_transform(columns, n_threads=n_threads)

    def apply_by_transform(self, columns: Array, *, n_threads: int = 1) -> Array:
        """Return columnsᵀΩ as Rᵀ(H(D·columns)): N·log₂ N additions per column."""
        spread = aligned_zeros((self.order, columns.shape[1]), columns.dtype)
        for start in range(0, self.n, CHUNK):
            stop = min(start + CHUNK, self.n)
            signs = _signs(self._generator(start // CHUNK), stop - start)
            spread[self.positions(start, stop)] = columns[start:stop] * signs[:, None]
        return fwht(spread, n_threads=n_threads, overwrite=True)[self._columns].T.astype(np.float64)


class GaussianSketch(Sketch):
    """Independent standard normal numbers."""

    name = "gaussian"
    dtype = np.float64

    def _chunk(self, start: int, stop: int, random: np.random.Generator) -> Array:
        return random.standard_normal((stop - start, self.width))


class RademacherSketch(Sketch):
    """Independent random signs."""

    name = "rademacher"

    def _chunk(self, start: int, stop: int, random: np.random.Generator) -> Array:
        return _signs(random, (stop - start, self.width))


class SparseSketch(Sketch):
    """Sparse signs: each row has eight random signs (or ``width``) in random places."""

    name = "sparse"
    nonzeros = 8

    def _chunk(self, start: int, stop: int, random: np.random.Generator) -> Array:
        count = min(self.nonzeros, self.width)
        places = random.random((stop - start, self.width)).argsort(axis=1)[:, :count]
        block = np.zeros((stop - start, self.width), np.int8)
        np.put_along_axis(block, places, _signs(random, places.shape), axis=1)
        return block


class IdentitySketch(Sketch):
    """Ω = I: what a sketch becomes when it is as wide as the kernel; nothing is random then."""

    name = "identity"

    def __init__(self, n: int) -> None:
        super().__init__(n, n, 0)

    def _chunk(self, start: int, stop: int, random: np.random.Generator) -> Array:
        return np.eye(stop - start, self.n, start, dtype=np.int8)


SKETCHES: dict[str, type[Sketch]] = {
    sketch.name: sketch
    for sketch in (HadamardSketch, GaussianSketch, RademacherSketch, SparseSketch)
}


def make_sketch(name: str, n: int, width: int, seed: int) -> Sketch:
    """Return the sketch called ``name``; one as wide as the kernel is the identity."""
    if width >= n:
        return IdentitySketch(n)
    return SKETCHES[name](n, width, seed)


def _signs(random: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
    return (2 * random.integers(0, 2, shape, dtype=np.int8) - 1).astype(np.int8)
