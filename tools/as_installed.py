"""A plugin of pytest: the package must be the installed one, with its native module.

`make dist` gives it to the tests, and to each of their processes. Without it a tree on the path
would be tested in place of the wheel, and nobody would notice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure() -> None:
    """Look where the package came from; conftest.py has imported it by now, as tests will."""
    import sketchmeans
    import sketchmeans.engine._native as native

    for module in (sketchmeans, native):
        place = Path(str(module.__file__)).resolve()
        if not place.is_relative_to(Path(sys.prefix).resolve()):
            raise pytest.UsageError(f"{module.__name__} came from {place}, not from the wheel")
    if ROOT / "src" in (Path(folder).resolve() for folder in sys.path):
        raise pytest.UsageError("src is on the path: it could be tested in place of the wheel")
