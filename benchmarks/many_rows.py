"""Whether starts on some rows find what starts on all rows find, and from which n they are faster.

Eleven data sets, embedded by Nyström columns or monomials, 2 to 26 clusters: the objective of
K-means as it is for many rows, n_init=10, over that of ten starts of scikit-learn's on all rows.
Then the seconds of both over n, on all cores. ``--choices`` tries other numbers of rows and starts,
``--step`` other blocks and another way to sum them. ::

    python -m benchmarks.many_rows [--choices | --step]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_moons

from benchmarks.data import cores_and_shells, noisy_blobs
from benchmarks.timing import SEED, Report, Target, interleaved, standalone
from sketchmeans import KernelEmbedding
from sketchmeans.blas import count_threads
from sketchmeans.blocks import row_blocks
from sketchmeans.datasets import load_segmentation, make_rings
from sketchmeans.engine import Crew
from sketchmeans.estimators import kmeans, many_rows

TOLERATED = 0.1
SEEDS = range(100, 103)
"""Others than those by which the constants were chosen, 0 and 1."""
SIZES = (40_000, 100_000, 300_000)
CHOICES = (
    (10_000, 20, 3, 5),
    (20_000, 10, 3, 5),
    (20_000, 20, 1, 5),
    (20_000, 20, 3, 5),
    (20_000, 20, 3, 300),
    (40_000, 20, 3, 5),
)
"""Rows, starts on them, starts that are tried on all rows, and their iterations."""

RBF: dict[str, Any] = {"method": "nystrom", "gamma": "median"}
LOCAL: dict[str, Any] = {"method": "nystrom", "gamma": "4*median"}
SQUARES: dict[str, Any] = {"kernel": "polynomial", "degree": 2}


@dataclass(frozen=True)
class Problem:
    """Data, and what to look for in them."""

    n: int
    n_clusters: int
    make: Callable[[int], np.ndarray]
    kernel: dict[str, Any]

    def embedding(self, n: int | None = None) -> np.ndarray:
        """Return K + 10 columns for n samples, or for the problem's own number."""
        X = self.make(self.n if n is None else n)
        rank = self.n_clusters + 10
        return KernelEmbedding(rank, random_state=SEED, **self.kernel).fit(X).embedding_


def jittered(X: np.ndarray, n: int) -> np.ndarray:
    """Draw n rows again and again, moved by a fifth of the spread of each column."""
    random = np.random.default_rng(SEED)
    return X[random.integers(len(X), size=n)] + random.normal(size=(n, X.shape[1])) * (
        0.2 * X.std(axis=0)
    )


def uneven(n: int, p: int = 12, n_parts: int = 7) -> np.ndarray:
    """Draw parts of very unequal size, each stretched in its own way."""
    random = np.random.default_rng(SEED)
    shares = 0.5 ** np.arange(n_parts)
    part = random.choice(n_parts, size=n, p=shares / shares.sum())
    X = random.normal(size=(n, p)) * random.uniform(0.2, 2, (n_parts, p))[part]
    return X + random.uniform(-3, 3, (n_parts, p))[part]


def uniform(n: int) -> np.ndarray:
    return np.random.default_rng(SEED).uniform(size=(n, 3))


