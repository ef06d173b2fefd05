"""TableData: the rows and columns of a data file, ready to be clustered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import BoolArray, FloatArray, IntArray
from sketchmeans.blocks import data_blocks
from sketchmeans.io.categories import Encoded
from sketchmeans.io.limits import DataError
from sketchmeans.io.room import IN_MEMORY, Room
from sketchmeans.io.texts import held_bytes
from sketchmeans.text import called, human

MOST_DENSE = 4_000_000_000
"""Bytes that sparse rows may take when they are made dense, which standardizing them needs."""


@dataclass
class TableData:
    """Rows to cluster, and what they are called.

    Its steps change the table and X itself: no second copy of the data is made.
    """

    X: Any
    """The features: a float array (n × p), or a CSR matrix where the file is sparse."""
    names: tuple[str, ...]
    """One per column of X; "column 1", … where the file has none."""
    named: bool
    """Whether the file itself names its columns."""
    rows: IntArray
    """The row of the file that each row of X was, counted from 1, without the header."""
    n_rows: int
    """Rows of the file, those that were dropped included."""
    ids: Any = None
    """A name for each row, from the id column."""
    id_name: str | None = None
    labels: Any = None
    """The true class of each row, from the label column or the format's own place for it."""
    label_name: str | None = None
    encoded: tuple[Encoded, ...] = ()
    """Columns of text that became several columns of X each."""
    libsvm_base: int | None = None
    """The first index of a LIBSVM file."""
    notes: tuple[str, ...] = ()
    """What was guessed or left out when the file was read, in sentences."""
    n_imputed: int = 0
    """Values that were missing and filled in."""
    fill_values: FloatArray | None = None
    """What ``impute`` fills in, a number per column; None if it was not asked for."""
    center: FloatArray | None = None
    """What ``standardize`` took away from each column; None if it was not asked for."""
    scale: FloatArray | None = None
    """What it divided each column by."""
    room: Room = IN_MEMORY
    """Where X goes where it must be copied."""

    @property
    def held(self) -> int:
        """Bytes of memory that the table takes; what lies in files takes none."""
        return sum(map(held_bytes, (self.X, self.rows, self.ids, self.labels)))

    def own(self) -> Any:
        """Return X, which may be written to now: a map of the file that was read is copied."""
        if not sparse.issparse(self.X) and not self.X.flags.writeable:
            self.X = self.room.copied(self.X, slice(None), self.X.dtype)
        return self.X

    @property
    def n_dropped(self) -> int:
        """Rows of the file that were left out."""
        return self.n_rows - len(self.rows)

    def origin(self, column: int) -> tuple[int, str]:
        """Return the first column of X that comes from the same column of the file, and its name.

        They are the column itself, but where a column of text became several.
        """
        for one in self.encoded:
            if one.first <= column < one.first + len(one.categories):
                return one.first, one.name
        return column, self.names[column]

    def keep_rows(self, kept: BoolArray) -> None:
        """Leave out all rows but those where ``kept`` is true."""
        if isinstance(self.X, np.memmap):
            self.X = _moved_up(self.own(), kept)
        else:
            self.X = self.X[kept]
        self.rows = self.rows[kept]
        self.ids = None if self.ids is None else self.ids[kept]
        self.labels = None if self.labels is None else self.labels[kept]

    def standardize(
        self, center: FloatArray | None = None, scale: FloatArray | None = None
    ) -> None:
        """Give columns mean 0 and deviation 1, or move them as those of another table were.

        A constant column is moved and not divided. Sparse columns become dense, unless nothing is
        taken away from any of them: the same rows give the same numbers in any format.
        """
        if sparse.issparse(self.X) and (center is None or center.any()):
            self.X = _dense(self.X, training=center is None)
        X = self.own()
        if center is None or scale is None:
            center, scale = _moments(X)
        if sparse.issparse(X):
            X.data /= scale[X.indices].astype(X.dtype)
        else:
            for rows in data_blocks(X):
                X[rows] -= center.astype(X.dtype)
                X[rows] /= scale.astype(X.dtype)
        self.center, self.scale = center, scale


def _moved_up(X: Any, kept: BoolArray) -> Any:
    """Return some rows of an array in a scratch file, moved to its begin in their order."""
    done = 0
    for rows in data_blocks(X):
        block = X[rows][kept[rows]]
        X[done : done + len(block)] = block
        done += len(block)
    return X[:done]


def _dense(X: Any, *, training: bool) -> FloatArray:
    """Return a sparse matrix as an array, where that is not too large."""
    n, p = X.shape
    needed = n * p * X.dtype.itemsize
    if needed > MOST_DENSE:
        way_out = (
            f"Leave {called('standardize')} out; to divide the columns in the file keeps their "
            "zeros"
            if training
            else "Split the rows among several files"
        )
        raise DataError(
            f"{n:,} sparse rows of {p:,} columns would take {human(needed)} once they are "
            f"standardized, which fills in their zeros, and at most {human(MOST_DENSE)} are taken "
            f"for that. {way_out}."
        )
    return X.toarray()


def _moments(X: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of each column, in float64 over fixed blocks of rows.

    Sums run about the first row, which keeps the digits of columns far from zero.
    """
    # NOTE: StandardScaler holds a second copy of X in float64 while it fits, and rounds otherwise.
    n, p = X.shape
    first = X[0].astype(np.float64)
    total, squares = np.zeros(p), np.zeros(p)
    for rows in data_blocks(X):
        block = X[rows] - first
        total += block.sum(axis=0)
        squares += np.square(block).sum(axis=0)
    mean = total / n
    deviation = np.sqrt(np.maximum(squares / n - mean**2, 0))
    tiny = 1e-12 * np.abs(first + mean)
    return first + mean, np.where(deviation > tiny, deviation, 1.0)
