"""Choosing the number of clusters, the rank and the width of the kernel from one sketch each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.certificate.moments import moments
from sketchmeans.checks import check_count
from sketchmeans.estimators.progress import FitProgress
from sketchmeans.estimators.sketched import Embedded
from sketchmeans.lowrank import LowRank
from sketchmeans.text import Table

STABLE = 0.9
"""Mean agreement (ARI) of two halves above which a number of clusters counts as stable."""
CLEAR_GAP = 1.8
"""Ratio of neighbouring eigenvalues above which an eigengap counts as clear."""


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
    """A row a number of clusters (and width of the kernel)."""

    def __str__(self) -> str:
        word = "Weak evidence" if self.is_weak else "Recommendation"
        width = "" if self.gamma is None else f", gamma {self.gamma:.4g}"
        head = f"{word}: {self.n_clusters} clusters, rank {self.rank}{width}. {self.reason}"
        return f"{head}\n\n{self.table}"


def entropy_terms(low_rank: LowRank) -> FloatArray:
    """λᵢ(uᵢᵀ1/n)² for each column, falling: Girolami's terms, large for as many as clusters."""
    n = len(low_rank.factor)
    return np.sort(np.square(low_rank.factor.sum(axis=0) / n))[::-1]


def dominant_terms(terms: FloatArray, most: int) -> int:
    """Return how many of Girolami's terms dominate: those before the largest relative fall."""
    terms = terms[: most + 1]
    if len(terms) < 2 or terms[0] <= 0:
        return 1
    ratios = terms[:-1] / np.maximum(terms[1:], 1e-12 * terms[0])
    return int(np.argmax(ratios)) + 1


def eigengaps(low_rank: LowRank) -> FloatArray:
    """θ_{K−1}/θ_K of the centred spectrum for K = 2, 3, …: K clusters have K − 1 directions."""
    theta = moments(low_rank).theta
    floor = 1e-9 * max(float(theta[0]), 1e-300) if len(theta) else 1.0
    return theta[:-1] / np.maximum(theta[1:], floor)


