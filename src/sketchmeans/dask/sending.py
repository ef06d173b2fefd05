"""How functions and rows travel to a worker, and how they arrive."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from sketchmeans.estimators.checks import plain_array, plain_csr


@dataclass(frozen=True)
class Made:
    """Rows that a worker makes itself, of a sketch from its seed."""

    maker: Any
    start: int
    stop: int

    def __call__(self) -> Any:
        """Make them."""
        return self.maker.rows(self.start, self.stop)


def sealed(work: Callable[..., Any]) -> bytes:
    """Return a function as bytes.

    NOTE: what Dask pickles itself it sends in frames, and arrays then lie in these at any address.
    Compiled code wants them where a processor reads them at once.
    """
    return pickle.dumps(work, protocol=pickle.HIGHEST_PROTOCOL)


def opened(work: bytes) -> Callable[..., Any]:
    """Return a function that was sent as bytes by ``sealed``."""
    return pickle.loads(work)


def here(value: Any) -> Any:
    """Return what was received as compiled code reads it; rows that are to be made, made."""
    if isinstance(value, Made):
        return value()
    if sparse.issparse(value):
        return plain_csr(value)
    return plain_array(value)
