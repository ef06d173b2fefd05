"""Every method at equal memory, on fast and slow spectra: ``python -m benchmarks.methods``.

Digits with gamma = c / median squared distance, c = 1 and 4, rank 10, 20 numbers per sample; image
segmentation (z-scored, from the installed river package), c = 16, rank 7, 14 numbers per sample.
Means over eight seeds.
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.preprocessing import scale

from benchmarks.timing import environment, facts
from sketchmeans import compare
from sketchmeans.datasets import load_segmentation

VARIANTS = [
    "exact",
    "one-pass",
    "one-pass, 2 passes",
    "nystrom",
    "nystrom, kmeans",
    "rpcholesky",
    "greedy-cholesky",
]


def problems():
    digits = load_digits()
    yield "digits, c = 1", digits.data / 16, digits.target, 10, "median"
    yield "digits, c = 4", digits.data / 16, digits.target, 10, "4*median"
    try:
        X, y = load_segmentation()
    except ImportError:
        print("river is not installed: segmentation is left out (extra `reproduce`).")
        return
    yield "segmentation, c = 16", scale(X[:, X.std(axis=0) > 0]), y, 7, "16*median"


def main() -> None:
    print(facts(environment()))
    for name, X, y, k, gamma in problems():
        table = compare(
            X,
            k,
            y=y,
            gamma=gamma,
            rank=k,
            width=2 * k,
            variants=VARIANTS,
            n_seeds=8,
            random_state=0,
        )
        print(f"\n{name}: {table}")


if __name__ == "__main__":
    main()
