"""FᵀF of sparse features that have as many numbers in every row, added up in the order of the rows.

The native engine adds every product to a dense array; otherwise SciPy multiplies sparse matrices.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Crew, engine_name
from sketchmeans.engine.native import compiled

Spans = Iterable[tuple[list[Any], Crew]]
"""What was made of some spans of rows, one after the other, and a crew that has nothing to do."""

_STRIPES = 4
"""Parts of the matrix, at the least: one stays in the cache (benchmarks/nearest_anchors.py)."""


def sums_densely() -> bool:
    """Whether the native engine adds up FᵀF."""
    return engine_name() == "native"


def dense_gram(features: Spans, width: int, n_threads: int) -> FloatArray:
    """Return FᵀF from rows of F, CSR matrices whose columns rise in every row.

    Memory: the result. A number of it is a sum over the rows in their order, so that threads may
    share it in any way: each takes some rows of it, right of the diagonal.
    """
    G = np.zeros((width, width))
    ends = _stripes(width, max(_STRIPES, 2 * n_threads))
    for parts, crew in features:

        def add(stripe: tuple[int, int], parts: list[Any] = parts) -> None:
            for F in parts:
                columns = F.indices.reshape(F.shape[0], -1).astype(np.int32, copy=False)
                compiled().add_gram(columns, F.data.reshape(columns.shape), *stripe, G)

        crew.each(add, pairwise(ends))
    return _mirrored(G)


def _stripes(width: int, count: int) -> list[int]:
    """Return where stripes end that have as many numbers each right of the diagonal."""
    ends = width * (1 - np.sqrt(1 - np.arange(count + 1) / count))
    return sorted({int(end) for end in np.rint(ends)})


def _mirrored(G: FloatArray) -> FloatArray:
    """Copy what is right of the diagonal to the left of it."""
    blocks = row_blocks(len(G), 512)
    for index, rows in enumerate(blocks):
        G[rows, rows] += np.triu(G[rows, rows], 1).T
        for columns in blocks[index + 1 :]:
            G[columns, rows] = G[rows, columns].T
    return G


def sparse_gram(products: Spans) -> FloatArray:
    """Return FᵀF from FᵀF of spans, sparse matrices."""
    total: Any = None
    for parts, _ in products:
        for part in parts:
            total = part if total is None else total + part
    return total.toarray()
