"""What the benchmarks share: times taken in turns, reports of tables and targets, the machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_info

from sketchmeans.engine import engine_name
from sketchmeans.engine.native import VARIABLE, compiled

SEED = 0
"""Of all data and all methods."""

PACKAGES = ("numpy", "scipy", "scikit-learn", "sketchmeans", "pykeops", "torch", "tslearn")


REST = 0.1
"""Seconds between tasks: idle threads of BLAS and OpenMP spin for a while before they sleep, and
would take a core from whoever comes next."""

Task = Callable[[], Any]
Name = TypeVar("Name")


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


def rest() -> None:
    """Let other threads fall asleep, but not this one: passes come in the midst of work.

    After a sleep the kernel may wake two threads on one core and leave them there for a while.
    """
    end = time.perf_counter() + REST
    while time.perf_counter() < end:
        pass


def interleaved(
    tasks: Mapping[Name, Task], *, repeats: int = 5, calls: int = 1
) -> dict[Name, float]:
    """Run the tasks in turns, ``repeats`` times, and return the seconds of the best call of each.

    A turn is several ``calls`` for short tasks: the first ones wake cores, caches and threads.
    """
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            rest()
            for _ in range(calls):
                start = time.perf_counter()
                task()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def on(engine: str, task: Task) -> Task:
    """Return the task, run with this engine."""

    def run() -> Any:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = engine
        try:
            return task()
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before

    return run


def need_native() -> None:
    """End where the native engine is not there to be measured."""
    if engine_name() != "native":
        raise SystemExit("the native engine was not built, or SKETCHMEANS_ENGINE forbids it.")


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


@dataclass
class Report:
    """What one benchmark found: printed as it comes, and kept as data."""

    tables: list[dict[str, Any]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    """What plots need beyond the tables."""
    arguments: list[str] = field(default_factory=list)
    """With which the benchmark was run."""

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table."""
        rows = [list(row) for row in rows]
        print(table(header, rows), "\n", flush=True)
        self.tables.append({"header": list(header), "rows": rows})

    def conclude(self, targets: Iterable[Target]) -> Report:
        """Print a line a target."""
        for target in targets:
            self.targets.append(target)
            print(target, flush=True)
        return self

    def as_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        targets = [asdict(target) | {"met": bool(target.met)} for target in self.targets]
        return {
            "arguments": self.arguments,
            "tables": self.tables,
            "targets": targets,
            "data": self.data,
        }


def standalone(main: Callable[[], Any]) -> None:
    """Run one benchmark by itself: first the facts that its figures depend on."""
    print(facts(environment()), "\n")
    main()


def environment() -> dict[str, Any]:
    """Return what the figures depend on: the processor, the load, and the versions."""
    # SciPy brings a BLAS of its own; the tiles use NumPy's.
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    blas.sort(key=lambda library: "numpy" not in library["filepath"].rsplit("/", 2)[-2])
    versions = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load at the start": round(os.getloadavg()[0], 1),
        "BLAS": "{internal_api} {version}, {architecture}".format_map(blas[0]) if blas else "?",
        "native level": compiled().levels()[0] if compiled() else "none",
        "versions": versions,
    }


def facts(found: dict[str, Any]) -> str:
    """Return the environment as a line."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"{found['processor']}, {found['cores']} cores, load {found['load at the start']} at the "
        f"start; BLAS {found['BLAS']}; native level {found['native level']}; {versions}"
    )


def _processor() -> str:
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
