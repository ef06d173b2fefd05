"""What ``guidance`` says of numbers of clusters and of scales, how often rightly, and its cost.

    python -m benchmarks.guidance [--seeds 2] [--first 0]

Sets of ``benchmarks.kernel_sets`` up to 2,400 samples, and those without clusters, are clustered
with the true number, one fewer and some more. "better" are the numbers that are said to be better
supported than the one that was asked for; for the true number every such line is a false alarm.
Then guidance and plain K-means are timed beside the fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.choosing import MOST, ONE
from benchmarks.data import cores_and_shells
from benchmarks.kernel_sets import SETS
from benchmarks.timing import Report
from sketchmeans import KernelKMeans
from sketchmeans.advice.guidance import GAP, better_numbers, gaps_of, guidance
from sketchmeans.advice.plain import plain_kmeans

SIZES = (2_000, 20_000, 200_000)


def _said(X: Any, k: int, seed: int, **options: Any) -> tuple[list[int], dict[int, float], str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelKMeans(k, random_state=seed, **options).fit(X)
    gaps = gaps_of(model)
    first = guidance(model, X)[0]
    return better_numbers(k, gaps), gaps, "wide" if "wider than" in first else ""


def _numbers(report: Report, seeds: range) -> None:
    rows = []
    for name in [*SETS, *ONE]:
        for seed in seeds:
            options: dict[str, Any] = {}
            if name in ONE:
                X, true = ONE[name](np.random.default_rng(seed)), 1
            else:
                X, _, true = SETS[name](seed)
                if SETS[name].cosine:
                    options["kernel_params"] = {"metric": "cosine"}
            if X.shape[0] > MOST:
                continue
            for k in sorted({max(true - 1, 2), max(true, 2), true + 1, true + 3, true + 5}):
                better, gaps, wide = _said(X, k, seed, **options)
                listed = " ".join(map(str, better))
                firm = "yes" if not better and gaps.get(k, 0.0) >= GAP else ""
                rows.append([name, seed, true, k, gaps.get(k, np.nan), listed, firm, wide])
    columns = ["set", "seed", "clusters", "asked", "gap", "better", "supported", "scales"]
    report.table(columns, rows)
    asked = [row for row in rows if row[2] == row[3]]
    print(f"true number: a false alarm in {sum(bool(r[5]) for r in asked)} of {len(asked)}")
    others = [row for row in rows if row[2] not in (1, row[3])]
    told = [row for row in others if row[5]]
    right = sum(str(row[2]) in row[5].split() for row in told)
    print(f"another number: told in {len(told)} of {len(others)}, with the true one in {right}")
    firm = [row for row in rows if row[6]]
    print(f"called supported: {len(firm)}, of which {sum(r[2] == r[3] for r in firm)} are right")
    none = [row for row in rows if row[2] == 1]
    print(f"without clusters: told or supported in {sum(bool(r[5] or r[6]) for r in none)}")


def _seconds(task: Any) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def _costs(report: Report) -> None:
    rows = []
    for n in SIZES:
        X = cores_and_shells(n, 20, np.float64)[0]
        for kernel in ("neighbors", "rbf"):
            model = KernelKMeans(8, kernel=kernel, random_state=0)
            fit = _seconds(lambda model=model, X=X: model.fit(X))
            advice = _seconds(lambda model=model, X=X: guidance(model, X))
            plain = _seconds(lambda model=model, X=X: plain_kmeans(model, X))
            rows.append([n, kernel, fit, advice, advice / fit, plain, plain / fit])
    columns = ["n", "kernel", "fit", "guidance", "over the fit", "plain K-means", "over the fit"]
    report.table(columns, rows)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    report = Report()
    _costs(report)
    _numbers(report, range(arguments.first, arguments.first + arguments.seeds))


if __name__ == "__main__":
    main()
