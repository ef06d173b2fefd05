"""One RBF pass against blocks of scikit-learn's ``rbf_kernel``, and two threads against one.

The reference makes the same KΩ from blocks of rows, ``rbf_kernel(X[a:b], X) @ Omega``, on all of
its threads and with the block size that suits it best. The pass also gives the row sums and
‖K‖_F², which the reference does not. ::

    python -m benchmarks.pass_speed
"""

from __future__ import annotations

import numpy as np

from benchmarks.data import median_rbf, noisy_blobs
from benchmarks.rivals import CHUNKS, scikit_learn
from benchmarks.timing import Report, Target, interleaved, standalone
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import HadamardSketch

N, FEATURES, WIDTH = 20_000, 20, 12
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}


def measure(dtype: str) -> tuple[dict[str, float], int]:
    """Return the seconds of one thread, two threads and scikit-learn, and the latter's block."""
    X = noisy_blobs(N, FEATURES, dtype)
    kernel = median_rbf(X)
    sketch = HadamardSketch(N, WIDTH, seed=0)
    Omega = sketch.matrix.astype(dtype)
    operator = DataOperator(X, kernel)
    tasks = {chunk: scikit_learn(X, Omega, kernel.gamma, chunk) for chunk in CHUNKS}
    expected = tasks[CHUNKS[0]]()
    error = np.linalg.norm(operator.multiply(sketch).W - expected) / np.linalg.norm(expected)
    if error > TOLERANCE[dtype]:
        raise AssertionError(f"{dtype}: the two products differ by {error:.1e}")
    seconds = interleaved(
        {f"block {chunk}": task for chunk, task in tasks.items()}
        | {
            "one": lambda: operator.multiply(sketch, n_threads=1),
            "two": lambda: operator.multiply(sketch, n_threads=2),
        }
    )
    best = min(CHUNKS, key=lambda chunk: seconds[f"block {chunk}"])
    return {
        "one": seconds["one"],
        "two": seconds["two"],
        "reference": seconds[f"block {best}"],
    }, best


def main() -> Report:
    report = Report()
    rows, results = [], {}
    for dtype in ("float32", "float64"):
        seconds, block = measure(dtype)
        results[dtype] = seconds
        rows.append(
            [
                dtype,
                f"{seconds['reference']:.2f} s (blocks of {block})",
                f"{seconds['one']:.2f} s",
                f"{seconds['two']:.2f} s",
                f"{seconds['reference'] / seconds['two']:.1f}×",
                f"{seconds['one'] / seconds['two']:.2f}×",
            ]
        )
    header = ["tiles", "scikit-learn", "1 thread", "2 threads", "faster than scikit-learn"]
    report.table([*header, "2 threads against 1"], rows)
    seconds = results["float32"]
    return report.conclude(
        [
            Target("pass against scikit-learn", seconds["reference"] / seconds["two"], 6.0),
            Target("two threads against one", seconds["one"] / seconds["two"], 1.6),
        ]
    )


if __name__ == "__main__":
    standalone(main)
