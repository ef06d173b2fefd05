"""Strips: runs of tiles whose products are summed by themselves before they are added to W.

What two strips of rows give to each other is a pure function of them: threads of this process add
it to W here, and tasks of a cluster send it to where W is. Both add in the order of one tournament
of strips, so that both have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks

STRIPS, LONGEST = 16, 12
"""Strips that there are, about, and the tiles of one at the most: fixed, for they decide the bits.

A thread holds the products of two strips. On a cluster W travels as often as there are strips, and
two strips of twelve tiles are work for a fraction of a second.
"""


class Tiles(Protocol):
    """The tiles of a symmetric K, each computed and multiplied at once."""

    @property
    def tile_rows(self) -> int:
        """Rows of a tile: a function of n alone, for it decides the bits."""

    def add(self, rows: slice, columns: slice, W: Any, diagonal: FloatArray) -> float:
        """Add T [Ω, u][columns] and Tᵀ [Ω, u][rows] to W; return the sum of squares of T.

        A tile on the diagonal is added once, and fills its part of ``diagonal``.
        """

    def diagonal_entries(self, rows: int) -> int:
        """Return the kernel entries that a tile of so many rows on the diagonal takes."""


class Met(NamedTuple):
    """What two strips of rows have given to each other."""

    ours: FloatArray
    """K[I, J] [Ω, u][J]."""
    theirs: FloatArray | None
    """K[J, I] [Ω, u][I]; None for a strip with itself."""
    squares: float
    """The sum of squares of their entries of K, K_ij and K_ji."""


class _Products:
    """Products of two strips of rows, found by the rows of all samples."""

    def __init__(self, strips: list[slice], width: int) -> None:
        self.strips = strips
        self.arrays = [np.zeros((rows.stop - rows.start, width)) for rows in strips]

    def __getitem__(self, rows: slice) -> FloatArray:
        for strip, array in zip(self.strips, self.arrays, strict=True):
            if strip.start <= rows.start < strip.stop:
                return array[rows.start - strip.start : rows.stop - strip.start]
        raise IndexError(f"rows {rows.start}:{rows.stop} are in neither strip.")

    def __setitem__(self, rows: slice, value: FloatArray) -> None:
        """Serve ``W[rows] += …``, which has written to the part itself."""


def strip_length(n: int, tile_rows: int) -> int:
    """Return the rows of a strip: whole tiles, a function of n alone."""
    blocks = -(-n // tile_rows)
    return tile_rows * max(min(-(-blocks // STRIPS), LONGEST), 1)


def meet(
    tiles: Tiles,
    ours: slice,
    theirs: slice,
    width: int,
    diagonal: FloatArray,
    go_on: Callable[[], None] = lambda: None,
) -> Met:
    """Compute the tiles between two strips, in their order; a strip may meet itself.

    ``go_on`` is asked before every tile, and raises where there is to be none. Memory: the products
    of both strips, and what a tile needs.
    """
    alone = ours == theirs
    W = _Products([ours] if alone else [ours, theirs], width)
    squares = 0.0
    for i, rows in enumerate(parts_of(ours, tiles.tile_rows)):
        for j, columns in enumerate(parts_of(theirs, tiles.tile_rows)):
            if alone and j < i:
                continue
            go_on()
            found = tiles.add(rows, columns, W, diagonal)
            squares += found if rows == columns else 2 * found
    return Met(W.arrays[0], None if alone else W.arrays[1], squares)


def parts_of(strip: slice, size: int) -> list[slice]:
    """Cut a strip into the rows of its tiles."""
    parts = row_blocks(strip.stop - strip.start, size)
    return [slice(strip.start + part.start, strip.start + part.stop) for part in parts]
