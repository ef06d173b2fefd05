"""Passes over the kernel matrix with NumPy tiles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.checkpoints import first_rows
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.engine.schedule import Turns, tile_rows, tournament
from sketchmeans.engine.strips import Tiles, meet, strip_length
from sketchmeans.engine.threads import Crew

Tile = Callable[[slice, slice, FloatArray], FloatArray]
"""Computes K[rows, columns]; may use the given scratch array of that shape, or not."""


@dataclass(frozen=True)
class Pass:
    """What one pass over K leaves behind."""

    W: FloatArray
    """K Ω, n × width, float64."""
    row_sums: FloatArray
    """K u for the carried vector u: ones, or the roots of the weights."""
    sum_of_squares: float
    """‖K‖_F²."""
    diagonal: FloatArray
    """K_ii as the tiles had it, in float64."""
    entries: int
    """Kernel entries evaluated, or read."""
    relative_error: float = 0.0
    """Of W, where the pass could measure it by itself."""


class RightHandSide:
    """Blocks of rows of [Ω, u] in the precision of the tiles.

    Parameters
    ----------
    matrix : array of shape (n, width)
        Ω: int8 for sketches of signs, floating point else.
    carried : array of shape (n,), optional
        u; a column of ones if it is left out.
    dtype : dtype
        Of the tiles.
    pack : bool
        Make all blocks at once, n × (width + 1) numbers, instead of one for each tile.
    """

    def __init__(
        self,
        matrix: Array,
        carried: FloatArray | None,
        dtype: np.dtype,
        *,
        pack: bool = False,
    ) -> None:
        self.matrix, self.carried, self.dtype = matrix, carried, dtype
        self.shape = self.n, self.width = matrix.shape
        self._packed: FloatArray | None = None
        if pack:
            self._packed = self.rows(slice(0, self.n))

    def rows(self, rows: slice) -> FloatArray:
        """Return the rows of [Ω, u]."""
        if self._packed is not None:
            return self._packed[rows]
        block = np.empty((rows.stop - rows.start, self.width + 1), self.dtype)
        block[:, :-1] = self.matrix[rows]
        block[:, -1] = 1 if self.carried is None else self.carried[rows]
        return block


def sum_of_squares(tile: FloatArray, rows: slice, columns: slice) -> float:
    """Return the sum of squares of a tile, and refuse one that holds NaN or infinity."""
    total = float(np.vecdot(tile, tile).sum(dtype=np.float64))
    if not np.isfinite(total):
        total = float(np.square(tile, dtype=np.float64).sum())  # it may be float32 that overflowed
    if not np.isfinite(total):
        nan = np.isnan(tile).any()
        refuse_tile("NaN" if nan else "an infinite or far too large value", rows, columns)
    return total


def refuse_tile(found: str, rows: slice, columns: slice) -> NoReturn:
    """Raise the error that says what a tile holds, and where."""
    raise ValueError(
        f"the kernel gave {found} among rows {rows.start}:{rows.stop} and columns "
        f"{columns.start}:{columns.stop}. Likely causes: a polynomial kernel that overflows "
        "(scale the data, or lower gamma or degree), a callable or precomputed kernel with "
        'NaN or inf in it, or precision="float32" where float64 is needed.'
    )


_SMALL_PRODUCT = 1_000_000
"""Multiply-adds up to which OpenBLAS multiplies without packing; measured, not required."""


def thin_product(T: FloatArray, right: Array) -> FloatArray:
    """Return T @ right for a narrow ``right``, in slabs of rows that BLAS multiplies unpacked.

    NOTE: packing a tile for a dozen columns costs as much as the product. Slabs small enough for
    the kernel that skips it make this step up to twice as fast, and one call of NumPy does them
    all (``python -m benchmarks.tile_parts``).
    """
    rows, inner = T.shape
    slab = _SMALL_PRODUCT // max(inner * right.shape[1], 1)
    slab = 1 << max(slab.bit_length() - 1, 0)
    if slab < 32 or slab >= rows or rows % slab:
        return T @ right
    return np.matmul(T.reshape(rows // slab, slab, inner), right).reshape(rows, -1)


class NumpyTiles:
    """Tiles from a function that computes them, multiplied by BLAS.

    Parameters
    ----------
    tile : callable
        Computes a tile.
    right : RightHandSide
        [Ω, u].
    rows : int, optional
        Of a tile, where these samples are a part of all.
    """

    def __init__(self, tile: Tile, right: RightHandSide, rows: int | None = None) -> None:
        self.tile, self.right = tile, right
        self.tile_rows = rows or tile_rows(right.n)
        self._scratch = threading.local()

    def add(self, rows: slice, columns: slice, W: Any, diagonal: FloatArray) -> float:
        """Add the products of one tile; see ``Tiles``."""
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        if not hasattr(self._scratch, "tile"):
            self._scratch.tile = np.empty(self.tile_rows**2, self.right.dtype)
        out = self._scratch.tile[: shape[0] * shape[1]].reshape(shape)
        T = self.tile(rows, columns, out)
        total = sum_of_squares(T, rows, columns)
        W[rows] += thin_product(T, self.right.rows(columns))
        if rows == columns:
            diagonal[rows] = T.diagonal()
        else:
            W[columns] += thin_product(T.T, self.right.rows(rows))
        return total

    @staticmethod
    def diagonal_entries(rows: int) -> int:
        """Return the kernel entries of a tile on the diagonal: all of them."""
        return rows * rows


def tournament_pass(
    tiles: Tiles,
    n: int,
    width: int,
    *,
    crew: Crew,
    run: Run = ALONE,
) -> Pass:
    """Compute K [Ω, u] for symmetric K, each pair of row blocks evaluated once.

    Kernel entries: n(n + 1)/2 and at most half a tile per row more. Memory: n × (width + 1) numbers
    in float64, the products of two strips per thread, and what the tiles need.
    """
    strips = row_blocks(n, strip_length(n, tiles.tile_rows))
    pairs = [(round_, pair) for round_, met in enumerate(tournament(len(strips))) for pair in met]

    def compute(index: int) -> None:
        round_, (i, j) = pairs[index]
        met = meet(tiles, strips[i], strips[j], width + 1, diagonal, crew.go_on)
        with turns.taken(round_, (i, j)):
            W[strips[i]] += met.ours
            if met.theirs is not None:
                W[strips[j]] += met.theirs
        squares[index] = met.squares

    with run.checkpoint.stage("pass", n, width, tiles.tile_rows) as stage:
        done = 0
        if stage.state is None:
            W, diagonal, squares = np.zeros((n, width + 1)), np.empty(n), np.zeros(len(pairs))
        else:
            W, diagonal, squares, done = itemgetter("W", "diagonal", "squares", "done")(stage.state)
        turns = Turns(len(strips), crew, (pair for _, pair in pairs[:done]))
        stage.each(
            crew,
            compute,
            len(pairs),
            lambda _: {"W": W, "diagonal": diagonal, "squares": squares},
            lambda done: run.report(done, len(pairs)),
        )
    entries = tournament_entries(n, tiles.tile_rows, tiles.diagonal_entries)
    return Pass(W[:, :width], W[:, width].copy(), float(squares.sum()), diagonal, entries)


def tournament_entries(n: int, tile_rows: int, diagonal_entries: Callable[[int], int]) -> int:
    """Return the kernel entries of a pass over all pairs of n samples."""
    sizes = [block.stop - block.start for block in row_blocks(n, tile_rows)]
    entries = (n * n - sum(size * size for size in sizes)) // 2
    return entries + sum(map(diagonal_entries, sizes))


def strip_rows(n: int) -> int:
    """Return how many whole rows of K are read at once: about 2^20 numbers, at most 256 rows."""
    return max(1, min(256, (1 << 20) // n))


CHUNK = 256
"""Numbers of a row of K that are summed in its own precision, as those of a tile are; fixed."""


def in_chunks(strip: FloatArray, work: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return the sums in float64 of what ``work`` makes of the last axis of chunks of rows.

    NOTE: to sum float32 in float64 NumPy casts through a buffer, which takes 20 times as long as to
    read the numbers (``python -m benchmarks.out_of_core``).
    """
    whole = strip.shape[1] // CHUNK * CHUNK
    parts = strip[:, :whole].reshape(len(strip), -1, CHUNK)
    with np.errstate(over="ignore", invalid="ignore"):
        total = work(parts).sum(axis=1, dtype=np.float64)
        return total + work(strip[:, whole:])


