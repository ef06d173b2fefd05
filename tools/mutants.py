"""Change the source a little, and see whether the tests notice.

Every mutation (``tools/mutations.py``) of the modules below is tried with the tests that run its
line, the quickest first, until one fails. Which tests these are is found by one run of all of them
under coverage. A mutant that fails no test has survived: a test is missing, or the change changes
nothing that anybody could see. ::

    make mutants                                   # two hours at most; begun again, it goes on
    python tools/mutants.py --sample 120 --seed 0  # some of them
    python tools/mutants.py --only lowrank/core    # of one module

Nothing in the tree is changed: a process that is forked for a mutant imports the changed module in
place of the one on disk. Results are kept in ``build/mutants``; one that was killed stays so for
the same source, a survivor is tried again when a test has changed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
KEPT = ROOT / "build" / "mutants"
sys.path.insert(0, str(ROOT))

import coverage  # noqa: E402
import pytest  # noqa: E402
from tools.mutations import Mutation, mutated, mutations  # noqa: E402

RECOVERY = "lowrank one_pass"
CERTIFICATE = "certificate bounds proof proof_attacks certify"
OPERATORS = "operators engine kernels"
TESTS = {
    "sketches": "rules sketches one_pass",
    "lowrank/core": "rules " + RECOVERY + " degenerate",
    "lowrank/one_pass": RECOVERY,
    "certificate/above": CERTIFICATE,
    "certificate/blockwise": CERTIFICATE,
    "certificate/bracket": CERTIFICATE,
    "certificate/cut": CERTIFICATE + " graphs",
    "certificate/gap": CERTIFICATE,
    "certificate/intervals": CERTIFICATE,
    "certificate/lift": CERTIFICATE,
    "certificate/moments": CERTIFICATE,
    "certificate/optimum": CERTIFICATE,
    "certificate/parts": CERTIFICATE,
    "certificate/spectral": CERTIFICATE,
    "certificate/triangles": CERTIFICATE,
    "engine/schedule": "engine",
    "operators/data": OPERATORS,
    "operators/features": OPERATORS,
    "operators/monomials": "rules " + OPERATORS,
    "operators/gram": OPERATORS,
    "operators/precomputed": OPERATORS + " sparse_kernels",
    "operators/tiles": OPERATORS,
    "estimators/kmeans": "many_rows starts",
    "estimators/many_rows": "rules many_rows",
}
"""Modules that are changed, each with the files of tests that are asked: quick ones, in process."""
OPTIONS = ["-o", "addopts=", "-o", "timeout=0", "--import-mode=importlib", "--hypothesis-seed=0"]
OPTIONS += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-q", "--no-header"]
OPTIONS += ["-k", "not ctrl_c"]  # an interrupt inside the tracer of coverage would leave its lock


def main() -> None:
    """Find the mutants, run them, and print the score."""
    parser = argparse.ArgumentParser(description="Change the source, and see what tests notice.")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--only", action="append", help="modules, as lowrank/core")
    parser.add_argument("--minutes", type=float, default=110, help="begin none after these")
    parser.add_argument("--jobs", type=int, default=2, help="mutants side by side")
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    modules = asked.only or list(TESTS)
    if unknown := set(modules) - TESTS.keys():
        sys.exit(f"no such module among those that are mutated: {', '.join(sorted(unknown))}")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    _import_what_is_large()
    chosen = [(module, one) for module in modules for one in mutations(_source(module))]
    total = len(chosen)
    if asked.sample is not None and asked.sample < total:
        chosen = sorted(
            random.Random(asked.seed).sample(chosen, asked.sample),
            key=lambda pair: (modules.index(pair[0]), pair[1].number),
        )
    print(f"{len(chosen)} of {total} mutants, seed {asked.seed}", flush=True)
    asking = Asking(sorted({module for module, _ in chosen}))
    kept = Kept(asking.stamp)
    waiting = [pair for pair in chosen if kept.verdict(*pair) is None]
    running: dict[int, tuple[str, Mutation, float, float]] = {}
    while running or waiting:
        while waiting and len(running) < asked.jobs and time.monotonic() < end:
            module, mutation = waiting.pop(0)
            tests = asking.tests(module, mutation)
            if not tests:
                kept.add(module, mutation, "survived", "no test runs the line")
                continue
            limit = 20 + 5 * sum(asking.seconds[test] for test in tests)
            child = _forked(module, mutation, tests)
            running[child] = (module, mutation, time.monotonic(), limit)
        if not running:
            break
        _collect(running, kept)
    _report(chosen, kept)


def _import_what_is_large() -> None:
    """Import what every test imports, once and before the forks; nothing of ours."""
    import hypothesis.strategies
    import pandas
    import scipy.linalg
    import scipy.sparse
    import sklearn.cluster
    import sklearn.datasets
    import sklearn.metrics

    del hypothesis, pandas, scipy, sklearn


def _source(module: str) -> str:
    return (SOURCE / "sketchmeans" / f"{module}.py").read_text()


class Mutant(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, changed, where the one on disk would be found."""

    def __init__(self, module: str, number: int) -> None:
        self.name = f"sketchmeans.{module.replace('/', '.')}"
        self.path = str(SOURCE / "sketchmeans" / f"{module}.py")
        self.tree = mutated(_source(module), number)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Answer for the one module."""
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.path)

    def exec_module(self, module: Any) -> None:
        """Run the changed source."""
        module.__file__ = self.path
        exec(compile(self.tree, self.path, "exec"), module.__dict__)


class First:
    """Remembers the first test that failed."""

    failed = "it could not be imported"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take its name."""
        if report.failed:
            self.failed = report.nodeid


