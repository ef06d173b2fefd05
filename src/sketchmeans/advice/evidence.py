"""What a recommendation is made of: the words, the table, and how well halves of the data agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import without_warnings_of_starts
from sketchmeans.text import Table, called

STABLE = 0.9
"""Mean agreement (ARI) of two halves above which a number of clusters counts as stable."""
CLEAR_GAP = 1.8
"""Ratio of neighbouring eigenvalues above which an eigengap counts as clear; with neighbours, of
what they lack of one."""
ROWS = 20_000
"""Samples that are halved, at most: of more a choice is drawn for each split."""
WEAK = " The evidence is weak: look at the table, and at the data."


@dataclass(frozen=True)
class Choice:
    """A recommendation, the evidence for it, and how strong that is."""

    n_clusters: int
    rank: int
    gamma: float | None
    is_weak: bool
    """Whether the criteria disagree or none of them is clear: then do not trust the number."""
    reason: str
    table: Table
    """A row per number of clusters (and width of the kernel)."""

    def __str__(self) -> str:
        word = "Weak evidence" if self.is_weak else "Recommendation"
        width = "" if self.gamma is None else f", gamma {self.gamma:.4g}"
        head = f"{word}: {self.n_clusters} clusters, rank {self.rank}{width}. {self.reason}"
        return f"{head}\n\n{self.table}"


def check_halves(n: int, n_clusters: int) -> None:
    """Refuse more clusters than half of the samples."""
    if n < 2 * n_clusters:
        raise ValueError(
            f"{called('n_clusters')}={n_clusters} needs at least {2 * n_clusters} samples here, "
            f"and there are {n}: halves of them are clustered. Try fewer clusters."
        )


def stability(
    Y: FloatArray, n_clusters: int, *, n_splits: int, random: np.random.Generator
) -> float:
    """Return the mean agreement (ARI) of K-means on two halves, each extended to both."""
    check_halves(len(Y), n_clusters)
    scores = []
    # Small problems: threads would only wait for each other.
    with OneBlasThread(), without_warnings_of_starts():
        for _ in range(n_splits):
            order = random.permutation(len(Y))[:ROWS]
            halves = order[: len(order) // 2], order[len(order) // 2 :]
            seed = int(random.integers(2**31 - 1))
            seen = Y if len(order) == len(Y) else Y[order]
            labels = [
                KMeans(n_clusters, n_init=3, random_state=seed).fit(Y[half]).predict(seen)
                for half in halves
            ]
            scores.append(adjusted_rand_score(*labels))
    return float(np.mean(scores))
