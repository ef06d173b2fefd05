"""The memory of a fit above its input and the imported libraries, in a fresh process.

RBF, 20 features, width 24 (rank 12, oversampling 12). The limit is three sketches of n × width
float64 numbers and 150 MB. ::

    python -m benchmarks.peak_memory [--n 100000]
"""

from __future__ import annotations

import argparse

from benchmarks.data import noisy_blobs
from benchmarks.processes import forget_peak, measured, peak_bytes
from benchmarks.timing import Report, Target, standalone
from sketchmeans import KernelKMeans

FEATURES, RANK = 20, 12
MB = 1_000_000
ALLOWANCE = 150 * MB


def fit(n: int, dtype: str) -> dict[str, int]:
    """Fit in this process, and return what it held."""
    imported = peak_bytes()
    X = noisy_blobs(n, FEATURES, dtype)
    ready = forget_peak()
    model = KernelKMeans(
        8, method="one-pass", rank=RANK, oversampling=RANK, random_state=0, kernel="rbf"
    ).fit(X)
    return {
        "imported": imported,
        "ready": ready,
        "peak": peak_bytes(),
        "input": X.nbytes,
        "planned": model.stats_["planned_bytes"],
        "width": model.width_,
    }


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="samples")
    n = parser.parse_args(arguments).n
    report, rows, targets = Report(), [], []
    for dtype in ("float64", "float32"):
        found = measured("benchmarks.peak_memory:fit", n=n, dtype=dtype)
        above = found["peak"] - found["ready"]
        limit = 3 * n * found["width"] * 8 + ALLOWANCE
        sizes = (found["imported"], found["input"], above, found["planned"], limit)
        rows.append([dtype, *(round(size / MB) for size in sizes)])
        name = f"memory above the input, {dtype}"
        targets.append(Target(name, above / MB, limit / MB, "MB", at_most=True))
        name = f"memory above the input over the plan, {dtype}"
        targets.append(Target(name, above / found["planned"], 1.0, at_most=True))
    header = [f"MB, n = {n:,}", "imports", "input", "fit above both", "planned", "limit"]
    report.table(header, rows)
    return report.conclude(targets)


if __name__ == "__main__":
    standalone(main)
