"""What knows the kernel of new points with the samples, as named arrays and back.

A model predicts through its ``NewPoints``: the rows of the samples or landmarks with a kernel, sets
of anchors, or the word that every row of the kernel is given. Here each of them becomes a
description for a JSON header and arrays whose names begin with a prefix, and comes back from the
two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array
from sketchmeans.checks import check_count, check_number
from sketchmeans.container import ModelFileError
from sketchmeans.kernels import KERNELS, Kernel, Statistic, n_monomials
from sketchmeans.kernels.points import Prepared
from sketchmeans.models import anchors
from sketchmeans.models.checks import (
    FLOATS,
    INTEGERS,
    Check,
    Spec,
    check_flag,
    check_non_negative,
    check_range,
    checked_csr,
    prefixed,
)
from sketchmeans.operators import (
    DataOperator,
    FeatureMapOperator,
    GivenRows,
    NeighborPoints,
    NewPoints,
)
from sketchmeans.operators.data import PointsOperator
from sketchmeans.operators.monomials import MAX_FEATURES

HIGHEST_DEGREE = 170
"""Of a feature map: 171! is no float."""
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
    if isinstance(points, NeighborPoints):
        return anchors.describe(points)
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
    """Return the arrays of the points; none is copied, but for anchors, which are stacked."""
    if isinstance(points, NeighborPoints):
        return prefixed(prefix, anchors.arrays_of(points))
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
    expected = {"rows": {"kind", "dtype", "chosen"}, "neighbors": anchors.FIELDS}
    expected["data"] = expected["features"] = {"kind", "dtype", "sparse", "kernel"}
    if not isinstance(kind, str) or set(description) != expected.get(kind):
        raise ModelFileError(f"its description of {prefix} is none that save writes.")
    if description["dtype"] not in ("float32", "float64"):
        raise ModelFileError(f"{prefix} has dtype {description['dtype']!r:.80}.")
    specs: dict[str, Spec]
    if kind == "neighbors":
        specs = anchors.specs_of(description, rows)
    elif kind == "rows":
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


def sizes_of(description: dict[str, Any], rows: str) -> dict[str, int]:
    """Return the dimensions that a description fixes by itself, which ``specs_of`` has checked."""
    return anchors.sizes_of(description, rows) if description["kind"] == "neighbors" else {}


def restore(
    description: dict[str, Any], arrays: dict[str, Array], prefix: str, n_features: int
) -> NewPoints:
    """Build the points of a description whose arrays have the shapes of ``specs_of``."""

    def array(name: str) -> Any:
        return arrays.get(f"{prefix}_{name}")

    if description["kind"] == "neighbors":
        return anchors.restore(description, array, n_features)
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
        X = checked_csr(array("data"), array("indices"), array("indptr"), n_features, prefix)
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
