"""Checks of what a file says: flags of its header, numbers of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array
from sketchmeans.blocks import row_blocks
from sketchmeans.checks import check_number
from sketchmeans.container import ModelFileError

FLOATS = ("<f4", "<f8")
INTEGERS = ("<i4", "<i8")
AT_ONCE = 1 << 17
"""Numbers that are looked at together: a check takes a constant amount of memory."""

Spec = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the dimensions of an array, and the dtypes that it may have."""
Check = Callable[[str, Any], None]
check_non_negative: Check = partial(check_number, least=0.0)


def prefixed(prefix: str, arrays: dict[str, Array | None]) -> dict[str, Array]:
    """Return arrays under the names that they have in a file; one that is None is not there."""
    return {f"{prefix}_{name}": array for name, array in arrays.items() if array is not None}


def check_range(name: str, array: Array, least: float = -np.inf, below: float = np.inf) -> None:
    """Refuse numbers that are not finite, lower than ``least``, or not ``below``."""
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    for span in row_blocks(len(flat), AT_ONCE):
        numbers = flat[span]
        good = (numbers >= least) & (numbers < below)
        if array.dtype.kind == "f":
            good &= np.isfinite(numbers)
        if not good.all():
            worst = numbers[int(np.argmin(good))]
            limit = f" from {least:g} to below {below:g}" if below < np.inf else ""
            limit = limit or (f" of at least {least:g}" if least > -np.inf else "")
            raise ModelFileError(f"its array {name} holds {worst:g}, and no finite number{limit}.")


def check_flag(name: str, value: Any) -> bool:
    """Return a value that is true or false; refuse any other."""
    if not isinstance(value, bool):
        raise ModelFileError(f"{name}={value!r:.80} is neither true nor false.")
    return value


def checked_csr(data: Array, indices: Array, indptr: Array, n_features: int, prefix: str) -> Any:
    """Build a CSR matrix; SciPy's compiled code trusts what is checked here.

    SciPy's ``check_format`` would copy the indices, and lets NaN and unsorted columns pass.
    """
    check_range(f"{prefix}_data", data)
    check_range(f"{prefix}_indices", indices, 0, n_features)
    check_range(f"{prefix}_indptr", indptr, 0, len(data) + 1)
    if indices.dtype != indptr.dtype:
        raise ModelFileError(f"{prefix}_indices and {prefix}_indptr have different dtypes.")
    spans = row_blocks(len(indptr) - 1, AT_ONCE)
    rising = all((np.diff(indptr[span.start : span.stop + 1]) >= 0).all() for span in spans)
    if not rising or indptr[0] != 0 or indptr[-1] != len(data):
        raise ModelFileError(
            f"its array {prefix}_indptr does not rise from 0 to the {len(data):,} numbers stored."
        )
    X = sparse.csr_matrix((len(indptr) - 1, n_features), dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr  # the constructor may copy the indices
    if not X.has_canonical_format:
        raise ModelFileError(f"the columns in {prefix}_indices do not rise within each row.")
    return X
