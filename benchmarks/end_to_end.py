"""Whole clusterings by everyone: time, peak memory and quality, and how they grow with n.

Four dense cores and four shells around them, 20 features, float32: K-means without a kernel cannot
tell a core from its shell. The kernel is RBF with γ = 4 / median squared distance; at 1 / median
full kernel K-means itself prefers other clusters. Every method gets the same γ, the same number of
clusters and ten starts. "One pass" keeps 24 numbers per sample, and so does Nystroem with 24
components; with 240 it has ten times the memory. "Default" is ``KernelKMeans`` as it comes: two
passes for few samples, and streamed landmarks for many.

Each fit has a process of its own; short ones are repeated there up to five times, and the best
counts. Peak memory is that above data and imports. "Excess" is the exact objective of full kernel
K-means for the labels found, in per cent above the least that anyone found at that n (below a
million samples: it takes a pass over K). A method ends where its next n would take longer than the
limit, by its own growth, or more memory than there is. ::

    python -m benchmarks.end_to_end [--full]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.data import cores_and_shells, median_rbf
from benchmarks.processes import Failed, available_bytes, forget_peak, measured, peak_bytes
from benchmarks.rivals import installed
from benchmarks.timing import SEED, Report, Target, standalone
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.blas import count_threads
from sketchmeans.certificate.objective import memberships
from sketchmeans.engine.run import Run
from sketchmeans.operators import DataOperator

FEATURES, CLUSTERS, FACTOR = 20, 8, 4
RANK, WIDTH = 12, 24
SIZES = (2000, 5000, 20_000, 100_000)
MILLION = 1_000_000
LIMIT, FULL_LIMIT = 40.0, 200.0
"""Seconds that a fit may be expected to take, in the default run and in the full one; one pass,
which the others are compared with, may take any."""
REPEATS, ENOUGH = 5, 3.0
"""A fit is repeated so often, or until so many seconds are spent."""
GB, MB = 1e9, 1e6

Cell = dict[str, Any]
Clustering = Callable[[np.ndarray], np.ndarray]


def default(gamma: float) -> Clustering:
    """Return ours with nothing said."""
    return KernelKMeans(CLUSTERS, gamma=gamma, random_state=SEED, kernel="rbf").fit_predict


def sketched(gamma: float, n_passes: int = 1) -> Clustering:
    """Return ours by passes over K, with 24 numbers per sample."""
    return KernelKMeans(
        CLUSTERS,
        gamma=gamma,
        method="one-pass",
        n_passes=n_passes,
        rank=RANK,
        oversampling=WIDTH - RANK,
        random_state=SEED,
        kernel="rbf",
    ).fit_predict


def landmarks(gamma: float) -> Clustering:
    """Return ours by 24 landmarks, which are held: the paper's Nyström at equal memory."""
    return KernelKMeans(
        CLUSTERS,
        gamma=gamma,
        method="nystrom",
        sketch="kmeans",
        n_landmarks=WIDTH,
        rank=RANK,
        n_refine=0,
        n_init=10,
        random_state=SEED,
        kernel="rbf",
    ).fit_predict


def full(gamma: float) -> Clustering:
    """Return ours without approximation: one pass over K an iteration."""
    return FullKernelKMeans(CLUSTERS, gamma=gamma, random_state=SEED).fit_predict


def k_means() -> Clustering:
    """Return K-means of the points themselves."""
    return KMeans(CLUSTERS, n_init=10, random_state=SEED).fit_predict


def then_k_means(transformer: Any) -> Clustering:
    """Return an embedding by scikit-learn, and K-means of it."""
    cluster = k_means()
    return lambda X: cluster(transformer.fit_transform(X))


def nystroem(gamma: float, components: int) -> Clustering:
    """Return scikit-learn's Nyström approximation, and K-means."""
    return then_k_means(Nystroem(gamma=gamma, n_components=components, random_state=SEED))


def kernel_pca(gamma: float) -> Clustering:
    """Return scikit-learn's kernel PCA by its solver for many samples, and K-means."""
    solver = {"eigen_solver": "randomized", "copy_X": False, "random_state": SEED}
    return then_k_means(KernelPCA(RANK, kernel="rbf", gamma=gamma, **solver))


