"""Fits of about 300 samples: their bounds against dense objectives and the best of 50 restarts.

Distances in feature space are taken in long double, from differences where the kernel allows it;
the truth is as uncertain as the last digits of that, and no more is granted to the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.certificate.proving import LEVELS
from sketchmeans.lowrank import METHODS
from soak.bounds import draw_weights, variants
from soak.running import Cases, Check
from soak.truth import objectives

RESTARTS = 50
STEPS = 60
KERNELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linear", {}),
    ("polynomial", {"degree": 2}),
    ("rbf", {}),
    ("rbf", {"gamma": "8*median"}),
    ("laplacian", {}),
    ("cosine", {}),
    ("precomputed", {}),
)
OFFSETS = {"polynomial": (0.0, 10.0), "cosine": (0.0, 10.0)}
"""Offsets that long double still tells the distances from; others may lie farther away."""
EPS = float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True)
class Truth:
    """Squared distances in feature space, and how far each may be off."""

    distances: np.ndarray
    error: float


def distances_of(model: Any, X: np.ndarray) -> Truth:
    """Return ‖φ(x) − φ(y)‖² of every pair of rows."""
    exact = X.astype(np.longdouble)
    if model.kernel == "precomputed":
        K = (exact + exact.T) / 2
    elif model.kernel in ("rbf", "laplacian"):
        power = 2 if model.kernel == "rbf" else 1
        apart = sum(np.abs(column[:, None] - column) ** power for column in exact.T)
        return Truth((-2 * np.expm1(-np.longdouble(model.gamma_) * apart)).astype(float), 0.0)
    elif model.kernel == "linear":
        squares = sum((column[:, None] - column) ** 2 for column in exact.T)
        return Truth(squares.astype(float), 0.0)
    elif model.kernel == "cosine":
        sizes = np.sqrt(np.square(exact).sum(axis=1))
        K = (exact @ exact.T) / np.outer(sizes, sizes)
    else:
        K = (np.longdouble(model.gamma_) * (exact @ exact.T) + model.coef0) ** model.degree
    diagonal = np.diag(K)
    found = (diagonal[:, None] + diagonal - 2 * K).astype(float)
    terms = 8 * (X.shape[1] + 4)
    return Truth(np.maximum(found, 0.0), terms * EPS * float(np.abs(K).max()))


def restarted(D: np.ndarray, weights: np.ndarray, k: int, random: np.random.Generator) -> float:
    """Return the least objective of many restarts of Lloyd's algorithm on all distances."""
    best = np.inf
    for _ in range(RESTARTS):
        seeds = random.choice(len(D), k, replace=False)
        labels = D[:, seeds].argmin(axis=1)
        for _ in range(STEPS):
            members = (labels[:, None] == np.arange(k)) * weights[:, None]
            sizes = np.maximum(members.sum(axis=0), 1e-300)
            to = D @ members / sizes
            new = (to - np.einsum("ij,ij->j", members, to) / (2 * sizes)).argmin(axis=1)
            if (new == labels).all():
                break
            labels = new
        best = min(best, float(objectives(D, weights, labels[None])[0]))
    return best


def draw(random: np.random.Generator, n: int, offset: float) -> np.ndarray:
    """Return blobs that touch, stretched, with some outliers and duplicates."""
    p, k = int(random.integers(2, 9)), int(random.integers(2, 9))
    centers = 4 * random.normal(size=(k, p))
    X = centers[random.integers(k, size=n)] + random.normal(size=(n, p)) * random.uniform(0.2, 2, p)
    if random.random() < 0.3:
        X[:3] *= 100
    if random.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2]
    return X + offset


def examined(seed: int, count: int) -> Cases:
    """Fit so many drawn problems, and hold each against the dense truth."""
    random = np.random.default_rng(seed)
    methods = variants()
    for index in range(count):
        n, options = int(random.integers(250, 351)), dict(methods[index % len(methods)])
        kernel, params = KERNELS[int(random.integers(len(KERNELS)))]
        dtype = (np.float32, np.float64)[int(random.integers(2))]
        offset = float(random.choice(OFFSETS.get(kernel, (0.0, 10.0, 1e4))))
        X = draw(random, n, offset).astype(dtype)
        options |= {"kernel": kernel, "random_state": index, "n_jobs": 1} | params
        if kernel == "precomputed":
            exact = X.astype(float)
            squares = np.square(exact[:, None] - exact).sum(axis=2)
            X = np.exp(-squares / np.median(squares)).astype(dtype)
            if options.get("sketch") == "kmeans":
                options["sketch"] = "uniform"
        weights = draw_weights(random, n)
        k = int(random.integers(2, 11))
        model: Any
        if options["method"] == "full":
            del options["method"]
            model = FullKernelKMeans(k, n_init=2, **options)
        else:
            level = LEVELS[int(random.integers(len(LEVELS)))]
            options |= {"certificate": level, "n_refine": int(random.integers(0, 3))}
            if METHODS[options["method"]].landmarks:
                options["n_landmarks"] = int(random.integers(k + 10, 120))
            model = KernelKMeans(k, n_init=2, **options)
        name = f"{index}: n={n} k={k} {np.dtype(dtype).name} offset {offset:g} {options}"
        yield model_case(model, X, weights, k, name, random)


def model_case(
    model: Any,
    X: np.ndarray,
    weights: np.ndarray | None,
    k: int,
    name: str,
    random: np.random.Generator,
) -> tuple[str, list[str]]:
    """Fit one, and return its kind and what is broken."""
    try:
        certificate = model.fit(X, sample_weight=weights).certificate_
    except ValueError as error:
        return "refused", [] if "cannot" in str(error) else [f"{name}: {error}"]
    if certificate.objective_upper is None:
        return "without a bound", [] if certificate.reason else [f"{name}: no reason is given"]
    truth = distances_of(model, X)
    d = np.ones(len(X)) if weights is None else weights
    own = float(objectives(truth.distances, d, model.labels_[None])[0])
    best = min(own, restarted(truth.distances, d, k, random))
    slack = truth.error * float(d.sum())
    broken = [
        f"{what}: {low:.17g} > {high:.17g} in {name}"
        for what, low, high in (
            ("objective_lower", certificate.objective_lower, own),
            ("objective_upper", own, certificate.objective_upper),
            ("optimum_lower", certificate.optimum_lower, best),
            ("optimum_lower is not negative", 0.0, certificate.optimum_lower),
        )
        if low is not None and high is not None and low > high * (1 + 1e-13) + slack
    ]
    close = certificate.relative_gap is not None and certificate.relative_gap < 0.1
    return "proved within 10 %" if close else "bounded", broken


CHECKS = {"fits of 300 against 50 restarts": Check(500, examined)}
