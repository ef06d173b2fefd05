"""Look up known weaknesses of what is installed, and say of how much that could be done.

``pip-audit`` asks for a page of each version, and ends well where it finds none. This counts: it
fails where a weakness is known, and where none of the packages could be looked up. Mirrors of PyPI
may have the page of each project alone. That has the weaknesses of its newest version, so it is
asked where that is the one that is installed. What is left is named. ::

    make audit
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import Any

PAGE = "https://pypi.org/pypi/{}/json"
SECONDS = 30
"""How long a page may take."""


def main(auditor: Path) -> None:
    """Audit the environment that this runs in, by a program from another."""
    options = ["--progress-spinner=off", "--skip-editable", "--format=json"]
    shown = subprocess.run(
        [auditor, *options, "--path", sysconfig.get_path("purelib")],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        listed = json.loads(shown.stdout)["dependencies"]
    except (ValueError, KeyError):
        sys.exit(f"the audit could not be made:\n{shown.stderr}")
    packages = [package for package in listed if package["name"] != "sketchmeans"]
    by_version = [package for package in packages if "vulns" in package]
    unknown: dict[str, str] = {}
    by_project = []
    for package in (package for package in packages if "vulns" not in package):
        name = package["name"]  # all that pip-audit says of it, and why it was left out
        installed = version(name)
        found = of_newest(name, installed)
        if isinstance(found, str):
            unknown[name] = found
        else:
            by_project.append({"name": name, "version": installed, "vulns": found})
    audited = by_version + by_project
    weak = [package for package in audited if package["vulns"]]
    for package in weak:
        for one in package["vulns"]:
            mended = ", ".join(one["fix_versions"]) or "no version yet"
            print(f"{package['name']} {package['version']}: {one['id']}, mended in {mended}")
    for name, reason in unknown.items():
        print(f"not looked up: {name}, {reason}")
    print(
        f"{len(audited)} of {len(packages)} packages could be looked up, {len(by_version)} by "
        f"pip-audit and {len(by_project)} as the newest of their project; {len(weak)} are weak"
    )
    if weak or not audited:
        sys.exit("known weaknesses" if weak else "the database could not be reached from here")


def of_newest(name: str, installed: str) -> list[dict[str, Any]] | str:
    """Return the weaknesses of a package that is the newest of its project; else why not."""
    try:
        with urllib.request.urlopen(PAGE.format(name), timeout=SECONDS) as answer:
            page = json.load(answer)
        newest, listed = page["info"]["version"], page["vulnerabilities"]
    except (urllib.error.URLError, TimeoutError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    if newest != installed:
        return f"{installed} is not the newest, {newest}, which alone has a page"
    return [
        {"id": one["id"], "fix_versions": one["fixed_in"]}
        for one in listed
        if not one.get("withdrawn")
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
