"""Tiles of the kernel between two sets of points: by NumPy, and by the compiled kernel.

The compiled kernel computes the statistic itself, from packed panels, where that is fastest. Of
wide data it comes from BLAS and of sparse data from a product of its own, and tiles with far-out
points come whole from NumPy; what follows the statistic is fused in every case.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Crew, Run, native_tile_rows
from sketchmeans.engine.native import Argument, Panels, compiled
from sketchmeans.engine.passes import refuse_tile, sum_of_squares
from sketchmeans.kernels import Kernel, Statistic
from sketchmeans.kernels.points import Points
from sketchmeans.kernels.rounding import SHOWING
from sketchmeans.operators.cross import refuse_infinite

WIDE = {4: 2048, 8: 4096}
"""Features from which BLAS gives the dot products, by bytes per number.

It is about as fast as packed panels there (``python -m benchmarks.native_switches``), and needs no
packed copy of the data.
"""

DIAGONAL_ROWS = 320
"""Rows of the parts of a large tile on the diagonal; a multiple of 16."""

CROSS_ROWS, CROSS_COLUMNS = 1024, 1024
"""The tiles of new points; fixed, for they decide the bits."""

CROSS_PACKED_BYTES = 1 << 26
"""Samples are packed whole for new points up to this size."""

LARGEST_FOLDED = 1e30
"""A scale is folded into the matrix product of a tile while it leaves ‖x‖² below this."""


class PlainTiles:
    """The kernel between the rows of two sets of points, by NumPy.

    Parameters
    ----------
    kernel : Kernel
    ours : Points
        The samples, or new points that were prepared in the same way.
    samples : Points
    """

    def __init__(self, kernel: Kernel, ours: Points, samples: Points) -> None:
        self.kernel, self.ours, self.samples = kernel, ours, samples
        scale = abs(kernel.scale)
        self.folds = scale * max(1.0, samples.largest_norm) < LARGEST_FOLDED
        """Whether the scale goes into the matrix product that makes the statistic."""
        # A ‖x‖² from which rounding would show.
        rounding = scale * float(np.finfo(samples.dtype).eps)
        self._far_out = SHOWING[samples.dtype.itemsize] / max(rounding, 1e-300)

    def __call__(self, rows: slice, columns: slice, out: FloatArray | None = None) -> FloatArray:
        """Compute a tile; ``out`` is scratch space that it may use."""
        if self.are_far(rows, columns):
            # Both blocks hold points so far out that rounding would show in their distances:
            # these come from differences. A few outliers cost a few tiles.
            return self.kernel.of(self.ours.by_differences(rows, self.samples, columns))
        if self.folds:
            scale = self.kernel.scale
            scaled = self.ours.statistics(rows, self.samples, columns, scale=scale, out=out)
            return self.kernel.of_scaled(scaled)
        # A huge γ times a norm would be infinite, and infinity minus infinity is not a number.
        return self.kernel.of(self.ours.statistics(rows, self.samples, columns, out=out))

    def are_far(self, rows: slice, columns: slice) -> bool:
        """Whether the distances of these rows would show the rounding of dot products."""
        far = self._far_out
        return self.ours.reaches(rows, far) and self.samples.reaches(columns, far)


def diagonal_parts(rows: slice) -> list[slice]:
    """Cut the rows of a tile on the diagonal: only the parts on and above it are computed."""
    parts = row_blocks(rows.stop - rows.start, DIAGONAL_ROWS)
    return [slice(rows.start + part.start, rows.start + part.stop) for part in parts]


def by_panels(points: Points) -> bool:
    """Whether the compiled kernel computes the statistic of these points itself."""
    if points.is_sparse:
        return False
    wide = points.n_features >= WIDE[points.dtype.itemsize]
    return points.statistic is Statistic.MANHATTAN or not wide


class PackedPoints:
    """Points as the compiled kernel wants them.

    Parameters
    ----------
    points : Points
    argument : Argument
        Of the kernel.
    root_weights : array of shape (n_samples,), optional
        Of D^½ K D^½.
    pack : bool
        Prepare panels once, not a tile at a time; does not change the result.
    block : int
        Rows at a time; a multiple of 16.
    """

    def __init__(
        self,
        points: Points,
        argument: Argument,
        *,
        root_weights: FloatArray | None = None,
        pack: bool,
        block: int,
    ) -> None:
        self.points = points
        dtype, n = points.dtype, points.n_samples
        if argument.norm_scale:
            with np.errstate(over="ignore", invalid="ignore"):  # what does not fold reads none
                self.shifts = (argument.norm_scale * points.norms.astype(np.float64)).astype(dtype)
        else:
            self.shifts = np.full(n, argument.shift / 2, dtype)  # the others have that too
        self.weights = None if root_weights is None else root_weights.astype(dtype)
        pack = pack and by_panels(points)
        self.panels = Panels(points.rows, n, points.n_features, dtype, whole=pack, block=block)


class NativeTiles:
    """The tiles of a kernel between two sets of points, and their products with Ω.

    Parameters
    ----------
    plain : PlainTiles
        The same tiles by NumPy, of a kernel that ``engine.native`` knows.
    left, right : PackedPoints
        The same object for K itself; new points and the samples for predictions.
    omega : Panels
        The rows of Ω that belong to ``right``.
    rows : int, optional
        Of a tile, where these samples are a part of all.
    """

    def __init__(
        self,
        plain: PlainTiles,
        left: PackedPoints,
        right: PackedPoints,
        omega: Panels,
        rows: int | None = None,
    ) -> None:
        self.plain, self.left, self.right, self.omega = plain, left, right, omega
        self.argument = Argument.of(plain.kernel, omega.dtype)
        self.statistic = plain.kernel.statistic
        self.tile_rows = rows or native_tile_rows(right.points.n_samples)
        self.by_panels = by_panels(left.points)
        self._scratch = threading.local()

    def add(self, rows: slice, columns: slice, W: Any, diagonal: FloatArray) -> float:
        """Add the products of one tile; see ``engine.passes.Tiles``."""
        if rows != columns:
            return self._add(rows, columns, W, None)
        squares = 0.0
        parts = diagonal_parts(rows)
        for i, part in enumerate(parts):
            squares += self._add(part, part, W, diagonal)
            squares += 2 * sum(self._add(part, other, W, None) for other in parts[i + 1 :])
        return squares

    @staticmethod
    def diagonal_entries(rows: int) -> int:
        """Return the kernel entries of a tile on the diagonal: half of it, and half its parts."""
        sizes = [part.stop - part.start for part in diagonal_parts(slice(0, rows))]
        return (rows * rows + sum(size * size for size in sizes)) // 2

    def _add(self, rows: slice, columns: slice, W: Any, diagonal: FloatArray | None) -> float:
        squares = self._tile(
            rows,
            columns,
            W[rows],
            W[columns] if diagonal is None else None,
            None if diagonal is None else diagonal[rows],
        )
        return squares if np.isfinite(squares) else self._second_look(rows, columns, W)

    def multiply(self, rows: slice, out: FloatArray) -> None:
        """Add K[rows, :] Ω to ``out``, the rows of a product with new points."""
        for columns in row_blocks(self.right.points.n_samples, CROSS_COLUMNS):
            self._tile(rows, columns, out, None, None)

    def evaluate(self) -> FloatArray:
        """Return the whole kernel of both sets of points; nothing is multiplied."""
        n_rows, n_columns = self.left.points.n_samples, self.right.points.n_samples
        T = np.empty((n_rows, n_columns), self.omega.dtype)
        rows = slice(0, n_rows)
        parts = row_blocks(n_columns, CROSS_COLUMNS)
        for columns in parts:
            tile = (
                T if len(parts) == 1 else np.empty((n_rows, columns.stop - columns.start), T.dtype)
            )
            squares = self._tile(rows, columns, np.empty((n_rows, 0)), None, None, tile)
            if not np.isfinite(squares):  # of float32 the squares alone may be infinite
                refuse_infinite(tile)
            if tile is not T:
                T[:, columns] = tile
        return T

    def _tile(
        self,
        rows: slice,
        columns: slice,
        left_W: FloatArray,
        right_W: FloatArray | None,
        diagonal: FloatArray | None,
        values: FloatArray | None = None,
    ) -> float:
        """Call the compiled kernel on one tile."""
        return compiled().tile(
            **self._source(rows, columns, diagonal is not None),
            left_weight=part(self.left.weights, rows),
            right_weight=part(self.right.weights, columns),
            left_omega=None if right_W is None else self.omega.of(rows),
            right_omega=self.omega.of(columns),
            left_W=left_W,
            right_W=right_W,
            diagonal=diagonal,
            values=values,
        )

    def _source(self, rows: slice, columns: slice, on_diagonal: bool) -> dict[str, Any]:
        """Return the statistic of a tile or the points to compute it from, and what follows it."""
        native, argument = compiled(), self.argument
        ours, theirs = self.left.points, self.right.points
        if not self.plain.folds or self.plain.are_far(rows, columns):
            T = np.ascontiguousarray(self.plain(rows, columns))
            return {
                "statistic": native.GIVEN,
                "left": T,
                "left_shift": np.zeros(T.shape[0], T.dtype),
                "right_shift": np.zeros(T.shape[1], T.dtype),
            }
        source = {
            "map": argument.map,
            "degree": argument.degree,
            "scale": argument.scale,
            "left_shift": self.left.shifts[rows],
            "right_shift": self.right.shifts[columns],
            "zero_distance": on_diagonal and self.statistic is Statistic.SQUARED_DISTANCE,
        }
        if self.by_panels:
            l1 = self.statistic is Statistic.MANHATTAN
            return source | {
                "statistic": native.MANHATTAN if l1 else native.DOT,
                "features": ours.n_features,
                "left": self.left.panels.of(rows),
                "right": self.right.panels.of(columns),
            }
        if self.statistic is Statistic.MANHATTAN:
            given = ours.manhattan(rows, theirs, columns)
        else:
            given = self._dots(rows, columns)
        return source | {"statistic": native.GIVEN, "left": given}

    def _dots(self, rows: slice, columns: slice) -> FloatArray:
        """Return the dot products of a tile from BLAS, or of sparse rows as a dense tile."""
        ours, theirs, out = self.left.points, self.right.points, self._space(rows, columns)
        if not ours.is_sparse:
            return ours.dots(rows, theirs, columns, out=out)
        # SciPy gives a block indices of 32 bits, whatever those of the whole need.
        left, right = ours.rows(rows), theirs.rows(columns).T.tocsr()
        arrays = [(part.indptr, part.indices, part.data) for part in (left, right)]
        compiled().sparse_dots(*arrays[0], *arrays[1], out)
        return out

    @staticmethod
    def scratch_bytes(points: Points, width: int, *, packed: bool) -> int:
        """Return what a thread needs for a pass with Ω of this width, u included."""
        rows, size = native_tile_rows(points.n_samples), points.dtype.itemsize
        own = (rows + 320) * width * size + (1 << 16)
        row = points.n_features
        if points.is_sparse:
            row = -(-points.X.nnz // points.n_samples) * 4
            own += points.n_features * 8 + rows * row * (size + 4)  # a block by features
        if not by_panels(points):
            own += rows * rows * size
        if not packed:
            own += 2 * rows * (width + row) * (size + 8)
        return own

    def _space(self, rows: slice, columns: slice) -> FloatArray:
        """Return a thread's own scratch array of the shape of a tile."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        size = shape[0] * shape[1]
        if getattr(self._scratch, "space", np.empty(0)).size < size:
            self._scratch.space = np.empty(size, self.omega.dtype)
        return self._scratch.space[:size].reshape(shape)

    def _second_look(self, rows: slice, columns: slice, W: Any) -> float:
        """Return the sum of squares where float32 could not hold it, or say what is not finite."""
        T = self.plain(rows, columns)
        if self.left.weights is not None:
            T *= self.left.weights[rows, None]
            T *= self.left.weights[columns]
        total = sum_of_squares(T, rows, columns)
        if not (np.isfinite(W[rows]).all() and np.isfinite(W[columns]).all()):
            refuse_tile("an infinite or far too large value", rows, columns)
        return total


def part(weights: FloatArray | None, rows: slice) -> FloatArray | None:
    """Return the weights of some rows, where there are weights."""
    return None if weights is None else weights[rows]


def cross_product(tiles: NativeTiles, n_rows: int, *, crew: Crew, run: Run) -> FloatArray:
    """Compute K[rows, :] Ω for ``n_rows`` new points against all samples, in float64."""
    out = np.zeros((n_rows, tiles.omega.width))
    new = row_blocks(n_rows, CROSS_ROWS)

    def multiply(rows: slice) -> None:
        tiles.multiply(rows, out[rows])

    crew.each(multiply, new, lambda done: run.report(done, len(new)))
    return out
