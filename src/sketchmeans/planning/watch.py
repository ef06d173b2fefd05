"""A clock for short measurements."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ENOUGH, MOST = 0.03, 20
"""Seconds after which a task is not run again to measure it, and how often it is at the most."""


@dataclass
class Stopwatch:
    """Measures tasks as they run now, beside whatever else the machine does."""

    clock: Callable[[], float] = time.perf_counter
    spent: float = 0.0
    """Seconds that all measurements have taken."""

    def once(self, task: Callable[[], Any]) -> float:
        """Return the seconds of a task that is run once."""
        start = self.clock()
        task()
        seconds = self.clock() - start
        self.spent += seconds
        return seconds

    def time(self, task: Callable[[], Any]) -> float:
        """Return the mean seconds of a task; a short one is run some times, the first for nothing.

        The mean, and not the least: a fit will meet the load that there is now.
        """
        first = self.once(task)
        if first > ENOUGH:
            return first
        total, count = 0.0, 0
        while total < ENOUGH and count < MOST:
            total, count = total + self.once(task), count + 1
        return total / count
