"""From how many samples landmarks are cheaper than two passes: the rule of ``method="auto"``.

Whole fits with one start of K-means, which both take alike: two passes over K, and landmarks with
their refinements, as ``method="auto"`` would run either. The rule is right where it takes the
faster of the two, and its regret is the time that it loses where it does not. ::

    python -m benchmarks.method_switch
"""

from __future__ import annotations

import numpy as np

from benchmarks.data import noisy_blobs
from benchmarks.timing import SEED, Report, Target, interleaved, standalone
from sketchmeans import KernelKMeans
from sketchmeans.estimators.deciding import prefers_landmarks

SIZES = (3000, 6000, 9000, 12_000, 18_000, 30_000)
SHAPES = ((4, 8), (20, 3), (20, 8), (20, 26), (100, 8), (400, 8))
"""Features and clusters."""
WAYS = {"two passes": {"method": "one-pass", "n_passes": 2}, "landmarks": {"method": "nystrom"}}


def seconds(n: int, p: int, k: int, dtype: str) -> dict[str, float]:
    """Return the best time of either way."""
    X = noisy_blobs(n, p, dtype)
    tasks = {
        name: KernelKMeans(k, kernel="rbf", n_init=1, max_iter=30, random_state=SEED, **way).fit
        for name, way in WAYS.items()
    }
    fits = {name: lambda fit=fit: fit(X) for name, fit in tasks.items()}
    return interleaved(fits, repeats=2)


def main() -> Report:
    report, rows, regrets = Report(), [], []
    for p, k in SHAPES:
        for n in SIZES:
            found = seconds(n, p, k, "float32")
            taken = "landmarks" if prefers_landmarks(n, p, k) else "two passes"
            regret = found[taken] / min(found.values())
            regrets.append(regret)
            rows.append([p, k, n, found["two passes"], found["landmarks"], taken, regret])
    report.table(["p", "K", "n", "two passes, s", "landmarks, s", "the rule", "regret"], rows)
    return report.conclude(
        [
            Target("regret of the rule, mean", float(np.mean(regrets)), 1.1, at_most=True),
            Target("regret of the rule, worst", max(regrets), 2.0, at_most=True),
        ]
    )


if __name__ == "__main__":
    standalone(main)
