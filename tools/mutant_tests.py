"""Which tests run which line of the source, and how long each takes: what mutants are tried with.

Every file of tests is run once, unchanged and under coverage. What it showed is kept until that
file, the source, or what tests share changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import resource
import signal
import sys
import time
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import coverage
import pytest
from tools.mutations import Mutation

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sketchmeans"
KEPT = ROOT / "build" / "mutants"
MEMORY = 6 * 2**30
"""Bytes of addresses that a process may have: a mutant may ask for any number of them."""

ENOUGH = 15.0
"""Seconds of processor that the tests of a mutant take at the most: those beyond are not asked."""

OPTIONS = ["-o", "addopts=", "-o", "timeout=0", "--import-mode=importlib", "--hypothesis-seed=0"]
OPTIONS += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-q", "--no-header"]
# An interrupt inside the tracer of coverage would leave its lock.
OPTIONS += ["-s", "--tb=no", "-k", "not ctrl_c"]


def alone() -> None:
    """Make the process one of a group of its own, that says nothing and takes so much memory."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


class Asking:
    """The tests that are asked about modules.

    Parameters
    ----------
    files : dict
        The names of the files of tests of each module.
    jobs : int
        Files that are run side by side.
    """

    def __init__(self, files: dict[str, list[str]], jobs: int) -> None:
        self.files = files
        self.only: dict[tuple[str, Mutation], list[str]] = {}
        """The files that are asked about a mutant, where others have been before."""
        shared = hashlib.sha256()
        for path in [*sorted(SOURCE.rglob("*.py")), *sorted((ROOT / "tests").glob("*.py"))]:
            if not path.name.startswith("test_"):
                shared.update(path.read_bytes())
        names = sorted({name for some in files.values() for name in some})
        self.digests = {name: _digest(shared, name) for name in names}
        KEPT.mkdir(parents=True, exist_ok=True)
        waiting = [name for name in names if not self._path(name).exists()]
        if waiting:
            print(f"{len(waiting)} files of tests are run once, unchanged", flush=True)
        _measure_all({name: self._path(name) for name in waiting}, jobs)
        self.lines: dict[str, dict[str, list[str]]] = {module: {} for module in files}
        self.seconds: dict[str, float] = {}
        for name in names:
            kept = json.loads(self._path(name).read_text())
            self.seconds |= kept["seconds"]
            for module, lines in self.lines.items():
                for line, tests in kept["lines"].get(module, {}).items():
                    lines.setdefault(line, []).extend(tests)

    def _path(self, name: str) -> Path:
        return KEPT / f"lines-{name}-{self.digests[name]}.json"

    def state(self, module: str) -> dict[str, str]:
        """Return the files of tests of a module, and what tells whether they have changed."""
        return {name: self.digests[name] for name in self.files[module]}

    def tests(self, module: str, mutation: Mutation) -> list[str]:
        """Return the tests that run the lines of a mutation, the quickest first, up to ``ENOUGH``.

        What is run while a module is imported, any test might notice: first those that run the
        module, then the others.
        """
        lines = self.lines[module]
        met = [
            set(lines.get(str(line), [])) for line in range(mutation.line, mutation.last_line + 1)
        ]
        found = set().union(*met)
        near = found if "" not in found else {test for some in lines.values() for test in some}
        if "" in found:
            found |= self.seconds.keys()
        names = self.only.get((module, mutation), self.files[module])
        wanted = {f"tests/test_{name}.py" for name in names}
        tests = [test for test in found if test.split("::")[0] in wanted]
        tests.sort(key=lambda test: (test not in near, *self._cost(test)))
        spent = list(accumulate(self.seconds[test] for test in tests))
        return tests[: max(bisect_right(spent, ENOUGH), 1)]

    def _cost(self, test: str) -> tuple[int, str, float]:
        """Sort by seconds, roughly: tests of one file that are as quick stay together."""
        seconds = self.seconds[test]
        return math.ceil(math.log2(max(seconds / 0.05, 1))), test.split("::")[0], seconds


def _digest(shared: Any, name: str) -> str:
    digest = shared.copy()
    digest.update((ROOT / "tests" / f"test_{name}.py").read_bytes())
    return digest.hexdigest()[:16]


class Watch:
    """Tells coverage which test runs; remembers how long each took of the processor."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Name the test as the one that runs."""
        self.measured.switch_context(item.nodeid)
        begun = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - begun
        self.measured.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take the name of one that failed."""
        if report.failed:
            self.failed.add(report.nodeid)


def _measure_all(paths: dict[str, Path], jobs: int) -> None:
    waiting, broken = list(paths), []
    running: dict[int, str] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            if child := os.fork():
                running[child] = name
            else:
                alone()
                os._exit(_measure(name, paths[name]))
        child, status = os.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what tests may have left running
        name = running.pop(child)
        if status:
            broken.append(name)
        else:
            for test in json.loads(paths[name].read_text())["failed"]:
                print(f"failed with nothing changed, and is not asked: {test}", flush=True)
    if broken:
        sys.exit(f"these files of tests could not be run: {', '.join(broken)}")


def _measure(name: str, found: Path) -> int:
    """Run a file of tests under coverage, and keep which of them run which line."""
    measured = coverage.Coverage(data_file=None, include=[f"{SOURCE}/*"], config_file=False)
    measured.start()
    watch = Watch(measured)
    code = int(pytest.main([*OPTIONS, f"tests/test_{name}.py"], plugins=[watch]))
    measured.stop()
    if code > 1:  # some may fail, as those that measure time do on a machine that is not idle
        return code
    data = measured.get_data()
    lines = {}
    for path in SOURCE.rglob("*.py"):
        met = data.contexts_by_lineno(str(path))
        lines[str(path.relative_to(SOURCE).with_suffix(""))] = {
            line: [test for test in tests if test not in watch.failed]
            for line, tests in met.items()
        }
    for old in KEPT.glob(f"lines-{name}-????????????????.json"):
        old.unlink()
    seconds = {test: took for test, took in watch.seconds.items() if test not in watch.failed}
    kept = {"lines": lines, "seconds": seconds, "failed": sorted(watch.failed)}
    found.write_text(json.dumps(kept))
    return 0