def stability(
    Y: FloatArray, n_clusters: int, *, n_splits: int, random: np.random.Generator
) -> float:
    """Return the mean agreement (ARI) of K-means on two halves, each extended to all samples."""
    scores = []
    with OneBlasThread():  # small problems: threads would only wait for each other
        for _ in range(n_splits):
            order = random.permutation(len(Y))
            halves = order[: len(Y) // 2], order[len(Y) // 2 :]
            seed = int(random.integers(2**31 - 1))
            labels = [
                KMeans(n_clusters, n_init=3, random_state=seed).fit(Y[half]).predict(Y)
                for half in halves
            ]
            scores.append(adjusted_rand_score(*labels))
    return float(np.mean(scores))


def choose_rank(
    X: Any,
    n_clusters: int,
    *,
    ranks: Iterable[int] | None = None,
    subset: int = 600,
    random_state: Any = None,
    **options: Any,
) -> tuple[int, Table]:
    """Choose the rank by cross-validation on a subset, as the paper suggests.

    Half of the subset is clustered at each rank; the other half is assigned to the clusters, and
    its exact objective in feature space, with the centroids of its own clusters, is the score. The
    least rank within one per cent of the best is chosen.
    """
    from sketchmeans.advice.comparing import measure
    from sketchmeans.estimators import KernelKMeans

    random = check_random_state(random_state)
    chosen = random.permutation(X.shape[0])[:subset]
    train, test = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
    most = min(len(train), 4 * n_clusters + 20)
    grid = sorted({max(1, n_clusters - 1), n_clusters, n_clusters + 5, n_clusters + 10, most})
    rows = []
    for rank in grid if ranks is None else ranks:
        model = KernelKMeans(
            n_clusters,
            rank=min(int(rank), len(train)),
            random_state=random.randint(2**31 - 1),
            **options,
        ).fit(X[train])
        held_out = KernelKMeans(n_clusters, **options)
        held_out.set_params(gamma=model.gamma_ if model.gamma_ is not None else "median")
        operator, _ = held_out._make_operator(model._check_new(X[test]), None, 0)
        labels = model.predict(X[test])
        score = measure(operator, np.zeros((len(test), 1)), labels)["objective"]
        rows.append({"rank": int(rank), "held-out objective": score / len(test)})
    best = min(row["held-out objective"] for row in rows)
    good = [row for row in rows if row["held-out objective"] <= 1.01 * best]
    return min(int(row["rank"]) for row in good), Table(tuple(rows))


def choose(
    X: Any,
    *,
    n_clusters: Iterable[int] = range(2, 11),
    gammas: Iterable[Any] | None = None,
    trace: float = 0.9,
    n_splits: int = 6,
    random_state: Any = None,
    **options: Any,
) -> Choice:
    """Recommend a number of clusters, a rank and a width of the kernel, with reasons.

    One sketch a width of the kernel serves every number of clusters.

    - Number of clusters: the one that K-means on two halves of the data agrees on best, the
      eigengap of the centred kernel, and Girolami's entropy terms. The recommendation is called
      weak unless the first two agree and are clear.
    - Width: the γ whose best number of clusters is most stable; ties go to the least local.
    - Rank: the least that holds the share ``trace`` of the kernel's trace, as far as the sketch
      tells; never below n_clusters + 10 (see ``choose_rank`` for cross-validation).

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    n_clusters : iterable of int
        Numbers to try.
    gammas : iterable, optional
        Widths to try, as ``KernelKMeans`` takes them; its default if left out.
    trace : float
        Share of the trace that the rank should hold.
    n_splits : int
        Splits of the data into halves, for stability.
    random_state : int, RandomState or None
    **options
        Passed on to ``KernelKMeans``: kernel, n_passes, n_jobs, …
    """
    from sketchmeans.estimators import KernelKMeans

    tried = sorted({int(k) for k in n_clusters})
    if not tried or tried[0] < 2:
        raise ValueError(f"n_clusters={tried} must hold numbers from 2 up.")
    check_count("n_splits", n_splits)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    widths = [None] if gammas is None else list(gammas)
    rows: list[dict[str, Any]] = []
    best: tuple[float, int, Embedded, FloatArray] | None = None
    for gamma in widths:
        chosen = dict(options) if gamma is None else {**options, "gamma": gamma}
        model = KernelKMeans(tried[-1], random_state=seed, **chosen)
        with FitProgress(model, 4) as progress:
            embedded = model._embed(X, None, progress, n_clusters=tried[-1])
        gaps = eigengaps(embedded.low_rank)
        terms = dominant_terms(entropy_terms(embedded.low_rank), tried[-1])
        random = np.random.default_rng(seed)
        scores = np.array(
            [stability(embedded.embedding, k, n_splits=n_splits, random=random) for k in tried]
        )
        for k, score in zip(tried, scores, strict=True):
            rows.append(
                {
                    "gamma": embedded.gamma,
                    "clusters": k,
                    "stability": float(score),
                    "eigengap": float(gaps[k - 2]) if k - 2 < len(gaps) else None,
                    "dominant terms": terms,
                }
            )
        top = float(scores.max())
        # Of numbers that are equally stable, the largest tells the most.
        k = max(k for k, score in zip(tried, scores, strict=True) if score >= top - 0.01)
        if best is None or top > best[0] + 0.01:
            best = (top, k, embedded, gaps)
    assert best is not None
    top, k, embedded, gaps = best
    limit = min(len(gaps), tried[-1] - 1)
    by_gap = int(np.argmax(gaps[:limit])) + 2 if limit else 2
    clear = limit > 0 and float(gaps[by_gap - 2]) >= CLEAR_GAP
    is_weak = not (clear and by_gap == k and top >= STABLE)
    low_rank = embedded.low_rank
    needed = low_rank.rank_for(trace)
    rank = max(needed or low_rank.rank, min(k + 10, low_rank.factor.shape[1]))
    said = (
        f"Two halves of the data agree best on {k} clusters (ARI {top:.2f}); the largest eigengap "
        f"is at {by_gap} (ratio {float(gaps[by_gap - 2]) if limit else 1:.1f}); Girolami's terms "
        f"say {dominant_terms(entropy_terms(low_rank), tried[-1])}."
    )
    if needed is None:
        said += f" The sketch holds {low_rank.share_held:.0%} of the trace, less than {trace:.0%}."
    if is_weak:
        said += " The evidence is weak: look at the table, and at the data."
    return Choice(k, int(rank), embedded.gamma, is_weak, said, Table(tuple(rows)))
