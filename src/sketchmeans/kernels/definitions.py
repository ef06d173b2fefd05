"""Kernels: each is one scalar function of one pairwise statistic, written once.

κ(x, y) = map(scale · statistic(x, y) + shift). Entry, diagonal and tile of a kernel all derive from
these three; the engine folds ``scale`` into the matrix product that makes the statistic. A new
kernel is a frozen dataclass of a few lines; its fields are the options that it reads, and adding
it to ``KERNELS`` makes it known to the estimators and to the tests, which run over that registry.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from sketchmeans._arrays import FloatArray


class Statistic(enum.Enum):
    """What a kernel needs to know of a pair of samples."""

    DOT = "dot product"
    SQUARED_DISTANCE = "squared Euclidean distance"
    MANHATTAN = "Manhattan (L1) distance"


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel κ(x, y) = map(scale · statistic(x, y) + shift)."""

    name: ClassVar[str]
    statistic: ClassVar[Statistic]
    unit_rows: ClassVar[bool] = False
    """Whether samples are scaled to norm one before the statistic is taken."""

    @property
    def scale(self) -> float:
        """Factor of the statistic."""
        return 1.0

    @property
    def shift(self) -> float:
        """Added to the scaled statistic."""
        return 0.0

    @abstractmethod
    def map(self, argument: FloatArray) -> FloatArray:
        """Turn an array of arguments into kernel values, in place, and return it."""

    @property
    def is_psd(self) -> bool:
        """Whether every kernel matrix of this kernel is positive semidefinite, by construction."""
        return True

    def of_scaled(self, scaled: FloatArray) -> FloatArray:
        """Turn scale · statistic into kernel values, in place, and return it."""
        if self.shift:
            scaled += self.shift
        return self.map(scaled)

    def of(self, statistic: FloatArray) -> FloatArray:
        """Turn an array of statistics into kernel values, in place, and return it."""
        if abs(self.scale) > np.finfo(statistic.dtype).max:  # infinity times 0 is not a number
            statistic[...] = statistic.astype(np.float64) * self.scale
        else:
            statistic *= self.scale
        return self.of_scaled(statistic)

    def diagonal(self, squared_norms: FloatArray) -> FloatArray:
        """κ(x, x) for samples of these squared norms, in float64."""
        if self.statistic is Statistic.DOT:
            return self.of(np.array(squared_norms, dtype=np.float64))
        return self.of(np.zeros(len(squared_norms)))

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The names of the options that this kernel reads."""
        return tuple(field.name for field in fields(cls))


@dataclass(frozen=True)
class Linear(Kernel):
    """κ(x, y) = ⟨x, y⟩."""

    name = "linear"
    statistic = Statistic.DOT

    def map(self, argument: FloatArray) -> FloatArray:
        """Return the dot products as they are."""
        return argument


@dataclass(frozen=True)
class Polynomial(Kernel):
    """κ(x, y) = (γ⟨x, y⟩ + coef0)^degree, degree a positive whole number."""

    gamma: float
    degree: int
    coef0: float
    name = "polynomial"
    statistic = Statistic.DOT

    @property
    def scale(self) -> float:
        """γ."""
        return self.gamma

    @property
    def shift(self) -> float:
        """coef0."""
        return self.coef0

    def map(self, argument: FloatArray) -> FloatArray:
        """Raise the argument to the degree, by multiplications only."""
        if self.degree == 1:
            return argument
        if self.degree == 2:
            return np.multiply(argument, argument, out=argument)
        base = argument.copy()
        for bit in format(self.degree, "b")[1:]:
            np.multiply(argument, argument, out=argument)
            if bit == "1":
                argument *= base
        return argument

    @property
    def is_psd(self) -> bool:
        """A sum of products of positive semidefinite kernels, unless coef0 is negative."""
        return self.coef0 >= 0


@dataclass(frozen=True)
class _Exponential(Kernel):
    """κ(x, y) = exp(−γ · statistic)."""

    gamma: float

    @property
    def scale(self) -> float:
        """−γ."""
        return -self.gamma

    def map(self, argument: FloatArray) -> FloatArray:
        """Return exp(argument)."""
        return np.exp(argument, out=argument)


@dataclass(frozen=True)
class Gaussian(_Exponential):
    """κ(x, y) = exp(−γ‖x − y‖²)."""

    name = "rbf"
    statistic = Statistic.SQUARED_DISTANCE


@dataclass(frozen=True)
class Laplacian(_Exponential):
    """κ(x, y) = exp(−γ‖x − y‖₁)."""

    name = "laplacian"
    statistic = Statistic.MANHATTAN


@dataclass(frozen=True)
class Cosine(Kernel):
    """κ(x, y) = ⟨x, y⟩ / (‖x‖‖y‖); a zero row has similarity zero to everything."""

    name = "cosine"
    statistic = Statistic.DOT
    unit_rows = True

    def map(self, argument: FloatArray) -> FloatArray:
        """Return the dot products of unit rows as they are."""
        return argument


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """κ(x, y) = tanh(γ⟨x, y⟩ + coef0): not positive semidefinite in general."""

    gamma: float
    coef0: float
    name = "sigmoid"
    statistic = Statistic.DOT

    @property
    def scale(self) -> float:
        """γ."""
        return self.gamma

    @property
    def shift(self) -> float:
        """coef0."""
        return self.coef0

    def map(self, argument: FloatArray) -> FloatArray:
        """Return tanh(argument)."""
        return np.tanh(argument, out=argument)

    @property
    def is_psd(self) -> bool:
        """No choice of γ and coef0 makes it so for all data."""
        return False


KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel for kernel in (Linear, Polynomial, Gaussian, Laplacian, Cosine, Sigmoid)
}
ALIASES = {"poly": "polynomial", "gaussian": "rbf"}
"""Other names that are understood; a model keeps the one that it was given."""


def kernel_class(name: str) -> type[Kernel]:
    """Return the class of the kernel called ``name``, or of which it is an alias."""
    return KERNELS[ALIASES.get(name, name)]


def make_kernel(name: str, *, gamma: float | None, degree: int, coef0: float) -> Kernel:
    """Build the kernel called ``name`` from those of the options that it reads."""
    cls = kernel_class(name)
    values = {"gamma": gamma, "degree": int(degree), "coef0": float(coef0)}
    return cls(**{option: values[option] for option in cls.options()})


def n_monomials(n_features: int, kernel: Kernel) -> int | None:
    """Count the features of a finite feature map of ``kernel``; None where there is none."""
    if isinstance(kernel, Linear):
        return n_features
    if isinstance(kernel, Polynomial) and kernel.is_psd and kernel.gamma > 0:
        slack = 1 if kernel.coef0 > 0 else 0  # homogeneous: only the monomials of full degree
        return math.comb(n_features + kernel.degree - 1 + slack, kernel.degree)
    return None
