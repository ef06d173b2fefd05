"""The neighbours kernel at its defaults: twenty seeds, growth with n, and why these defaults.

Five parts, each by name, or all of them. ``seeds``: NMI of twenty draws of the curved and the
stretched sets. ``growth``: cores and shells of 20 features in float32 from 20,000 samples to a
million, beside scikit-learn's KMeans with ten starts and, at 20,000, SpectralClustering; every fit
in a process of its own, peak memory above data and imports. ``choices``: the mean NMI over the sets
of ``benchmarks.kernel_sets`` with other anchors, neighbours, graphs, ranks, refinements, rows of
length one, or weights that fall with the distance (three seeds); ``walks`` the same of walks.
``placing``: eighty draws of sets on which it matters where anchors stand. ::

    python -m benchmarks.neighbors [seeds] [growth] [walks] [choices] [placing]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.mixture import GaussianMixture

from benchmarks.data import cores_and_shells
from benchmarks.kernel_sets import SETS, scored
from benchmarks.processes import forget_peak, measured, peak_bytes
from benchmarks.timing import SEED, Report, Target, environment, facts
from sketchmeans import KernelKMeans
from sketchmeans.estimators import many_rows, walks
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.operators import NeighborOperator, anchors
from sketchmeans.operators.neighbor_features import regular_csr

DRAWN = ("moons .05", "circles", "two spirals", "three spirals", "stretched blobs", "moons .1")
SIZES = (20_000, 100_000, 1_000_000)


def ours(name: str, seed: int, **options: Any) -> float:
    """Return the NMI of a fit to a set, everything that is not said at its default."""
    X, y, k = SETS[name](seed)
    if SETS[name].cosine:
        options["kernel_params"] = {"metric": "cosine"} | options.get("kernel_params", {})
    labels = KernelKMeans(k, random_state=seed, **options).fit_predict(X)
    return float(nmi(y[scored(y)], labels[scored(y)]))


def seeds() -> Report:
    """Count the draws in which curved clusters are found."""
    report = Report()
    rows = []
    for name in DRAWN:
        found = [ours(name, seed) for seed in range(20)]
        good = sum(value >= 0.95 for value in found)
        rows.append([name, f"{np.mean(found):.3f}", f"{min(found):.3f}", f"{good} of 20"])
    report.table(["set", "mean NMI", "least", "at least 0.95"], rows)
    return report


def fit(method: str, n: int, data: str = "cores") -> dict[str, float]:
    """Fit once, and return seconds, NMI and the peak above the data; in a process of its own."""
    if data == "cores":
        X, y = cores_and_shells(n, 20, np.float32)
        k = 8
    else:
        X, y = make_moons(n, noise=0.05, random_state=SEED)
        k = 2
    models = {
        "neighbors": KernelKMeans(k, random_state=SEED),
        "KMeans": KMeans(k, n_init=10, random_state=SEED),
        "SpectralClustering": SpectralClustering(
            k, affinity="nearest_neighbors", random_state=SEED
        ),
    }
    KernelKMeans(2, random_state=0).fit(np.random.default_rng(0).normal(size=(500, 2)))
    before = forget_peak()
    start = time.perf_counter()
    labels = models[method].fit_predict(X)
    seconds = time.perf_counter() - start
    peak = peak_bytes() - before
    return {"seconds": seconds, "nmi": float(nmi(y, labels)), "peak": peak, "MB": peak / 1e6}


def growth() -> Report:
    """Measure whole fits as n grows, beside K-means and spectral clustering."""
    report = Report()
    cells = {
        ("cores and shells", n, method): measured("benchmarks.neighbors:fit", method=method, n=n)
        for n in SIZES
        for method in ("neighbors", "KMeans")
    }
    small = measured("benchmarks.neighbors:fit", method="SpectralClustering", n=SIZES[0])
    cells["cores and shells", SIZES[0], "SpectralClustering"] = small
    moons = measured("benchmarks.neighbors:fit", method="neighbors", n=SIZES[1], data="moons")
    cells["moons", SIZES[1], "neighbors"] = moons
    rows = [
        [data, f"{n:,}", method, *(f"{cell[key]:.3f}" for key in ("seconds", "nmi", "MB"))]
        for (data, n, method), cell in cells.items()
    ]
    report.table(["data", "n", "method", "seconds", "NMI", "peak above the data, MB"], rows)

    def taken(n: int, method: str = "neighbors") -> float:
        return float(cells["cores and shells", n, method]["seconds"])

    large = cells["cores and shells", SIZES[2], "neighbors"]
    plain, spectral = taken(SIZES[2], "KMeans"), float(small["seconds"])
    report.conclude(
        [
            Target("a million, over KMeans", taken(SIZES[2]) / plain, 2, at_most=True),
            Target("a million, NMI", large["nmi"], 0.95, ""),
            Target("a million, peak above the data", large["peak"] / 1e9, 0.8, "GB", at_most=True),
            Target("to a million", taken(SIZES[2]) / taken(SIZES[1]), 12, at_most=True),
            Target("20,000, SpectralClustering over ours", spectral / taken(SIZES[0]), 20),
            Target("100,000 moons, NMI", moons["nmi"], 0.99, ""),
        ]
    )
    return report


def falling(name: str, seed: int, steepness: float) -> float:
    """Return the NMI where weights of neighbours fall as exp(−steepness (d / d_s)²); 0: equal ones.

    By plain sparse matrices, and without refinement.
    """
    X, y, k = SETS[name](seed)
    metric = "cosine" if SETS[name].cosine else "euclidean"
    operator = NeighborOperator(X, NeighborOptions(metric=metric), seed=seed)
    operator.build()
    rows, parts = operator.map.frame.rows(X), []
    rows = rows.toarray() if sparse.issparse(rows) else rows
    for graph in operator.map.graphs:
        found = graph.nearest(rows)
        squares = np.square(rows[:, None] - graph.points[found]).sum(axis=2)
        farthest = np.maximum(squares.max(axis=1, keepdims=True), 1e-300)
        z = np.exp(-steepness * squares / farthest)
        Z = regular_csr(found, z / z.sum(axis=1, keepdims=True), len(graph))
        parts.append(
            Z
            @ sparse.diags_array(1 / np.sqrt(np.maximum(np.asarray(Z.sum(axis=0)).ravel(), 1e-300)))
        )
    F = sparse.hstack(parts, format="csr") / np.sqrt(len(parts))
    Y = eigsh(F @ F.T, k, v0=np.ones(len(y)))[1]
    labels = KMeans(k, n_init=10, random_state=seed).fit_predict(Y)
    return float(nmi(y[scored(y)], labels[scored(y)]))


def unit_rows() -> AbstractContextManager[Any]:
    """Scale the rows that K-means starts on to length one."""
    start = walks.best_start

    def scaled(model: Any, given: Any, Y: np.ndarray, *rest: Any, **options: Any) -> Any:
        norms = np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1e-300)
        return start(model, given, Y / norms, *rest, **options)

    return patch.object(walks, "best_start", scaled)


def walking(*lengths: float) -> Callable[[], AbstractContextManager[Any]]:
    """Start from walks of these lengths, beside the endless one."""
    return lambda: patch.object(walks, "LENGTHS", lengths)


def walked_rows(count: int) -> Callable[[], AbstractContextManager[Any]]:
    """Let walks see so many rows."""
    return lambda: patch.object(many_rows, "WALKED", count)


CHOICES: dict[str, dict[str, Any]] = {
    "the default": {},
    **{f"{s} neighbours": {"n_neighbors": s} for s in (3, 4, 8, 12)},
    **{f"{t} graphs": {"n_graphs": t} for t in (1, 2, 8)},
    "n / 8 anchors": {"share": 8},
    "n / 5 anchors": {"share": 5},
    "n / 2 anchors, up to 1,000": {"share": 2},
    "rank K + 10": {"extra": 10},
    "no refinement": {"n_refine": 0},
    "20 refinements": {"n_refine": 20},
    "rows of length one, no walks": {"extra": 0, "around": unit_rows},
}


WALKS: dict[str, dict[str, Any]] = {
    "the default": {},
    "no walks": {"around": walking()},
    "one walk, of length 1": {"around": walking(1.0)},
    "walks of 0.18, 0.25, 0.35, 0.5, 0.7, 1, 2": {
        "around": walking(0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 2.0)
    },
    "walks on 1,000 rows": {"around": walked_rows(1000)},
}


def changed(tried: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Return the mean NMI of each choice over all sets, and how it differs from the first."""
    rows, first = [], None
    for label, choice in tried.items():
        found = [_chosen(name, seed, **choice) for name in SETS for seed in range(3)]
        first = np.mean(found) if first is None else first
        rows.append([label, f"{np.mean(found):.3f}", f"{np.mean(found) - first:+.3f}"])
        print(*rows[-1], sep=", ", flush=True)
    return rows


