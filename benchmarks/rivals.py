"""The product KΩ by others: the rivals of a pass over the RBF kernel.

Each function returns a task that makes KΩ. What can be made ready beforehand (compiling, norms)
is not timed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from benchmarks.timing import Task
from sketchmeans.blocks import row_blocks

CHUNKS = (250, 1000, 4000)
"""Rows at a time; a rival in blocks is measured with each, and its best counts."""


def scikit_learn(
    X: np.ndarray,
    Omega: np.ndarray,
    gamma: float,
    chunk: int,
    kernel: Callable[..., np.ndarray] = rbf_kernel,
) -> Task:
    """Return KΩ from blocks of rows of scikit-learn's kernel, on all threads of BLAS."""

    def run() -> np.ndarray:
        W = np.empty(Omega.shape, X.dtype)
        for block in row_blocks(len(X), chunk):
            W[block] = kernel(X[block], X, gamma=gamma) @ Omega
        return W

    return run


def threaded_rbf(X: np.ndarray, Y: np.ndarray, *, gamma: float) -> np.ndarray:
    """Return scikit-learn's kernel, its columns shared by threads."""
    return pairwise_kernels(X, Y, metric="rbf", gamma=gamma, n_jobs=os.cpu_count())


def torch_blocks(X: np.ndarray, Omega: np.ndarray, gamma: float, chunk: int) -> Task:
    """Return KΩ from blocks of rows by PyTorch on the CPU: one product, exp in place, one more."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    x, omega = torch.from_numpy(X), torch.from_numpy(Omega)
    norms = -gamma * (x * x).sum(dim=1)

    def run() -> np.ndarray:
        W = torch.empty_like(omega)
        with torch.inference_mode():
            for block in row_blocks(len(X), chunk):
                argument = torch.addmm(norms[None, :], x[block], x.T, alpha=2 * gamma)
                argument += norms[block, None]
                W[block] = argument.exp_() @ omega
        return W.numpy()

    return run


def keops(X: np.ndarray, Omega: np.ndarray, gamma: float) -> Task:
    """Return KΩ by KeOps on the CPU; its formula is compiled here."""
    from pykeops.numpy import LazyTensor

    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    K = (-gamma * ((x - y) ** 2).sum(-1)).exp()
    K @ Omega
    return lambda: K @ Omega


def installed(package: str) -> bool:
    """Whether a rival's package can be imported."""
    return importlib.util.find_spec(package) is not None


def in_blocks(X: np.ndarray, Omega: np.ndarray, gamma: float) -> dict[str, Task]:
    """Return the rivals that make K in blocks of rows, once a chunk; PyTorch if installed."""
    tasks = {"scikit-learn, n_jobs": scikit_learn(X, Omega, gamma, 1000, threaded_rbf)}
    for chunk in CHUNKS:
        tasks[f"scikit-learn, {chunk} rows"] = scikit_learn(X, Omega, gamma, chunk)
        if installed("torch"):
            tasks[f"PyTorch, {chunk} rows"] = torch_blocks(X, Omega, gamma, chunk)
    return tasks


def best_of(seconds: dict[str, float], rival: str) -> float:
    """Return the best time of a rival over its settings."""
    return min(value for name, value in seconds.items() if name.startswith(rival))
