"""The native pass against everyone, in one interleaved run: the best of five each.

RBF at n = 20,480, p = 20, width 12, on two threads. KeOps and PyTorch are measured where they are
installed (``pip install --group bench``); KeOps compiles on first use. The roofline is what the
pass would take if it were only its matrix products, at the speed of this machine's own sgemm, and
NumPy's float32 exponential on both cores. The sparse pass stands beside SciPy's bare product of
the same matrix, without the kernel's map and without Ω. ::

    python -m benchmarks.native_tile
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel
from threadpoolctl import threadpool_limits

from benchmarks.data import median_rbf, noisy_blobs, words
from benchmarks.rivals import CHUNKS, Task, best_of, everyone, scikit_learn
from benchmarks.timing import Report, Target, interleaved, standalone
from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.engine import engine_name
from sketchmeans.engine.native import VARIABLE, compiled
from sketchmeans.kernels import Kernel, Laplacian
from sketchmeans.operators import DataOperator
from sketchmeans.points import row_blocks
from sketchmeans.sketches import HadamardSketch

N, FEATURES, WIDTH = 20_480, 20, 12
SPARSE_N, SPARSE_FEATURES = 8000, 5000
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}


def on(engine: str, task: Task) -> Task:
    """Return the task, run with this engine."""

    def run() -> Any:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = engine
        try:
            return task()
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before

    return run


def ours(X: Any, kernel: Kernel, sketch: HadamardSketch) -> dict[str, Task]:
    """Return our own passes: both engines, and the native one on one thread."""
    operator = DataOperator(X, kernel)
    return {
        "native": on("native", lambda: operator.multiply(sketch, n_threads=2)),
        "native, one thread": on("native", lambda: operator.multiply(sketch, n_threads=1)),
        "NumPy tiles": on("numpy", lambda: operator.multiply(sketch, n_threads=2)),
    }


def rbf(dtype: str) -> dict[str, float]:
    """Return seconds of the RBF pass by everyone; float64 without KeOps and PyTorch."""
    X = noisy_blobs(N, FEATURES, dtype)
    kernel, sketch = median_rbf(X), HadamardSketch(N, WIDTH, seed=0)
    Omega = sketch.matrix.astype(dtype)
    rivals = everyone(X, Omega, kernel.gamma)
    if dtype == "float64":
        rivals = {name: task for name, task in rivals.items() if name.startswith("scikit-learn")}
    tasks = ours(X, kernel, sketch)
    W = tasks["native"]().W
    for name, task in rivals.items():
        error = np.linalg.norm(task() - W) / np.linalg.norm(W)
        if error > TOLERANCE[dtype]:
            raise AssertionError(f"{name}, {dtype}: the products differ by {error:.1e}")
    return interleaved(tasks | rivals)


def laplacian() -> dict[str, float]:
    """Return seconds of a Laplacian pass, n a quarter: scikit-learn's takes its time."""
    X = noisy_blobs(N // 4, FEATURES, "float32")
    kernel = Laplacian(resolve_gamma("median", Laplacian, X, 0))
    sketch = HadamardSketch(len(X), WIDTH, seed=0)
    Omega = sketch.matrix.astype(X.dtype)
    rivals = {
        f"scikit-learn, {chunk} rows": scikit_learn(X, Omega, kernel.gamma, chunk, laplacian_kernel)
        for chunk in CHUNKS
    }
    return interleaved(ours(X, kernel, sketch) | rivals)


def rows_of_product(X: sparse.csr_matrix, chunk: int) -> Task:
    """Return SciPy's product of a sparse matrix with its transpose, some rows at a time."""

    def run() -> None:
        other = X.T.tocsr()
        for rows in row_blocks(X.shape[0], chunk):
            X[rows] @ other

    return run


def sparse_rbf() -> dict[str, float]:
    """Return seconds of a pass over sparse data, and of SciPy's product alone."""
    X = words(SPARSE_N, SPARSE_FEATURES)
    rivals = {f"SciPy's product, {chunk} rows": rows_of_product(X, chunk) for chunk in CHUNKS}
    sketch = HadamardSketch(SPARSE_N, WIDTH, seed=0)
    return interleaved(ours(X, median_rbf(X), sketch) | rivals)


def roofline() -> tuple[float, float]:
    """Return float32 operations a second of both cores, and seconds of NumPy's exp an entry."""
    random = np.random.default_rng(0)
    A, B = (random.normal(size=(2048, 2048)).astype(np.float32) for _ in range(2))
    argument = random.uniform(-3, 0, 1 << 16).astype(np.float32)
    out = np.empty_like(argument)
    with threadpool_limits(os.cpu_count(), user_api="blas"):
        product = interleaved({"sgemm": lambda: A @ B})["sgemm"]
    exponential = interleaved({"exp": lambda: np.exp(argument, out=out)}, calls=50)["exp"]
    return 2 * 2048**3 / product, exponential / argument.size


def main() -> Report:
    if engine_name() != "native":
        raise SystemExit("the native engine was not built, or SKETCHMEANS_ENGINE forbids it.")
    report = Report()
    flops, exponential = roofline()
    limit = N * N / 2 * ((2 * FEATURES + 4 * WIDTH) / flops + exponential / 2)
    single, double, l1, of_sparse = rbf("float32"), rbf("float64"), laplacian(), sparse_rbf()
    single["roofline"] = limit
    cases = {"RBF, float32": single, "RBF, float64": double, "L1": l1, "RBF, sparse": of_sparse}
    report.table(
        ["pass", "by", "seconds", "over native's"],
        [
            [case, name, seconds[name], seconds[name] / seconds["native"]]
            for case, seconds in cases.items()
            for name in seconds
        ],
    )
    native = single["native"]
    products = N * N / 2 * (2 * FEATURES + 4 * (WIDTH + 1)) / native
    report.table(
        ["level", "1e9 entries a second", "GFLOP/s, products alone", "of sgemm", "exp, ns"],
        [
            [
                compiled().levels()[0],
                N * N / native / 1e9,
                products / 1e9,
                flops / 1e9,
                1e9 * exponential,
            ]
        ],
    )
    targets = [
        Target("native against NumPy tiles", single["NumPy tiles"] / native, 1.8),
        Target("native against scikit-learn", best_of(single, "scikit-learn") / native, 18),
        Target(
            "NumPy tiles against scikit-learn",
            best_of(single, "scikit-learn") / single["NumPy tiles"],
            6,
        ),
        Target("share of the roofline", limit / native, 0.6),
        Target("float64 against NumPy tiles", double["NumPy tiles"] / double["native"], 1.5),
        Target("Laplacian against scikit-learn", best_of(l1, "scikit-learn") / l1["native"], 10),
        Target("two threads against one", single["native, one thread"] / native, 1.7),
        Target(
            "sparse pass on one thread against SciPy's product",
            best_of(of_sparse, "SciPy") / of_sparse["native, one thread"],
            1,
        ),
    ]
    if "KeOps" in single:
        targets.append(Target("native against KeOps", single["KeOps"] / native, 35))
    return report.conclude(targets)


if __name__ == "__main__":
    standalone(main)
