"""A kernel that exists nowhere as a whole: the caller pushes its columns, a batch at a time."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread, count_threads
from sketchmeans.blocks import dense
from sketchmeans.checks import check_count
from sketchmeans.engine import Pass
from sketchmeans.engine.passes import sum_of_squares
from sketchmeans.operators.base import audited_rows
from sketchmeans.sketches import SKETCHES, Sketch, make_sketch


class ColumnStream:
    """Sketches a symmetric kernel matrix from batches of its columns, each seen once.

    Push every column of K once, in any order and in batches of any size; then give the stream to
    ``KernelEmbedding.fit`` or ``KernelKMeans.fit``. The stream keeps n × width numbers.

    Parameters
    ----------
    n_samples : int
        Rows and columns of K.
    width : int
        Columns of the sketch, the paper's r' = r + l: at least the rank that is wanted, and twice
        that for the accuracy of the default.
    sketch : {"auto", "hadamard", "gaussian", "rademacher", "sparse"}
        "auto" is "hadamard".
    random_state : int, RandomState or None
        Fixes the sketch.
    n_jobs : int or None
        Threads for the fast Hadamard transform of wide sketches.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchmeans import ColumnStream, KernelEmbedding
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> stream = ColumnStream(500, width=20, random_state=0)
    >>> for start in range(0, 500, 100):
    ...     stream.add_columns(start, (X @ X[start:start + 100].T) ** 2)
    >>> KernelEmbedding(rank=6).fit(stream).embedding_.shape
    (500, 6)
    """

    def __init__(
        self,
        n_samples: int,
        *,
        width: int = 40,
        sketch: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        check_count("n_samples", n_samples)
        check_count("width", width)
        if sketch != "auto" and sketch not in SKETCHES:
            known = ", ".join(repr(name) for name in ["auto", *SKETCHES])
            raise ValueError(f"sketch={sketch!r} is not known. Known sketches: {known}.")
        self.n_samples = n_samples
        self.width = min(width, n_samples)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        name = "hadamard" if sketch == "auto" else sketch
        self.sketch: Sketch = make_sketch(name, n_samples, self.width, seed)
        self.n_threads = count_threads(n_jobs)
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self._seen = np.zeros(n_samples, dtype=bool)
        self._W = np.zeros((n_samples, self.width))
        self._row_sums = np.zeros(n_samples)
        self._squares = np.zeros(n_samples)
        self._diagonal = np.zeros(n_samples)
        self._audited = audited_rows(n_samples, seed)
        self._error = self._size = 0.0

    @property
    def n_seen(self) -> int:
        """How many columns have come."""
        return int(self._seen.sum())

    def add_columns(self, start: int, block: Any) -> None:
        """Take the columns start, start + 1, … of K.

        A block that is refused leaves the stream as it was.

        Parameters
        ----------
        start : int
            The index of the first column.
        block : array of shape (n_samples, m)
            Whole columns.
        """
        start = operator.index(start)
        block = self._checked(start, block)
        stop = start + block.shape[1]
        if start == stop:
            return
        columns = slice(start, stop)
        with OneBlasThread():  # the same bits everywhere
            self._W[columns] = self.sketch.apply(block, n_threads=self.n_threads)
            chosen = self._audited[(self._audited >= start) & (self._audited < stop)]
            truth = self.sketch.apply(block[:, chosen - start].astype(np.float64))
        self._error += float(np.square(self._W[chosen] - truth).sum())
        self._size += float(np.square(truth).sum())
        self._row_sums[columns] = block.sum(axis=0, dtype=np.float64)
        self._squares[columns] = np.einsum("ij,ij->j", block, block, dtype=np.float64)
        self._diagonal[columns] = block[columns].diagonal()
        self._seen[columns] = True
        if block.dtype == np.float32:
            self.dtype = np.dtype(np.float32)

    def _checked(self, start: int, block: Any) -> FloatArray:
        """Return the columns from ``start`` on as floats; refuse what they cannot be."""
        block = dense(block)
        n = self.n_samples
        if block.ndim != 2 or block.shape[0] != n:
            raise ValueError(
                f"a block of columns must have shape ({n}, m), not {block.shape}: pass whole "
                "columns of the kernel matrix."
            )
        if block.dtype.kind not in "fiub":
            raise ValueError(f"a block of columns must hold real numbers, not {block.dtype}.")
        if block.dtype not in (np.float32, np.float64):
            block = block.astype(np.float64)
        stop = start + block.shape[1]
        if start < 0 or stop > n:
            raise ValueError(f"columns {start}:{stop} do not lie within 0:{n}.")
        columns = slice(start, stop)
        if self._seen[columns].any():
            again = start + int(np.argmax(self._seen[columns]))
            raise ValueError(f"column {again} came twice: each column is pushed once.")
        if start == stop:
            return block
        with np.errstate(over="ignore", invalid="ignore"):
            sum_of_squares(block, slice(0, n), columns)
        square = block[columns]
        diagonal = square.diagonal()
        if (diagonal < 0).any():
            worst = int(np.argmin(diagonal))
            raise ValueError(
                f"K[{start + worst}, {start + worst}] = {diagonal[worst]:g} is negative: a kernel "
                "matrix has a non-negative diagonal."
            )
        tolerance = 1e-3 if block.dtype == np.float32 else 1e-6
        if np.abs(square - square.T).max() > tolerance * np.abs(square).max():
            raise ValueError(
                f"the columns {start}:{stop} of the kernel are not symmetric among themselves: "
                "push columns of a symmetric matrix."
            )
        return block

    def result(self) -> Pass:
        """Return the finished pass; an error names the columns that are missing."""
        missing = np.flatnonzero(~self._seen)
        if len(missing):
            shown = ", ".join(str(index) for index in missing[:5])
            raise ValueError(
                f"{len(missing)} of {self.n_samples} columns have not been pushed yet "
                f"(first: {shown}). Call add_columns for them before fit."
            )
        audit = np.sqrt(self._error / self._size) if self._size else 0.0
        return Pass(
            self._W.copy(),
            self._row_sums.copy(),
            float(self._squares.sum()),
            self._diagonal.copy(),
            self.n_samples**2,
            float(audit),
        )
