"""Full kernel K-means on a dense kernel matrix: a plain oracle for the experiment on defaults."""

from __future__ import annotations

import numpy as np


def members(labels: np.ndarray, k: int) -> np.ndarray:
    """Return the n × k indicators of the clusters, each divided by the root of its size."""
    indicators = np.eye(k)[labels]
    return indicators / np.sqrt(np.maximum(indicators.sum(axis=0), 1))


def objective(K: np.ndarray, labels: np.ndarray, k: int) -> float:
    """Return the exact objective of kernel K-means: tr K − tr CKCᵀ."""
    C = members(labels, k)
    return float(np.trace(K) - np.vdot(C, K @ C))


def lloyd(K: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Run Lloyd's iterations on the dense kernel matrix until the labels stop changing."""
    for _ in range(300):
        C = members(labels, k)
        scale = C.max(axis=0)  # 1 / √size
        KC = K @ C
        distances = np.vecdot(C.T, KC.T) * scale**2 - 2 * KC * scale
        distances[:, scale == 0] = np.inf
        new = distances.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels


def spread_start(K: np.ndarray, k: int, random: np.random.Generator) -> np.ndarray:
    """Return labels by the nearest of k samples, drawn as k-means++ draws them."""
    distances = np.full((len(K), k), np.inf)
    odds = np.ones(len(K))
    for cluster in range(k):
        chosen = random.choice(len(K), p=odds / odds.sum())
        distances[:, cluster] = np.maximum(K.diagonal() + K[chosen, chosen] - 2 * K[:, chosen], 0)
        odds = distances.min(axis=1)
    return distances.argmin(axis=1)


def full_kernel_kmeans(K: np.ndarray, k: int, *, starts: int = 10) -> np.ndarray:
    """Return the best labels of several starts of Lloyd's iterations on the whole of K."""
    random = np.random.default_rng(0)
    found = [lloyd(K, spread_start(K, k, random), k) for _ in range(starts)]
    return min(found, key=lambda labels: objective(K, labels, k))
