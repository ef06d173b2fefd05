"""Keep what `make coverage` measured in docs/coverage.json, and say what is kept there.

Tracing takes too long to be a part of `make test`, which prints the figure that was kept, with its
date. The fingerprint of the source tells whether it is still that of the files here. ::

    python tools/covered.py keep   # after a traced run, from its data
    python tools/covered.py keep "make coverage in four parts"
    python tools/covered.py show
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "coverage.json"
LEAST = 95.0
"""Percent of the lines and branches of src that tests should run; less is an error."""
WORST = 15
"""So many files are named: those that tests run the least of."""


def fingerprint(source: Path) -> str:
    """Return a digest of the Python files below a folder: their names and what is in them."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(f"{path.relative_to(source).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def measured() -> dict[str, Any]:
    """Return the report that coverage makes of the data of its last run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", path]
        subprocess.run(command, cwd=ROOT, check=True)
        return json.loads(path.read_text())


def summary(report: dict[str, Any], source: str, today: str, how: str) -> dict[str, Any]:
    """Return what is kept of a report: the totals, whose they are, and the files with the least."""
    totals = report["totals"]
    files = {name: one["summary"]["percent_covered"] for name, one in report["files"].items()}
    worst = sorted(files, key=lambda name: (files[name], name))[:WORST]
    return {
        "percent": rounded(totals["percent_covered"]),
        "lines": [totals["covered_lines"], totals["num_statements"]],
        "branches": [totals["covered_branches"], totals["num_branches"]],
        "date": today,
        "how": how,
        "python": platform.python_version(),
        "coverage": report["meta"]["version"],
        "source": source,
        "least": {name: rounded(files[name]) for name in worst},
    }


def rounded(percent: float) -> float:
    """Round to one decimal, downwards: 94.96 is not 95."""
    return int(percent * 10) / 10


def told(kept: dict[str, Any], source: str) -> str:
    """Return the line that `make test` ends with."""
    (lines, all_lines), (branches, all_branches) = kept["lines"], kept["branches"]
    line = (
        f"Coverage of src: {kept['percent']} % of lines and branches ({lines:,} of {all_lines:,} "
        f"lines, {branches:,} of {all_branches:,} branches), measured on {kept['date']} by "
        f"{kept['how']} with Python {kept['python']}"
    )
    return line if kept["source"] == source else f"{line}; src has changed since"


def main(what: str, how: str = "make coverage") -> None:
    """Keep the figure of the last traced run, or show the one that is kept."""
    source = fingerprint(ROOT / "src")
    if what == "keep":
        kept = summary(measured(), source, datetime.now(UTC).date().isoformat(), how)
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
        for name, percent in kept["least"].items():
            print(f"{percent:6.1f} %  {name}")
    kept = json.loads(KEPT.read_text())
    print(told(kept, source))
    if what == "keep" and kept["percent"] < LEAST:
        sys.exit(f"less than {LEAST:g} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
