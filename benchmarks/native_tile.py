"""The native tile and the native transform against everyone, in one interleaved run.

Every figure is a ratio of best-of-five times taken in turns. KeOps is measured if ``pykeops`` is
installed (``pip install --group bench``); it compiles on first use. The roofline is what the pass
would take if it were only its matrix products, at the speed of this machine's own sgemm, and
NumPy's float32 exponential on both cores. ::

    python -m benchmarks.native_tile
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.fft import dct
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.data import median_rbf, noisy_blobs
from benchmarks.timing import Target, conclude, facts, interleaved, table
from sketchmeans.bandwidth import resolve_gamma
from sketchmeans.engine import engine_name, fwht
from sketchmeans.engine.native import VARIABLE, compiled
from sketchmeans.kernels import Laplacian
from sketchmeans.operators import DataOperator
from sketchmeans.points import row_blocks
from sketchmeans.sketches import HadamardSketch

N, FEATURES, WIDTH = 20_480, 20, 12
CHUNK = 1000
TRANSFORMS = (16, 20)
BATCH = 256

Task = Callable[[], Any]


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


def chunked(kernel: Callable[..., np.ndarray], X: np.ndarray, Omega: np.ndarray, gamma: float):
    """Return KΩ from blocks of rows of scikit-learn's kernel."""
    W = np.empty(Omega.shape, X.dtype)
    for block in row_blocks(len(X), CHUNK):
        W[block] = kernel(X[block], X, gamma=gamma) @ Omega
    return W


def keops(X: np.ndarray, Omega: np.ndarray, gamma: float) -> Task | None:
    """Return KΩ by KeOps on the CPU, compiled; None if it is not installed."""
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        return None
    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    K = (-gamma * ((x - y) ** 2).sum(-1)).exp()
    K @ Omega
    return lambda: K @ Omega


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


def passes(dtype: str) -> dict[str, float]:
    """Return seconds of the RBF pass by everyone."""
    X = noisy_blobs(N, FEATURES, dtype)
    kernel = median_rbf(X)
    sketch = HadamardSketch(N, WIDTH, seed=0)
    Omega = sketch.matrix.astype(dtype)
    operator = DataOperator(X, kernel)
    tasks = {
        "native": on("native", lambda: operator.multiply(sketch, n_threads=2)),
        "native, one thread": on("native", lambda: operator.multiply(sketch, n_threads=1)),
        "NumPy tiles": on("numpy", lambda: operator.multiply(sketch, n_threads=2)),
        "scikit-learn": lambda: chunked(rbf_kernel, X, Omega, kernel.gamma),
    }
    if dtype == "float32" and (by_keops := keops(X, Omega, kernel.gamma)):
        tasks["KeOps"] = by_keops
    expected = tasks["scikit-learn"]()
    error = np.linalg.norm(tasks["native"]().W - expected) / np.linalg.norm(expected)
    if error > {"float32": 1e-4, "float64": 1e-10}[dtype]:
        raise AssertionError(f"{dtype}: the products differ by {error:.1e}")
    return interleaved(tasks)


def laplacian() -> dict[str, float]:
    """Return seconds of a Laplacian pass, n a quarter: scikit-learn's takes its time."""
    X = noisy_blobs(N // 4, FEATURES, "float32")
    kernel = Laplacian(resolve_gamma("median", Laplacian, X, 0))
    sketch = HadamardSketch(len(X), WIDTH, seed=0)
    Omega = sketch.matrix.astype(X.dtype)
    operator = DataOperator(X, kernel)
    return interleaved(
        {
            "native": on("native", lambda: operator.multiply(sketch, n_threads=2)),
            "NumPy tiles": on("numpy", lambda: operator.multiply(sketch, n_threads=2)),
            "scikit-learn": lambda: chunked(laplacian_kernel, X, Omega, kernel.gamma),
        }
    )


def transforms(bits: int) -> dict[str, float]:
    """Return nanoseconds an element of one column, and of a batch on one thread and on two."""
    # Zeros: a transform in place, again and again, would overflow with anything else.
    column, batch = (np.zeros(shape, np.float32) for shape in ((1 << bits, 1), (1 << 16, BATCH)))
    flat = np.random.default_rng(0).normal(size=1 << bits).astype(np.float32)
    native = compiled()
    seconds = interleaved(
        {
            "native": lambda: native.transform(column, 0, 1),
            "NumPy": on("numpy", lambda: fwht(column)),
            "SciPy's DCT": lambda: dct(flat),
        },
        calls=10,
    )
    seconds |= interleaved(
        {
            "batch": on("native", lambda: fwht(batch, overwrite=True)),
            "batch, two threads": on("native", lambda: fwht(batch, n_threads=2, overwrite=True)),
        }
    )
    return {
        name: 1e9 * value / (batch.size if "batch" in name else column.size)
        for name, value in seconds.items()
    }


def main() -> list[Target]:
    if engine_name() != "native":
        raise SystemExit("the native engine was not built, or SKETCHMEANS_ENGINE forbids it.")
    print(facts(), f"\nnative level: {compiled().levels()[0]}\n")
    flops, exponential = roofline()
    limit = N * N / 2 * ((2 * FEATURES + 4 * WIDTH) / flops + exponential / 2)
    single, double, l1 = passes("float32"), passes("float64"), laplacian()
    rows = [
        [task, name, f"{seconds[name]:.3f} s", f"{seconds[name] / seconds['native']:.2f}×"]
        for task, seconds in (("RBF, float32", single), ("RBF, float64", double), ("L1", l1))
        for name in seconds
    ]
    rows.append(["RBF, float32", "roofline", f"{limit:.3f} s", f"{limit / single['native']:.2f}×"])
    print(table(["pass", "by", "best of five", "time over native's"], rows), "\n")
    rate = N * N / single["native"] / 1e9
    print(f"{rate:.2f}e9 entries a second; sgemm {flops / 1e9:.0f} GFLOP/s on all cores, ")
    print(f"exp {1e9 * exponential:.2f} ns an entry on one.\n")
    elements = {bits: transforms(bits) for bits in TRANSFORMS}
    rows = [
        [f"2^{bits}", *(f"{value:.2f}" for value in elements[bits].values())] for bits in elements
    ]
    print(table(["ns an element, float32", *elements[TRANSFORMS[0]]], rows))
    native = single["native"]
    targets = [
        Target("native against NumPy tiles", single["NumPy tiles"] / native, 1.8),
        Target("native against scikit-learn", single["scikit-learn"] / native, 18),
        Target("share of the roofline", limit / native, 0.6),
        Target("float64 against NumPy tiles", double["NumPy tiles"] / double["native"], 1.5),
        Target("Laplacian against scikit-learn", l1["scikit-learn"] / l1["native"], 10),
        Target("two threads against one", single["native, one thread"] / native, 1.7),
    ]
    if "KeOps" in single:
        targets.append(Target("native against KeOps", single["KeOps"] / native, 35))
    for bits, times in elements.items():
        name = f"transform at 2^{bits}"
        targets += [
            Target(name, times["native"], 1.2, "ns an element", at_most=True),
            Target(f"{name} against SciPy's DCT", times["SciPy's DCT"] / times["native"], 5),
        ]
    times = elements[TRANSFORMS[0]]
    ratio = times["batch"] / times["batch, two threads"]
    targets.append(Target("batch of transforms, two threads against one", ratio, 1.7))
    return conclude(targets)


if __name__ == "__main__":
    main()
