"""How often ``choose`` finds the number of clusters with the neighbours kernel, and by what.

    python -m benchmarks.choosing [--seeds 2] [--first 0] [--kernel neighbors]

Sets of ``benchmarks.kernel_sets`` up to 2,400 samples, and some without clusters, where nothing but
"weak" is right. "jump" belongs to the number that is recommended. "gap" is the number with the
largest gap of the eigenvalues, "stable" the largest whose halves agree within 0.01 of the best:
what the same table would say by either alone. "borders" is what borders in the graph of nearest
rows separate (``advice.borders``), and "votes" the share of its
votes that say so. The rule was chosen on seeds 0 to 3; ``--first 4`` begins with others.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.kernel_sets import SETS
from benchmarks.timing import Report
from sketchmeans import KernelKMeans, choose
from sketchmeans.advice.borders import PIECES, separated

MOST = 2400


def _gaussian(p: int) -> Any:
    return lambda random: random.normal(size=(1500, p))


def _line(random: np.random.Generator) -> np.ndarray:
    return np.column_stack([random.uniform(0, 10, 1500), 0.05 * random.normal(size=1500)])


def _ring(random: np.random.Generator) -> np.ndarray:
    angle = random.uniform(0, 2 * np.pi, 1500)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return circle + 0.05 * random.normal(size=(1500, 2))


ONE = {
    "a line": _line,
    "a ring": _ring,
    "a square": lambda random: random.uniform(size=(1500, 2)),
    "a Gaussian, 2 features": _gaussian(2),
    "a Gaussian, 5 features": _gaussian(5),
    "a Gaussian, 50 features": _gaussian(50),
}
"""Samples without clusters."""


def bordered(X: Any, seed: int, **options: Any) -> tuple[int, float]:
    """Return the number of clusters with most votes, and their share."""
    pieces = [KernelKMeans(k, random_state=seed, **options).fit_predict(X) for k in PIECES]
    votes = separated(X, pieces)
    return votes.number, votes.counts[votes.number] / votes.counts.total()


def chosen(X: Any, seed: int, **options: Any) -> dict[str, Any]:
    """Return what is recommended, and what each column of the table would say alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = choose(X, random_state=seed, **options)
    numbers, stable = found.table["clusters"], np.array(found.table["stability"])
    gap = "gap" if "gap" in found.table.columns else "eigengap"
    gaps = [value or 0.0 for value in found.table[gap]]
    return {
        "chosen": found.n_clusters,
        "jump": max(found.table["jump"]) if "jump" in found.table.columns else None,
        "weak": "weak" if found.is_weak else "",
        "gap": numbers[int(np.argmax(gaps))],
        "stable": numbers[int(np.flatnonzero(stable > stable.max() - 0.01)[-1])],
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kernel", default="neighbors")
    arguments = parser.parse_args()
    report, rows = Report(), []
    for name in [*SETS, *ONE]:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            options: dict[str, Any] = {"kernel": arguments.kernel}
            if name in ONE:
                X, k = ONE[name](np.random.default_rng(seed)), 1
            else:
                X, _, k = SETS[name](seed)
                if SETS[name].cosine and arguments.kernel == "neighbors":
                    options["kernel_params"] = {"metric": "cosine"}
            if X.shape[0] <= MOST:
                found = chosen(X, seed, **options).values()
                rows.append([name, seed, k, *found, *bordered(X, seed, **options)])
                print(*rows[-1], sep=", ", flush=True)
    report.table(
        ["set", "seed", "clusters", "chosen", "jump", "weak", "gap", "stable", "borders", "votes"],
        rows,
    )
    sets = [row for row in rows if row[2] > 1]
    for column, by in (
        (3, "the recommendation"),
        (6, "the largest gap"),
        (7, "stability"),
        (8, "borders"),
    ):
        right = sum(row[column] == row[2] for row in sets)
        print(f"{by} is right in {right} of {len(sets)}")
    clear = [row for row in sets if not row[5]]
    print(f"not called weak: {len(clear)}, of which {sum(r[3] == r[2] for r in clear)} are right")
    agreed = [row for row in sets if row[9] == 1]
    right = sum(row[8] == row[2] for row in agreed)
    print(f"all votes of borders agree: {len(agreed)}, of which {right} are right")
    print(f"without clusters, borders: {sum(row[8] > 1 for row in rows if row[2] == 1)}")
    print(f"without clusters, not called weak: {sum(not r[5] for r in rows if r[2] == 1)}")


if __name__ == "__main__":
    main()