def walks_compared() -> Report:
    """Compare the default with other walks, over all sets."""
    report = Report()
    report.table(["choice", "mean NMI", "change"], changed(WALKS))
    return report


def choices() -> Report:
    """Compare the default with its neighbours, over all sets."""
    report = Report()
    rows = changed(CHOICES)
    for steepness in (0, 1, 2, 4):
        found = [falling(name, seed, steepness) for name in SETS for seed in range(3)]
        label = f"no refinement, weights exp(-{steepness} (d / d_s)^2)"
        rows.append([label, f"{np.mean(found):.3f}", ""])
    report.table(["choice", "mean NMI", "change"], rows)
    return report


def _chosen(name: str, seed: int, **choice: Any) -> float:
    around = choice.pop("around", nullcontext)
    _, y, k = SETS[name](seed)
    options = {key: choice.pop(key) for key in ("n_refine",) if key in choice}
    if (extra := choice.pop("extra", None)) is not None:
        options["rank"] = k + extra
    if share := choice.pop("share", 0):
        choice["n_anchors"] = int(np.clip(len(y) // share, 50, 1000 if share == 2 else 500))
    with around():
        return ours(name, seed, kernel_params=choice, **options)


def roomier(power: float) -> Callable[[], AbstractContextManager[Any]]:
    """Place anchors by this power of the room of rows."""
    return lambda: patch.object(anchors, "ROOMIER", power)


PLACES: dict[str, dict[str, Any]] = {
    "power 0, 500 anchors": {"around": roomier(0), "n_anchors": 500},
    "power 0.5, 500 anchors": {"around": roomier(0.5), "n_anchors": 500},
    "the default: power 0.6, 450 anchors": {},
}
COUNTED = ("stretched blobs", "three spirals", "moons .1")
LOOKED_AT, OTHERS = range(40), range(120, 160)
"""Draws of which some chose the default, with those up to 119, and draws without a part in it."""


def placing() -> Report:
    """Compare where anchors stand."""
    report = Report()
    both = [*LOOKED_AT, *OTHERS]
    mixtures = [_mixture(seed) for seed in both]
    rows = []
    for label, choice in PLACES.items():

        def found(name: str, seeds: Iterable[int], choice: dict[str, Any] = choice) -> list[float]:
            return [_chosen(name, seed, **choice) for seed in seeds]

        row = [label]
        for name in COUNTED:
            good = [sum(np.array(found(name, seeds)) >= 0.95) for seeds in (LOOKED_AT, OTHERS)]
            row.append(" + ".join(map(str, good)))
        row.append(f"{np.mean(found('varied blobs', both)) - np.mean(mixtures):+.3f}")
        rows.append([*row, f"{np.mean(found('blob in blob', both)):.3f}"])
        print(*rows[-1], sep=", ", flush=True)
    header = [*COUNTED, "varied blobs, over GaussianMixture", "blob in blob"]
    report.table(["anchors", *header], rows)
    return report


def _mixture(seed: int) -> float:
    X, y, k = SETS["varied blobs"](seed)
    return float(nmi(y, GaussianMixture(k, random_state=seed).fit_predict(X)))


PARTS = {
    "seeds": seeds,
    "growth": growth,
    "walks": walks_compared,
    "choices": choices,
    "placing": placing,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=list(PARTS), help="all if left out")
    chosen = parser.parse_args(arguments).parts or list(PARTS)
    print(facts(environment()), "\n", flush=True)
    for part in chosen:
        print(f"\n## {part}\n", flush=True)
        PARTS[part]()


if __name__ == "__main__":
    main()
