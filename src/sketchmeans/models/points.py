"""What knows the kernel of new points with the samples, as named arrays and back.

A model predicts through its ``NewPoints``: the rows of the samples or landmarks with a kernel, or
the word that every row of the kernel is given. Here each of them becomes a description for a JSON
header and arrays whose names begin with a prefix, and comes back from the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array
from sketchmeans.blocks import row_blocks
from sketchmeans.checks import check_count, check_number
from sketchmeans.kernels import KERNELS, Kernel, Statistic, n_monomials
from sketchmeans.kernels.points import Prepared
from sketchmeans.models.container import ModelFileError
from sketchmeans.operators import DataOperator, FeatureMapOperator, GivenRows, NewPoints
from sketchmeans.operators.data import PointsOperator
from sketchmeans.operators.monomials import MAX_FEATURES

FLOATS = ("<f4", "<f8")
INTEGERS = ("<i4", "<i8")
HIGHEST_DEGREE = 170
"""Of a feature map: 171! is no float."""
AT_ONCE = 1 << 17
"""Numbers that are looked at together: a check takes a constant amount of memory."""

Spec = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the dimensions of an array, and the dtypes that it may have."""
Check = Callable[[str, Any], None]
check_non_negative: Check = partial(check_number, least=0.0)
_OPTIONS: dict[str, Check] = {
    "gamma": check_non_negative,
    "degree": check_count,
    "coef0": check_number,
}
"""The options of all kernels, each with its check."""


def describe(points: NewPoints) -> dict[str, Any]:
    """Return what a header says of the points."""
    dtype = str(getattr(points, "dtype", ""))
    if type(points) is GivenRows:
        return {"kind": "rows", "dtype": dtype, "chosen": points.chosen is not None}
    if not isinstance(points, PointsOperator):
        raise ValueError(
            f"the kernel of this model is code of its own ({type(points).__name__}), and a model "
            'file holds no code. Fit with a named kernel, or with kernel="precomputed" on the '
            "matrix that your function gives; joblib.dump keeps the model for your own use."
        )
    kernel = points.kernel
    if KERNELS.get(kernel.name) is not type(kernel):
        raise ValueError(
            f"the kernel {kernel.name!r} is not one of {', '.join(KERNELS)}, so load could not "
            "make it again. Fit with one of these."
        )
    options = {name: getattr(kernel, name) for name in kernel.options()}
    return {
        "kind": "features" if isinstance(points, FeatureMapOperator) else "data",
        "dtype": dtype,
        "sparse": points.points.is_sparse,
        "kernel": {"name": kernel.name, **options},
    }


def arrays_of(points: NewPoints, prefix: str) -> dict[str, Array]:
    """Return the arrays of the points; none is copied."""
    if isinstance(points, GivenRows):
        return prefixed(prefix, {"diagonal": points.diagonal, "chosen": points.chosen})
    assert isinstance(points, PointsOperator)
    X, prepared = points.points.X, points.points.prepared
    names = ("data", "indices", "indptr")
    found = {name: getattr(X, name) for name in names} if sparse.issparse(X) else {"X": X}
    return prefixed(
        prefix,
        found | {"center": prepared.center, "scale": prepared.scale, "norms": prepared.norms},
    )


def prefixed(prefix: str, arrays: dict[str, Array | None]) -> dict[str, Array]:
    """Return arrays under the names that they have in a file; one that is None is not there."""
    return {f"{prefix}_{name}": array for name, array in arrays.items() if array is not None}