def spectral(gamma: float) -> Clustering:
    """Return scikit-learn's spectral clustering on the same kernel; its objective is another."""
    return SpectralClustering(CLUSTERS, gamma=gamma, random_state=SEED).fit_predict


def tslearn(gamma: float) -> Clustering:
    """Return tslearn's kernel K-means, which holds the kernel matrix."""
    from tslearn.clustering import KernelKMeans as Theirs

    model = Theirs(
        CLUSTERS, kernel="rbf", kernel_params={"gamma": gamma}, n_init=10, random_state=SEED
    )
    return lambda X: model.fit_predict(X[:, :, None])


@dataclass(frozen=True)
class Method:
    """One way to cluster, and how its cost grows."""

    prepare: Callable[[float], Clustering]
    growth: int
    """Time is expected to grow as n to this power."""
    holds_matrix: bool = False
    needs: str = "sklearn"
    """The package that it comes from; ours is there."""
    unlimited: bool = False
    """Whether it may take longer than the limit."""


METHODS = {
    "default": Method(default, 1, needs="sketchmeans"),
    "one pass": Method(sketched, 2, needs="sketchmeans", unlimited=True),
    "two passes": Method(lambda gamma: sketched(gamma, n_passes=2), 2, needs="sketchmeans"),
    "our Nyström, K-means landmarks": Method(landmarks, 1, needs="sketchmeans"),
    "full kernel K-means, ours": Method(full, 2, needs="sketchmeans"),
    "K-means, no kernel": Method(lambda gamma: k_means(), 1),
    "Nystroem 24 + KMeans": Method(lambda gamma: nystroem(gamma, WIDTH), 1),
    "Nystroem 240 + KMeans": Method(lambda gamma: nystroem(gamma, 10 * WIDTH), 1),
    "KernelPCA + KMeans": Method(kernel_pca, 2, holds_matrix=True),
    "SpectralClustering": Method(spectral, 2, holds_matrix=True),
    "tslearn KernelKMeans": Method(tslearn, 2, holds_matrix=True, needs="tslearn"),
}


def fit(method: str, n: int, labels: str) -> dict[str, float]:
    """Cluster in this process; write the labels to a file, and return what it cost."""
    X, y = cores_and_shells(n, FEATURES, "float32")
    cluster = METHODS[method].prepare(median_rbf(X, FACTOR).gamma)
    ready, times = forget_peak(), []
    while len(times) < REPEATS and sum(times) < ENOUGH:
        start = time.perf_counter()
        found = cluster(X)
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            peak = peak_bytes() - ready
    np.save(labels, found.astype(np.int8))
    return {
        "seconds": min(times),
        "runs": len(times),
        "peak": peak,
        "whole": ready + peak,
        "nmi": float(normalized_mutual_info_score(y, found)),
    }


def objectives(n: int, labellings: list[np.ndarray]) -> list[float]:
    """Return the exact objective of full kernel K-means of several labellings, from one pass."""
    X, _ = cores_and_shells(n, FEATURES, "float32")
    Z = np.hstack([memberships(labels, None, CLUSTERS) for labels in labellings])
    operator = DataOperator(X, median_rbf(X, FACTOR))
    found = operator.multiply(Z, Run(count_threads(None)))
    within = np.vecdot(Z, found.W, axis=0) / np.maximum(Z.sum(axis=0), 1)
    return list(found.diagonal.sum() - within.reshape(len(labellings), CLUSTERS).sum(axis=1))


def reason_to_stop(method: Method, n: int, last: Cell | None, limit: float) -> str | None:
    """Return why a method does not go on to n, given its cell for a smaller n."""
    if not installed(method.needs):
        return f"{method.needs} is not installed"
    if last is not None and "failed" in last:
        return str(last["left out"])
    matrices = 4 * 8 * n * n if method.holds_matrix else 0
    if matrices > available_bytes():
        return f"kernel matrices of {matrices / GB:.0f} GB"
    if last is not None and not method.unlimited:
        expected = last["seconds"] * (n / last["n"]) ** method.growth
        if expected > limit:
            return f"about {expected:.0f} s"
    return None


