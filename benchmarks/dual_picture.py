"""A picture of a dual N: which pairs of samples the proof pushes apart.

Sixty samples around three centers, with the linear kernel. The lift adds N_ij ≥ 0 to the kernel of
some pairs, those that eigenvalues alone would put together by a negative share; no partition
does, so it costs nothing but bounds better. Left: pairs with the largest N_ij, as lines. Right: N
itself, samples sorted by cluster. ::

    python -m benchmarks.dual_picture [--out docs/dual.svg]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from benchmarks.timing import SEED
from sketchmeans.certificate.lift import Lifting
from sketchmeans.certificate.spectral import centred_block, objective_bound, objective_of

STEPS, SHOWN = 300, 250
COLOURS = ("#4477aa", "#ee6677", "#228833")


def dual() -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """Return samples, labels and N, and the bounds without and with it, in per cent of L."""
    X, _ = make_blobs(60, 2, centers=[(0, 0), (6, 0), (3, 5)], cluster_std=1.3, random_state=SEED)
    labels = KMeans(3, n_init=20, random_state=SEED).fit_predict(X)
    order = np.argsort(labels, kind="stable")
    X, labels = X[order] - X.mean(axis=0), labels[order]
    block = centred_block(X @ X.T)
    lifting = Lifting(block, 3, dtype=np.float64)
    for _ in range(STEPS):
        lifting.step()
    A, _ = lifting.matrix()
    N = A - block.K
    own = objective_of(block, labels)[0]
    without = 100 * objective_bound(block, block.K.copy(), 3) / own
    return X, labels, N, without, 100 * objective_bound(block, A, 3) / own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/dual.svg"))
    asked = parser.parse_args()
    X, labels, N, without, with_it = dual()
    i, j = np.triu_indices(len(X), 1)
    strongest = np.argsort(-N[i, j])[:SHOWN]
    pairs = np.stack([X[i[strongest]], X[j[strongest]]], axis=1)
    shares = N[i, j][strongest] / N.max()
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.add_collection(LineCollection(pairs, colors="#888888", linewidths=0.2 + 1.5 * shares))
    for cluster, colour in enumerate(COLOURS):
        left.scatter(*X[labels == cluster].T, s=22, color=colour, zorder=2)
    left.set_title(f"the {SHOWN} pairs that are pushed apart most")
    left.set_aspect("equal")
    left.set_axis_off()
    drawn = right.imshow(np.maximum(N, 0), cmap="Greys")
    for edge in np.flatnonzero(np.diff(labels)) + 0.5:
        right.axhline(edge, color="#cc3311", linewidth=0.8)
        right.axvline(edge, color="#cc3311", linewidth=0.8)
    right.set_title("N, samples sorted by cluster")
    right.set_xticks([])
    right.set_yticks([])
    figure.colorbar(drawn, ax=right, shrink=0.8)
    figure.savefig(asked.out, metadata={"Date": None})
    print(f"bound without N {without:.1f} % of L, with it {with_it:.2f} %: {asked.out}")
    same = labels[i] == labels[j]
    print(f"N within clusters {N[i, j][same].sum():.3g}, between them {N[i, j][~same].sum():.3g}")


if __name__ == "__main__":
    main()
