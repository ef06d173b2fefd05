"""Data by their shape and kind alone: what a fit will take is reckoned before they are read.

An ``Outline`` stands in for the rows wherever sizes are asked for, so that a plan and a refusal use
the operators, the decisions and the budgets of the fit itself. It answers questions about values
(how wide is the kernel, does float32 hold it) from the rows that it may look at, or from made-up
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from sketchmeans.blocks import BLOCK, data_blocks, rows_of
from sketchmeans.disk import FileRows
from sketchmeans.disk.sources import ArraySource, is_memory_map
from sketchmeans.estimators.checks import first_bad, plain_array, refuse_value
from sketchmeans.rows import Rows

LOOKED_AT, PLACES = 4096, 8
"""Rows of data that are not in memory that a plan looks at, and in how many places they lie."""
MOST_KNOWN = 1 << 20
"""Numbers up to which an answer is kept for the next who asks."""
MADE_UP = 64
"""Rows that are made up where none may be read."""


@dataclass(frozen=True)
class Kind:
    """What is known of data without a look at their numbers."""

    shape: tuple[int, int]
    dtype: np.dtype
    """As a fit will see them."""
    nnz: int | None
    """Numbers that are stored; None for dense data."""
    copied: int
    """Bytes of the copy that a fit makes; 0 where it makes none."""
    in_memory: bool
    place: str = "memory"
    """"file" for a path or another source, "map" for a memory map that was given."""
    reading: int = 0
    """What reading a file takes beside the rows."""
    spills: bool = False
    """Whether they are read in blocks, and what stays of them goes to a file."""

    @classmethod
    def of(cls, X: Any, *, given_rows: bool) -> Kind | None:
        """Return the kind of data; None where only a conversion tells, as of lists and frames.

        ``given_rows`` says that they are a kernel matrix, which is taken as it is.
        """
        if isinstance(X, Outline):
            return X.kind
        if isinstance(X, FileRows):
            if isinstance(X.source, ArraySource) and X.source.is_given_map:
                return cls.of(X.source.array, given_rows=given_rows)
            reading = X.scratch_bytes
            return cls(X.shape, X.dtype, None, 0, False, "file", reading)
        shape: Any = getattr(X, "shape", ())
        dtype = getattr(X, "dtype", None)
        if isinstance(X, Rows) or len(shape) != 2 or not isinstance(dtype, np.dtype):
            return None
        if dtype.kind not in "fiub" or not hasattr(X, "__getitem__"):
            return None
        n, p = int(shape[0]), int(shape[1])
        native = dtype.newbyteorder("=")
        taken = native if native in (np.float32, np.float64) or given_rows else np.dtype(np.float64)
        if sparse.issparse(X):
            if X.format != "csr":
                return None
            size = X.nnz * (taken.itemsize + X.indices.itemsize) + X.indptr.nbytes
            same = taken == dtype and X.has_canonical_format
            return cls((n, p), taken, int(X.nnz), 0 if same else size, True)
        same = taken == dtype
        if isinstance(X, np.ndarray):
            same = same and plain_array(X) is X and X.flags.c_contiguous
        copied = 0 if same or given_rows else n * p * taken.itemsize
        in_memory = isinstance(X, np.ndarray) and not is_memory_map(X)
        place = "memory" if isinstance(X, np.ndarray) and in_memory else "map"
        return cls((n, p), taken, None, copied, in_memory, place)

    @property
    def scratch_bytes(self) -> int:
        """What reading takes while the fit runs."""
        return self.reading if self.spills else 0

    @property
    def before(self) -> int:
        """What reading takes before the fit, where rows are put in a scratch file."""
        return 0 if self.spills else self.reading


class Outline(Rows):
    """Rows that are not read, or of which some are: all that sizes need.

    Parameters
    ----------
    kind : Kind
    few : array or CSR matrix
        The rows that questions about values are answered from.
    source : array or CSR matrix, optional
        All rows, where they are in memory: then these answer.
    """

    def __init__(
        self, kind: Kind, few: Any, source: Any = None, known: dict[Any, Any] | None = None
    ) -> None:
        self.kind = kind
        self.shape, self.dtype, self.nnz = kind.shape, kind.dtype, kind.nnz
        self.spills, self.scratch_bytes = kind.spills, kind.scratch_bytes
        self._few, self._source = few, source
        self._known = {} if known is None else known
        """What was asked of the rows already: other plans for them ask the same."""

    @classmethod
    def unread(cls, kind: Kind, spread: float) -> Outline:
        """Return the outline of rows that nobody may look at; made-up ones spread so far.

        Made-up rows are harmless to float32: what is reckoned of them is the least.
        """
        random, p = np.random.default_rng(0), kind.shape[1]
        rows = min(kind.shape[0], MADE_UP)
        if kind.nnz is None:
            return cls(kind, (spread * random.normal(size=(rows, p))).astype(kind.dtype))
        share = min(1.0, max(kind.nnz / max(kind.shape[0] * p, 1), 1 / p))
        few = sparse.random(rows, p, share, "csr", kind.dtype, random)
        return cls(kind, sparse.csr_matrix(few * spread))

    @classmethod
    def looked_at(cls, kind: Kind, X: Any) -> Outline:
        """Return the outline of data: of those in memory all rows count, of others a few."""
        if isinstance(X, Outline):
            return X if X.kind == kind else cls(kind, X._few, X._source, X._known)
        if kind.in_memory:
            return cls(kind, None, X)
        n, each = kind.shape[0], LOOKED_AT // PLACES
        starts = np.unique(np.linspace(0, max(n - each, 0), PLACES).astype(int))
        parts = [np.asarray(X[int(one) : min(int(one) + each, n)]) for one in starts]
        for start, part in zip(starts, parts, strict=True):
            if part.dtype.kind == "f" and (bad := first_bad(part)) is not None:
                refuse_value(int(start) + bad[0], *bad[1:])
        return cls(kind, np.concatenate(parts)[:n].astype(kind.dtype, copy=False))

    @property
    def span(self) -> int:
        """Rows of a span, any."""
        return BLOCK

    @property
    def whole(self) -> Any:
        """All rows, where they are in memory; None otherwise."""
        return self._source

    @property
    def differing(self) -> int:
        """Rows from which on those that were looked at come again."""
        return self.shape[0] if self._source is not None else int(self._few.shape[0])

    def __getitem__(self, few: Any) -> Any:
        """Return a few rows: these, or others that were looked at in their place."""
        if self._source is not None:
            return self._source[few].astype(self.dtype, copy=False)
        places = np.arange(self.shape[0])[few] if isinstance(few, slice) else np.asarray(few)
        return self._few[places % self._few.shape[0]]

    def some(self, count: int, seed: int) -> Any:
        """Return up to so many rows, drawn by a seed: of those that there are to look at."""
        rows = self.shape[0] if self._source is not None else self._few.shape[0]
        random = np.random.default_rng(seed)
        return self[np.sort(random.choice(rows, min(count, rows), replace=False))]

    def map(
        self, work: Callable[..., Any], *given: Any, size: int | None = None, name: str = "map"
    ) -> list[Any]:
        """Return what ``work`` makes of the rows that there are to look at."""
        assert not given
        key = _asked(work)
        if key is None or key not in self._known:
            rows = self._few if self._source is None else self._source
            found = [
                work(rows_of(rows, block).astype(self.dtype, copy=False))
                for block in data_blocks(rows)
            ]
            if key is None or sum(map(np.size, found)) > MOST_KNOWN:
                return found
            self._known[key] = found
        return list(self._known[key])

    def run(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: an outline computes nothing."""
        raise NotImplementedError("an outline has sizes, and no rows to compute with.")

    tournament = of_groups = run
    n_threads = 1


def _asked(work: Callable[..., Any]) -> Any:
    """Return what tells a question from others; None for one that cannot be told from them."""
    if not isinstance(work, partial):
        return work
    given = [*enumerate(work.args), *sorted(work.keywords.items())]
    plain = [
        (name, (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value)
        for name, value in given
    ]
    return (work.func, *plain) if all(isinstance(one, Hashable) for _, one in plain) else None