def measure_one(name: str, n: int, last: Cell | None, limit: float, labels: Path) -> Cell:
    """Return a cell: what a method cost and found, or why it was left out."""
    method, cell = METHODS[name], {"n": n, "method": name}
    if reason := reason_to_stop(method, n, last, limit):
        return cell | {"left out": reason}
    try:
        found = measured(
            "benchmarks.end_to_end:fit",
            timeout=None if method.unlimited else 60 + 2 * limit,
            method=name,
            n=n,
            labels=str(labels),
        )
    except Failed as error:
        return cell | {"left out": str(error), "failed": True}
    return cell | found


def measure(sizes: tuple[int, ...], limit: float) -> Iterator[Cell]:
    """Yield a cell for every n and method."""
    last: dict[str, Cell] = {}
    for n in sizes:
        cells, labellings = [], []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "labels.npy"
            for name in METHODS:
                cell = measure_one(name, n, last.get(name), limit, file)
                cells.append(cell)
                if "seconds" in cell:
                    labellings.append(np.load(file))
                if "seconds" in cell or "failed" in cell:
                    last[name] = cell
        if n < MILLION:
            values = objectives(n, labellings)
            done = [cell for cell in cells if "seconds" in cell]
            for cell, value in zip(done, values, strict=True):
                cell["excess"] = 100 * (value / min(values) - 1)
        yield from cells


def row(cell: Cell, ours: Cell) -> list[Any]:
    """Return the row of a table."""
    if "left out" in cell:
        return [cell["n"], cell["method"], f"left out: {cell['left out']}", *[""] * 5]
    return [
        cell["n"],
        cell["method"],
        cell["seconds"],
        cell["seconds"] / ours["seconds"] if "seconds" in ours else "",
        cell["peak"] / MB,
        cell["peak"] / ours["peak"] if "peak" in ours else "",
        f"{cell['nmi']:.3f}",
        f"{cell['excess']:.2f} %" if "excess" in cell else "",
    ]


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also a million samples; half an hour")
    everything = parser.parse_args(arguments).full
    sizes = (*SIZES, MILLION) if everything else SIZES
    report = Report(arguments=["--full"] if everything else [])
    cells = list(measure(sizes, FULL_LIMIT if everything else LIMIT))
    ours = {cell["n"]: cell for cell in cells if cell["method"] == "one pass"}
    header = ["n", "method", "seconds", "over one pass's", "peak MB", "over one pass's"]
    rows = [row(cell, ours[cell["n"]]) for cell in cells]
    report.table([*header, "NMI", "excess"], rows)
    report.data["cells"] = cells
    targets = []
    if "whole" in ours.get(MILLION, {}):
        name = "a million samples, width 24: peak of the process"
        targets.append(Target(name, ours[MILLION]["whole"] / GB, 1.5, "GB", at_most=True))
    return report.conclude([*targets, *of_a_million(cells)])


def of_a_million(cells: list[Cell]) -> list[Target]:
    """Return what is promised of the default fit of a million samples, where that was run."""
    found = {(cell["n"], cell["method"]): cell for cell in cells if "seconds" in cell}
    if (MILLION, "default") not in found:
        return []
    ours = found[MILLION, "default"]
    growth = ours["seconds"] / found[SIZES[-1], "default"]["seconds"]
    targets = [
        Target("a million samples, default: NMI", ours["nmi"], 0.99, ""),
        Target("… peak above the data", ours["peak"] / GB, 0.5, "GB", at_most=True),
        Target("… time over that of 100,000 samples", growth, 12, at_most=True),
    ]
    for rival, least in (("one pass", 25), ("Nystroem 240 + KMeans", 8)):
        if (MILLION, rival) in found:
            ratio = found[MILLION, rival]["seconds"] / ours["seconds"]
            targets.append(Target(f"… time of {rival} over it", ratio, least))
    return targets


if __name__ == "__main__":
    standalone(main)