def standardized(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


PROBLEMS = {
    "cores and shells": Problem(
        100_000, 8, lambda n: cores_and_shells(n, 10, np.float64)[0], SQUARES
    ),
    "blobs, p = 5": Problem(100_000, 8, lambda n: noisy_blobs(n, 5, np.float64), RBF),
    "16 blobs, p = 20": Problem(
        100_000, 16, lambda n: noisy_blobs(n, 20, np.float32, n_blobs=16), RBF
    ),
    "26 blobs, p = 10": Problem(
        100_000, 26, lambda n: noisy_blobs(n, 10, np.float64, n_blobs=26), RBF
    ),
    "moons": Problem(100_000, 2, lambda n: make_moons(n, noise=0.1, random_state=SEED)[0], LOCAL),
    "rings": Problem(300_000, 2, lambda n: make_rings(n, random_state=SEED)[0], SQUARES),
    "digits with jitter": Problem(100_000, 10, lambda n: jittered(load_digits().data, n), RBF),
    "segmentation with jitter": Problem(
        100_000, 7, lambda n: jittered(standardized(load_segmentation()[0]), n), RBF
    ),
    "uneven parts": Problem(200_000, 7, uneven, RBF),
    "uneven parts, 12 clusters": Problem(100_000, 12, uneven, RBF),
    "uniform, no clusters": Problem(100_000, 20, uniform, RBF),
}


def best(
    Y: np.ndarray, n_clusters: int, seed: int, n_init: int = 10, **constants: int
) -> kmeans.BestStart:
    """Run some starts with other constants of ``many_rows``."""
    seeds = np.random.RandomState(seed).randint(2**31 - 1, size=n_init)
    threads = count_threads(None)
    with ExitStack() as stack:
        for name, value in constants.items():
            stack.enter_context(patch.object(many_rows, name, value))
        stack.enter_context(patch.object(kmeans, "FEW", constants.get("FEW", many_rows.FEW)))
        return kmeans.best_start(
            KMeans(n_clusters), seeds, Y, None, side_by_side=threads, n_threads=threads
        )


def objective(Y: np.ndarray, found: kmeans.BestStart) -> float:
    return kmeans.inertia(Y, found.cluster_centers_, found.labels_, None)


ALL = {"MANY": 10**12}


def quality(
    choices: list[dict[str, int]], seeds: Sequence[int]
) -> Iterator[tuple[str, Problem, list[np.ndarray]]]:
    """Yield, for each problem and choice, the ratios of the objective over the seeds."""
    for name, problem in PROBLEMS.items():
        Y = problem.embedding()
        reference = [objective(Y, best(Y, problem.n_clusters, seed, **ALL)) for seed in seeds]
        ratios = [
            np.array([objective(Y, best(Y, problem.n_clusters, seed, **one)) for seed in seeds])
            / reference
            for one in choices
        ]
        yield name, problem, ratios


def try_choices(report: Report) -> None:
    """Print the worst and the mean ratio of other numbers of rows, starts and iterations."""
    choices = [
        dict(zip(("SOME", "ENOUGH", "FEW", "TRIED"), choice, strict=True)) for choice in CHOICES
    ]
    found = []
    for name, _, ratios in quality(choices, (0, 1)):
        means = [ratio.mean() for ratio in ratios]
        print(name, *(f"{mean:.5f}" for mean in means), flush=True)
        found.append(means)
    rows = [
        [*choice.values(), f"{np.max(means):.5f}", f"{np.mean(means):.5f}"]
        for choice, means in zip(choices, np.transpose(found), strict=True)
    ]
    header = ["rows", "starts", "tried", "iterations", "worst data set", "mean"]
    report.table(header, rows)


def dense_step(
    Y: np.ndarray, weights: None, *, centers: np.ndarray, middle: np.ndarray
) -> many_rows.Step:
    """Sum the rows of each cluster by a dense product with their memberships."""
    rows = Y - middle
    distances = rows @ (-2 * centers.T) + np.vecdot(centers, centers)
    labels = distances.argmin(axis=1).astype(np.int32)
    member = (labels == np.arange(len(centers))[:, None]).astype(np.float64)
    return many_rows.Step(labels, member @ rows.astype(np.float64), member.sum(axis=1))


def over_rows(report: Report) -> None:
    """Print the time of a step over 500,000 rows by both ways, for blocks of any rows."""
    rows, threads = [], count_threads(None)
    for n_clusters, columns in ((2, 12), (8, 18), (26, 36)):
        Y = np.random.default_rng(SEED).normal(size=(500_000, columns))
        given = {"centers": Y[:n_clusters].copy(), "middle": Y.mean(axis=0)}
        for size in (2048, 4096, 8192, 16_384, 32_768):
            with Crew(threads) as crew:
                blocks = many_rows.RowBlocks(Y, None, row_blocks(len(Y), size), crew)
                tasks = {
                    "sparse": partial(blocks.map, partial(many_rows.step, **given)),
                    "dense": partial(blocks.map, partial(dense_step, **given)),
                }
                seconds = interleaved(tasks, repeats=3)
            shown = [f"{1000 * seconds[way]:.0f} ms" for way in tasks]
            rows.append([n_clusters, columns, size, *shown])
    report.table(["K", "columns", "rows of a block", "sparse", "dense"], rows)


def over_n(report: Report) -> None:
    """Print the seconds of both ways over n."""
    rows = []
    for name in ("cores and shells", "16 blobs, p = 20", "rings"):
        problem = PROBLEMS[name]
        whole = problem.embedding(max(SIZES))
        for n, n_init in product(SIZES, (10, 30)):
            run = partial(best, whole[:n], problem.n_clusters, SEED, n_init)
            tasks = {"all": partial(run, **ALL), "some": partial(run, MANY=0)}
            seconds = interleaved(tasks, repeats=1)
            gain = seconds["all"] / seconds["some"]
            shown = [f"{seconds[way]:.2f} s" for way in ("all", "some")]
            taken = "some" if many_rows.drawn_rows(n, problem.n_clusters) else "all"
            rows.append([name, problem.n_clusters, n, n_init, *shown, f"{gain:.1f}", taken])
            print(*rows[-1], flush=True)
    header = ["data", "K", "n", "starts", "all rows", "some rows", "gain", "taken"]
    report.table(header, rows)


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choices", action="store_true", help="try other constants")
    parser.add_argument("--step", action="store_true", help="try other blocks")
    parser.add_argument("--times", action="store_true", help="times over n alone")
    options = parser.parse_args(arguments)
    report = Report()
    if options.step:
        over_rows(report)
    if options.choices:
        try_choices(report)
    if options.times:
        over_n(report)
    if options.step or options.choices or options.times:
        return report
    rows, worst = [], 0.0
    for name, problem, (ratios,) in quality([{"MANY": many_rows.MANY}], SEEDS):
        worst = max(worst, ratios.mean())
        shown = [f"{ratio:.5f}" for ratio in (ratios.mean(), ratios.min(), ratios.max())]
        rows.append([name, problem.n, problem.n_clusters, *shown])
        print(*rows[-1], flush=True)
    report.table(["data", "n", "K", "mean over seeds", "least", "largest"], rows)
    over_n(report)
    name = "objective from some rows above that from all, worst data set"
    return report.conclude([Target(name, 100 * (worst - 1), TOLERATED, "%", at_most=True)])


if __name__ == "__main__":
    standalone(main)
