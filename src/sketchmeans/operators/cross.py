"""The kernel between new points and the samples, never the whole of it unless asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import ALONE, Crew, Run, rectangular_product
from sketchmeans.engine.passes import Tile

Product = Callable[[FloatArray, Crew, Run], FloatArray]
"""Returns k(x, X) @ right by a way of its own."""
Evaluate = Callable[[], FloatArray]
"""Returns the whole of k(x, X) by a way of its own."""


class CrossKernel:
    """The kernel between new points and the samples, m × n, lazy.

    Parameters
    ----------
    tile : callable
        ``tile(rows, columns, out)`` computes a tile; ``out`` is scratch space.
    shape : tuple of int
        New points and samples.
    dtype : dtype
        Of the tiles.
    product : callable, optional
        Multiplies where that is not done by ``tile``.
    entries : int, optional
        The kernel entries that ``multiply`` takes; all of them if left out.
    evaluate : callable, optional
        Computes the whole where that is not done by ``tile``.
    """

    def __init__(
        self,
        tile: Tile,
        shape: tuple[int, int],
        dtype: Any,
        product: Product | None = None,
        entries: int | None = None,
        evaluate: Evaluate | None = None,
    ) -> None:
        self.tile, self.shape, self.dtype, self._product = tile, shape, dtype, product
        self._evaluate = evaluate
        self.entries = shape[0] * shape[1] if entries is None else entries

    def multiply(self, right: Array, run: Run = ALONE) -> FloatArray:
        """Return k(x, X) @ right for every new point x: n kernel entries per point."""
        with Crew(run.n_threads) as crew:
            if self._product is not None:
                product = self._product(right, crew, run)
            else:
                right = right.astype(self.dtype, copy=False)
                product = rectangular_product(self.tile, self.shape[0], right, crew=crew, run=run)
        refuse_infinite(product)
        return product

    def values(self) -> FloatArray:
        """Return the whole of it as an array in its own precision, for few points and samples."""
        if self._evaluate is not None:
            return self._evaluate()
        everything = slice(0, self.shape[0]), slice(0, self.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
            whole = self.tile(*everything, np.empty(self.shape, self.dtype))
        refuse_infinite(whole)
        return whole

    def dense(self) -> FloatArray:
        """Return the whole of it as an m × n array in float64, for few samples."""
        m, n = self.shape
        whole = np.empty((m, n))

        def compute(rows: slice) -> None:
            out = np.empty((rows.stop - rows.start, n), self.dtype)
            whole[rows] = self.tile(rows, slice(0, n), out)

        with Crew(1) as crew:
            crew.each(compute, row_blocks(m, max(64, min(4096, (1 << 19) // n))))
        refuse_infinite(whole)
        return whole


def refuse_infinite(product: FloatArray, first: int = 0) -> None:
    """Raise an error that names a point whose kernel is not finite; row 0 is point ``first``."""
    if not np.isfinite(product).all():
        bad = first + int(np.argmin(np.isfinite(product).all(axis=1)))
        raise ValueError(
            f"the kernel of point {bad} with the training samples is not finite. Likely causes: a "
            "point far outside the training data under a polynomial kernel, or NaN or inf from a "
            "callable or precomputed kernel."
        )
