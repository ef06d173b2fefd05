"""All methods side by side, at equal memory: every one keeps n × width numbers."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_random_state

from sketchmeans._arrays import Array, FloatArray, IntArray
from sketchmeans.certificate.objective import exact_objective, memberships
from sketchmeans.engine.run import ALONE, Run
from sketchmeans.estimators import KernelKMeans
from sketchmeans.estimators.fitted import kernel_of, run_of
from sketchmeans.lowrank import METHODS
from sketchmeans.operators import KernelOperator
from sketchmeans.text import Table, setting

VARIANTS: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "one-pass": {"method": "one-pass"},
    "one-pass, early": {"method": "one-pass", "truncation": "early"},
    "one-pass, 2 passes": {"method": "one-pass", "n_passes": 2},
    "nystrom": {"method": "nystrom", "sketch": "uniform"},
    "nystrom, early": {"method": "nystrom", "sketch": "uniform", "truncation": "early"},
    "nystrom, diagonal": {"method": "nystrom", "sketch": "diagonal"},
    "nystrom, column-norm": {"method": "nystrom", "sketch": "column-norm"},
    "nystrom, leverage": {"method": "nystrom", "sketch": "leverage"},
    "nystrom, kmeans": {"method": "nystrom", "sketch": "kmeans"},
    "rpcholesky": {"method": "rpcholesky"},
    "greedy-cholesky": {"method": "greedy-cholesky"},
}
"""What ``compare`` compares: options of ``KernelKMeans`` by the name of a row."""


def accuracy(truth: Array, labels: IntArray) -> float:
    """Return the share of samples in the right cluster, under the best matching of clusters."""
    table = contingency_matrix(truth, labels)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(labels))


def measure(
    operator: KernelOperator, Y: FloatArray, labels: IntArray, run: Run = ALONE
) -> dict[str, float]:
    """Return the exact errors of K ≈ YYᵀ and the exact objective of labels, from one pass.

    ‖K − YYᵀ‖_F² = ‖K‖_F² − 2⟨KY, Y⟩ + ‖YᵀY‖_F² needs no matrix of n × n.
    """
    n_clusters = int(labels.max()) + 1
    members = memberships(labels, np.ones(len(labels)), n_clusters)
    Y = Y.astype(np.float64, copy=False)
    result = operator.multiply(np.concatenate([members, Y], axis=1), run)
    trace = float(operator.diagonal().sum())
    cross = float(np.einsum("ij,ij->", result.W[:, n_clusters:], Y))
    squared = result.sum_of_squares - 2 * cross + float(np.square(Y.T @ Y).sum())
    return {
        "kernel error": float(np.sqrt(max(squared, 0.0) / result.sum_of_squares)),
        "trace error": (trace - float(np.square(Y).sum())) / trace,
        "objective": exact_objective(trace, members, result.W[:, :n_clusters]),
    }


def compare(
    X: Any,
    n_clusters: int,
    *,
    y: Any = None,
    rank: Any = None,
    width: int | None = None,
    variants: Sequence[str] | None = None,
    n_seeds: int = 5,
    random_state: Any = None,
    progress: Callable[[str, int, int], None] | None = None,
    **options: Any,
) -> Table:
    """Cluster X by every method at equal memory, and measure all of them exactly.

    Passes over K: one per method and seed to measure it, beside its own.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Or the kernel matrix, with ``kernel="precomputed"``.
    n_clusters : int
    y : array of shape (n_samples,), optional
        True labels, for accuracy, ARI and NMI.
    rank : int, optional
        Columns of the embedding; n_clusters if left out.
    width : int, optional
        Numbers kept per sample, by every method but the exact one; twice ``rank`` if left out.
    variants : sequence of str, optional
        Names from ``VARIANTS``; all of them if left out.
    n_seeds : int
        Seeds to average over.
    random_state : int, RandomState or None
    progress : callable, optional
        Told the name of a method, how many of its fits are done, and how many there are.
    **options
        Passed on to ``KernelKMeans``: kernel (rbf if left out), gamma, n_jobs, …

    Returns
    -------
    Table
        A row per method: mean relative kernel error (Frobenius and trace, exact), mean exact
        objective and its ratio to the least of the table, agreement with ``y``, kernel entries,
        seconds, and peak memory of one fit as Python's allocator saw it.
    """
    options = {"kernel": "rbf"} | options
    names = _checked(variants, options)
    rank = n_clusters if rank is None else rank
    width = 2 * rank if width is None else width
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_seeds)
    tell = progress or (lambda name, done, total: None)
    rows = []
    for name in names:
        trials = []
        for index, seed in enumerate(seeds):
            tell(name, index, n_seeds)
            chosen = _options(name, rank, width, options)
            chosen["random_state"] = int(seed)
            trial = _try(KernelKMeans(n_clusters, **chosen), X, y, traced=index == 0)
            if trial.gamma is not None:
                options["gamma"] = trial.gamma  # one kernel for the whole table
            trials.append(trial)
        tell(name, n_seeds, n_seeds)
        rows.append(_row(name, trials))
    least = min(row["objective"] for row in rows)
    for row in rows:
        above = row["objective"] - least  # of an objective of zero there are no multiples
        row["above least"] = above / least if least > 0 else (np.inf if above else 0.0)
    return Table(
        tuple(rows),
        caption=f"{n_clusters} clusters, rank {rank}, {width} numbers per sample, mean over "
        f"{n_seeds} seeds; kernel errors and objectives are exact",
    )


def _options(name: str, rank: Any, width: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a row: all keep ``width`` numbers per sample."""
    reads = METHODS[VARIANTS[name]["method"]].reads
    sized = {"oversampling": max(width - rank, 0), "n_landmarks": max(width, rank)}
    chosen = {"rank": rank, "n_init": 10, "n_refine": 0, **sized, **options, **VARIANTS[name]}
    return {key: value for key, value in chosen.items() if key not in sized or key in reads}


