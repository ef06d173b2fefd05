"""Pythons that are at hand, and fresh virtual environments of them, for the tools beside this."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROBE = """
import ensurepip, json, platform, sys, sysconfig
free_threads = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
usual = sys.implementation.name == "cpython" and not free_threads
print(json.dumps([platform.python_version(), usual and sys.version_info.releaselevel == "final"]))
"""
"""Its version, and whether wheels are made for it: not of a preview, nor without the lock."""


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pythons() -> dict[str, Path]:
    """Return a Python of every version that the package takes, by its number: 3.11, 3.12, ….

    They are looked for on PATH and among those of pyenv. The newest of a version is taken; one
    that cannot make environments, as Debian's without python3-venv, is left out.
    """
    lowest = re.search(r"[\d.]+", project()["project"]["requires-python"])
    assert lowest is not None
    found: dict[str, tuple[tuple[int, ...], Path]] = {}
    for path in _candidates():
        shown = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=False)
        if shown.returncode:
            continue  # a stub of pyenv for a version that is not chosen, or no ensurepip
        version, suitable = json.loads(shown.stdout)
        numbers = tuple(int(number) for number in re.findall(r"\d+", version))
        minor = f"{numbers[0]}.{numbers[1]}"
        if suitable and numbers >= tuple(int(part) for part in lowest[0].split(".")):
            found[minor] = max(found.get(minor, (numbers, path)), (numbers, path))
    return {minor: path for minor, (_, path) in sorted(found.items(), key=lambda item: item[1])}


def _candidates() -> Iterator[Path]:
    named = re.compile(r"python3\.\d+")
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep) if folder]
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in [*folders, *sorted(home.glob("versions/*/bin"))]:
        if folder.is_dir():
            yield from (path for path in sorted(folder.iterdir()) if named.fullmatch(path.name))


def fresh(folder: Path, python: Path) -> Path:
    """Make a virtual environment in place of what is in a folder; return its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    made = folder / "bin" / "python"
    install(made, "--upgrade", "pip")  # groups of pyproject.toml need pip 25.1
    return made


def install(python: Path, *arguments: str | Path) -> None:
    """Install into the environment of a Python, by pip."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True, cwd=ROOT)


def clean_environment(**more: str) -> dict[str, str]:
    """Return the variables of this process without those that show Python another tree."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SKETCHMEANS_ENGINE")
    return {name: text for name, text in os.environ.items() if name not in hidden} | more
