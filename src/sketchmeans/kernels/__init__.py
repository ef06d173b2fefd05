"""What a kernel is, and what can be known of it before the first tile.

``definitions`` writes each kernel once, as a scalar function of a pairwise statistic; ``points``
computes that statistic for blocks of rows; ``bandwidth`` finds γ; ``sizes`` says what float64
cannot hold, ``precision`` where float32 will do, ``rounding`` how far entries are from the truth.
``neighbors`` has the one kernel that is made from all samples, and its options.

A new kernel goes into ``definitions``. May import: no other room.
"""

from sketchmeans.kernels.definitions import (
    ALIASES,
    KERNELS,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    Statistic,
    kernel_class,
    make_kernel,
    n_monomials,
)

__all__ = [
    "ALIASES",
    "KERNELS",
    "Cosine",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Sigmoid",
    "Statistic",
    "kernel_class",
    "make_kernel",
    "n_monomials",
]
