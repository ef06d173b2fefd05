"""Run tests on a build with sanitizers: of addresses and undefined behaviour, or of threads.

The package is installed into ``build/sanitized-…``, which the base Python is shown first; the rest
comes from the environment of `make`. The library of the sanitizer must be loaded before Python
is. ::

    make sanitize
    make sanitize-threads
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SANITIZERS = {"address": ("address,undefined", "libasan.so"), "thread": ("thread", "libtsan.so")}
OPTIONS = {
    # Leaks of Python at its end are not ours to look for.
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # What NumPy and OpenBLAS do without us is not built with it, and not ours to judge.
    "TSAN_OPTIONS": f"suppressions={ROOT / 'tools' / 'threads.supp'} history_size=4",
}


def main(kind: str, arguments: list[str]) -> None:
    """Build, then run pytest with the given arguments."""
    sanitizers, runtime = SANITIZERS[kind]
    target = ROOT / "build" / f"sanitized-{kind}"
    environment = {**os.environ, "SKETCHMEANS_REQUIRE_NATIVE": "1"}
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    install += ["--target", str(target), f"--config-settings=build-dir=build/sanitizing-{kind}"]
    install += [f"--config-settings=cmake.define.SKETCHMEANS_SANITIZE={sanitizers}", str(ROOT)]
    subprocess.run(install, env=environment, check=True)
    compiler = os.environ.get("CC", "cc")
    library = subprocess.run(
        [compiler, f"-print-file-name={runtime}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    packages = [path for path in sys.path if "site-packages" in path]
    environment |= {
        "LD_PRELOAD": library,
        "PYTHONPATH": os.pathsep.join([str(target), *packages]),
        **OPTIONS,
    }
    # The sanitizer of threads knows where memory lies only if the system does not shuffle it.
    still = ["setarch", platform.machine(), "-R"] if kind == "thread" else []
    if still and shutil.which("setarch") is None:
        sys.exit("the sanitizer of threads needs setarch, of util-linux")
    python = Path(sys.base_prefix, "bin", "python3")
    where = "import sketchmeans.engine._native as native; print(native.__file__)"
    found = subprocess.run(
        [*still, python, "-c", where],
        env=environment,
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout.strip()
    if not Path(found).is_relative_to(target):
        sys.exit(f"the tests would run on {found}, which has no sanitizers")
    subprocess.run(
        [*still, python, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        env=environment,
        check=True,
        cwd=ROOT,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
