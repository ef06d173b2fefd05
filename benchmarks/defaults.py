"""The experiment behind rank="auto" (K + 10) and oversampling="auto" (as much again).

Seven data sets × three widths of the RBF kernel (γ = c / median squared distance). For a choice of
rank r and sketch width s, the exact objective of the labels found is compared with that of the
best clustering known: ten starts of full kernel K-means on the dense kernel matrix, and Lloyd's
iterations there from the labels of every fit. ::

    python -m benchmarks.defaults [--seeds 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn import datasets
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import median_rbf
from benchmarks.dense import full_kernel_kmeans, lloyd, objective
from benchmarks.timing import Report, standalone
from sketchmeans import KernelKMeans
from sketchmeans.datasets import make_rings

FACTORS = (1, 4, 16)
CHOICES = {
    "K, 2K": lambda k: (k, 2 * k),
    "K, 4K": lambda k: (k, 4 * k),
    "K, 2K + 20": lambda k: (k, 2 * k + 20),
    "K + 10, 2K + 20 (default)": lambda k: (k + 10, 2 * k + 20),
    "2K + 20, 2K + 20": lambda k: (2 * k + 20, 2 * k + 20),
}


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, samples and classes; at most 1797 samples each."""
    for name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name.replace("_", " "), (X - X.mean(axis=0)) / X.std(axis=0), y
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits", X / 16, y
    yield (
        "blobs",
        *datasets.make_blobs(1500, n_features=10, centers=6, cluster_std=3.0, random_state=0),
    )
    yield "moons", *datasets.make_moons(1000, noise=0.1, random_state=0)
    yield "rings", *make_rings(1000, random_state=0)


@dataclass
class Problem:
    """One data set under one kernel, and the best clustering of it known so far."""

    X: np.ndarray
    y: np.ndarray
    factor: float
    found: dict[tuple[str, int], list[np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.k = len(np.unique(self.y))
        self.gamma = median_rbf(self.X, self.factor).gamma
        self.K = rbf_kernel(self.X, gamma=self.gamma)
        self.best = full_kernel_kmeans(self.K, self.k)
        self.least = objective(self.K, self.best, self.k)

    def fit(self, choice: str, n_passes: int, seed: int) -> None:
        """Cluster from a sketch, and see whether Lloyd from there finds anything better."""
        rank, width = CHOICES[choice](self.k)
        options = {"kernel": "rbf", "gamma": self.gamma, "rank": rank, "oversampling": width - rank}
        options |= {"method": "one-pass"}
        model = KernelKMeans(self.k, **options, n_passes=n_passes, random_state=seed)
        labels = model.fit_predict(self.X)
        self.found.setdefault((choice, n_passes), []).append(labels)
        better = lloyd(self.K, labels, self.k)
        if (value := objective(self.K, better, self.k)) < self.least:
            self.best, self.least = better, value

    def score(self, choice: str, n_passes: int) -> np.ndarray:
        """Return for every seed: percent of excess, change of NMI, and NMI with the best labels."""
        base = nmi(self.y, self.best)
        return np.array(
            [
                (
                    100 * (objective(self.K, labels, self.k) / self.least - 1),
                    nmi(self.y, labels) - base,
                    nmi(self.best, labels),
                )
                for labels in self.found[choice, n_passes]
            ]
        )


Scores = dict[tuple[str, int], dict[str, list[np.ndarray]]]


def run(seeds: int) -> Scores:
    """Return the scores of all fits by choice and passes, then by data set: problems × seeds."""
    scores: Scores = {(choice, passes): {} for choice in CHOICES for passes in (1, 2)}
    for name, X, y in data_sets():
        for factor in FACTORS:
            problem = Problem(X, y, factor)
            for case in scores:
                for seed in range(seeds):
                    problem.fit(*case, seed)
            for case, found in scores.items():
                found.setdefault(name, []).append(problem.score(*case))
    return scores


def summary(scores: Scores, passes: int) -> Iterator[list[object]]:
    for choice in CHOICES:
        found = np.concatenate([np.array(parts) for parts in scores[choice, passes].values()])
        excess, change, agreement = np.moveaxis(found, 2, 0)
        figures = excess.mean(), excess.mean(axis=1).max(), excess.max()
        percent = [f"{value:.2f} %" for value in figures]
        yield [choice, passes, *percent, f"{change.mean():+.3f}", f"{agreement.mean():.3f}"]


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="fits of every choice and problem")
    seeds = parser.parse_args(arguments).seeds
    report = Report()
    scores = run(seeds)
    header = ["rank, width", "passes", "mean excess", "worst problem", "worst fit"]
    header += ["change of NMI", "NMI with the best labels"]
    report.table(header, [*summary(scores, 1), *summary(scores, 2)])
    rows = []
    for name in scores["K, 2K", 1]:
        excess = [np.array(scores[choice, 1][name])[:, :, 0].mean() for choice in CHOICES]
        rows.append([name, *(f"{value:.2f} %" for value in excess)])
    report.table(["mean excess, 1 pass", *CHOICES], rows)
    return report.conclude([])


if __name__ == "__main__":
    standalone(main)