def _forked(module: str, mutation: Mutation, tests: list[str]) -> int:
    """Begin the tests of a mutant in a child; what it found it leaves in a file."""
    if child := os.fork():
        return child
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    first = First()
    sys.meta_path.insert(0, Mutant(module, mutation.number))
    code = 3
    with contextlib.suppress(BaseException):
        code = int(pytest.main([*OPTIONS, "-x", *tests], plugins=[first]))
    (KEPT / f"{os.getpid()}.txt").write_text("" if code == 0 else first.failed)
    os._exit(0)


def _collect(running: dict[int, tuple[str, Mutation, float, float]], kept: Kept) -> None:
    """Take what children have found, and end those that take too long."""
    time.sleep(0.05)
    for child, (module, mutation, begun, limit) in list(running.items()):
        ended, _ = os.waitpid(child, os.WNOHANG)
        late = not ended and time.monotonic() - begun > limit
        if late:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if not ended and not late:
            continue
        del running[child]
        found = KEPT / f"{child}.txt"
        by = found.read_text() if found.exists() else "it ended the process"
        found.unlink(missing_ok=True)
        by = "it took too long" if late else by
        kept.add(module, mutation, "killed" if by else "survived", by)


class Asking:
    """Which tests run which line, and how long they take: one run of all of them."""

    def __init__(self, modules: list[str]) -> None:
        names = sorted({name for module in modules for name in TESTS[module].split()})
        files = [ROOT / "tests" / f"test_{name}.py" for name in names]
        sources = [path for path in SOURCE.rglob("*.py") if path.is_file()]
        digest = hashlib.sha256()
        for path in [*files, *sorted(sources), *(ROOT / "tests").glob("[!t]*.py")]:
            digest.update(path.read_bytes())
        self.stamp = digest.hexdigest()[:16]
        KEPT.mkdir(parents=True, exist_ok=True)
        found = KEPT / f"lines-{self.stamp}.json"
        if not found.exists():
            print(f"{len(files)} files of tests are run once, unchanged", flush=True)
            _measure(files, found)
        kept = json.loads(found.read_text())
        self.lines: dict[str, dict[str, list[str]]] = kept["lines"]
        self.seconds: dict[str, float] = kept["seconds"]

    def tests(self, module: str, mutation: Mutation) -> list[str]:
        """Return the tests that run the lines of a mutation, the quickest first."""
        lines = self.lines.get(module, {})
        found: set[str] = set()
        for line in range(mutation.line, mutation.last_line + 1):
            found |= set(lines.get(str(line), []))
        wanted = tuple(f"tests/test_{name}.py" for name in TESTS[module].split())
        if "" in found:  # run while it was imported: any test might notice
            found |= self.seconds.keys()
        tests = [test for test in found if test.startswith(wanted)]
        return sorted(tests, key=lambda test: (self.seconds[test], test))


