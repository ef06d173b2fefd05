"""How good clusters from landmarks are: exact objectives against everything that meets all of K.

Six data sets × three widths of the RBF kernel (γ = c / median squared distance). The least of three
exact objectives is the reference: exact eigenvectors and K-means, two passes and one refinement,
and full kernel K-means with ten starts, all with seed 0. Ours is ``method="nystrom"`` as it comes:
so many landmarks per cluster, five iterations in their feature space. The targets are those of seed
0; the other seeds stand beside it.

``--choices`` is the experiment behind n_landmarks="auto", n_refine="auto" and n_init="auto". ::

    python -m benchmarks.landmark_quality [--choices]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn import datasets
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import median_rbf
from benchmarks.dense import objective
from benchmarks.rivals import installed
from benchmarks.timing import SEED, Report, Target, standalone
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.datasets import load_segmentation

FACTORS = (1, 4, 16)
SEEDS = range(5)
WITHIN, EQUAL = 1e-3, 1e-9
CHOICES: dict[str, dict[str, Any]] = {
    "5 per cluster": {"per_cluster": 5},
    "10 per cluster": {"per_cluster": 10},
    "20 per cluster": {"per_cluster": 20},
    "40 per cluster, at least 200 (default)": {},
    "80 per cluster": {"per_cluster": 80},
    "default, k-means++ for landmarks": {"few": 10**9},
    "default, uniform": {"sketch": "uniform"},
    "default, no refinement": {"n_refine": 0},
    "default, 2 refinements": {"n_refine": 2},
    "default, 10 refinements": {"n_refine": 10},
    "default, 10 starts": {"n_init": 10},
    "default, 100 starts": {"n_init": 100},
}


def data_sets() -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield name, samples and clusters of sets that ship with packages; at most 5300 samples."""
    yield "digits", datasets.load_digits().data / 16, 10
    for name, k in (("breast_cancer", 2), ("wine", 3)):
        X, _ = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name.replace("_", " "), _standard(X), k
    if not installed("river"):
        return
    from river.datasets import Bananas, Phishing

    yield "segmentation", _standard(load_segmentation()[0]), 7
    for stream in (Bananas(), Phishing()):
        X = np.array([[float(value) for value in row.values()] for row, _ in stream])
        yield type(stream).__name__.lower(), _standard(X), 2


def _standard(X: np.ndarray) -> np.ndarray:
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


@dataclass
class Problem:
    """One data set under one kernel, and the exact objectives of those who meet all of it."""

    name: str
    X: np.ndarray
    k: int
    factor: int
    K: np.ndarray = field(init=False)
    references: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.gamma = median_rbf(self.X, self.factor).gamma
        self.K = rbf_kernel(self.X, gamma=self.gamma)
        shared = {"kernel": "rbf", "gamma": self.gamma, "n_init": 10, "random_state": SEED}
        fits = {
            "exact eigenvectors": KernelKMeans(self.k, method="exact", **shared),
            "two passes, one refinement": KernelKMeans(
                self.k, method="one-pass", n_passes=2, n_refine=1, **shared
            ),
            "full kernel K-means": FullKernelKMeans(self.k, **shared),
        }
        self.references = {name: self.objective(fit) for name, fit in fits.items()}

    @property
    def least(self) -> float:
        """The least of the references."""
        return min(self.references.values())

    def objective(self, model: Any) -> float:
        """Return the exact objective of the labels that a model finds."""
        return objective(self.K, model.fit(self.X).labels_, self.k)

    def excess(
        self, seed: int, per_cluster: int | None = None, few: int = 128, **options: Any
    ) -> float:
        """Return how far ours lies above the least of the references."""
        if per_cluster is not None:
            options["n_landmarks"] = min(max(per_cluster * self.k, self.k + 10), len(self.X))
        model = KernelKMeans(
            self.k, kernel="rbf", gamma=self.gamma, method="nystrom", random_state=seed, **options
        )
        with patch("sketchmeans.centers._FEW", few):
            return self.objective(model) / self.least - 1


def problems() -> list[Problem]:
    return [Problem(*given, factor) for given in data_sets() for factor in FACTORS]


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choices", action="store_true", help="the experiment on defaults")
    options = parser.parse_args(arguments)
    report = Report(arguments=["--choices"] if options.choices else [])
    return choices(report) if options.choices else quality(report)


def quality(report: Report) -> Report:
    """Compare the default with the references."""
    rows, first, every = [], [], []
    for problem in problems():
        found = [problem.excess(seed) for seed in SEEDS]
        first.append(found[SEED])
        every += found
        above = [f"{100 * (v / problem.least - 1):.4f}" for v in problem.references.values()]
        ours = [f"{100 * value:+.4f}" for value in found]
        rows.append([f"{problem.name}, {problem.factor}", len(problem.X), problem.k, *above, *ours])
    names = [f"{name}, %" for name in problem.references]
    report.table(["data, c", "n", "K", *names, *(f"ours, seed {seed}, %" for seed in SEEDS)], rows)
    return report.conclude(
        [
            Target("worst excess over the least of three", 100 * max(first), 0.1, "%", True),
            Target("share at most equal to the least", np.mean(np.array(first) <= EQUAL), 0.5, ""),
            Target("share of all seeds within 0.1 %", np.mean(np.array(every) <= WITHIN), 0.9, ""),
        ]
    )


def choices(report: Report) -> Report:
    """Compare other numbers of landmarks, refinements and starts."""
    found: dict[str, list[float]] = {name: [] for name in CHOICES}
    for problem in problems():
        for name, options in CHOICES.items():
            found[name] += [problem.excess(seed, **options) for seed in SEEDS[:3]]
    rows = [
        [
            name,
            f"{100 * np.mean(values):+.3f} %",
            f"{100 * np.median(values):+.3f} %",
            f"{100 * max(values):+.3f} %",
            f"{np.mean(np.array(values) <= EQUAL):.0%}",
        ]
        for name, values in found.items()
    ]
    report.table(["landmarks", "mean excess", "median", "worst", "at most the least"], rows)
    return report


if __name__ == "__main__":
    standalone(main)
