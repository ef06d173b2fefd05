"""Every bound of every certificate against all partitions, in exact arithmetic.

``python -m soak certificates --check fits`` draws problems of up to seven samples over kernels ×
methods × dtypes × weights × offsets × scales × refinements × levels of certificate and fits each.
"""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.lowrank import METHODS
from soak.running import Cases, Check
from soak.truth import feature_distances, objectives, partitions

KERNELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linear", {}),
    ("polynomial", {"degree": 2, "coef0": 1.0}),
    ("polynomial", {"degree": 3, "coef0": 0.0}),
    ("rbf", {}),
    ("rbf", {"gamma": "0.01*median"}),
    ("laplacian", {}),
    ("laplacian", {"gamma": 1e-11}),
    ("cosine", {}),
    ("precomputed", {}),
)
OFFSETS = (0.0, 1e3, 1e6, 1e8)
SCALES = (1.0, 1.0, 1e-9, 1e9)


def variants() -> list[dict[str, Any]]:
    """Return the options of every method: truncations, sketches and passes that it reads."""
    found: list[dict[str, Any]] = [{"method": "full"}]
    for name, method in METHODS.items():
        sketches = method.sketches or ("auto",)
        truncations = ("late", "early") if "truncation" in method.reads else ("late",)
        passes = (1, 2) if "n_passes" in method.reads else ("auto",)
        found += [
            {"method": name, "sketch": sketch, "truncation": truncation, "n_passes": n_passes}
            for sketch in sketches
            for truncation in truncations
            for n_passes in passes
        ]
    return found


@dataclass(frozen=True)
class Case:
    """One problem and the options to fit it with."""

    X: np.ndarray
    weights: np.ndarray | None
    options: dict[str, Any]
    n_clusters: int
    name: str

    def fit(self) -> Any:
        """Fit the estimator that the options name; warnings are not the subject here.

        Columns of landmarks are streamed in every other fit, as for many samples.
        """
        options = dict(self.options)
        streamed = options["random_state"] % 2 == 1
        held = "sketchmeans.lowrank.nystrom.HELD"
        with warnings.catch_warnings(), patch(held, 0 if streamed else 1 << 22):
            warnings.simplefilter("ignore", ConvergenceWarning)
            if options["method"] == "full":
                del options["method"]
                model = FullKernelKMeans(self.n_clusters, n_init=2, **options)
            else:
                model = KernelKMeans(self.n_clusters, n_init=2, **options)
            return model.fit(self.X, sample_weight=self.weights)


def draw_rows(random: np.random.Generator, n: int, offset: float) -> np.ndarray:
    """Return n rows of one of several kinds, some of them hard, around the offset."""
    p = int(random.integers(1, 5))
    kind = random.integers(0, 5)
    if kind == 0:
        X = random.integers(-8, 9, (n, p)).astype(float)
    elif kind == 1:
        X = random.normal(size=(n, p))
        X[random.integers(0, n)] *= 10 ** random.uniform(1, 6)  # an outlier
    elif kind == 2:
        X = random.normal(size=(n, p)) * 10 ** random.uniform(-6, 3, p)  # unequal columns
    elif kind == 3:
        X = np.repeat(random.normal(size=(n, p)), 2, axis=0)[:n]  # duplicates
    else:
        X = random.normal(size=(n, p)) + 10 * random.integers(0, 2, (n, 1))
    return X + offset


def draw_weights(random: np.random.Generator, n: int) -> np.ndarray | None:
    """Return no weights, even ones, or weights of several orders of magnitude."""
    kind = random.integers(0, 3)
    if kind == 0:
        return None
    return random.uniform(0.3, 3, n) if kind == 1 else 10 ** random.uniform(-4, 4, n)


