"""Run the tests with the lowest versions that pyproject.toml allows, on the lowest Python.

Each bound is taken at its word: what is asked for as ``>=2.0`` is installed as 2.0. A bound is
wrong where nothing that low can be installed beside the others, which ends this, and where a test
fails. What our dependencies ask for themselves is as new as it comes, as it would be for anybody
who has held back ours. ::

    make oldest
    make oldest TESTS=tests/test_dask.py
    python tools/oldest.py --kept tests/test_dask.py   # in the environment of the last run
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.environments import clean_environment, fresh, install, project, pythons  # noqa: E402

BUILD = ROOT / "build"
HOME = BUILD / "oldest"
ALONE = ("river",)
"""Installed without what they ask for. River wants a newer SciPy than we do, which would then not
be tested at its bound; we read a file of data from it, and nothing else."""
VERSIONS = """
import sys
from importlib.metadata import version
for name in sys.argv[1:]:
    print(version(name))
"""


def main(kept: bool, tests: list[str]) -> None:
    """Install, compare with the bounds, and run the tests."""
    bounds = lowest()
    python = HOME / "bin" / "python"
    if not kept:
        python = installed(bounds)
    compared(python, bounds)
    command: list[str | Path] = [python, "-m", "pytest", *tests]
    sys.exit(subprocess.run(command, cwd=ROOT, env=clean_environment(), check=False).returncode)


def lowest() -> dict[str, str]:
    """Return the bound of each package that pyproject.toml names, with its extras."""
    declared = project()
    asked = [*declared["project"]["dependencies"]]
    for extra in declared["project"]["optional-dependencies"].values():
        asked += extra
    asked += declared["dependency-groups"]["dev"]
    bounds: dict[str, str] = {}
    for requirement in asked:
        name, _, bound = requirement.partition(">=")
        if re.split(r"\[", name)[0] == declared["project"]["name"]:
            continue  # the package itself, with all its extras, which are there already
        if not bound or bounds.get(name, bound) != bound:
            sys.exit(f"{requirement}: no lower bound, or another one elsewhere")
        bounds[name] = bound
    return bounds


def installed(bounds: dict[str, str]) -> Path:
    """Make the environment; return its Python."""
    version, base = next(iter(pythons().items()))
    if f">={version}" != project()["project"]["requires-python"]:
        print(f"the lowest Python is not at hand: this is {version}")
    python = fresh(HOME, base)
    resolver = fresh(BUILD / "resolver", base)
    install(resolver, "--group", "oldest")
    uv = [str(resolver.parent / "uv"), "pip", "install", "--quiet", f"--python={python}"]
    uv.append("--resolution=lowest-direct")
    together = [f"{name}>={bound}" for name, bound in bounds.items() if name not in ALONE]
    subprocess.run([*uv, *together], check=True)
    alone = [f"{name}>={bound}" for name, bound in bounds.items() if name in ALONE]
    subprocess.run([*uv, "--no-deps", *alone], check=True)
    # The package is built by the lowest that builds it, too; uv has no bounds but these for that.
    builders = BUILD / "oldest-builders.txt"
    builders.write_text("\n".join(project()["build-system"]["requires"]).replace(">=", "=="))
    strict = clean_environment(SKETCHMEANS_REQUIRE_NATIVE="1")
    package = ["--no-deps", f"--build-constraints={builders}", "--editable", str(ROOT)]
    package.append("--config-settings=build-dir=build/oldest-native")
    subprocess.run([*uv, *package], check=True, env=strict)
    return python


def compared(python: Path, bounds: dict[str, str]) -> None:
    """Print each bound with what is installed; end where that is more."""
    names = [name.partition("[")[0] for name in bounds]
    shown = subprocess.run(
        [python, "-c", VERSIONS, *names], capture_output=True, text=True, check=True
    )
    versions = dict(zip(names, shown.stdout.split(), strict=True))
    print("| package | bound | installed |\n|---|---|---|")
    for name, bound in zip(names, bounds.values(), strict=True):
        print(f"| {name} | {bound} | {versions[name]} |")
    higher = [
        f"{name} {bound} cannot be installed beside the others, {versions[name]} can"
        for name, bound in zip(names, bounds.values(), strict=True)
        if not f"{versions[name]}.".startswith(f"{bound}.")
    ]
    if higher:
        sys.exit("\n".join(higher))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kept", action="store_true", help="install nothing anew")
    parser.add_argument("tests", nargs="*", help="what pytest is to run; without, all")
    given = parser.parse_args()
    main(given.kept, given.tests)