def specs_of(description: Any, prefix: str, rows: str) -> dict[str, Spec]:
    """Check a description and return the arrays that it needs.

    Parameters
    ----------
    description : object of JSON
        As ``describe`` gives.
    prefix : str
        Of the names of the arrays.
    rows : str
        The name of the dimension that counts the samples or landmarks.
    """
    kind = description.get("kind") if isinstance(description, dict) else None
    expected = {"rows": {"kind", "dtype", "chosen"}}
    expected["data"] = expected["features"] = {"kind", "dtype", "sparse", "kernel"}
    if not isinstance(kind, str) or set(description) != expected.get(kind):
        raise ModelFileError(f"its description of {prefix} is none that save writes.")
    if description["dtype"] not in ("float32", "float64"):
        raise ModelFileError(f"{prefix} has dtype {description['dtype']!r:.80}.")
    specs: dict[str, Spec]
    if kind == "rows":
        # Of a kernel whose rows are given the columns are the samples: p is n.
        specs = {"diagonal": (("p",), ("<f8",))}
        if check_flag("chosen", description["chosen"]):
            specs["chosen"] = ((rows,), INTEGERS)
    else:
        kernel = kernel_of(description["kernel"])
        if check_flag("sparse", description["sparse"]):
            specs = {"data": (("stored",), FLOATS), "indices": (("stored",), INTEGERS)}
            specs["indptr"] = ((f"{rows}+1",), INTEGERS)
        else:
            specs = {"X": ((rows, "p"), FLOATS)}
        distances = kernel.statistic is Statistic.SQUARED_DISTANCE
        if distances and not description["sparse"]:
            specs["center"] = (("p",), ("<f8",))
        if distances:
            specs["norms"] = ((rows,), ("<f4" if description["dtype"] == "float32" else "<f8",))
        if kernel.unit_rows:
            specs["scale"] = ((rows,), ("<f8",))
    return {
        f"{prefix}_{name}": (tuple(_own(size, prefix) for size in sizes), dtypes)
        for name, (sizes, dtypes) in specs.items()
    }


def restore(
    description: dict[str, Any], arrays: dict[str, Array], prefix: str, n_features: int
) -> NewPoints:
    """Build the points of a description whose arrays have the shapes of ``specs_of``."""

    def array(name: str) -> Any:
        return arrays.get(f"{prefix}_{name}")

    found = {name: array(name) for name in ("diagonal", "chosen", "X", "center", "scale", "norms")}
    limits = {"chosen": (0, n_features), "scale": (0,), "norms": (0,)}
    for name, part in found.items():
        if part is not None:
            check_range(f"{prefix}_{name}", part, *limits.get(name, ()))
    dtype = np.dtype(description["dtype"])
    if description["kind"] == "rows":
        return GivenRows(dtype, found["diagonal"], found["chosen"])
    X = found["X"]
    if description["sparse"]:
        X = _csr(array("data"), array("indices"), array("indptr"), n_features, prefix)
    prepared = Prepared(found["center"], found["scale"], found["norms"])
    kernel = kernel_of(description["kernel"])
    if description["kind"] == "data":
        return DataOperator(X, kernel, dtype=dtype, prepared=prepared)
    _check_features(kernel, n_features, description["dtype"])
    return FeatureMapOperator(X, kernel, prepared=prepared)


def kernel_of(described: Any) -> Kernel:
    """Build a kernel of the registry from its name and options.

    ``make_kernel`` takes any options and leaves out what a kernel does not read; a file has exactly
    those that it reads.
    """
    name = described.get("name") if isinstance(described, dict) else None
    if not isinstance(name, str) or name not in KERNELS:
        raise ModelFileError(f"its kernel {name!r:.80} is not one of {', '.join(KERNELS)}.")
    cls = KERNELS[name]
    options = {option: value for option, value in described.items() if option != "name"}
    if set(options) != set(cls.options()):
        raise ModelFileError(f"its {name} kernel has other options than {cls.options()}.")
    for option in cls.options():
        _OPTIONS.get(option, check_number)(option, options[option])
    return cls(**options)


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


def _own(size: str, prefix: str) -> str:
    """Let the stored numbers of two sparse matrices be counted apart."""
    return f"{prefix}_{size}" if size == "stored" else size


def _check_features(kernel: Kernel, n_features: int, dtype: str) -> None:
    """Refuse a feature map that no fit chooses: it could take any amount of memory."""
    small = n_features <= MAX_FEATURES and getattr(kernel, "degree", 1) <= HIGHEST_DEGREE
    count = n_monomials(n_features, kernel) if small else None
    if count is None or count > MAX_FEATURES or dtype != "float64":
        raise ModelFileError(
            f"its {kernel.name} kernel of {n_features:,} features has no feature map of at most "
            f"{MAX_FEATURES} monomials in float64."
        )


def _csr(data: Array, indices: Array, indptr: Array, n_features: int, prefix: str) -> Any:
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
