"""Every statistical test with other seeds, and every property with other examples.

A test is statistical if it takes ``seeds`` (``tests/conftest.py``): draws 1 to 99 have other data,
sketches and starts than ``make test``, whose draw is 0. One that fails for some of them has a
threshold that chance can cross, or has found something.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from soak.running import Cases, Check

ROOT = Path(__file__).parents[1]
SECONDS = 1500
"""For one process of pytest, which ends a test that hangs after 300 by itself."""
DRAWS = 10
"""That one process takes: to start two workers and make shared data for each draw takes longer."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)(.*)$", re.MULTILINE)
PROPERTIES = ("tests/test_properties.py", "tests/test_fit_properties.py")


def _tested(arguments: list[str], **environment: str) -> tuple[int, list[str]]:
    """Run pytest; return how many tests passed, and what failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=line"]
    try:
        out = subprocess.run(
            [*command, "--dist=worksteal", *arguments],
            env={**os.environ, "COLUMNS": "500", **environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        said = error.stdout if isinstance(error.stdout, bytes) else b""
        return 0, [f"pytest hangs: {said.decode(errors='replace')[-500:]}"]
    failed = [f"{name}{why}" for name, why in FAILED.findall(out.stdout)]
    if out.returncode not in (0, 1) or (out.returncode == 1 and not failed):
        failed.append(f"pytest ended with {out.returncode}: {out.stdout[-500:]}{out.stderr[-500:]}")
    passed = re.search(r"(\d+) passed", out.stdout)
    return int(passed[1]) if passed else 0, failed


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
        tests = (passed + len(failed)) // len(draws)
        broken = {draw: [text for text in failed if _draw(text, first) == draw] for draw in draws}
        yield from ((f"of {tests} tests", texts) for texts in broken.values())


def _draw(text: str, otherwise: int) -> int:
    """Return the draw of a test that failed, or the other if that was no test but pytest itself."""
    found = re.search(r"draw=(\d+)", text)
    return int(found[1]) if found else otherwise


def properties(seed: int, count: int) -> Cases:
    """Let Hypothesis draw other examples, so many times."""
    for draw in range(seed, seed + count):
        asked = [*PROPERTIES, f"--hypothesis-seed={draw}"]
        passed, failed = _tested(asked, SKETCHMEANS_PROPERTIES="drawn")
        yield f"of {passed + len(failed)} tests", [f"examples {draw}: {text}" for text in failed]


CHECKS = {
    "properties": Check(100, properties, hang=SECONDS + 60),
    "statistical tests": Check(100, statistical, hang=SECONDS + 60),
}
