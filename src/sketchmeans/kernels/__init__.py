"""Kernels."""

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
