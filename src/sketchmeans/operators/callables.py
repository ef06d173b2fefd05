"""Kernels that the caller writes: a function of two blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans._arrays import Array, FloatArray
from sketchmeans.blocks import dense, row_blocks, rows_of
from sketchmeans.engine import Pass
from sketchmeans.operators.base import KernelOperator
from sketchmeans.operators.cross import CrossKernel

KernelFunction = Callable[..., Any]


class CallableOperator(KernelOperator):
    """The kernel matrix of a function of two blocks of rows, taken as symmetric.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    function : callable
        ``function(A, B, **params)`` returns the kernel of every row of A with every row of B.
    params : dict, optional
        Passed on to ``function``.
    dtype : dtype
        Of the tiles.
    weights : array of shape (n_samples,), optional
        Positive.
    """

    def __init__(
        self,
        X: Any,
        function: KernelFunction,
        *,
        params: dict[str, Any] | None = None,
        dtype: Any = np.float64,
        weights: FloatArray | None = None,
    ) -> None:
        super().__init__(X.shape[0], dtype, weights)
        self.X, self.function, self.params = X, function, dict(params or {})
        self.resolution = float(np.finfo(self.dtype).eps)

    cheap_diagonal = False

    @property
    def data(self) -> Any:
        """The rows that the kernel is of."""
        return self.X

    def relative_error(self, right: Array, result: Pass, seed: int) -> tuple[float, int]:
        """Return what the function's own dtype can resolve: its entries are the truth."""
        del right, result, seed
        return 4 * self.resolution, 0

    def _unit(self, fine: bool) -> float:
        return max(super()._unit(fine), 4 * self.resolution)

    def evaluate(self, A: Any, B: Any) -> FloatArray:
        """Call the function and check what it returns."""
        name = getattr(self.function, "__name__", repr(self.function))
        shape = (A.shape[0], B.shape[0])
        try:
            block = dense(self.function(A, B, **self.params))
        except Exception as error:
            raise ValueError(
                f"the kernel callable {name} raised {type(error).__name__} on blocks of "
                f"{shape[0]} and {shape[1]} rows: {error}. It is called with two blocks of rows "
                "and must return the kernel of every row of the first with every row of the "
                "second."
            ) from error
        if block.shape != shape:
            raise ValueError(
                f"the kernel callable {name} returned shape {block.shape} for blocks of "
                f"{shape[0]} and {shape[1]} rows, where {shape} is needed: one row for each row "
                "of the first block, one column for each row of the second."
            )
        if block.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel callable {name} returned dtype {block.dtype}, where real numbers "
                "are needed."
            )
        if block.dtype.kind == "f":
            self.resolution = max(self.resolution, float(np.finfo(block.dtype).eps))
        return block.astype(self.dtype)  # a copy: it is written to

    def _tile(self, rows: slice, columns: slice, out: FloatArray) -> FloatArray:
        return self.evaluate(rows_of(self.X, rows), rows_of(self.X, columns))

    @property
    def diagonal_entries(self) -> int:
        """The kernel entries that ``diagonal`` takes: small blocks, for fewer calls."""
        return sum((rows.stop - rows.start) ** 2 for rows in _diagonal_blocks(self.X))

    def _diagonal(self) -> FloatArray:
        return self.diagonal_of(self.X)

    def against(self, X: Any) -> CrossKernel:
        """Return the kernel between new rows and the samples."""
        return CrossKernel(
            lambda rows, columns, out: self.evaluate(rows_of(X, rows), rows_of(self.X, columns)),
            (X.shape[0], self.shape[0]),
            self.dtype,
        )

    def landmarks_at(self, X: Any, *, fine: bool = True) -> CallableOperator:
        """Return the kernel between any points and these, in float64 anyway."""
        del fine
        return CallableOperator(X, self.function, params=self.params)

    def diagonal_of(self, X: Any) -> FloatArray:
        """Return κ(x, x) for new rows, from small blocks: 16 entries per row."""
        blocks = (rows_of(X, rows) for rows in _diagonal_blocks(X))
        return np.concatenate(
            [self.evaluate(block, block).diagonal().astype(np.float64) for block in blocks]
        )


def _diagonal_blocks(X: Any) -> list[slice]:
    return row_blocks(X.shape[0], 16)
