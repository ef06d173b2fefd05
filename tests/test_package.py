"""What the package declares: the libraries that it imports, and that it has types."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LIBRARIES = {"sklearn": "scikit-learn"}
"""What is installed under another name than it is imported by."""


def names(requirements):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def imported(nodes):
    """Return the libraries that import statements name, without Python's own and ours."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.split(".")[0])
    found -= {"sketchmeans"} | sys.stdlib_module_names
    return {LIBRARIES.get(name, name) for name in found}


def test_every_library_that_is_imported_is_declared():
    needed = names(PROJECT["dependencies"])
    optional = {
        name for extra in PROJECT["optional-dependencies"].values() for name in names(extra)
    }
    seen = set()
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        extra = names(PROJECT["optional-dependencies"]["dask"]) if "dask" in path.parts else set()
        assert imported(tree.body) <= needed | set(extra), path
        seen |= imported(ast.walk(tree))
    assert seen - needed - optional == {"pandas"}  # for whoever asks for a frame of it
    assert needed <= seen


def test_type_checkers_see_the_types_of_the_installed_package(tmp_path):
    assert (files("sketchmeans") / "py.typed").is_file()
    (tmp_path / "program.py").write_text("from sketchmeans import load\nreveal_type(load)\n")
    shown = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "Revealed type is" in shown
    assert "missing library stubs or py.typed marker" not in shown
