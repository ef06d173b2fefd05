"""Whether reading a CSV file costs more than before: two trees, in turns, in one run.

``python -m benchmarks.csv_files`` writes a CSV file of a million rows and ten columns, and lets the
``read_table`` of an earlier commit (``--before``) and that of this tree read it in turns, in two
processes that wait for each other. It prints the best times, and before over after: below 0.9
something was lost. Seconds of the processor are less noisy where others work on the machine.
Beside them stand the same numbers with decimal commas, and between spaces, which this tree reads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import noisy_blobs
from benchmarks.timing import Report, Target, standalone

ROWS, COLUMNS, TURNS = 1_000_000, 10, 12
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
for path in sys.stdin:
    start, spent = time.perf_counter(), time.process_time()
    table = read_table(path.strip())
    taken = [time.perf_counter() - start, time.process_time() - spent]
    print(json.dumps([*taken, table.X.shape, float(table.X.sum())]), flush=True)
"""


class Tree:
    """A process that reads files by the sources of one tree, and keeps its best times."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.seconds = self.processor = float("inf")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([sys.executable, "-c", CODE, str(folder)], **pipes)

    def read(self, path: Path) -> tuple[list[int], float]:
        """Let it read a file; return the shape and the sum of what it read."""
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        seconds, processor, shape, total = json.loads(self._process.stdout.readline())
        self.seconds = min(self.seconds, seconds)
        self.processor = min(self.processor, processor)
        return shape, total

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def unpacked(commit: str, folder: Path) -> Path:
    """Write the sources of a commit to a folder, and return where the package is in it."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def main(rows: int = ROWS, before: str = BEFORE, turns: int = TURNS) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X = noisy_blobs(rows, COLUMNS, np.float64, n_blobs=8)
        plain, commas, spaces = (folder / f"{kind}.csv" for kind in ("plain", "commas", "spaces"))
        head = ",".join(f"x{index}" for index in range(COLUMNS))
        np.savetxt(plain, X, fmt="%.6f", delimiter=",", header=head, comments="")
        text = plain.read_text()
        commas.write_text(text.replace(",", ";").replace(".", ","))
        spaces.write_text(text.replace(",", "   "))
        trees = [Tree("before", unpacked(before, folder)), Tree("after", ROOT / "src")]
        others = [Tree(path.stem, ROOT / "src") for path in (commas, spaces)]
        found = [tree.read(plain) for _ in range(turns) for tree in trees]
        for tree, path in zip(others, (commas, spaces), strict=True):
            found += [tree.read(path) for _ in range(3)]
        for tree in (*trees, *others):
            tree.close()
    if any(one != found[0] for one in found):
        raise AssertionError("the same numbers were read in two ways")
    report.table(
        ["CSV", "seconds", "of the processor"],
        [[tree.name, tree.seconds, tree.processor] for tree in (*trees, *others)],
    )
    old, new = trees
    what = f"reading {rows:,} rows of CSV, before over after"
    return report.conclude(
        [
            Target(f"speed of {what}", old.seconds / new.seconds, RATIO),
            Target(f"processor's time of {what}", old.processor / new.processor, RATIO),
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="a commit")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=TURNS)
    asked = parser.parse_args()
    standalone(lambda: main(asked.rows, asked.before, asked.turns))
