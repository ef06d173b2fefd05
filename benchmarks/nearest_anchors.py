"""How fast the native engine finds nearest anchors, and adds up the Gram matrix of F.

- The nearest 5 of 500 anchors: scikit-learn's brute force; a product by BLAS and NumPy's
  ``argpartition``; what ``Anchors`` does without the native engine, which is scikit-learn's and
  differences; and with it. Blocks of rows as in a fit, 100,000 rows, float64. The product alone
  is what no way by BLAS can be faster than.
- FᵀF of the features of 4 such sets, 20 numbers a row: SciPy's sparse product, and the native
  one, with as many stripes of the matrix as a fit takes and with others.

On one thread: ratios of times in the same run. ::

    python -m benchmarks.nearest_anchors
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.timing import SEED, Report, Target, interleaved, need_native, on, standalone
from sketchmeans.blas import OneBlasThread
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Run
from sketchmeans.engine.native import compiled
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.operators import NeighborOperator
from sketchmeans.operators.anchors import Anchors
from sketchmeans.operators.gram import _stripes

N, ANCHORS, NEIGHBORS = 100_000, 500, 5
FEATURES = {2: 4.0, 20: 2.5, 100: 1.5}
"""And how many times as long as the native search scikit-learn's should take at the least."""
STRIPES = (1, 2, 4, 8, 16)


def searches(p: int) -> dict[str, Any]:
    """Return the ways to find nearest anchors in p dimensions."""
    random = np.random.default_rng(SEED)
    X, points = random.normal(size=(N, p)), random.normal(size=(ANCHORS, p))
    anchors = Anchors(points, NEIGHBORS)
    index = NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute", n_jobs=1).fit(points)
    norms = np.vecdot(points, points)
    blocks = row_blocks(N, 4096)

    def each(work: Any) -> None:
        for rows in blocks:
            work(X[rows])

    def partition(rows: np.ndarray) -> np.ndarray:
        return np.argpartition(norms - 2 * (rows @ points.T), NEIGHBORS)[:, :NEIGHBORS]

    return {
        "product alone": partial(each, lambda rows: rows @ points.T),
        "scikit-learn": partial(each, lambda rows: index.kneighbors(rows, return_distance=False)),
        "argpartition": partial(each, partition),
        "without": on("numpy", partial(each, anchors.nearest)),
        "native": on("native", partial(each, anchors.nearest)),
    }


def nearest(report: Report) -> dict[int, float]:
    """Print the times of a search over that of the native one; return scikit-learn's."""
    rows, found = [], {}
    for p in FEATURES:
        seconds = interleaved(searches(p), repeats=3)
        ours = seconds["native"]
        rows.append([p, ours, *(seconds[name] / ours for name in seconds if name != "native")])
        found[p] = seconds["scikit-learn"] / ours
    header = ["features", "native, s", "product alone", "scikit-learn", "argpartition"]
    report.table([*header, "without the native engine"], rows)
    return found


def gram(report: Report) -> float:
    """Print the times of a Gram matrix over that of the native one; return SciPy's."""
    random = np.random.default_rng(SEED)
    X = random.normal(size=(N, 20)) + 3 * random.integers(0, 3, (N, 1))
    operator = NeighborOperator(X, NeighborOptions(), seed=SEED)
    operator.build(Run(2))
    F, width = operator.held, operator.map.count
    columns, values = F.indices.reshape(N, -1), F.data.reshape(N, -1)

    def cut(count: int) -> None:
        G, ends = np.zeros((width, width)), _stripes(width, count)
        for first, last in pairwise(ends):
            compiled().add_gram(columns, values, first, last, G)

    tasks: dict[str, Any] = {
        "SciPy": on("numpy", operator.gram_of_features),
        "native": on("native", operator.gram_of_features),
        **{f"{count} stripes": partial(cut, count) for count in STRIPES},
    }
    seconds = interleaved(tasks, repeats=3)
    ours = seconds["native"]
    report.table(
        ["FᵀF, 2,000 columns", "s", "over native"],
        [[name, spent, spent / ours] for name, spent in seconds.items()],
    )
    return seconds["SciPy"] / ours


def main() -> Report:
    need_native()
    report = Report()
    with OneBlasThread():
        over = nearest(report)
        sums = gram(report)
    targets = [
        Target(f"scikit-learn over native search, {p} features", over[p], limit)
        for p, limit in FEATURES.items()
    ]
    return report.conclude([*targets, Target("SciPy over native Gram matrix", sums, 4)])


if __name__ == "__main__":
    standalone(main)
