"""Run tests with the lowest versions that pyproject.toml allows.

Every lower bound, of what the package needs and of what its tests need, becomes a pin; nothing else
is pinned. ::

    make oldest
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.environments import (
    EXTRAS,
    INSTALLED,
    ROOT,
    fresh,
    name_of,
    project,
    pythons,
    run_tests,
    test_needs,
)


def pins() -> list[str]:
    """Return every lower bound as a pin."""
    needs = project()["project"]
    every = [*needs["dependencies"], *test_needs()]
    for extra in EXTRAS.split(","):
        every += needs["optional-dependencies"][extra]
    return sorted({f"{name_of(one)}=={one.partition('>=')[2]}" for one in every})


def main() -> None:
    """Install the lowest, then test."""
    parser = argparse.ArgumentParser(description="Test with the lowest versions allowed.")
    parser.add_argument("--all", action="store_true", help="every test that needs no source")
    asked = parser.parse_args()
    version, python = min(pythons().items(), key=lambda pair: tuple(map(int, pair[0].split("."))))
    print(f"Python {version}:\n  " + "\n  ".join(pins()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pinned = folder / "pins.txt"
        pinned.write_text("\n".join(pins()) + "\n")
        install = ["--constraint", str(pinned), f"sketchmeans[{EXTRAS}] @ {ROOT.as_uri()}"]
        inside = fresh(python, folder / "venv", [*install, *test_needs()])
        run_tests(inside, folder, ["tests"] if asked.all else INSTALLED)
    print("the lowest versions that pyproject.toml allows work")


if __name__ == "__main__":
    main()
