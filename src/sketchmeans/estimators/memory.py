"""The memory of a fit, reckoned before it starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans.blocks import BLOCK
from sketchmeans.lowrank.needs import kmeans_bytes
from sketchmeans.text import called, human

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", start=1)}
_UNITS |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)}

OVERHEAD = 16_000_000
"""Small arrays, thread stacks and allocator slack that the plan does not itemise."""


def parse_bytes(limit: Any) -> int | None:
    """Turn "2GB", "512MiB" or a number into bytes; None stays None.

    >>> parse_bytes("2GB"), parse_bytes("1.5 GiB"), parse_bytes(1000)
    (2000000000, 1610612736, 1000)
    """
    if limit is None:
        return None
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", limit)
        units = {name.lower(): size for name, size in _UNITS.items()}
        if match and match[2].lower() in units and match[1].count(".") <= 1 and match[1] != ".":
            amount = float(match[1]) * units[match[2].lower()]
        else:
            raise ValueError(
                f"{called('memory_limit')}={limit!r} is not understood: give a number of bytes, "
                'or a text such as "500MB", "2GB" or "2GiB".'
            )
    elif isinstance(limit, Real) and not isinstance(limit, bool):
        amount = float(limit)
    else:
        raise ValueError(
            f"{called('memory_limit')}={limit!r} must be a number of bytes, a text such as "
            '"2GB", or None.'
        )
    if not 0 < amount < float("inf"):
        raise ValueError(f"{called('memory_limit')}={limit!r} must be positive.")
    return int(amount)


@dataclass(frozen=True)
class Plan:
    """How a fit keeps its memory limit."""

    n_threads: int
    pack: bool
    """Whether the pass may prepare a copy of the data."""
    n_starts: int
    """Starts of K-means that run side by side, each with its own copy of the embedding."""
    peak: int
    """Bytes at the highest point, reckoned."""


def copied_bytes(given: Any, checked: Any) -> int:
    """Return what checked data take beyond those that were given; 0 where they are the same."""
    arrays = (
        [checked.data, checked.indices, checked.indptr] if sparse.issparse(checked) else [checked]
    )
    theirs = getattr(given, "data", None) if sparse.issparse(given) else given
    if isinstance(theirs, np.ndarray) and np.may_share_memory(theirs, arrays[0]):
        return 0
    return sum(array.nbytes for array in arrays)


def refining_bytes(operator: Any, n_clusters: int, n_threads: int, *, pack: bool) -> int:
    """Return what an exact Lloyd iteration takes: memberships, sums over clusters, and tiles."""
    n = operator.shape[0]
    members = 2 if operator.root_weights is None else 9
    columns = n * (n_clusters + 1) * 8 + n * n_clusters * members + n * 120
    return columns + operator.scratch_bytes(n_clusters, n_threads, pack=pack)


def plan(
    operator: Any,
    needs: Callable[[int, bool], Any],
    *,
    rank: int,
    width: int,
    n_clusters: int | None,
    n_init: int,
    n_refine: int,
    embedding_itemsize: int,
    n_threads: int,
    limit: int | None,
    copied: int = 0,
    early: bool = False,
    left_out: bool = False,
) -> Plan:
    """Choose threads, packing and side-by-side starts; refuse what cannot keep the limit.

    Without a limit K-means may copy the embedding up to twice the size of the sketch.

    Parameters
    ----------
    needs : callable
        Reckons the bytes of the approximation (``lowrank.needs.Needs``) for so many threads, with
        or without packed copies.
    copied : int
        Bytes of a copy of the data that was made before.
    early : bool
        Whether the embedding is of the early form.
    left_out : bool
        Whether samples of weight zero are left to the map of new points.
    """
    n = operator.shape[0]
    embedding = n * rank * embedding_itemsize

    def peak(threads: int, pack: bool, starts: int) -> int:
        found = needs(threads, pack)
        kept = found.kept + embedding  # the factor stays until the labels are certified
        stages = [found.working, kept + min(n, BLOCK) * 3 * rank * 8]
        if left_out:
            stages.append(kept + operator.cross_bytes(rank, threads, pack=pack))
        if n_clusters is not None:
            models = n_init * n * 4 + n * 16
            side_by_side = starts * kmeans_bytes(n, n_clusters, embedding)
            stages.append(kept + models + side_by_side)
            columns = width + (rank if early else 0)  # the early form is held against the late one
            certifying = 4 * min(n, BLOCK) * columns * 8 + 6 * columns**2 * 8
            stages.append(kept + models + certifying)
            if n_refine:
                refining = refining_bytes(operator, n_clusters, threads, pack=pack)
                stages.append(kept + models + refining)
        return max(stages) + copied + OVERHEAD

    starts = max(1, min(n_threads, n_init, 2 * n * (width + 1) * 8 // max(embedding, 1)))
    chosen = choose(peak, n_threads, starts, limit)
    if chosen is not None:
        return chosen
    assert limit is not None
    raise MemoryError(
        f"{called('memory_limit')}={human(limit)} cannot be kept: {n:,} samples with width={width} "
        f"need {human(peak(1, False, 1))} at the least (sketch {human(n * (width + 1) * 8)}, "
        f"embedding {human(embedding)}, one tile at a time). Raise {called('memory_limit')}, "
        "or lower rank or oversampling."
    )


def choose(
    peak: Callable[[int, bool, int], int], n_threads: int, starts: int, limit: int | None
) -> Plan | None:
    """Return the first plan that keeps the limit: packed copies go last, starts go first."""
    for pack in (True, False):
        for threads in range(n_threads, 0, -1):
            for side_by_side in range(starts, 0, -1):
                size = peak(threads, pack, side_by_side)
                if limit is None or size <= limit:
                    return Plan(threads, pack, side_by_side, size)
    return None
