"""Whether the rule between feature map and tiles takes the faster way.

One pass of width 36 in float64, on all cores, for linear kernels and polynomial kernels of degree
2 with D monomials, by ``FeatureMapOperator`` and by ``DataOperator``. A gain above 1 means that
the feature map is faster; the loss is what the rule's choice costs against the better one. ::

    python -m benchmarks.feature_switch
"""

from __future__ import annotations

import numpy as np

from benchmarks.data import noisy_blobs
from benchmarks.timing import Report, Target, interleaved, standalone
from sketchmeans.blas import count_threads
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Kernel, Linear, Polynomial
from sketchmeans.operators import DataOperator, FeatureMapOperator
from sketchmeans.operators.monomials import prefers_features
from sketchmeans.sketches import HadamardSketch

WIDTH = 36
SIZES = (2000, 8000, 20_000)
CASES = {"linear": (20, 100, 300, 1000), "degree 2": (5, 10, 20, 30, 40, 60)}
TOLERATED = 2.0


def kernel_of(name: str, p: int) -> Kernel:
    return Linear() if name == "linear" else Polynomial(gamma=1 / p, degree=2, coef0=1.0)


def measure(X: np.ndarray, kernel: Kernel) -> tuple[int, float, float]:
    """Return the number of features, and the seconds of a pass by features and by tiles."""
    sketch = HadamardSketch(len(X), WIDTH, seed=0)
    by_features, by_tiles = FeatureMapOperator(X, kernel), DataOperator(X, kernel)
    threads = count_threads(None)
    tasks = {
        "features": lambda: by_features.multiply(sketch, Run(threads)),
        "tiles": lambda: by_tiles.multiply(sketch, Run(threads)),
    }
    seconds = interleaved(tasks)
    return by_features.map.count, seconds["features"], seconds["tiles"]


def main() -> Report:
    report = Report()
    rows, worst = [], 1.0
    for name, features in CASES.items():
        for p in features:
            for n in SIZES:
                kernel = kernel_of(name, p)
                count, by_features, by_tiles = measure(noisy_blobs(n, p, np.float64), kernel)
                chosen = prefers_features(n, p, kernel)
                taken = by_features if chosen else by_tiles
                loss = taken / min(by_features, by_tiles)
                worst = max(worst, loss)
                rows.append(
                    [
                        name,
                        p,
                        count,
                        n,
                        f"{1000 * by_features:.1f} ms",
                        f"{1000 * by_tiles:.1f} ms",
                        f"{by_tiles / by_features:.2f}",
                        "features" if chosen else "tiles",
                        "none" if loss == 1 else f"{loss:.2f}×",
                    ]
                )
    header = ["kernel", "p", "D", "n", "features", "tiles", "gain", "rule takes", "loss"]
    report.table(header, rows)
    name = "feature map or tiles, slower than the other way at worst"
    return report.conclude([Target(name, worst, TOLERATED, at_most=True)])


if __name__ == "__main__":
    standalone(main)
