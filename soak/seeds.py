"""Every statistical test with other seeds, and every property with other examples.

A test is statistical if it takes ``seeds`` (``tests/conftest.py``): draws 1 to 99 have other data,
sketches and starts than ``make test``, whose draw is 0. One that fails for some of them has a
threshold that chance can cross, or has found something.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import IO

from soak.running import Cases, Check

ROOT = Path(__file__).parents[1]
SILENCE = 600.0
"""Seconds without a test that ends: pytest hangs, for it ends a test that hangs after 300."""
DRAWS = 5
"""That one process takes: to start two workers and make shared data takes as long as a draw."""
ENDED = re.compile(r"\b(PASSED|FAILED|ERROR) (tests/.*?)(?: - (.*))?$")
PROPERTIES = ("tests/test_properties.py", "tests/test_fit_properties.py")


def _tested(arguments: list[str], **environment: str) -> tuple[list[str], list[str]]:
    """Run pytest; return what passed, and what failed and why."""
    command = [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", "-rfE", "--tb=line"]
    process = subprocess.Popen(
        [*command, "--dist=worksteal", *arguments],
        env={**os.environ, "COLUMNS": "500", "PYTHONUNBUFFERED": "1", **environment},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that its workers can be ended with it
    )
    assert process.stdout is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    passed: list[str] = []
    failed: dict[str, str] = {}
    said: list[str] = []
    try:
        while line := lines.get(timeout=SILENCE):
            said.append(line)
            if ended := ENDED.search(line.rstrip()):
                outcome, name, why = ended.groups()
                if outcome == "PASSED":
                    passed.append(name)
                else:
                    failed[name] = why or failed.get(name, "")
        code: int | None = process.wait(SILENCE)
    except (queue.Empty, subprocess.TimeoutExpired):
        code = None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    wrong = [f"{name}: {why}" for name, why in failed.items()]
    if code is None or code > 1 or (code == 1 and not wrong):
        how = "hangs" if code is None else f"ended with {code}"
        wrong.append(f"pytest {how}, {len(passed)} tests passed: {''.join(said)[-800:]}")
    return passed, wrong


def _read(out: IO[str], lines: queue.SimpleQueue[str]) -> None:
    """Hand lines on as they come, and an empty text at the end."""
    for line in out:
        lines.put(line)
    lines.put("")


def _takes_seeds(path: Path) -> bool:
    """Whether a file may have tests that take ``seeds``."""
    return "seeds(" in path.read_text()


def statistical(seed: int, count: int) -> Cases:
    """Run the statistical tests with so many draws, from the seed on; a case is all of a draw."""
    # To look for them in all files would take longer than most of them.
    files = [str(path) for path in sorted(ROOT.glob("tests/test_*.py")) if _takes_seeds(path)]
    for first in range(seed, seed + count, DRAWS):
        draws = range(first, min(first + DRAWS, seed + count))
        passed, failed = _tested(files, SKETCHMEANS_SEED=f"{draws[0]}-{draws[-1]}")
        tests = Counter(_draw(name, first) for name in [*passed, *failed])
        for draw in draws:
            yield f"of {tests[draw]} tests", [text for text in failed if _draw(text, first) == draw]


def _draw(text: str, otherwise: int) -> int:
    """Return the draw of a test that failed, or the other if that was no test but pytest itself."""
    found = re.search(r"draw=(\d+)", text)
    return int(found[1]) if found else otherwise


def properties(seed: int, count: int) -> Cases:
    """Let Hypothesis draw other examples, so many times."""
    for draw in range(seed, seed + count):
        asked = [*PROPERTIES, f"--hypothesis-seed={draw}"]
        passed, failed = _tested(asked, SKETCHMEANS_PROPERTIES="drawn")
        tests = len(passed) + len(failed)
        yield f"of {tests} tests", [f"examples {draw}: {text}" for text in failed]


CHECKS = {
    "properties": Check(20, properties, hang=None),
    "statistical tests": Check(100, statistical, hang=None, lot=DRAWS),
}
