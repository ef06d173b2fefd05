"""Time against objective: ours with several numbers of landmarks, and scikit-learn's Nystroem.

Four cores and four shells of 20 features (``data.cores_and_shells``), float32, γ = 4 / median
squared distance, eight clusters. Every point is the mean of five seeds, ten starts of K-means each;
objectives are exact, from a pass over K. For each number of components of Nystroem, ours is the
best of those that took no longer. ::

    python -m benchmarks.landmark_curve
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem

from benchmarks.data import cores_and_shells, median_rbf
from benchmarks.timing import Report, Target, rest, standalone
from sketchmeans import KernelKMeans
from sketchmeans.blas import count_threads
from sketchmeans.certificate.objective import exact_objective, memberships
from sketchmeans.engine import Run
from sketchmeans.operators import DataOperator

SIZES, FEATURES, CLUSTERS, FACTOR = (20_000, 100_000), 20, 8, 4
SEEDS = range(5)
COMPONENTS = (50, 100, 200, 400, 1000)
LANDMARKS = ((25, 0), (50, 5), (100, 5), (320, 5), (640, 5))
"""Landmarks and refinements of ours."""


def objectives(operator: DataOperator, labels: list[np.ndarray]) -> list[float]:
    """Return the exact objectives of some labels, from one pass."""
    members = [memberships(found, np.ones(len(found)), CLUSTERS) for found in labels]
    W = operator.multiply(np.concatenate(members, axis=1), Run(count_threads(None))).W
    trace = float(operator.diagonal().sum())
    return [
        exact_objective(trace, one, W[:, i * CLUSTERS : (i + 1) * CLUSTERS])
        for i, one in enumerate(members)
    ]


def timed(cluster: Any, X: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the time of a clustering, and its labels."""
    rest()
    start = time.perf_counter()
    labels = cluster(X)
    return time.perf_counter() - start, labels


def ours(gamma: float, m: int, n_refine: int, seed: int) -> Any:
    """Return a fit with m landmarks."""
    return KernelKMeans(
        CLUSTERS,
        gamma=gamma,
        method="nystrom",
        n_landmarks=m,
        n_refine=n_refine,
        n_init=10,
        random_state=seed,
        kernel="rbf",
    ).fit_predict


def theirs(gamma: float, components: int, seed: int) -> Any:
    """Return Nystroem and K-means."""
    embed = Nystroem(gamma=gamma, n_components=components, random_state=seed).fit_transform
    cluster = KMeans(CLUSTERS, n_init=10, random_state=seed).fit_predict
    return lambda X: cluster(embed(X))


def main() -> Report:
    report, targets, curves = Report(), [], {}
    for n in SIZES:
        X, _ = cores_and_shells(n, FEATURES, "float32")
        gamma = median_rbf(X, FACTOR).gamma
        operator = DataOperator(X, median_rbf(X, FACTOR))
        contenders = {f"ours, {m} landmarks": (ours, (m, r)) for m, r in LANDMARKS}
        contenders |= {f"Nystroem, {m} components": (theirs, (m,)) for m in COMPONENTS}
        found: dict[str, tuple[float, float]] = {}
        for name, (make, given) in contenders.items():
            runs = [timed(make(gamma, *given, seed), X) for seed in SEEDS]
            values = objectives(operator, [labels for _, labels in runs])
            found[name] = float(np.mean([t for t, _ in runs])), float(np.mean(values))
        least = min(value for _, value in found.values())
        rows = [
            [n, name, seconds, f"{100 * (value / least - 1):.4f}"]
            for name, (seconds, value) in found.items()
        ]
        report.table(["n", "method", "seconds", "excess, %"], rows)
        curves[str(n)] = {name: [t, value / least - 1] for name, (t, value) in found.items()}
        against = []
        for name, (seconds, value) in found.items():
            if name.startswith("Nystroem"):
                mine = [v for key, (t, v) in found.items() if key[0] == "o" and t <= seconds]
                against.append(100 * (min(mine, default=np.inf) / value - 1))
        lower = float(np.mean(np.array(against) < 0))
        targets += [
            Target(f"n = {n:,}: worst excess at equal time", max(against), 0.02, "%", True),
            Target(f"n = {n:,}: share of points where ours is lower", lower, 0.5, ""),
        ]
    report.data["curves"] = curves
    return report.conclude(targets)


if __name__ == "__main__":
    standalone(main)
