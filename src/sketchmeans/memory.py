"""The memory of a fit, reckoned before it starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

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
                f"memory_limit={limit!r} is not understood: give a number of bytes, or a text "
                'such as "500MB", "2GB" or "2GiB".'
            )
    elif isinstance(limit, Real) and not isinstance(limit, bool):
        amount = float(limit)
    else:
        raise ValueError(
            f'memory_limit={limit!r} must be a number of bytes, a text such as "2GB", or None.'
        )
    if not 0 < amount < float("inf"):
        raise ValueError(f"memory_limit={limit!r} must be positive.")
    return int(amount)


def human(size: float) -> str:
    """Write a number of bytes for a person.

    >>> human(1_900_000_000)
    '1.9 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


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


def plan(
    operator: Any,
    *,
    width: int,
    rank: int,
    n_passes: int,
    sketch_itemsize: int,
    n_clusters: int | None,
    n_init: int,
    n_refine: int,
    embedding_itemsize: int,
    n_threads: int,
    limit: int | None,
    extra: int = 0,
) -> Plan:
    """Choose threads, packing and side-by-side starts; refuse what cannot keep the limit.

    Without a limit K-means may copy the embedding up to twice the size of the sketch.
    """
    n = operator.shape[0]
    sketch = n * (width + 1) * 8
    if n_passes > 1:
        right = n * width * max(sketch_itemsize, operator.dtype.itemsize)
    else:
        right = n * width * sketch_itemsize
    embedding = n * rank * embedding_itemsize
    dual = n * rank * 8

    def peak(threads: int, pack: bool, starts: int) -> int:
        scratch = operator.scratch_bytes(width, threads, pack=pack)
        passing = sketch + right + scratch + extra
        recovering = sketch + right + dual + embedding
        kept = sketch + embedding + dual  # the factor stays until the labels are certified
        stages = [passing, recovering]
        if n_clusters is not None:
            stages.append(kept + starts * (embedding + n * 128))
            if n_refine:
                members = 1 if operator.root_weights is None else 2 * 8
                columns = n * (n_clusters + 1) * 8 + n * n_clusters * members + n * 80
                refining = operator.scratch_bytes(n_clusters, threads, pack=pack)
                stages.append(kept + columns + refining)
        return max(stages) + OVERHEAD

    starts = max(1, min(n_threads, n_init, 2 * sketch // max(embedding, 1)))
    best = Plan(n_threads, True, starts, peak(n_threads, True, starts))
    if limit is None or best.peak <= limit:
        return best
    for pack in (True, False):
        for threads in range(n_threads, 0, -1):
            for side_by_side in range(starts, 0, -1):
                if (size := peak(threads, pack, side_by_side)) <= limit:
                    return Plan(threads, pack, side_by_side, size)
    least = peak(1, False, 1)
    raise MemoryError(
        f"memory_limit={human(limit)} cannot be kept: {n:,} samples with width={width} need "
        f"{human(least)} at the least (sketch {human(sketch)}, test matrix {human(right)}, "
        f"embedding {human(embedding)}, one tile at a time). Raise memory_limit, or lower rank "
        "or oversampling."
    )
