"""The memory of a fit above its input and the imported libraries, in a fresh process.

RBF, 20 features, width 24 (rank 12, oversampling 12). The limit is three sketches of n × width
float64 numbers and 150 MB. ::

    python -m benchmarks.peak_memory [--n 100000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.data import noisy_blobs
from benchmarks.timing import Target, conclude, facts, table
from sketchmeans import KernelKMeans

FEATURES, RANK = 20, 12
MB = 1_000_000
ALLOWANCE = 150 * MB
STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """Return the most memory that this process ever held.

    NOTE: on Linux ``ru_maxrss`` of a new process begins at the peak of the one that started it;
    VmHWM begins at zero.
    """
    if STATUS.exists():
        lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def child(n: int, dtype: str) -> None:
    """Fit in this process, and print what it held."""
    imported = peak_bytes()
    X = noisy_blobs(n, FEATURES, dtype)
    ready = peak_bytes()
    model = KernelKMeans(n_clusters=8, rank=RANK, oversampling=RANK, random_state=0).fit(X)
    figures = {
        "imported": imported,
        "ready": ready,
        "peak": peak_bytes(),
        "input": X.nbytes,
        "planned": model.stats_["planned_bytes"],
        "width": model.width_,
    }
    print(json.dumps(figures))


def measure(n: int, dtype: str) -> dict[str, int]:
    """Run ``child`` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.peak_memory", "--n", str(n), "--child", dtype]
    root = Path(__file__).parents[1]
    output = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def main(arguments: list[str] | None = None) -> list[Target]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="samples")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.n, options.child)
        return []
    print(facts(), "\n")
    rows, targets = [], []
    for dtype in ("float64", "float32"):
        found = measure(options.n, dtype)
        above = found["peak"] - found["ready"]
        limit = 3 * options.n * found["width"] * 8 + ALLOWANCE
        sizes = (found["imported"], found["input"], above, found["planned"], limit)
        rows.append([dtype, *(f"{size / MB:.0f} MB" for size in sizes)])
        name = f"memory above the input, {dtype}"
        targets.append(Target(name, above / MB, limit / MB, "MB", at_most=True))
        name = f"memory above the input over the plan, {dtype}"
        targets.append(Target(name, above / found["planned"], 1.0, at_most=True))
    header = [f"n = {options.n:,}", "imports", "input", "fit above both", "planned", "limit"]
    print(table(header, rows))
    return conclude(targets)


if __name__ == "__main__":
    main()