_READ = ("W", "row_sums", "squares", "diagonal")
"""What ``strip_pass`` fills row by row."""


def _unread(n: int, width: int) -> dict[str, Any]:
    """Return where ``strip_pass`` begins."""
    rows = {name: np.empty((n, width) if name == "W" else n) for name in _READ}
    return rows | {"errors": np.zeros(n), "sizes": np.zeros(n), "done": 0}


def _squares_of(strip: FloatArray, rows: slice) -> FloatArray:
    """Return the sums of squares of whole rows of K; refuse entries that are not finite."""
    squares = in_chunks(strip, lambda chunk: np.vecdot(chunk, chunk))
    if np.isfinite(squares).all():
        return squares
    sum_of_squares(strip, rows, slice(0, strip.shape[1]))
    return np.square(strip, dtype=np.float64).sum(axis=1)


def strip_pass(
    read: Callable[[slice], FloatArray],
    multiply: Callable[[FloatArray], FloatArray],
    n: int,
    width: int,
    *,
    carried: FloatArray | None,
    audited: IntArray,
    crew: Crew,
    run: Run = ALONE,
) -> Pass:
    """Compute K [Ω, u] for a K that exists row by row, reading each strip of rows once, in order.

    Memory: n × width numbers in float64 and, per thread, a strip of about 2^20 numbers and a copy.

    Parameters
    ----------
    read : callable
        Returns whole rows of K as a dense array. Called for consecutive strips, one at a time.
    multiply : callable
        Returns rows @ Ω.
    audited : array of int
        Rows of which the product is computed again in float64, for ``Pass.relative_error``.
    """
    strips = row_blocks(n, strip_rows(n))
    total = len(strips)
    reading = threading.Lock()

    def compute(_: int) -> None:
        with reading:  # whoever comes next reads the next strip: K is read in order
            rows = next(waiting)
            strip = read(rows)
        squares[rows] = _squares_of(strip, rows)
        diagonal[rows] = strip[np.arange(len(strip)), np.arange(rows.start, rows.stop)]
        weighted = strip if carried is None else strip * carried
        row_sums[rows] = in_chunks(
            weighted, lambda chunk: np.vecdot(chunk, np.ones(chunk.shape[-1], chunk.dtype))
        )
        W[rows] = multiply(strip)
        mine = audited[(audited >= rows.start) & (audited < rows.stop)]
        if len(mine):
            truth = multiply(strip[mine - rows.start].astype(np.float64))
            errors[mine] = np.square(W[mine] - truth).sum(axis=1)
            sizes[mine] = np.square(truth).sum(axis=1)

    with run.checkpoint.stage("read", n, width) as stage:
        state = _unread(n, width) if stage.state is None else stage.state
        W, row_sums, squares, diagonal = (state[name] for name in _READ)
        errors, sizes = state["errors"], state["sizes"]
        waiting = iter(strips[state["done"] :])
        read_rows, audit = {name: state[name] for name in _READ}, {"errors": errors, "sizes": sizes}
        stage.each(
            crew,
            compute,
            total,
            lambda done: audit | first_rows(read_rows, strips[done - 1].stop),
            lambda done: run.report(done, total),
        )
    error = float(np.sqrt(errors.sum() / sizes.sum())) if sizes.any() else 0.0
    return Pass(W, row_sums, float(squares.sum()), diagonal, n * n, error)


def rectangular_product(
    tile: Tile,
    n_rows: int,
    right: Array,
    *,
    crew: Crew,
    run: Run,
) -> FloatArray:
    """Compute K[rows, :] @ right for ``n_rows`` new points against all samples, in float64.

    Kernel entries: n_rows · n. Memory: the result and a tile per thread.
    """
    n, width = right.shape
    blocks = row_blocks(n, 256)
    out = np.zeros((n_rows, width))

    def compute(rows: slice) -> None:
        buffer = np.empty((rows.stop - rows.start) * min(n, 256), right.dtype)
        for columns in blocks:
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            T = tile(rows, columns, buffer[: shape[0] * shape[1]].reshape(shape))
            out[rows] += T @ right[columns]

    new = row_blocks(n_rows, 256)
    crew.each(compute, new, lambda done: run.report(done, len(new)))
    return out
