"""Every level of a proof against all partitions in exact arithmetic, and against many restarts.

``python -m soak certificates --check proofs`` draws 10,000 problems of up to seven samples over
kernels × weights × dtypes × offsets × levels × block sizes, and 300 of 30 to 120 samples that
restarts are tried on. Some proofs are those of fits, with and without refinement; some have no
time, some are interrupted at a random step; and every tiny problem is bounded by a random N and
random multipliers as well. The neighbours kernel is held to the least
normalized cut of all partitions.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from sketchmeans import KernelKMeans, certify
from sketchmeans.certificate.lift import Lifting
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.certificate.spectral import centred_block, objective_bound
from sketchmeans.certificate.triangles import with_new
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
    ("callable", {}),
    ("sigmoid", {"coef0": 0.5}),
)
WAYS = ("whole", "whole", "fit", "truncated", "interrupted")
"""How a proof is come by: by certify, or by a fit; with no time, or with Ctrl-C in the midst."""
RESTARTS = 40


@dataclass(frozen=True)
class Problem:
    """Samples, their kernel, and labels to certify."""

    X: np.ndarray
    weights: np.ndarray | None
    labels: np.ndarray
    options: dict[str, Any]
    name: str
    way: str = "whole"

    def certificate(self) -> tuple[Any, np.ndarray]:
        """Return what is proved, and of which labels."""
        options = dict(self.options)
        if self.way == "fit":
            return self._fitted(options)
        if options["kernel"] == "callable":
            options |= {"kernel": gaussian, "kernel_params": {"gamma": options.pop("gamma")}}
        last, step = options["random_state"] % 50, Lifting.step

        def tired(lifting: Lifting) -> None:
            nonlocal last
            last -= 1
            if last < 0:
                raise KeyboardInterrupt
            step(lifting)

        if self.way in ("truncated", "interrupted") and options["effort"] != "free":
            options["seconds"] = 1e-4 if self.way == "truncated" else 60.0
        with patch.object(Lifting, "step", tired if self.way == "interrupted" else step):
            found = certify(self.X, self.labels, sample_weight=self.weights, **options)
        return found, self.labels

    def _fitted(self, options: dict[str, Any]) -> tuple[Any, np.ndarray]:
        """Return what a fit proves of its own labels, after none to two refinements."""
        if options["kernel"] == "callable":
            options |= {"kernel": gaussian, "kernel_params": {"gamma": options.pop("gamma")}}
        options = {k: v for k, v in options.items() if k != "block_size"}
        level, seed = options.pop("effort"), options["random_state"]
        model = KernelKMeans(n_init=2, n_refine=seed % 3, certificate=level, **options)
        model.fit(self.X, sample_weight=self.weights)
        return model.certificate_, model.labels_

    def of_random_multipliers(self, random: np.random.Generator) -> tuple[float, float]:
        """Return bounds from a random N ≥ 0, and from random multipliers of cuts."""
        n, k = len(self.X), self.options["n_clusters"]
        described = self.described
        kept = np.arange(n) if self.weights is None else np.flatnonzero(self.weights)
        K = -feature_distances(described, self.X)[np.ix_(kept, kept)] / 2
        is_psd = self.options["kernel"] != "sigmoid"
        weights = None if self.weights is None else self.weights[kept]
        # −½ of squared distances: the kernel of the same distances, centred. Its entries are exact.
        K = K - K.mean(axis=0) - K.mean(axis=0)[:, None] + K.mean()
        block = centred_block(K, weights, 1e-15, is_psd=is_psd)
        scale = 10 ** random.uniform(-3, 2) * np.abs(block.K).max()
        N = scale * np.maximum(random.normal(size=block.K.shape), 0)
        plain = objective_bound(block, block.K + N + N.T, k)
        if k < 2 or len(kept) <= k or len(kept) < 4:
            return plain, plain
        lifting = Lifting(block, k)
        if lifting.is_flat:
            return plain, plain
        for _ in range(int(random.integers(1, 9))):
            lifting.step()
        triples = np.array([random.permutation(len(kept))[:3] for _ in range(20)])
        lifting.cuts = with_new(lifting.cuts, triples, block.u)
        lifting.cuts.mu[:] = np.maximum(random.normal(size=len(triples)), 0)
        A, off = lifting.matrix()
        return plain, objective_bound(block, A, k) - off

    @property
    def described(self) -> SimpleNamespace:
        """The kernel, as ``soak.truth`` wants to know it."""
        known = {"gamma": None, "degree": 3, "coef0": 1.0} | self.options
        if known["kernel"] == "callable":
            known["kernel"] = "rbf"
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
        if kernel in ("polynomial", "rbf", "laplacian", "callable", "sigmoid"):
            options["gamma"] = float(10 ** random.uniform(-2, 1))
            if kernel in ("rbf", "callable"):
                options["gamma"] /= typical
            elif kernel in ("polynomial", "sigmoid"):
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
        way = WAYS[int(random.integers(len(WAYS)))]
        name = f"{index}: {way} {np.dtype(dtype).name} offset {offset:g} {options}"
        yield Problem(X, weights, labels, options, name, way)


def gaussian(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    """Return a Gaussian kernel by differences, as a caller may write it."""
    X, Y = X.astype(float), Y.astype(float)
    return np.exp(-gamma * np.square(X[:, None] - Y[None]).sum(axis=2))


def examine(problem: Problem, tally: collections.Counter[str]) -> list[str]:
    """Certify one tiny problem and hold it against all partitions; return what is broken."""
    n, k = len(problem.X), problem.options["n_clusters"]
    weights = np.ones(n) if problem.weights is None else problem.weights
    distances = feature_distances(problem.described, problem.X)
    best = float(objectives(distances, weights, partitions(n, k)).min())
    broken = []
    if np.count_nonzero(weights):
        random = np.random.default_rng(problem.options["random_state"])
        for value in problem.of_random_multipliers(random):
            tally["of random N"] += 1
            if value > best + 1e-12 * abs(best) + 1e-13 * np.abs(distances).max():
                broken.append(f"random N: {value:.17g} > {best:.17g} in {problem.name}")
    proof = certified(problem, tally)
    if proof is None:
        return broken
    found, labels = proof
    own = float(objectives(distances, weights, labels[None])[0])
    return broken + compared(found, best, own, problem, tally)


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
    """Return the certificate and its labels; None where it is refused or nothing is known."""
    try:
        found, labels = problem.certificate()
    except ValueError:
        tally["refused"] += 1
        return None
    if found.objective_upper is None or found.optimum_lower is None:
        tally["without a bound"] += 1
        return None
    tally[problem.way] += 1
    return found, labels


def examine_larger(problem: Problem, tally: collections.Counter[str]) -> list[str]:
    """Hold a proof against the best of many restarts, which the best of all is no worse than."""
    proof = certified(problem, tally)
    if proof is None:
        return []
    found, labels_found = proof
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
    own = float(objectives(distances, weights, labels_found[None])[0])
    return compared(found, min(values), own, problem, tally)


def examine_cut(index: int, seed: int, tally: collections.Counter[str]) -> list[str]:
    """Hold the proof of a normalized cut against all partitions into as many clusters."""
    random = np.random.default_rng([seed, index])
    n, k = int(random.integers(5, 8)), int(random.integers(2, 4))
    weights = random.uniform(0.5, 2, n) if index % 2 else None
    X, level = draw_rows(random, n, 0.0), LEVELS[index % len(LEVELS)]
    model = KernelKMeans(k, random_state=index, n_init=2).fit(X, sample_weight=weights)
    found = certify(X, model, sample_weight=weights, effort=level, n_jobs=1)
    F, d = model._new_points.map.block(X).toarray(), np.ones(n) if weights is None else weights
    every = partitions(n, k)
    count = len(set(model.labels_.tolist()))
    every = every[every.max(axis=1) + 1 == count]
    inside = (every[:, :, None] == np.arange(count)) * d[:, None]
    cuts = count - (np.square(np.einsum("pic,if->pcf", inside, F)).sum(-1) / inside.sum(1)).sum(1)
    tally["normalized cuts"] += 1
    if not found.normalized_cut_lower <= cuts.min() + 1e-12:
        return [f"cut {index}: {found.normalized_cut_lower:.17g} > {cuts.min():.17g}, {level}"]
    return []


def run(tiny: int, larger: int, seed: int) -> tuple[collections.Counter[str], list[str]]:
    """Examine so many problems of either kind."""
    tally: collections.Counter[str] = collections.Counter()
    broken = []
    for problem in problems(tiny, seed, (2, 8)):
        broken += examine(problem, tally)
    for index in range(tiny // 20):
        broken += examine_cut(index, seed, tally)
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


def _cuts_examined(seed: int, count: int) -> Cases:
    """Hold proofs of so many cuts against all partitions, over all levels."""
    for index in range(count):
        yield LEVELS[index % len(LEVELS)], examine_cut(index, seed, collections.Counter())


CHECKS = {
    "proofs against all partitions": Check(10_000, _examined((2, 8), examine)),
    "proofs of cuts against all partitions": Check(500, _cuts_examined),
    "proofs of 30 to 120 against restarts": Check(300, _examined((30, 121), examine_larger)),
}
