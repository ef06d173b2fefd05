"""Fresh environments, what is installed into them, and tests without the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "dask,files,plots,progress,reproduce"
NOT_NEEDED = {"mypy", "ruff", "sketchmeans", "build", "coverage", "pytest-cov"}
"""Of the dev group: what the tests do not import."""
PART = "sketches kernels engine native_maps one_pass lowrank streams operators certificate"
PART += " many_rows estimators errors hostile_data degenerate metrics models model_files"
PART += " sparse_kernels io packed_files text_files json_excel encodings"
PART += " cli_predict plotting report security"
INSTALLED = [f"tests/test_{name}.py" for name in PART.split()]
"""The part of the tests that needs no source tree, no browser and no cluster."""
_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


def project() -> dict:
    """Return what pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_needs() -> list[str]:
    """Return what the tests import beside the package: the dev group without its tools."""
    group = project()["dependency-groups"]["dev"]
    return [one for one in group if isinstance(one, str) and name_of(one) not in NOT_NEEDED]


def name_of(requirement: str) -> str:
    """Return the name in a requirement such as ``dask[array]>=2024.8``."""
    for index, letter in enumerate(requirement):
        if not (letter.isalnum() or letter in "-_."):
            return requirement[:index].lower()
    return requirement.lower()


def pythons() -> dict[str, Path]:
    """Return every Python at hand that the package is for, by its version."""
    least = tuple(map(int, project()["project"]["requires-python"].removeprefix(">=").split(".")))
    places = [Path(sys.executable)]
    places += [
        Path(found) for minor in range(11, 20) if (found := shutil.which(f"python3.{minor}"))
    ]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places += sorted(versions.glob("*/bin/python"))
    found: dict[str, Path] = {}
    for place in places:
        shown = subprocess.run(
            [place, "-c", _VERSION], capture_output=True, text=True, check=False
        ).stdout.strip()
        if shown and tuple(map(int, shown.split(".")))[:2] >= least:
            minor = ".".join(shown.split(".")[:2])
            found.setdefault(minor, place)
    return found


def fresh(python: Path, home: Path, install: list[str]) -> Path:
    """Make an environment with these things in it; return its Python."""
    subprocess.run([python, "-m", "venv", home], check=True)
    inside = home / "bin" / "python"
    pip = [inside, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    subprocess.run([*pip, *install], check=True)
    return inside


def run_tests(python: Path, folder: Path, arguments: list[str], *, processes: int = 2) -> None:
    """Run tests from a copy of them, with no source beside them."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("tests", "docs", "benchmarks", "soak"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored, dirs_exist_ok=True)
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    where = "import sketchmeans, sketchmeans.engine._native as n; print(sketchmeans.__file__)"
    shown = subprocess.run(
        [python, "-c", where], cwd=folder, env=environment, capture_output=True, text=True
    )
    if shown.returncode or not Path(shown.stdout.strip()).is_relative_to(python.parents[1]):
        sys.exit(f"the tests would not run on what was installed: {shown.stdout}{shown.stderr}")
    print(f"tests of {Path(shown.stdout.strip()).parent}", flush=True)
    options = ["--no-header", f"--numprocesses={processes}", "-p", "no:cacheprovider"]
    subprocess.run(
        [python, "-m", "pytest", *options, *arguments], cwd=folder, env=environment, check=True
    )
