"""Trials of mutants: the tests of a change, in a process that is forked for it.

Most changes stand in a function. These are tried by children of a process that has imported all and
collected all tests: a child gives the function its changed code and begins to test at once, in a
few hundredths of a second. What is changed while a module is imported needs a process that imports
the changed module in place of the one on disk, and collects the tests again.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib.abc
import importlib.util
import inspect
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest
from tools.mutant_tests import KEPT, OPTIONS, SOURCE, Asking, alone
from tools.mutations import Mutation, mutated

Waiting = list[tuple[str, Mutation]]
Keep = Callable[[str, Mutation, str, float], None]
"""Takes a mutant, what noticed it (nothing for one that survived), and the seconds it took."""


def source_of(module: str) -> str:
    """Return the source of a module."""
    return (SOURCE / f"{module}.py").read_text()


def try_functions(waiting: Waiting, asking: Asking, keep: Keep, jobs: int, end: float) -> None:
    """Try the mutants that change a function, in a process of its own and its children."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    files = sorted(
        {f"tests/test_{name}.py" for module, _ in waiting for name in asking.files[module]}
    )
    loop = Loop(waiting, asking, keep, jobs, end)
    with (
        contextlib.suppress(BaseException),
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stdout(nothing),
    ):
        pytest.main([*OPTIONS, *files], plugins=[loop])
    os._exit(0)


def try_modules(waiting: Waiting, asking: Asking, keep: Keep, jobs: int, end: float) -> None:
    """Try mutants, each in a process that imports the changed module."""

    def begin(module: str, mutation: Mutation, tests: list[str]) -> int:
        if child := os.fork():
            return child
        alone()
        trial = Trial(asking.seconds, tests)
        sys.meta_path.insert(0, Mutant(module, mutation.number))
        files = sorted({test.split("::")[0] for test in tests})
        signal.setitimer(signal.ITIMER_REAL, 120)
        code = 3
        with contextlib.suppress(BaseException):
            code = int(pytest.main([*OPTIONS, "-x", *files], plugins=[trial]))
        _leave("" if code == 0 else trial.failed or "it could not be imported")
        return 0

    _side_by_side(waiting, asking, begin, keep, jobs, end)


def _side_by_side(
    waiting: Waiting,
    asking: Asking,
    begin: Callable[[str, Mutation, list[str]], int],
    keep: Keep,
    jobs: int,
    end: float,
) -> None:
    """Begin trials while there is time, some at once, and take what they found."""
    waiting = list(waiting)
    running: dict[int, tuple[str, Mutation, float]] = {}
    while running or waiting:
        while waiting and len(running) < jobs and time.monotonic() < end:
            module, mutation = waiting.pop(0)
            child = begin(module, mutation, asking.tests(module, mutation))
            running[child] = module, mutation, time.monotonic()
        if not running:
            return
        child, status = os.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests may have left running
        module, mutation, begun = running.pop(child)
        found = KEPT / f"{child}.txt"
        if found.exists():
            by = found.read_text()
            found.unlink()
        else:
            late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
            by = "it took too long" if late else "it ended the process"
        keep(module, mutation, by, time.monotonic() - begun)


def _leave(by: str) -> None:
    """End a child, and leave what noticed its mutant."""
    (KEPT / f"{os.getpid()}.txt").write_text(by)
    os._exit(0)


class Trial:
    """Runs these tests in order, each for so long at the most; remembers the first that failed."""

    failed = ""

    def __init__(self, seconds: dict[str, float], tests: list[str]) -> None:
        self.seconds = seconds
        self.places = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Choose and sort, after all that sorts by other reasons."""
        items[:] = [item for item in items if item.nodeid in self.places]
        items.sort(key=lambda item: self.places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Give it ten times the time that it takes; SIGALRM, which nobody handles, ends us."""
        signal.setitimer(signal.ITIMER_REAL, 20 + 10 * self.seconds[item.nodeid])
        return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take the name of one that failed."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Loop(Trial):
    """Tries mutants in place of the tests that were collected."""

    def __init__(self, waiting: Waiting, asking: Asking, keep: Keep, jobs: int, end: float) -> None:
        super().__init__(asking.seconds, list(asking.seconds))
        self.waiting, self.asking, self.keep, self.jobs, self.end = waiting, asking, keep, jobs, end

    def pytest_runtestloop(self, session: Any) -> bool:
        """Fork a child for each mutant that changes a function."""
        items = {item.nodeid: item for item in session.items}
        codes = {}
        waiting = []
        for module in dict.fromkeys(module for module, _ in self.waiting):
            live = _live_functions(module)
            before = compile(ast.parse(source_of(module)), module, "exec")
            for name, mutation in self.waiting:
                if name == module and (change := _swap(module, mutation, before, live)):
                    codes[module, mutation] = change
        waiting = [pair for pair in self.waiting if pair in codes]

        def begin(module: str, mutation: Mutation, tests: list[str]) -> int:
            if child := os.fork():
                return child
            alone()
            for function, code in codes[module, mutation]:
                function.__code__ = code
            self._run([items[test] for test in tests])
            _leave(self.failed)
            return 0

        _side_by_side(waiting, self.asking, begin, self.keep, self.jobs, self.end)
        return True

    def _run(self, items: list[Any]) -> None:
        with contextlib.suppress(BaseException):
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    return
            return
        self.failed = "it ended the tests"


def _live_functions(module: str) -> dict[tuple[str, int], list[FunctionType]]:
    """Return the functions of a module that exist, by their names and where they stand."""
    name = f"sketchmeans.{module.replace('/', '.')}"
    found: dict[tuple[str, int], list[FunctionType]] = {}
    gc.unfreeze()  # tests/conftest.py froze what was imported, and so hid it
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__module__ == name:
            code = one.__code__
            found.setdefault((code.co_qualname, code.co_firstlineno), []).append(one)
    return found


def _swap(
    module: str, mutation: Mutation, before: CodeType, live: dict[tuple[str, int], Any]
) -> list[tuple[FunctionType, CodeType]] | None:
    """Return functions with the code that a mutation gives them; None where that is not all."""
    after = compile(mutated(source_of(module), mutation.number), module, "exec")
    found = []
    for one, other in _differing(before, after):
        functions = live.get((one.co_qualname, one.co_firstlineno), [])
        is_function = one.co_flags & inspect.CO_OPTIMIZED
        if not is_function or not functions or one.co_freevars != other.co_freevars:
            return None
        found += [(function, other) for function in functions]
    return found or None


def _differing(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions, or else modules and bodies of classes, whose code a change changed."""
    ours, theirs = (
        [one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after)
    )
    plain = [
        [one for one in code.co_consts if not isinstance(one, CodeType)] for code in (before, after)
    ]
    if before.co_flags & inspect.CO_OPTIMIZED:
        if before != after:
            yield before, after
    elif before.co_code != after.co_code or repr(plain[0]) != repr(plain[1]):
        yield before, after
    else:
        for one, other in zip(ours, theirs, strict=True):
            yield from _differing(one, other)


class Mutant(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, changed, where the one on disk would be found."""

    def __init__(self, module: str, number: int) -> None:
        self.name = f"sketchmeans.{module.replace('/', '.')}"
        self.path = str(SOURCE / f"{module}.py")
        self.tree = mutated(source_of(module), number)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Answer for the one module."""
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.path)

    def exec_module(self, module: Any) -> None:
        """Run the changed source."""
        module.__file__ = self.path
        exec(compile(self.tree, self.path, "exec"), module.__dict__)
