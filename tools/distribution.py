"""Build what would be published, look into it, and test it as installed.

The wheel is built from the source distribution, so that this is known to hold all that a build
needs. It is then installed into a fresh environment of every Python at hand, and tests are run
against the installed package: ``src`` is not on the path, and an import from it is an error. ::

    make dist
    make dist TESTS=tests/test_cli.py
    python tools/distribution.py --only 3.13 tests/test_cli.py
    python tools/distribution.py --kept tests/test_cli.py   # as the last run installed it
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.environments import clean_environment, fresh, install, project, pythons  # noqa: E402

BUILD = ROOT / "build"
FILES = BUILD / "distribution"
SHOWN = ("numpy", "scipy", "scikit-learn", "pandas", "dask")
VERSIONS = f"""
from importlib.metadata import version
print(", ".join(name + " " + version(name) for name in {SHOWN!r}))
"""


def main(only: list[str], kept: bool, tests: list[str]) -> None:
    """Build, check, and test with every Python, or with some alone."""
    at_hand = pythons()
    chosen = {minor: path for minor, path in at_hand.items() if not only or minor in only}
    if not chosen:
        sys.exit(f"no such Python: here are {', '.join(at_hand) or 'none'}")
    if not kept:
        build(next(iter(chosen.values())))
    (source,), (wheel,) = FILES.glob("*.tar.gz"), FILES.glob("*.whl")
    checked(source, wheel)
    homes = {minor: BUILD / f"installed-{minor}" for minor in chosen}
    if not kept:
        for minor, home in homes.items():
            installed(home, chosen[minor], wheel)
    rows = [tested(minor, home, tests) for minor, home in homes.items()]
    print(f"\n{wheel.name}, as installed:\n")
    print("| Python | with | passed | failed | skipped |\n|---|---|---|---|---|")
    for python, beside, passed, failed, skipped in rows:
        print(f"| {python} | {beside} | {passed:,} | {failed:,} | {skipped:,} |")
    if any(failed or not passed for _, _, passed, failed, _ in rows):
        sys.exit("the package as installed does not pass its tests")


def build(python: Path) -> None:
    """Build a source distribution, and from it a wheel, which are then all that is there."""
    builder = fresh(BUILD / "builder", python)
    install(builder, "--group", "dist")
    for old in FILES.glob("*"):
        old.unlink()
    strict = clean_environment(SKETCHMEANS_REQUIRE_NATIVE="1")
    command: list[str | Path] = [builder, "-m", "build", "--outdir", FILES, ROOT]
    shown = subprocess.run(command, env=strict, capture_output=True, text=True, check=False)
    if shown.returncode:
        sys.exit(f"the build failed:\n{shown.stdout}{shown.stderr}")


def checked(source: Path, wheel: Path) -> None:
    """Look into both files, and end where something is missing or too much."""
    wrong = [*_wrong_source(source), *_wrong_wheel(wheel)]
    if wrong:
        sys.exit("\n".join(wrong))
    for path in (source, wheel):
        print(f"{path.name}: {os.path.getsize(path):,} bytes, as it should be")


def _wrong_source(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    tracked = set(listed.stdout.splitlines())
    needed = {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO"}
    needed |= _files("src") | _files("native")
    wrong = [f"{path.name} lacks {name}" for name in sorted(needed - held)]
    if tracked:  # else this is no clone, and nothing is known of what belongs here
        strange = held - tracked - {"PKG-INFO"}
        wrong += [f"{path.name} holds {name}, which git does not know" for name in sorted(strange)]
    return wrong


def _wrong_wheel(path: Path) -> list[str]:
    declared = project()["project"]
    with zipfile.ZipFile(path) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
        about = f"{declared['name']}-{declared['version']}.dist-info"
        metadata = message_from_bytes(archive.read(f"{about}/METADATA"))
        tags = message_from_bytes(archive.read(f"{about}/WHEEL")).get_all("Tag", [])
        scripts = archive.read(f"{about}/entry_points.txt").decode()
        licence = f"{about}/licenses/LICENSE"
        same_licence = licence in held and archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    package = {name.removeprefix("src/") for name in _files("src")}
    package.add("sketchmeans/engine/_native.abi3.so")
    rest = {name for name in held - package if not name.startswith(f"{about}/")}
    wrong = [f"{path.name} lacks {name}" for name in sorted(package - held)]
    wrong += [f"{path.name} holds {name}, which is no part of the package" for name in sorted(rest)]
    body = metadata.get_payload(decode=True)
    assert isinstance(body, bytes)
    facts = {
        "the tag of the stable interface": all(tag.startswith("cp311-abi3-") for tag in tags),
        "a platform in its tag": bool(tags) and not any(tag.endswith("-any") for tag in tags),
        "the licence": same_licence and metadata["License-Expression"] == declared["license"],
        "the README as its description": body.decode().strip()
        == (ROOT / "README.md").read_text().strip(),
        "the format of its description": metadata["Description-Content-Type"] == "text/markdown",
        "the lowest Python": metadata["Requires-Python"] == declared["requires-python"],
        "its version": metadata["Version"] == declared["version"],
        "its extras": set(metadata.get_all("Provides-Extra", []))
        == set(declared["optional-dependencies"]),
        "its command": "sketchmeans=sketchmeans.cli:main" in scripts.replace(" ", ""),
    }
    return wrong + [f"{path.name} lacks {name}" for name, there in facts.items() if not there]


def _files(folder: str) -> set[str]:
    """Return the files below a folder of the project that git would not ignore."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if "__pycache__" not in path.parts and path.suffix != ".so"
    }


def installed(folder: Path, python: Path, wheel: Path) -> None:
    """Install the wheel, with its extras and what tests need, into a fresh environment."""
    extras = ",".join(project()["project"]["optional-dependencies"])
    install(fresh(folder, python), f"{wheel}[{extras}]", "--group", "dev")


def tested(minor: str, folder: Path, tests: list[str]) -> tuple[str, str, int, int, int]:
    """Run tests against what is installed; return a row of the table."""
    home = folder / "bin" / "python"
    results = BUILD / f"installed-{minor}.xml"
    results.unlink(missing_ok=True)
    command: list[str | Path] = [home, "-m", "pytest", "-p", "tools.as_installed"]
    command += [f"--junitxml={results}", *tests]
    print(f"\nPython {minor}:", flush=True)
    ended = subprocess.run(command, cwd=ROOT, env=clean_environment(), check=False).returncode
    if ended not in (0, 1):  # neither passed nor failed
        sys.exit("the tests could not be run")
    suite = next(ElementTree.parse(results).iter("testsuite"))
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    shown = [
        subprocess.run([home, "-c", program], capture_output=True, text=True, check=True)
        for program in ("import platform; print(platform.python_version())", VERSIONS)
    ]
    version, beside = (one.stdout.strip() for one in shown)
    return version, beside, count["tests"] - failed - count["skipped"], failed, count["skipped"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], help="a version, such as 3.13")
    parser.add_argument("--kept", action="store_true", help="build and install nothing anew")
    parser.add_argument("tests", nargs="+", help="what pytest is to run")
    given = parser.parse_args()
    main(given.only, given.kept, given.tests)
