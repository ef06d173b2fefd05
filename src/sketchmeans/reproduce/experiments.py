"""The paper's experiments, and those beyond it: compute and return data, draw nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize, scale

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.advice.comparing import accuracy
from sketchmeans.blas import OneBlasThread
from sketchmeans.datasets import load_segmentation, make_rings
from sketchmeans.estimators import KernelKMeans
from sketchmeans.reproduce.trials import Contender, Problem, Report, Row, run, silent

SQUARED_DOT: dict[str, Any] = {"kernel": "polynomial", "degree": 2, "coef0": 0.0, "gamma": 1.0}
"""κ(x, y) = ⟨x, y⟩², the kernel of all experiments of the paper."""
RINGS_WIDTH = 12
"""r' = r + l = 2 + 10."""
SEGMENTATION_WIDTH = 7
"""r' = 2 + 5."""
LANDMARKS = (7, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
"""m, the columns that Nyström samples in Figure 3."""


def rings(seed: int) -> tuple[FloatArray, IntArray]:
    """Draw the two classes in the plane."""
    return make_rings(4000, random_state=seed)


@cache
def _segmentation() -> tuple[FloatArray, IntArray]:
    return load_segmentation()


def unit_segmentation(seed: int) -> tuple[FloatArray, IntArray]:
    """Return the image segmentation data, rows of norm one, as the paper has them."""
    del seed
    X, y = _segmentation()
    return normalize(X), y


def scaled_segmentation(seed: int) -> tuple[FloatArray, IntArray]:
    """Return the image segmentation data, columns of mean zero and spread one."""
    del seed
    X, y = _segmentation()
    return scale(X[:, X.std(axis=0) > 0]), y


@cache
def _digits() -> tuple[FloatArray, IntArray]:
    X, y = load_digits(return_X_y=True)
    return X, y


def digits(seed: int) -> tuple[FloatArray, IntArray]:
    """Return scikit-learn's handwritten digits, pixels from 0 to 1."""
    del seed
    X, y = _digits()
    return X / 16, y


RINGS = Problem("two rings", rings, 2, SQUARED_DOT, max_iter=300)
SEGMENTATION = Problem("image segmentation", unit_segmentation, 7, SQUARED_DOT, max_iter=20)


def sketch(
    name: str, width: int, rank: int = 2, *, by_paper: bool = False, **options: Any
) -> Contender:
    """Return a contender that keeps ``width`` numbers per sample and embeds in ``rank``."""
    if options.setdefault("method", "one-pass") == "one-pass":
        sized = {"oversampling": width - rank}
    else:
        sized = {"n_landmarks": width, "n_refine": 0}
    if options["method"] == "nystrom":
        options.setdefault("sketch", "uniform")
    return Contender(name, {"rank": rank, **sized, **options}, "sketched", by_paper)


PLAIN = Contender("K-means, no kernel", kind="plain", by_paper=True)
FULL = Contender("full kernel K-means", kind="full", by_paper=True)
EXACT = Contender("exact decomposition", {"method": "exact", "rank": 2}, by_paper=True)

TABLE_1 = (
    EXACT,
    sketch("one-pass, late (r' = 12)", RINGS_WIDTH, by_paper=True),
    sketch("Nyström, early, m = 20", 20, method="nystrom", truncation="early", by_paper=True),
    sketch("Nyström, early, m = 100", 100, method="nystrom", truncation="early", by_paper=True),
    PLAIN,
    sketch("one-pass, early (r' = 12), as printed", RINGS_WIDTH, truncation="early"),
    sketch("one-pass, late, two passes (r' = 12)", RINGS_WIDTH, n_passes=2),
    sketch("one-pass, late, one refinement (r' = 12)", RINGS_WIDTH, n_refine=1),
    sketch("Nyström, late, m = 12", 12, method="nystrom"),
    sketch("Nyström, late, m = 20", 20, method="nystrom"),
    sketch("Nyström, late, m = 100", 100, method="nystrom"),
    sketch("RPCholesky, m = 12", 12, method="rpcholesky"),
)
"""The paper's rows first; it calls the late and the early one-pass form by one name."""

LINES = (
    EXACT,
    sketch("one-pass, late", SEGMENTATION_WIDTH, by_paper=True),
    FULL,
    sketch("one-pass, early, as printed", SEGMENTATION_WIDTH, truncation="early"),
    sketch("one-pass, late, two passes", SEGMENTATION_WIDTH, n_passes=2),
    sketch("one-pass, late, one refinement", SEGMENTATION_WIDTH, n_refine=1),
)
"""Methods of Figure 3 that do not depend on m; all sketches have r' = 7."""
CURVES: dict[str, dict[str, Any]] = {
    "Nyström, early": {"method": "nystrom", "truncation": "early", "by_paper": True},
    "Nyström, late": {"method": "nystrom"},
    "RPCholesky": {"method": "rpcholesky"},
}
"""Methods of Figure 3 that do."""


@dataclass(frozen=True)
class Mapped:
    """A panel of Figure 2: one draw of the data under one method."""

    name: str
    embedding: FloatArray
    accuracy: float


@dataclass(frozen=True)
class RingsPicture:
    """Figures 1 and 2: one draw of the data."""

    X: FloatArray
    truth: IntArray
    centroids: FloatArray
    """That plain K-means finds."""
    accuracy: float
    """Of plain K-means."""
    mapped: tuple[Mapped, ...]


def rings_picture(seed: int) -> RingsPicture:
    """Return the data of Figures 1 and 2 from the first draw that Table 1 averages over."""
    first = int(np.random.default_rng(seed).integers(2**31 - 1, size=1)[0])
    X, truth = rings(first)
    with OneBlasThread():
        plain = KMeans(2, n_init=10, random_state=first).fit(X)
    mapped = []
    for contender in (*TABLE_1[:4], TABLE_1[5], TABLE_1[9]):
        model = KernelKMeans(2, n_init=10, random_state=first, **SQUARED_DOT, **contender.options)
        model.fit(X)
        mapped.append(Mapped(contender.name, model.embedding_, accuracy(truth, model.labels_)))
    return RingsPicture(
        X, truth, plain.cluster_centers_, accuracy(truth, plain.labels_), tuple(mapped)
    )


def table_1(*, trials: int, seed: int, report: Report = silent) -> list[Row]:
    """Return the rows of Table 1 and those beyond the paper, over fresh draws of the data."""
    return run(RINGS, TABLE_1, trials=trials, seed=seed, report=report)


@dataclass(frozen=True)
class Figure3:
    """Error and accuracy on image segmentation."""

    lines: list[Row]
    curves: dict[str, list[Row]]
    """A row per m, by method."""


def figure_3(
    *, trials: int, seed: int, landmarks: tuple[int, ...], report: Report = silent
) -> Figure3:
    """Return error and accuracy against m."""
    swept = _swept(CURVES, landmarks, 2)
    rows = run(SEGMENTATION, (*LINES, *swept), trials=trials, seed=seed, report=report)
    return Figure3(rows[: len(LINES)], _by_method(rows[len(LINES) :]))


def _swept(
    curves: dict[str, dict[str, Any]], widths: Iterable[int], rank: int
) -> Iterator[Contender]:
    """Yield every method at every width."""
    for name, options in curves.items():
        for width in widths:
            yield sketch(name, width, rank, **options)


def _by_method(rows: list[Row]) -> dict[str, list[Row]]:
    return {row.method: [same for same in rows if same.method == row.method] for row in rows}


LOCAL_CURVES: dict[str, dict[str, Any]] = {
    "one pass": {},
    "two passes": {"n_passes": 2},
    "two passes, one refinement": {"n_passes": 2, "n_refine": 1},
    "Nyström, uniform": {"method": "nystrom"},
    "Nyström, K-means landmarks": {"method": "nystrom", "sketch": "kmeans"},
    "RPCholesky": {"method": "rpcholesky"},
    "greedy Cholesky": {"method": "greedy-cholesky"},
}
"""All truncated late to rank K."""


@dataclass(frozen=True)
class LocalKernel:
    """NMI against numbers kept per sample, for one data set and one kernel width."""

    data: str
    multiple: int
    """c: gamma = c / median squared distance."""
    n_clusters: int
    exact: Row
    full: Row
    curves: dict[str, list[Row]]


def _local_problems() -> Iterator[tuple[Problem, int]]:
    for draw, name, n_clusters in (
        (digits, "handwritten digits", 10),
        (scaled_segmentation, "image segmentation", 7),
    ):
        for multiple in (4, 16):
            kernel = {"kernel": "rbf", "gamma": f"{multiple}*median"}
            yield Problem(name, draw, n_clusters, kernel, max_iter=300), multiple


def local_kernels(
    *, trials: int, seed: int, multiples: tuple[float, ...], report: Report = silent
) -> list[LocalKernel]:
    """Return NMI against the numbers kept per sample, on kernels that see near neighbours only.

    ``multiples`` are the numbers kept, in multiples of the number of clusters.
    """
    found = []
    problems = list(_local_problems())
    for index, (problem, multiple) in enumerate(problems):
        rank = problem.n_clusters
        fixed = (Contender("exact decomposition", {"method": "exact", "rank": rank}), FULL)
        swept = _swept(LOCAL_CURVES, [round(times * rank) for times in multiples], rank)

        def tell(done: int, total: int, before: int = index) -> None:
            report(before * total + done, len(problems) * total)

        exact, full, *rows = run(problem, (*fixed, *swept), trials=trials, seed=seed, report=tell)
        found.append(LocalKernel(problem.name, multiple, rank, exact, full, _by_method(rows)))
    return found
