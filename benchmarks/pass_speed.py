"""One RBF pass against blocks of scikit-learn's ``rbf_kernel``, and two threads against one.

The reference makes the same KΩ from blocks of rows, ``rbf_kernel(X[a:b], X) @ Omega``, on all of
its threads and with the block size that suits it best. The pass also gives the row sums and
‖K‖_F², which the reference does not. ::

    python -m benchmarks.pass_speed
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import median_rbf, noisy_blobs
from benchmarks.timing import Target, conclude, facts, interleaved, table
from sketchmeans.operators import DataOperator
from sketchmeans.points import row_blocks
from sketchmeans.sketches import HadamardSketch

N, FEATURES, WIDTH = 20_000, 20, 12
BLOCKS = (250, 1000, 4000)
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}


def reference(X: np.ndarray, Omega: np.ndarray, gamma: float, rows: int) -> np.ndarray:
    """Return KΩ by scikit-learn."""
    W = np.empty(Omega.shape, X.dtype)
    for block in row_blocks(len(X), rows):
        W[block] = rbf_kernel(X[block], X, gamma=gamma) @ Omega
    return W


def measure(dtype: str) -> tuple[dict[str, float], int]:
    """Return the seconds of one thread, two threads and scikit-learn, and the latter's block."""
    X = noisy_blobs(N, FEATURES, dtype)
    kernel = median_rbf(X)
    sketch = HadamardSketch(N, WIDTH, seed=0)
    Omega = sketch.matrix.astype(dtype)
    operator = DataOperator(X, kernel)
    expected = reference(X, Omega, kernel.gamma, 1000)
    error = np.linalg.norm(operator.multiply(sketch).W - expected) / np.linalg.norm(expected)
    if error > TOLERANCE[dtype]:
        raise AssertionError(f"{dtype}: the two products differ by {error:.1e}")
    tasks = {
        f"block {rows}": lambda rows=rows: reference(X, Omega, kernel.gamma, rows)
        for rows in BLOCKS
    }
    tasks |= {
        "one": lambda: operator.multiply(sketch, n_threads=1),
        "two": lambda: operator.multiply(sketch, n_threads=2),
    }
    seconds = interleaved(tasks)
    best = min(BLOCKS, key=lambda rows: seconds[f"block {rows}"])
    return {
        "one": seconds["one"],
        "two": seconds["two"],
        "reference": seconds[f"block {best}"],
    }, best


def main() -> list[Target]:
    print(facts(), "\n")
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
    print(table([*header, "2 threads against 1"], rows))
    seconds = results["float32"]
    return conclude(
        [
            Target("pass against scikit-learn", seconds["reference"] / seconds["two"], 6.0),
            Target("two threads against one", seconds["one"] / seconds["two"], 1.6),
        ]
    )


if __name__ == "__main__":
    main()
