"""Data files: how fast a Parquet file is read, and clustered from the command line.

1,000,000 rows of 10 columns, float64. Reading is compared with pyarrow's own ``read_table``, which
leaves columns as they are; ours gives rows, checked for missing values. The file is then clustered
with a polynomial kernel of degree 2. ::

    python -m benchmarks.files
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.data import noisy_blobs
from benchmarks.timing import Report, Target, interleaved, standalone
from sketchmeans.io import read_table

ROWS, COLUMNS, CLUSTERS = 1_000_000, 10, 8
READ_RATIO = 0.5
CLUSTER_SECONDS = 60.0


def main() -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        X = noisy_blobs(ROWS, COLUMNS, np.float64, n_blobs=CLUSTERS)
        parquet.write_table(pa.table({f"x{j}": X[:, j] for j in range(COLUMNS)}), path)
        if not np.array_equal(read_table(path).X, X):
            raise AssertionError("what was read is not what was written")
        del X
        seconds = interleaved(
            {
                "pyarrow, columns": lambda: parquet.read_table(path),
                "sketchmeans, rows": lambda: read_table(path),
            }
        )
        size = path.stat().st_size / 1e6
        rows = [[name, value, size / value] for name, value in seconds.items()]
        report.table(["reader", "seconds", "MB of the file per second"], rows)
        spent, found = cluster(path)
    stages = found["stats"]["seconds"]
    inside = sum(stages.values())
    rows = [*stages.items(), ["start, reading, writing labels", spent - inside], ["in all", spent]]
    report.table(["cluster", "seconds"], rows)
    ratio = seconds["pyarrow, columns"] / seconds["sketchmeans, rows"]
    return report.conclude(
        [
            Target("speed of reading Parquet, ours over pyarrow's", ratio, READ_RATIO),
            Target("cluster a million rows, degree 2", spent, CLUSTER_SECONDS, "s", at_most=True),
        ]
    )


def cluster(path: Path) -> tuple[float, dict]:
    """Run ``sketchmeans cluster`` on the file, and return the seconds and what it printed."""
    command = [sys.executable, "-m", "sketchmeans", "cluster", str(path), "-k", str(CLUSTERS)]
    command += ["--kernel", "polynomial", "--degree", "2", "--json"]
    command += ["-o", str(path.with_name("labels.parquet"))]
    start = time.perf_counter()
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, json.loads(shown.stdout)


if __name__ == "__main__":
    standalone(main)
