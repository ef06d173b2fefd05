"""The product KΩ by others: the rivals of a pass over the RBF kernel.

Each function returns a task that makes KΩ, or None where its package is not installed. What can
be made ready beforehand (compiling, norms) is not timed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from sketchmeans.points import row_blocks

Task = Callable[[], Any]

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


def torch_blocks(X: np.ndarray, Omega: np.ndarray, gamma: float, chunk: int) -> Task | None:
    """Return KΩ from blocks of rows by PyTorch on the CPU: one product, exp in place, one more."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

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


def keops(X: np.ndarray, Omega: np.ndarray, gamma: float) -> Task | None:
    """Return KΩ by KeOps on the CPU; its formula is compiled here."""
    if importlib.util.find_spec("pykeops") is None:
        return None
    from pykeops.numpy import LazyTensor

    x, y = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :])
    K = (-gamma * ((x - y) ** 2).sum(-1)).exp()
    K @ Omega
    return lambda: K @ Omega


def everyone(X: np.ndarray, Omega: np.ndarray, gamma: float) -> dict[str, Task]:
    """Return the tasks of all rivals that are installed, those in blocks once a chunk."""
    tasks: dict[str, Task | None] = {"KeOps": keops(X, Omega, gamma)}
    for chunk in CHUNKS:
        tasks[f"scikit-learn, {chunk} rows"] = scikit_learn(X, Omega, gamma, chunk)
        tasks[f"PyTorch, {chunk} rows"] = torch_blocks(X, Omega, gamma, chunk)
    return {name: task for name, task in tasks.items() if task is not None}


def best_of(seconds: dict[str, float], rival: str) -> float:
    """Return the best time of a rival over its chunks."""
    return min(value for name, value in seconds.items() if name.startswith(rival))
