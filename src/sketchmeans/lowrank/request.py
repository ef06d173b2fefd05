"""What is asked of a method, and what it says beforehand that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sketchmeans.engine import ALONE, Run

Truncation = Literal["late", "early"]


@dataclass(frozen=True)
class Request:
    """What is asked of a method."""

    rank: int
    width: int
    """Columns of the sketch, or landmarks."""
    seed: int
    sketch: str = "auto"
    truncation: Truncation = "late"
    n_passes: int = 1
    tolerance: float = 0.0
    """Share of the trace that may be left: Cholesky methods stop there, landmark methods cut the
    embedding there."""
    run: Run = ALONE


@dataclass(frozen=True)
class Needs:
    """Bytes that a method allocates beyond the operator."""

    working: int
    """At the highest point."""
    kept: int
    """By its result, and by blocks that it freed: the allocator may hold on to them."""
    spilled: bool = False
    """Whether the factor goes to a scratch file, and the embedding that is made of it."""