class Watch:
    """Tells coverage which test runs, and remembers how long each took."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Name the test as the one that runs."""
        self.measured.switch_context(item.nodeid)
        begun = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - begun
        self.measured.switch_context("")
        return result


def _measure(files: list[Path], found: Path) -> None:
    """Run tests under coverage in a child, and keep which of them run which line."""
    child = os.fork()
    if child == 0:
        measured = coverage.Coverage(data_file=None, include=[f"{SOURCE}/*"], config_file=False)
        measured.start()
        watch = Watch(measured)
        code = int(pytest.main([*OPTIONS, "-x", *map(str, files)], plugins=[watch]))
        measured.stop()
        data = measured.get_data()
        lines = {}
        for module in TESTS:
            path = str(SOURCE / "sketchmeans" / f"{module}.py")
            lines[module] = data.contexts_by_lineno(path)
        if code == 0:
            found.write_text(json.dumps({"lines": lines, "seconds": watch.seconds}))
        os._exit(code)
    if os.waitpid(child, 0)[1]:
        sys.exit("the tests must pass before anything is changed")


class Kept:
    """Verdicts of this run and of those before."""

    def __init__(self, stamp: str) -> None:
        self.stamp = stamp
        self.path = KEPT / "results.jsonl"
        self.found: dict[str, dict[str, str]] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                one = json.loads(line)
                self.found[one["key"]] = one

    @staticmethod
    def _key(module: str, mutation: Mutation) -> str:
        source = hashlib.sha256(_source(module).encode()).hexdigest()[:16]
        return f"{module} {source} {mutation.number}"

    def verdict(self, module: str, mutation: Mutation) -> str | None:
        """Return what is known; None where it has to be tried."""
        one = self.found.get(self._key(module, mutation))
        if one is None or (one["verdict"] == "survived" and one["stamp"] != self.stamp):
            return None
        return one["verdict"]

    def add(self, module: str, mutation: Mutation, verdict: str, by: str) -> None:
        """Keep a verdict, in the file at once."""
        key = self._key(module, mutation)
        one = {"key": key, "verdict": verdict, "by": by, "stamp": self.stamp}
        self.found[key] = one
        with self.path.open("a") as file:
            file.write(json.dumps(one) + "\n")
        if verdict == "survived":
            print(f"survived: {module}.py:{mutation.name}  {by}", flush=True)


def _report(chosen: list[tuple[str, Mutation]], kept: Kept) -> None:
    """Print the score of each module and of all, and what survived."""
    print(f"\n{'module':28} {'mutants':>7} {'killed':>7} {'score':>7}")
    every: list[str] = []
    for module in dict.fromkeys(module for module, _ in chosen):
        verdicts = [kept.verdict(module, one) for name, one in chosen if name == module]
        tried = [verdict for verdict in verdicts if verdict]
        every += tried
        if tried:
            killed = tried.count("killed")
            print(f"{module:28} {len(tried):7} {killed:7} {killed / len(tried):7.1%}")
    if not every:
        sys.exit("no mutant was tried")
    killed = every.count("killed")
    print(f"{'all':28} {len(every):7} {killed:7} {killed / len(every):7.1%}")
    if len(every) < len(chosen):
        print(f"{len(chosen) - len(every)} were not tried in this time: run it again")
    survivors = [(module, one) for module, one in chosen if kept.verdict(module, one) == "survived"]
    if survivors:
        print("\nsurvivors:")
        for module, one in survivors:
            print(f"  {module}.py:{one.name}")


if __name__ == "__main__":
    main()
