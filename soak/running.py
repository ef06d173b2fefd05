"""How a part of the soak is run: checks one after the other, a clock, and a table at the end.

A check yields its cases: for each what kind of case it was, and what was found broken. A case that
does not end is shown where it stands, and ends the run.
"""

from __future__ import annotations

import faulthandler
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Cases = Iterator[tuple[str, list[str]]]
"""Each case: its kind, and what was broken in it."""

HANG = 600.0
"""Seconds after which a case is taken for one that hangs, unless its check sees to that."""
SHOWN = 20
"""Violations of a check that are printed in full."""


@dataclass(frozen=True)
class Check:
    """One way to look for a broken promise."""

    cases: int
    """How many, unless asked otherwise."""
    run: Callable[[int, int], Cases]
    """From a seed and a number of cases to these."""
    hang: float | None = HANG
    """Seconds after which a case is taken for one that hangs; None if the check sees to that."""
    lot: int = 1
    """Cases that are run together: what all of them came to is taken before the time is asked."""


@dataclass
class Found:
    """What a check came to."""

    part: str
    name: str
    asked: int
    seconds: float = 0.0
    out_of_time: bool = False
    kinds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """Cases that were run."""
        return sum(self.kinds.values())

    def row(self) -> str:
        """Return a line of the table."""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()) if kind)
        short = f" of {self.asked:,}, the time was up" if self.out_of_time else ""
        return (
            f"| {self.part} | {self.name} | {self.cases:,}{short} | {kinds} | "
            f"{len(self.violations)} | {self.seconds:.0f} |"
        )


def run_part(
    part: str, checks: dict[str, Check], seed: int, minutes: float, count: int | None
) -> list[Found]:
    """Run the checks of a part; each gets an equal share of the time that is left."""
    end = time.monotonic() + 60 * minutes
    results = []
    for place, (name, check) in enumerate(checks.items()):
        share = (end - time.monotonic()) / (len(checks) - place)
        results.append(_run(Found(part, name, count or check.cases), check, seed, share))
    return results


def _run(found: Found, check: Check, seed: int, seconds: float) -> Found:
    start = time.monotonic()
    print(f"{found.part}, {found.name}: up to {found.asked:,} cases, seed {seed}", flush=True)
    _watch(check)
    try:
        for kind, broken in check.run(seed, found.asked):
            _watch(check)
            found.kinds[kind] += 1
            for text in broken:
                found.violations.append(text)
                if len(found.violations) <= SHOWN:
                    print(f"BROKEN: {text}", flush=True)
            if found.cases % check.lot == 0 and time.monotonic() - start > seconds:
                found.out_of_time = found.cases < found.asked
                break
    finally:
        faulthandler.cancel_dump_traceback_later()
    found.seconds = time.monotonic() - start
    return found


def _watch(check: Check) -> None:
    """Give the next case its time."""
    if check.hang is not None:
        faulthandler.dump_traceback_later(check.hang, exit=True, file=sys.__stderr__)


def table(results: list[Found], seed: int) -> str:
    """Return all that was found, as a table and a last line."""
    lines = [
        "| part | check | cases | of these | violations | seconds |",
        "|---|---|---|---|---|---|",
        *(found.row() for found in results),
    ]
    cases = sum(found.cases for found in results)
    violations = sum(len(found.violations) for found in results)
    day = time.strftime("%Y-%m-%d")
    lines.append(f"{cases:,} cases, {violations} violations, 0 hangs (seed {seed}, {day})")
    return "\n".join(lines)
