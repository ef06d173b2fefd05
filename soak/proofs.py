"""Every level of a proof against all partitions in exact arithmetic, and against many restarts.

``python -m soak certificates --check proofs`` draws 10,000 problems of up to seven samples over
kernels × weights × dtypes × offsets × levels × block sizes, and 300 of 30 to 120 samples that
restarts are tried on.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from sketchmeans import certify
from sketchmeans.certificate.proving import LEVELS
from soak.bounds import OFFSETS, draw_rows, draw_weights
from soak.running import Cases, Check
from soak.truth import feature_distances, objectives, partitions

KERNELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linear", {}),
    ("polynomial", {"degree": 2, "coef0": 1.0}),
    ("polynomial", {"degree": 3, "coef0": 0.0}),
    ("rbf", {}),
    ("laplacian", {}),
    ("cosine", {}),
    ("precomputed", {}),
)
RESTARTS = 40


@dataclass(frozen=True)
class Problem:
    """Samples, their kernel, and labels to certify."""

    X: np.ndarray
    weights: np.ndarray | None
    labels: np.ndarray
    options: dict[str, Any]
    name: str

    def certificate(self) -> Any:
        """Return what is proved."""
        return certify(self.X, self.labels, sample_weight=self.weights, **self.options)

    @property
    def described(self) -> SimpleNamespace:
        """The kernel, as ``soak.truth`` wants to know it."""
        known = {"gamma": None, "degree": 3, "coef0": 1.0} | self.options
        return SimpleNamespace(**known, gamma_=known["gamma"])


def problems(count: int, seed: int, sizes: tuple[int, int]) -> Iterator[Problem]:
    """Draw problems; every kernel, offset and level comes in turn, the rest at random."""
    random = np.random.default_rng([seed, *sizes])
    for index in range(count):
        n = int(random.integers(*sizes))
        kernel, params = KERNELS[index % len(KERNELS)]
        level = LEVELS[index // len(KERNELS) % len(LEVELS)]
        offset = OFFSETS[int(random.integers(len(OFFSETS)))]
        dtype = (np.float32, np.float64)[int(random.integers(2))]
        X = draw_rows(random, n, offset).astype(dtype)
        options = {"kernel": kernel, "effort": level, "random_state": index, "n_jobs": 1} | params
        spread = X.astype(float) - X.astype(float).mean(axis=0)
        squared = np.square(spread[:, None] - spread[None]).sum(axis=2)
        typical = max(float(np.median(squared)), 1e-300)
        if kernel in ("polynomial", "rbf", "laplacian"):
            options["gamma"] = float(10 ** random.uniform(-2, 1))
            if kernel == "rbf":
                options["gamma"] /= typical
            elif kernel == "polynomial":
                options["gamma"] /= max(
                    float(np.square(X.astype(float)).sum(axis=1).mean()), 1e-300
                )
        if kernel == "precomputed":
            X = np.exp(-squared / typical).astype(dtype)
        elif level != "free" and random.integers(3) == 0:
            options["block_size"] = int(random.integers(2, n + 1))
        k = int(random.integers(1, min(n, 4) + 1))
        weights = draw_weights(random, n)
        labels = random.integers(0, k, n)
        options["n_clusters"] = k
        name = f"{index}: {np.dtype(dtype).name} offset {offset:g} {options}"
        yield Problem(X, weights, labels, options, name)


def examine(problem: Problem, tally: collections.Counter[str]) -> list[str]:
    """Certify one tiny problem and hold it against all partitions; return what is broken."""
    found = certified(problem, tally)
    if found is None:
        return []
    n, k = len(problem.X), problem.options["n_clusters"]
    weights = np.ones(n) if problem.weights is None else problem.weights
    distances = feature_distances(problem.described, problem.X)
    best = float(objectives(distances, weights, partitions(n, k)).min())
    own = float(objectives(distances, weights, problem.labels[None])[0])
    return compared(found, best, own, problem, tally)


def compared(
    found: Any, best: float, own: float, problem: Problem, tally: collections.Counter[str]
) -> list[str]:
    """Return the bounds that the truth, or what is at least as large as it, contradicts."""
    broken = []
    for name, low, high in (
        ("optimum_lower", found.optimum_lower, best),
        ("objective_upper", own, found.objective_upper),
        ("objective_lower", found.objective_lower, own),
    ):
        tally[name] += 1
        if not low <= high + 1e-15 * max(abs(low), abs(high)):
            broken.append(f"{name}: {low:.17g} > {high:.17g} in {problem.name}")
    tally["within 1 %"] += bool(found.optimum_lower >= 0.99 * best)
    return broken


def certified(problem: Problem, tally: collections.Counter[str]) -> Any:
    """Return the certificate; None where the problem is refused or nothing is known."""
    try:
        found = problem.certificate()
    except ValueError:
        tally["refused"] += 1
        return None
    if found.objective_upper is None:
        tally["without a bound"] += 1
        return None
    return found


def examine_larger(problem: Problem, tally: collections.Counter[str]) -> list[str]:
    """Hold a proof against the best of many restarts, which the best of all is no worse than."""
    found = certified(problem, tally)
    if found is None:
        return []
    n, k = len(problem.X), problem.options["n_clusters"]
    weights = np.ones(n) if problem.weights is None else problem.weights
    distances = feature_distances(problem.described, problem.X)
    random = np.random.default_rng(n)
    values = []
    for _ in range(RESTARTS):
        labels = random.integers(0, k, n)
        for _ in range(100):
            members = (labels[:, None] == np.arange(k)) * weights[:, None]
            sizes = np.maximum(members.sum(axis=0), 1e-300)
            to = distances @ members / sizes
            means = np.einsum("ij,ij->j", members, to) / (2 * sizes)
            new = (to - means).argmin(axis=1)
            if (new == labels).all():
                break
            labels = new
        values.append(float(objectives(distances, weights, labels[None])[0]))
    own = float(objectives(distances, weights, problem.labels[None])[0])
    return compared(found, min(values), own, problem, tally)


def run(tiny: int, larger: int, seed: int) -> tuple[collections.Counter[str], list[str]]:
    """Examine so many problems of either kind."""
    tally: collections.Counter[str] = collections.Counter()
    broken = []
    for problem in problems(tiny, seed, (2, 8)):
        broken += examine(problem, tally)
    for problem in problems(larger, seed, (30, 121)):
        broken += examine_larger(problem, tally)
    return tally, broken


def _examined(
    sizes: tuple[int, int], look: Callable[[Problem, collections.Counter[str]], list[str]]
) -> Callable[[int, int], Cases]:
    def run_all(seed: int, count: int) -> Cases:
        for problem in problems(count, seed, sizes):
            tally: collections.Counter[str] = collections.Counter()
            broken = look(problem, tally)
            kinds = [kind for kind in ("refused", "without a bound", "within 1 %") if tally[kind]]
            yield (kinds or ["bounded"])[0], broken

    return run_all


CHECKS = {
    "proofs against all partitions": Check(10_000, _examined((2, 8), examine)),
    "proofs of 30 to 120 against restarts": Check(300, _examined((30, 121), examine_larger)),
}
