"""The native pass against everyone, in one interleaved run: the best of five each.

n = 20,480, p = 20, width 12, two threads. Rivals in blocks of rows are measured with several sizes
of block, scikit-learn with and without ``n_jobs``, and their best counts. KeOps and PyTorch are
measured where they are installed. KeOps compiles on first use, as it comes and with the flags that
suit it best; each in a process of its own, in turns with the native pass there.

The roofline is what the pass would take if it were only its matrix products, at the speed of this
machine's own sgemm, and NumPy's float32 exponential on both cores. The sparse pass stands beside
SciPy's bare product of the same rows and columns, each pair once, on one thread. ::

    python -m benchmarks.native_tile
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from benchmarks.data import median_rbf, noisy_blobs, words
from benchmarks.processes import Failed, measured
from benchmarks.rivals import CHUNKS, best_of, in_blocks, installed, keops, scikit_learn
from benchmarks.timing import SEED, Report, Target, Task, interleaved, need_native, on, standalone
from sketchmeans.blas import thread_controller
from sketchmeans.blocks import row_blocks
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Kernel, Laplacian
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import HadamardSketch

N, FEATURES, WIDTH = 20_480, 20, 12
SPARSE_N, SPARSE_FEATURES = 8000, 5000
SGEMM, ENTRIES = 2048, 1 << 16
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}
KEOPS = {"KeOps": "", "KeOps, -march=native -ffast-math": "-march=native -ffast-math"}
"""What KeOps is compiled with: nothing of ours, and what its authors leave to the user."""

Seconds = dict[str, float]


def ours(X: Any, kernel: Kernel) -> dict[str, Task]:
    """Return our own passes: both engines, and the native one on one thread."""
    operator, sketch = DataOperator(X, kernel), HadamardSketch(X.shape[0], WIDTH, seed=SEED)
    return {
        "native": on("native", lambda: operator.multiply(sketch, Run(2)).W),
        "native, one thread": on("native", lambda: operator.multiply(sketch, Run(1)).W),
        "NumPy tiles": on("numpy", lambda: operator.multiply(sketch, Run(2)).W),
    }


def signs(dtype: str) -> np.ndarray:
    """Return the Ω of ``ours``."""
    return HadamardSketch(N, WIDTH, seed=SEED).matrix.astype(dtype)


def checked(tasks: dict[str, Task], dtype: str) -> dict[str, Task]:
    """Return the tasks, all of which must give the product that the first one gives."""
    expected = next(iter(tasks.values()))()
    for name, task in tasks.items():
        error = np.linalg.norm(task() - expected) / np.linalg.norm(expected)
        if error > TOLERANCE[dtype]:
            raise AssertionError(f"{name}, {dtype}: the products differ by {error:.1e}")
    return tasks


def small_blocks(
    X: np.ndarray, Omega: np.ndarray, gamma: float, kernel: Callable[..., np.ndarray] = rbf_kernel
) -> dict[str, Task]:
    """Return scikit-learn in small blocks; larger ones are slower in every run."""
    return {
        f"scikit-learn, {chunk} rows": scikit_learn(X, Omega, gamma, chunk, kernel)
        for chunk in CHUNKS[:2]
    }


def parts_of_the_roofline() -> dict[str, Task]:
    """Return a product by BLAS on all cores, and 2^16 exponentials by NumPy on one."""
    random = np.random.default_rng(SEED)
    A, B = (random.normal(size=(SGEMM, SGEMM)).astype(np.float32) for _ in range(2))
    argument = random.uniform(-3, 0, ENTRIES).astype(np.float32)
    out = np.empty_like(argument)

    def sgemm() -> None:
        with thread_controller().limit(limits=os.cpu_count(), user_api="blas"):
            A @ B

    def exponentials() -> None:
        for _ in range(50):
            np.exp(argument, out=out)

    return {"sgemm": sgemm, "exp": exponentials}


def rbf(dtype: str) -> Seconds:
    """Return seconds of the RBF pass by everyone but KeOps, and of the parts of the roofline.

    In float64 ours and scikit-learn in its two best blocks.
    """
    X = noisy_blobs(N, FEATURES, dtype)
    kernel, Omega = median_rbf(X), signs(dtype)
    if dtype == "float64":
        return interleaved(checked(ours(X, kernel) | small_blocks(X, Omega, kernel.gamma), dtype))
    tasks = checked(ours(X, kernel) | in_blocks(X, Omega, kernel.gamma), dtype)
    return interleaved(tasks | parts_of_the_roofline())


def keops_and_native() -> Seconds:
    """Return seconds of KeOps and of the native pass, in turns, with KeOps as CXXFLAGS has it."""
    X = noisy_blobs(N, FEATURES, "float32")
    kernel = median_rbf(X)
    tasks = {"native": ours(X, kernel)["native"], "KeOps": keops(X, signs("float32"), kernel.gamma)}
    return interleaved(checked(tasks, "float32"))


def every_keops() -> dict[str, Seconds]:
    """Return the seconds of both for every way to compile KeOps that succeeds."""
    found = {}
    for name, flags in KEOPS.items():
        with tempfile.TemporaryDirectory() as cache:
            environment = {"CXXFLAGS": flags, "KEOPS_CACHE_FOLDER": cache}
            function = "benchmarks.native_tile:keops_and_native"
            try:
                found[name] = measured(function, environment=environment)
            except Failed as error:
                print(f"{name}: {error}", flush=True)
    return found


def laplacian() -> Seconds:
    """Return seconds of a Laplacian pass."""
    X = noisy_blobs(N, FEATURES, "float32")
    kernel = Laplacian(resolve_gamma("median", Laplacian, X, SEED))
    rivals = small_blocks(X, signs("float32"), kernel.gamma, laplacian_kernel)
    return interleaved(checked(ours(X, kernel) | rivals, "float32"))


def upper_product(X: sparse.csr_matrix, chunk: int) -> Task:
    """Return SciPy's product of sparse rows with those from them on: each pair about once."""
    parts = [(X[rows], X[rows.start :].T.tocsr()) for rows in row_blocks(X.shape[0], chunk)]

    def run() -> None:
        for left, right in parts:
            left @ right

    return run