def cases(count: int, seed: int, levels: tuple[str, ...] = LEVELS) -> Iterator[Case]:
    """Draw problems; every method, kernel and offset comes in turn, the rest at random."""
    random = np.random.default_rng(seed)
    methods = variants()
    for index in range(count):
        n = int(random.integers(3, 8))
        options = dict(methods[index % len(methods)])
        kernel, params = KERNELS[int(random.integers(len(KERNELS)))]
        offset = OFFSETS[int(random.integers(len(OFFSETS)))]
        scale = SCALES[int(random.integers(len(SCALES)))]
        dtype = (np.float32, np.float64)[int(random.integers(2))]
        options |= {"kernel": kernel, "random_state": index} | params
        X = (scale * draw_rows(random, n, offset)).astype(dtype)
        if kernel == "precomputed":
            if options.get("sketch") == "kmeans":
                options["sketch"] = "uniform"
            spread = X.astype(float) - X.astype(float).mean(axis=0)
            squared = np.square(spread[:, None] - spread[None]).sum(axis=2)
            X = np.exp(-squared / max(np.median(squared), 1e-300)).astype(dtype)
        if options["method"] != "full":
            options["n_refine"] = int(random.integers(0, 3))
            options["certificate"] = levels[int(random.integers(len(levels)))]
            if options["method"] == "one-pass" or random.integers(2):
                options["rank"] = int(random.integers(1, n + 1))
            if METHODS[options["method"]].landmarks:
                options["n_landmarks"] = int(random.integers(options.get("rank", 1), n + 1))
            if "precision" in METHODS[options["method"]].reads and random.integers(4) == 0:
                options["precision"] = ("float32", "float64")[int(random.integers(2))]
        else:
            options["init"] = ("k-means++", "random", "sketch")[int(random.integers(3))]
        n_clusters = int(random.integers(1, min(n, 4) + 1))
        weights = draw_weights(random, n)
        given = f"{'plain' if weights is None else 'weighted'} {np.dtype(dtype).name}"
        name = f"{index}: {given} offset {offset:g} scale {scale:g} {options}"
        yield Case(X, weights, options, n_clusters, name)


@dataclass
class Tally:
    """What was checked, and what was found broken."""

    fits: int = 0
    refused: int = 0
    unbounded: int = 0
    checks: collections.Counter[str] = field(default_factory=collections.Counter)
    broken: list[str] = field(default_factory=list)

    def check(self, name: str, holds: bool, case: Case, detail: str) -> None:
        """Count one check, and keep it if it failed."""
        self.checks[name] += 1
        if not holds:
            self.broken.append(f"{name}: {detail} in {case.name}, k={case.n_clusters}")


def examine(case: Case, tally: Tally) -> None:
    """Fit one problem and hold its certificate against all partitions."""
    tally.fits += 1
    try:
        model = case.fit()
    except ValueError:
        tally.refused += 1  # precision="float32" far outside its range is refused, with a reason
        return
    certificate = model.certificate_
    if certificate.objective_upper is None:
        tally.unbounded += 1
        tally.check("a reason is given", bool(certificate.reason), case, str(certificate))
        return
    n = len(case.X)
    weights = np.ones(n) if case.weights is None else case.weights
    distances = feature_distances(model, case.X)
    every = partitions(n, case.n_clusters)
    values = objectives(distances, weights, every)
    best = float(values.min())
    found = float(objectives(distances, weights, model.labels_[None])[0])
    ulp = 1e-15  # the truth itself is rounded to float64

    def at_most(name: str, low: float | None, high: float | None) -> None:
        if low is not None and high is not None:
            holds = low <= high + ulp * max(abs(low), abs(high))
            tally.check(name, holds, case, f"{low:.17g} > {high:.17g}")

    at_most("objective_lower", certificate.objective_lower, found)
    at_most("objective_upper", found, certificate.objective_upper)
    at_most("optimum_lower", certificate.optimum_lower, best)
    at_most("optimum below objective", certificate.optimum_lower, certificate.objective_upper)
    proved = case.options.get("certificate", "free") != "free"
    if case.options["kernel"] != "precomputed" or not proved:
        # Of a matrix that is not known to be positive semidefinite a proof assumes nothing.
        at_most("a lower bound is not negative", 0.0, certificate.optimum_lower)
    if certificate.relative_gap is not None:
        at_most("relative_gap", found, (1 + certificate.relative_gap) * best)
        at_most("relative_gap is not negative", 0.0, certificate.relative_gap)
    if certificate.gap_bound is not None:
        Y = model.embedding_.astype(np.longdouble)
        squares = np.square(Y[:, None] - Y[None]).sum(axis=2).astype(float)
        solved = float(values[objectives(squares, weights, every).argmin()])
        at_most("gap_bound", solved - best, certificate.gap_bound)


def run(count: int, seed: int) -> Tally:
    """Examine so many problems, by the certificate that a fit has for nothing."""
    tally = Tally()
    for case in cases(count, seed, levels=("free",)):
        examine(case, tally)
    return tally


def examined(seed: int, count: int) -> Cases:
    """Examine so many problems, one by one."""
    for case in cases(count, seed):
        tally = Tally()
        examine(case, tally)
        kind = "refused" if tally.refused else "without a bound" if tally.unbounded else "bounded"
        yield kind, tally.broken


CHECKS = {"fits against all partitions": Check(10_000, examined)}
