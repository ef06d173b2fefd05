"""What a checkpoint is of: data, parameters, and what computes with them.

Bits depend on all of it. They do not depend on threads, on the memory limit or on who is told, so
that these may change from one call to the next.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy import sparse

from sketchmeans._package import __version__

FREE = ("n_jobs", "memory_limit", "verbose", "checkpoint")
"""Parameters that no bit depends on."""
_BLOCK = 1 << 24
"""Bytes of data that are read at a time."""


def fingerprint(
    what: str, parameters: Mapping[str, Any], engine: str, **data: Any
) -> dict[str, str]:
    """Return what a checkpoint is of, by names that people know.

    Parameters
    ----------
    what : str
        What is computed, such as the name of an estimator.
    parameters : mapping
        Those of ``FREE`` are left out.
    engine : str
        What computes the tiles.
    **data : arrays, sparse matrices, anything with rows, or None
    """
    named = {name: described(one) for name, one in parameters.items() if name not in FREE}
    versions = {"numpy": np.__version__, "scipy": scipy.__version__}
    return {
        "the work": what,
        **{name: described(one) for name, one in data.items()},
        **named,
        "sketchmeans": __version__,
        **versions,
        "scikit-learn": sklearn.__version__,
        "engine": engine,
        "byte order": sys.byteorder,
    }


def described(value: Any) -> str:
    """Return a value as text that is the same for the same value, in any process.

    >>> described({"b": 1, "a": np.float64(2.5)})
    "{'a': 2.5, 'b': 1}"
    >>> described(np.zeros((2, 3)))
    '2 × 3 numbers of float64 (17b0761f87b081d5)'
    """
    if isinstance(value, np.random.RandomState):
        parts = [np.asarray(part).tobytes() for part in value.get_state(legacy=True)]
        return f"a RandomState ({sha256(b' '.join(parts)).hexdigest()[:16]})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {described(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _of_rows(value)
    if callable(value):
        code = getattr(value, "__code__", None)
        name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', repr(value))}"
        if code is None:
            return name
        body = code.co_code + repr((code.co_names, _constants(code), value.__defaults__)).encode()
        return f"{name} ({sha256(body).hexdigest()[:16]})"
    return repr(value)


def _constants(code: Any) -> list[Any]:
    """Return the constants of a function, with the body of a function in it for the function."""
    return [one.co_code if hasattr(one, "co_code") else one for one in code.co_consts]


def _of_rows(X: Any) -> str:
    """Return the size of data and a hash of all of it, read block after block."""
    found = sha256()
    if sparse.issparse(X):
        stored = X.tocsr()
        for array in (stored.indptr, stored.indices, stored.data):
            found.update(str(array.dtype).encode())
            _add(found, array)
    else:
        _add(found, X)
    size = " × ".join(f"{count:,}" for count in X.shape)
    kind = "stored numbers" if sparse.issparse(X) else "numbers"
    return f"{size} {kind} of {X.dtype} ({found.hexdigest()[:16]})"


def _add(found: Any, rows: Any) -> None:
    count = rows.shape[0]
    width = int(np.prod(rows.shape[1:])) * np.dtype(rows.dtype).itemsize
    step = max(1, _BLOCK // max(width, 1))
    for first in range(0, count, step):
        block = np.ascontiguousarray(rows[first : first + step])
        if block.size:
            found.update(block.reshape(-1).view(np.uint8).data)