@dataclass(frozen=True)
class _Trial:
    """One fit, and what was measured of it."""

    gamma: float | None
    width: int
    entries: int
    values: dict[str, float]
    seconds: float
    peak: int
    """Bytes, as Python's allocator saw them; 0 where they were not traced."""


def _checked(variants: Sequence[str] | None, options: dict[str, Any]) -> list[str]:
    """Return the names of the rows; refuse those that are not known."""
    names = list(VARIANTS) if variants is None else list(variants)
    if unknown := [name for name in names if name not in VARIANTS]:
        raise ValueError(f"variants {unknown} are not known. Known: {'; '.join(VARIANTS)}.")
    if options["kernel"] == "neighbors":
        raise ValueError(
            f"{setting('kernel', 'neighbors')} needs no method that approximates it: its leading "
            "eigenvectors are exact, and there is nothing to compare. Choose another kernel."
        )
    if options["kernel"] == "precomputed" and variants is None:
        names.remove("nystrom, kmeans")  # there are no points to put landmarks among
    return names


def _try(model: KernelKMeans, X: Any, y: Any, *, traced: bool) -> _Trial:
    """Fit and measure; trace the memory of the fit, if asked."""
    peak = 0
    if traced:
        tracemalloc.start()
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    if traced:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    values = measure(kernel_of(model, X), model.embedding_, model.labels_, run_of(model))
    if y is not None:
        truth = np.asarray(y)
        values["accuracy"] = accuracy(truth, model.labels_)
        values["ARI"] = float(adjusted_rand_score(truth, model.labels_))
        values["NMI"] = float(normalized_mutual_info_score(truth, model.labels_))
    entries = int(model.stats_["kernel_entries"])
    return _Trial(model.gamma_, model.width_, entries, values, seconds, peak)


def _row(name: str, trials: list[_Trial]) -> dict[str, Any]:
    """Return the means over the trials of a method."""
    last = trials[-1]
    row: dict[str, Any] = {"method": name, "numbers a sample": last.width}
    for key in trials[0].values:
        row[key] = float(np.nanmean([trial.values[key] for trial in trials]))
    timed = trials[1:] or trials  # tracing slows a fit; the others are timed
    row["seconds"] = float(np.mean([trial.seconds for trial in timed]))
    row["kernel entries"] = last.entries
    row["peak MB"] = trials[0].peak / 1e6
    return row
