"""FᵀF of sparse features that have as many numbers in every row, from what two columns share.

The native engine adds to a dense array; otherwise SciPy multiplies sparse matrices.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Crew, engine_name
from sketchmeans.engine.native import compiled
from sketchmeans.operators.neighbor_features import regular_csr

_STRIPES = 4
"""Parts of the matrix, at the least: one stays in the cache (benchmarks/nearest_anchors.py)."""


def sums_densely() -> bool:
    """Whether the native engine adds up what anchors share."""
    return engine_name() == "native"


def add_counts(found: Iterable[list[IntArray]], G: FloatArray, crew: Crew) -> None:
    """Add in how many rows any two columns meet, right of the diagonal.

    Each thread takes some rows of the result.

    Parameters
    ----------
    found : iterable of lists of arrays
        The columns of rows, which rise in every row.
    G : array of shape (columns, columns)
        What it is added to; nothing of it is left to do when ``found`` is asked for more.
    crew : Crew
        Has nothing to do when it is asked.
    """
    width = len(G)
    ends = _stripes(width, max(_STRIPES, 2 * crew.n_threads))
    ones = np.ones((0, 0))
    for parts in found:
        longest = max(len(columns) for columns in parts)
        if len(ones) < longest:
            ones = np.ones((longest, parts[0].shape[1]))

        def add(
            stripe: tuple[int, int], parts: list[IntArray] = parts, ones: FloatArray = ones
        ) -> None:
            for columns in parts:
                compiled().add_gram(columns, ones[: len(columns)], *stripe, G)

        crew.each(add, pairwise(ends))


def span_pairs(columns: IntArray, root: FloatArray, width: int) -> Any:
    """Return what any two columns share of rows with these roots of weights.

    Dense and right of the diagonal by the native engine, else sparse and whole.
    """
    numbers = np.repeat(root, columns.shape[1]).reshape(columns.shape)
    if sums_densely():
        G = np.zeros((width, width))
        compiled().add_gram(columns, numbers, 0, width, G)
        return G
    M = regular_csr(columns, numbers, width)
    return M.T @ M


def finished(total: Any, scales: FloatArray) -> FloatArray:
    """Return FᵀF from what any two columns share, and the numbers that belong to columns."""
    G = _mirrored(total) if isinstance(total, np.ndarray) else total.toarray()
    for rows in row_blocks(len(G), 512):
        G[rows] *= np.outer(scales[rows], scales)
    return G


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
