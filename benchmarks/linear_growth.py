"""A pass through a feature map takes time in proportion to n.

Polynomial kernel of degree 2 on 10 features (66 monomials), width 36, all cores. ::

    python -m benchmarks.linear_growth
"""

from __future__ import annotations

import numpy as np

from benchmarks.data import noisy_blobs
from benchmarks.timing import Report, Target, interleaved, standalone
from sketchmeans.blas import count_threads
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Polynomial
from sketchmeans.operators import FeatureMapOperator
from sketchmeans.operators.monomials import prefers_features
from sketchmeans.sketches import HadamardSketch

SIZES = (50_000, 100_000, 200_000, 400_000)
FEATURES, WIDTH = 10, 36
KERNEL = Polynomial(gamma=1 / FEATURES, degree=2, coef0=1.0)


def main() -> Report:
    report = Report()
    if not all(prefers_features(n, FEATURES, KERNEL) for n in SIZES):
        raise AssertionError("the estimators would not take the feature map here")
    tasks = {}
    for n in SIZES:
        operator = FeatureMapOperator(noisy_blobs(n, FEATURES, np.float64), KERNEL)
        sketch = HadamardSketch(n, WIDTH, seed=0)
        _ = sketch.matrix  # made once, whatever the number of passes
        tasks[f"{n:,}"] = lambda operator=operator, sketch=sketch: operator.multiply(
            sketch, Run(count_threads(None))
        )
    seconds = list(interleaved(tasks).values())
    each = [1e6 * value / n for n, value in zip(SIZES, seconds, strict=True)]
    rows = [
        [n, f"{value:.3f} s", f"{micro:.2f} µs"]
        for n, value, micro in zip(SIZES, seconds, each, strict=True)
    ]
    report.table(["n", "pass", "a sample"], rows)
    spread = max(each) / min(each)
    return report.conclude([Target("time a sample, most over least", spread, 1.3, at_most=True)])


if __name__ == "__main__":
    standalone(main)
