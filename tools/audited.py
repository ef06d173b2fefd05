"""Look up known weaknesses of what is installed, and say of how much that could be done.

``pip-audit`` ends well where it could look up nothing. This counts: it fails where a weakness is
known, and where none of the packages was found in the database. ::

    make audit
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path


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
        packages = json.loads(shown.stdout)["dependencies"]
    except (ValueError, KeyError):
        sys.exit(f"the audit could not be made:\n{shown.stderr}")
    audited = [package for package in packages if "vulns" in package]
    weak = [package for package in audited if package["vulns"]]
    for package in weak:
        for one in package["vulns"]:
            mended = ", ".join(one["fix_versions"]) or "no version yet"
            print(f"{package['name']} {package['version']}: {one['id']}, mended in {mended}")
    print(f"{len(audited)} of {len(packages)} packages could be looked up; {len(weak)} are weak")
    if weak or not audited:
        sys.exit("known weaknesses" if weak else "the database could not be reached from here")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
