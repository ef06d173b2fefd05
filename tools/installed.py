"""Build the sdist and the wheel, install them where the source tree is not, and test them there.

The wheel is built from the sdist, so that nothing can be missing from either. Each Python at hand
that the package is for gets a fresh environment; the oldest installs the sdist, the others the
wheel, whose compiled part serves all of them. The tests are those of ``environments.INSTALLED``;
``--all`` runs every one. ::

    make dist
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.environments import EXTRAS, INSTALLED, ROOT, fresh, pythons, run_tests, test_needs

SENT = ("LICENSE", "README.md", "pyproject.toml", "CMakeLists.txt", "native/native.h")
INSIDE = ("sketchmeans/py.typed", "sketchmeans/report/report.css", "sketchmeans/engine/_native")


def built(folder: Path) -> tuple[Path, Path]:
    """Build both; return sdist and wheel."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sdist) as file:
        sent = {name.partition("/")[2] for name in file.getnames()}
    with zipfile.ZipFile(wheel) as file:
        inside = file.namelist()
    missing = [name for name in SENT if name not in sent]
    missing += [name for name in INSIDE if not any(one.startswith(name) for one in inside)]
    if missing:
        sys.exit(f"missing from {sdist.name} or {wheel.name}: {', '.join(missing)}")
    foreign = [one for one in inside if not one.startswith("sketchmeans")]
    if foreign:
        sys.exit(f"{wheel.name} would install what is not ours: {', '.join(foreign)}")
    return sdist, wheel


def main() -> None:
    """Build, then test on every Python."""
    parser = argparse.ArgumentParser(description="Test the package as it is installed.")
    parser.add_argument("--all", action="store_true", help="every test that needs no source")
    parser.add_argument("--python", action="append", help="only these, as 3.12")
    asked = parser.parse_args()
    found = pythons()
    if asked.python:
        found = {version: found[version] for version in asked.python}
    with tempfile.TemporaryDirectory() as folder:
        sdist, wheel = built(ROOT / "dist")
        for number, (version, python) in enumerate(found.items()):
            home = Path(folder, version)
            home.mkdir()
            package = sdist if number == 0 else wheel
            print(f"Python {version}: {package.name}", flush=True)
            install = [f"sketchmeans[{EXTRAS}] @ {package.as_uri()}", *test_needs()]
            inside = fresh(python, home / "venv", install)
            run_tests(inside, home, ["tests"] if asked.all else INSTALLED)
    print(f"{sdist.name} and {wheel.name} work on Python {', '.join(found)}")


if __name__ == "__main__":
    main()
