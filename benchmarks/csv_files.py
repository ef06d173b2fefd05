"""Whether reading a CSV file costs more than before: two trees, in turns, in one run.

``python -m benchmarks.csv_files`` writes a CSV file of a million rows and ten columns, and lets the
``read_table`` of an earlier commit (``--before``) and that of this tree read it in turns, each time
in a fresh process. It prints the best times, and before over after: below 0.9 something was lost.
Beside them stand the same numbers with decimal commas, and between spaces, which this tree reads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import noisy_blobs
from benchmarks.timing import Report, Target, standalone

ROWS, COLUMNS = 1_000_000, 10
BEFORE = "a2f0a9b"
"""The commit before files were read as people have them."""
RATIO = 0.9
ROOT = Path(__file__).parents[1]
CODE = """
import json, sys, time
sys.meta_path[:] = [one for one in sys.meta_path if "_editable" not in type(one).__module__]
sys.path.insert(0, sys.argv[1])
import numpy, pyarrow.csv
import sketchmeans
from sketchmeans.io import read_table
assert sketchmeans.__file__.startswith(sys.argv[1]), sketchmeans.__file__
taken = []
for _ in range(2):
    start = time.perf_counter()
    table = read_table(sys.argv[2])
    taken.append(time.perf_counter() - start)
print(json.dumps([min(taken), table.X.shape, float(table.X.sum())]))
"""


def read(tree: Path, path: Path) -> tuple[float, list[int], float]:
    """Return the seconds that a tree takes to read a file, the better of two, and what it read."""
    command = [sys.executable, "-c", CODE, str(tree), str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, shape, total = json.loads(shown.stdout)
    return seconds, shape, total


def unpacked(commit: str, folder: Path) -> Path:
    """Write the sources of a commit to a folder, and return where the package is in it."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def main(rows: int = ROWS, before: str = BEFORE, turns: int = 5) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X = noisy_blobs(rows, COLUMNS, np.float64, n_blobs=8).round(6)
        plain, commas, spaces = (folder / f"{kind}.csv" for kind in ("plain", "commas", "spaces"))
        head = ",".join(f"x{index}" for index in range(COLUMNS))
        np.savetxt(plain, X, fmt="%.6f", delimiter=",", header=head, comments="")
        text = plain.read_text()
        commas.write_text(text.replace(",", ";").replace(".", ","))
        spaces.write_text(text.replace(",", "   "))
        old = unpacked(before, folder)
        found = [(read(old, plain), read(ROOT / "src", plain)) for _ in range(turns)]
        others = {path.stem: read(ROOT / "src", path) for path in (commas, spaces)}
    if len({(tuple(shape), total) for pair in found for _, shape, total in pair}) > 1:
        raise AssertionError("the two trees read different numbers")
    if any(tuple(shape) != X.shape for _, shape, _ in others.values()):
        raise AssertionError("a file was not read whole")
    best = {"before": min(a[0] for a, _ in found), "after": min(b[0] for _, b in found)}
    rows_shown = [[f"plain, {which}", seconds] for which, seconds in best.items()]
    rows_shown += [[f"{kind}, after", seconds] for kind, (seconds, _, _) in others.items()]
    report.table(["CSV", "seconds"], rows_shown)
    ratio = statistics.median(a[0] / b[0] for a, b in found)
    name = f"speed of reading {rows:,} rows of CSV, before over after"
    return report.conclude([Target(name, ratio, RATIO)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="a commit")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=5)
    asked = parser.parse_args()
    standalone(lambda: main(asked.rows, asked.before, asked.turns))
