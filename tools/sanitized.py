"""Run tests on a build with the address and undefined behaviour sanitizers.

The package is installed into ``build/sanitized``, which the base Python is shown first; the rest
comes from the environment of `make`. The library of the address sanitizer must be loaded before
Python is. ::

    make sanitize
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "build" / "sanitized"


def main(tests: list[str]) -> None:
    """Build, then run pytest on the given files."""
    environment = {**os.environ, "SKETCHMEANS_REQUIRE_NATIVE": "1"}
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    install += ["--target", str(TARGET), "--config-settings=build-dir=build/sanitizing"]
    install += ["--config-settings=cmake.define.SKETCHMEANS_SANITIZE=ON", str(ROOT)]
    subprocess.run(install, env=environment, check=True)
    compiler = os.environ.get("CC", "cc")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    packages = [path for path in sys.path if "site-packages" in path]
    environment |= {
        "LD_PRELOAD": library,
        "PYTHONPATH": os.pathsep.join([str(TARGET), *packages]),
        # Leaks of Python at its end are not ours to look for.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    python = Path(sys.base_prefix, "bin", "python3")
    where = "import sketchmeans.engine._native as native; print(native.__file__)"
    found = subprocess.run(
        [python, "-c", where], env=environment, check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    if not Path(found).is_relative_to(TARGET):
        sys.exit(f"the tests would run on {found}, which has no sanitizers")
    subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *tests],
        env=environment,
        check=True,
        cwd=ROOT,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
