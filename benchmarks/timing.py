"""What the benchmarks share: times taken in turns, tables, targets, and facts of the machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import sketchmeans


@dataclass(frozen=True)
class Target:
    """A figure that was promised, and what was measured."""

    name: str
    figure: float
    limit: float
    unit: str = "×"
    at_most: bool = False

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.figure <= self.limit if self.at_most else self.figure >= self.limit

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        verdict = "met" if self.met else "MISSED"
        return (
            f"{self.name}: {self.figure:.3g} {self.unit} "
            f"(target {sign} {self.limit:.3g} {self.unit}): {verdict}"
        )


def interleaved(
    tasks: Mapping[str, Callable[[], Any]], *, repeats: int = 5, calls: int = 1
) -> dict[str, float]:
    """Run the tasks in turns, ``repeats`` times, and return the best seconds a call of each."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.perf_counter()
            for _ in range(calls):
                task()
            best[name] = min(best[name], (time.perf_counter() - start) / calls)
    return best


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; floats get three digits."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def facts() -> str:
    """Return what the figures depend on: the processor, the load, and the versions."""
    # SciPy brings a BLAS of its own; the tiles use NumPy's.
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    blas.sort(key=lambda library: "numpy" not in library["filepath"].rsplit("/", 2)[-2])
    name = "{internal_api} {version}, {architecture} kernels".format_map(blas[0]) if blas else "?"
    return (
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; "
        f"Python {platform.python_version()}, NumPy {np.__version__} ({name}), "
        f"SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, sketchmeans {sketchmeans.__version__}"
    )


def _processor() -> str:
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def conclude(targets: list[Target]) -> list[Target]:
    """Print a line a target, and return them."""
    print()
    for target in targets:
        print(target)
    return targets
