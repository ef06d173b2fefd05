"""The anchors of the neighbours kernel as arrays, and back.

All sets of anchors lie in one stack, set after set: in an array, or in a CSR matrix where anchors
are sparse rows. A model of sparse data may have sets of both kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import Array
from sketchmeans.blocks import rows_of
from sketchmeans.checks import check_count
from sketchmeans.container import ModelFileError
from sketchmeans.kernels.neighbors import MOST_GRAPHS
from sketchmeans.models.checks import INTEGERS, Spec, check_flag, check_range, checked_csr
from sketchmeans.operators import NeighborFeatures, NeighborPoints
from sketchmeans.operators.anchors import Anchors, Frame
from sketchmeans.text import called

FIELDS = {"kind", "dtype", "unit_rows", "centered", "exponent", "n_neighbors", "anchors", "sparse"}
"""What a header says of anchors."""
HIGHEST_EXPONENT = 1100
"""Of the power of two that brings data near one: beyond that of any float."""
FARTHEST = 2.0**42
"""From the origin of the frame; it shows data within 2^40, and as far on the other side."""
MOST_HELD = 1e200
"""By an anchor; the weights of a fit sum up to 1e100 at most."""


def describe(points: NeighborPoints) -> dict[str, Any]:
    """Return what a header says of the anchors."""
    frame, graphs = points.map.frame, points.map.graphs
    if len(graphs) > MOST_GRAPHS:
        raise ValueError(
            f"this model has {len(graphs):,} sets of anchors, and a model file holds at most "
            f"{MOST_GRAPHS:,}. Lower {called('n_graphs')}."
        )
    return {
        "kind": "neighbors",
        "dtype": str(points.dtype),
        "unit_rows": frame.unit_rows,
        "centered": frame.center is not None,
        "exponent": frame.exponent,
        "n_neighbors": max(graph.n_neighbors for graph in graphs),  # a set with fewer has them all
        "anchors": [len(graph) for graph in graphs],
        "sparse": [sparse.issparse(graph.points) for graph in graphs],
    }


def arrays_of(points: NeighborPoints) -> dict[str, Array | None]:
    """Return the arrays of the anchors; those of several sets are copied into one."""
    every = [graph.points for graph in points.map.graphs]
    found: dict[str, Any] = {}
    if plain := [some for some in every if not sparse.issparse(some)]:
        found["X"] = plain[0] if len(plain) == 1 else np.concatenate(plain)
    if stored := [some for some in every if sparse.issparse(some)]:
        stack = sparse.vstack(stored, format="csr")
        found |= {name: getattr(stack, name) for name in ("data", "indices", "indptr")}
    return found | {"held": np.concatenate(points.map.held), "center": points.map.frame.center}


def specs_of(description: dict[str, Any], rows: str) -> dict[str, Spec]:
    """Check a description that has the right fields; return the arrays that it needs."""
    anchors, is_sparse = description["anchors"], description["sparse"]
    for name, values in (("anchors", anchors), ("sparse", is_sparse)):
        if not isinstance(values, list) or not 1 <= len(values) <= MOST_GRAPHS:
            raise ModelFileError(f"its {name} are no list of 1 to {MOST_GRAPHS:,} sets.")
    if len(anchors) != len(is_sparse):
        raise ModelFileError(f"it has {len(anchors)} sets of anchors, and not {len(is_sparse)}.")
    for count, flag in zip(anchors, is_sparse, strict=True):
        check_count("anchors", count)
        check_flag("sparse", flag)
    check_count("n_neighbors", description["n_neighbors"])
    if description["n_neighbors"] > max(anchors):
        raise ModelFileError(
            f"its {called('n_neighbors')}={description['n_neighbors']} are more than the "
            f"{max(anchors)} anchors of a set."
        )
    by_direction = check_flag("unit_rows", description["unit_rows"])
    centered, exponent = check_flag("centered", description["centered"]), description["exponent"]
    if type(exponent) is not int or abs(exponent) > HIGHEST_EXPONENT:
        raise ModelFileError(f"exponent={exponent!r:.80} is not that of a float.")
    if (by_direction and (centered or exponent)) or (centered and any(is_sparse)):
        raise ModelFileError("its anchors are seen in two ways that exclude each other.")
    if description["dtype"] != "float64":
        raise ModelFileError("the features of anchors are float64, and these are not.")
    specs: dict[str, Spec] = {"held": ((rows,), ("<f8",))}
    if not all(is_sparse):
        specs["X"] = (("dense", "p"), ("<f8",))
    if any(is_sparse):
        specs |= {"data": (("stored",), ("<f8",)), "indices": (("stored",), INTEGERS)}
        specs["indptr"] = (("sparse+1",), INTEGERS)
    if centered:
        specs["center"] = (("p",), ("<f8",))
    return specs


def sizes_of(description: dict[str, Any], rows: str) -> dict[str, int]:
    """Return the dimensions that a checked description fixes."""
    counts = list(zip(description["anchors"], description["sparse"], strict=True))
    stored = sum(count for count, is_sparse in counts if is_sparse)
    total = sum(description["anchors"])
    return {rows: total, "dense": total - stored, "sparse": stored}


def restore(
    description: dict[str, Any], array: Callable[[str], Any], n_features: int
) -> NeighborPoints:
    """Build the points of a description from arrays of the shapes of ``specs_of``."""
    X, center, held, stored = array("X"), array("center"), array("held"), None
    check_range("new_points_held", held, np.finfo(float).tiny, MOST_HELD)
    if X is not None:
        check_range("new_points_X", X, -FARTHEST, FARTHEST)
    if center is not None:
        with np.errstate(over="ignore"):
            seen = np.ldexp(center, -description["exponent"])
        check_range("new_points_center", seen, -FARTHEST, FARTHEST)
    if array("data") is not None:
        indices, indptr = array("indices"), array("indptr")
        stored = checked_csr(array("data"), indices, indptr, n_features, "new_points")
        check_range("new_points_data", stored.data, -FARTHEST, FARTHEST)
    frame = Frame(center, description["exponent"], description["unit_rows"])
    graphs, met = [], {True: 0, False: 0}
    for count, is_sparse in zip(description["anchors"], description["sparse"], strict=True):
        rows = slice(met[is_sparse], met[is_sparse] + count)
        points = rows_of(stored if is_sparse else X, rows)
        graphs.append(Anchors(points, description["n_neighbors"]))
        met[is_sparse] = rows.stop
    ends = np.cumsum(description["anchors"])
    return NeighborPoints(NeighborFeatures(frame, graphs, np.split(held, ends[:-1])))
