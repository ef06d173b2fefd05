"""How often a fit of easy shapes goes wrong by chance: what statistical tests may state.

Three spirals with the defaults, where the cut that was found stands beside that of the true arms;
two rings with a polynomial kernel, by the number of starts; and two eigenvectors of a graph of two
moons, whose cut stands beside that of scikit-learn. ::

    python -m benchmarks.lost_draws [--draws 250]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.neighbors import kneighbors_graph

from sketchmeans import KernelKMeans
from sketchmeans.datasets import make_rings
from sketchmeans.graphs import normalized

FOUND = 0.95


def spirals(seed: int, arms: int = 3, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Return points near the arms of a spiral, and which arm each is of."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % arms
    angle = random.uniform(0.55 * np.pi, 2.2 * np.pi, n)
    turned = angle + 2 * np.pi * y / arms
    X = angle[:, None] / (2.2 * np.pi) * np.column_stack([np.cos(turned), np.sin(turned)])
    return X + 0.02 * random.standard_normal(X.shape), y


def cut_of(A: np.ndarray, labels: np.ndarray) -> float:
    """Return the normalized cut of a dense matrix of weights."""
    kinds = [labels == c for c in set(labels.tolist())]
    return len(kinds) - sum(A[np.ix_(one, one)].sum() / A[one].sum() for one in kinds)


def lost_spirals(draws: int) -> None:
    """Print the draws in which the arms are not found, with both cuts."""
    lost = 0
    for seed in range(1000, 1000 + draws):
        X, y = spirals(seed)
        model = KernelKMeans(3, random_state=seed).fit(X)
        score = nmi(y, model.labels_)
        if score > FOUND:
            continue
        lost += 1
        F = model._new_points.map.block(X).toarray()
        found, true = (cut_of(F @ F.T, labels) for labels in (model.labels_, y))
        more = nmi(y, KernelKMeans(3, n_init=50, random_state=seed).fit_predict(X))
        print(
            f"spirals, seed {seed}: NMI {score:.2f}, cut {found:.5f}, of the arms {true:.5f}; "
            f"with 50 starts NMI {more:.2f}"
        )
    print(f"spirals: lost in {lost} of {draws} draws", flush=True)


def lost_rings(draws: int) -> None:
    """Print in how many fits of the same rings each number of starts ends in a worse optimum."""
    X, y = make_rings(2000, random_state=0)
    options = {"kernel": "polynomial", "degree": 2, "coef0": 0, "rank": 2, "oversampling": 10}
    for starts in (1, 10, 30):
        lost = 0
        for seed in range(draws):
            model = KernelKMeans(2, n_init=starts, random_state=seed, **options)
            lost += nmi(y, model.fit_predict(X)) < FOUND
        print(f"rings, {starts} starts: lost in {lost} of {draws} fits", flush=True)


def compared_moons(draws: int) -> None:
    """Print how often the cut of two eigenvectors is less or more than scikit-learn's."""
    less = more = 0
    for seed in range(2000, 2000 + draws):
        X, _ = make_moons(500, noise=0.07, random_state=seed)
        A = kneighbors_graph(X, 15)
        A = A.maximum(A.T)
        K, weights = normalized(A)
        model = KernelKMeans(2, kernel="precomputed", rank=2, method="exact", random_state=0)
        ours = cut_of(A.toarray(), model.fit(K, sample_weight=weights).labels_)
        rival = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(A)
        theirs = cut_of(A.toarray(), rival)
        less += ours < theirs - 1e-12
        more += ours > theirs + 1e-12
    print(f"moons: the cut is less than scikit-learn's in {less} of {draws} draws, more in {more}")


def main() -> None:
    """Print all three."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=250)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    lost_spirals(draws)
    lost_rings(draws)
    compared_moons(draws)


if __name__ == "__main__":
    main()
