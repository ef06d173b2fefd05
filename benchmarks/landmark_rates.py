"""How fast streams over the columns of landmarks run, and which form of recovery is the cheaper.

- The streamed product C·B, kernel evaluation included, against a symmetric pass of the native
  engine: multiply-adds per second. 20 features, RBF, as wide as the embedding of 8 clusters is.
- The Gram form, kernel evaluation included, against the same two products, C·T and FᵀF, by BLAS on
  a C that is stored, on all threads.
- The Gram form against subspace iteration on K̂ (a start and two steps, as wide as a one-pass
  sketch): seconds, and what of the trace of the best approximation of that rank it leaves. ::

    python -m benchmarks.landmark_rates
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.data import cores_and_shells, median_rbf
from benchmarks.timing import SEED, Report, Target, interleaved, need_native, standalone
from sketchmeans.blas import OneBlasThread, count_threads
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Run
from sketchmeans.lowrank.nystrom import nystrom
from sketchmeans.operators import DataOperator, FeatureOperator
from sketchmeans.rows import Part

N, PASS_N, FEATURES, RANK = 100_000, 20_480, 20, 18
MANY = (100, 200, 320, 640, 1280)
STEPS = 3
"""Products with K̂ of subspace iteration."""


def features_of(dtype: str, m: int) -> FeatureOperator:
    """Return K̂ of N samples from m landmarks, C not held."""
    X, _ = cores_and_shells(N, FEATURES, dtype)
    run = Run(count_threads(None))
    found = nystrom(DataOperator(X, median_rbf(X, 4)), columns=m, rank=RANK, seed=SEED, run=run)
    assert found.whole is not None
    assert found.whole.operator.held is None
    return found.whole.operator


def products(C: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return FᵀF for F = CT, by BLAS on all threads, blocks of rows as the stream has them."""
    T = T.astype(C.dtype)
    total = np.zeros((T.shape[1],) * 2)
    for rows in row_blocks(len(C)):
        F = (C[rows] @ T).astype(np.float64, copy=False)
        total += F.T @ F
    return total


def subspace(features: FeatureOperator, rank: int, run: Run) -> np.ndarray:
    """Return the leading Ritz values of K̂ after some products with it, 2 · rank columns wide."""
    Q = np.random.default_rng(SEED).standard_normal((features.map.count, 2 * rank))
    with OneBlasThread():
        for step in range(STEPS):
            Y = features.product(Q, run)
            if step + 1 < STEPS:
                Q = np.linalg.qr(project(features, Y, run))[0]
        core = project(features, Y, run)
        # Ritz values of K̂ on the range of Y = FQ: generalized, of YᵀK̂Y against YᵀY.
        values, V = np.linalg.eigh(Y.T @ Y)
        whiten = V / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        return np.linalg.eigvalsh(whiten.T @ (core.T @ core) @ whiten)[::-1][:rank]


def project(features: FeatureOperator, Y: np.ndarray, run: Run) -> np.ndarray:
    """Return FᵀY, one stream."""
    total = features.stream(features.blockwise(_projected), run, Y, sums=True).total
    return features.map.projected(total)


def _projected(part: FeatureOperator, rows: slice, Y: np.ndarray) -> Part:
    return Part((), part.block(rows).astype(np.float64, copy=False).T @ Y)


def main() -> Report:
    need_native()
    report, targets = Report(), []
    run = Run(count_threads(None))
    rows: list[list[Any]] = []
    for dtype in ("float32", "float64"):
        features = features_of(dtype, 320)
        m, count = features.map.width, features.map.count
        X, _ = cores_and_shells(PASS_N, FEATURES, dtype)
        operator = DataOperator(X, median_rbf(X, 4))
        Omega = np.random.default_rng(SEED).standard_normal((PASS_N, RANK))
        right, near = np.eye(count, RANK), np.zeros(count)
        C = np.concatenate([features.block(part) for part in row_blocks(N)])
        T = features.map.T
        seconds = interleaved(
            {
                "pass": lambda operator=operator, Omega=Omega: operator.multiply(Omega, run),
                "product": lambda features=features, right=right: features.product(right, run),
                "Gram": lambda features=features, near=near: features.gram(near, run),
                "BLAS": lambda C=C, T=T: products(C, T),
            }
        )
        adds = {
            "pass": PASS_N**2 * (RANK + 1),
            "product": N * m * RANK,
            "Gram": N * m * count + N * count**2,
            "BLAS": N * m * count + N * count**2,
        }
        rates = {name: adds[name] / seconds[name] / 1e9 for name in adds}
        rows += [[dtype, name, seconds[name], rate] for name, rate in rates.items()]
        product, gram = rates["product"] / rates["pass"], rates["Gram"] / rates["BLAS"]
        targets += [
            Target(f"streamed product over a pass, {dtype}", product, 0.7),
            Target(f"Gram form over BLAS on a stored C, {dtype}", gram, 0.7),
        ]
    report.table(["precision", "what", "seconds", "10⁹ multiply-adds a second"], rows)
    _forms(report, run)
    return report.conclude(targets)


def _forms(report: Report, run: Run) -> None:
    rows = []
    for m in MANY:
        features = features_of("float32", m)
        near = np.zeros(features.map.count)
        found: dict[str, np.ndarray] = {}

        def gram(features: FeatureOperator = features, near: np.ndarray = near, found: Any = found):
            values, V = np.linalg.eigh(features.gram(near, run).squared)
            features.product(V[:, ::-1][:, :RANK], run)
            found["Gram"] = values[::-1][:RANK]

        def iterate(features: FeatureOperator = features, found: Any = found) -> None:
            found["subspace"] = subspace(features, RANK, run)

        seconds = interleaved({"Gram": gram, "subspace": iterate}, repeats=3)
        left = 1 - found["subspace"].sum() / found["Gram"].sum()
        rows.append([m, seconds["Gram"], seconds["subspace"], f"{left:.1e}"])
    report.table(
        ["m", "Gram form, s", "subspace iteration, s", "trace that the latter leaves"], rows
    )


if __name__ == "__main__":
    standalone(main)