def sparse_rbf() -> Seconds:
    """Return seconds of a pass over sparse data, and of SciPy's product alone."""
    X = words(SPARSE_N, SPARSE_FEATURES)
    tasks = checked(ours(X, median_rbf(X)), "float32")
    return interleaved(
        tasks | {f"SciPy's product, {chunk} rows": upper_product(X, chunk) for chunk in CHUNKS}
    )


def main() -> Report:
    need_native()
    report = Report()
    single, double, l1, of_sparse = rbf("float32"), rbf("float64"), laplacian(), sparse_rbf()
    flops, exponential = 2 * SGEMM**3 / single.pop("sgemm"), single.pop("exp") / 50 / ENTRIES
    native = single["native"]
    single["roofline"] = N * N / 2 * ((2 * FEATURES + 4 * WIDTH) / flops + exponential / 2)
    cases = {"RBF, float32": single, "RBF, float64": double, "L1": l1, "RBF, sparse": of_sparse}
    rows = [
        [case, name, seconds[name], seconds[name] / seconds["native"]]
        for case, seconds in cases.items()
        for name in seconds
    ]
    compiled_ways = every_keops() if installed("pykeops") else {}
    keops_ratios = {
        name: seconds["KeOps"] / seconds["native"] for name, seconds in compiled_ways.items()
    }
    rows += [
        ["RBF, float32", name, compiled_ways[name]["KeOps"], ratio]
        for name, ratio in keops_ratios.items()
    ]
    report.table(["pass", "by", "seconds", "over native's"], rows)
    products = N * N / 2 * (2 * FEATURES + 4 * (WIDTH + 1)) / native
    report.table(
        ["entries of K a second", "GFLOP/s of its products", "GFLOP/s of sgemm", "ns an exp"],
        [[f"{N * N / native:.3g}", products / 1e9, flops / 1e9, 1e9 * exponential]],
    )
    targets = [
        Target("native against NumPy tiles", single["NumPy tiles"] / native, 1.8),
        Target("native against scikit-learn", best_of(single, "scikit-learn") / native, 18),
        Target(
            "NumPy tiles against scikit-learn",
            best_of(single, "scikit-learn") / single["NumPy tiles"],
            6,
        ),
        Target("share of the roofline", single["roofline"] / native, 0.6),
        Target("float64 against NumPy tiles", double["NumPy tiles"] / double["native"], 1.5),
        Target("Laplacian against scikit-learn", best_of(l1, "scikit-learn") / l1["native"], 10),
        Target("two threads against one", single["native, one thread"] / native, 1.7),
        Target(
            "sparse pass on one thread against SciPy's product",
            best_of(of_sparse, "SciPy") / of_sparse["native, one thread"],
            1,
        ),
        *(Target(f"native against {name}", ratio, 35) for name, ratio in keops_ratios.items()),
    ]
    return report.conclude(targets)


if __name__ == "__main__":
    standalone(main)
