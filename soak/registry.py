"""The parts of the soak by their names; a part is the ``CHECKS`` of its modules."""

from __future__ import annotations

from importlib import import_module

from soak.running import Check

PARTS: dict[str, tuple[str, ...]] = {
    "certificates": ("bounds", "proofs", "cuts", "restarts"),
    "threads": ("threads", "signals"),
    "memory": ("memory",),
    "files": ("files",),
    "workers": ("workers",),
    "resume": ("resume",),
    "zoo": ("zoo",),
    "seeds": ("seeds",),
}
"""What a part consists of. A module is imported only where its part is run."""


def checks_of(part: str) -> dict[str, Check]:
    """Return the checks of a part by their names."""
    found: dict[str, Check] = {}
    for module in PARTS[part]:
        found |= import_module(f"soak.{module}").CHECKS
    return found
