"""What a recommendation is made of: the words, the table, and how well halves of the data agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import OneBlasThread
from sketchmeans.centers import without_warnings_of_starts
from sketchmeans.text import Table, called

STABLE = 0.9
"""Mean agreement (ARI) of two halves above which a number of clusters counts as stable."""
CLEAR_GAP = 1.8
"""Ratio of neighbouring eigenvalues above which an eigengap counts as clear; with neighbours, of
what they lack of one."""
ROWS = 20_000
"""Samples that are halved, at most: of more a choice is drawn for each split."""
WEAK = " The evidence is weak: look at the table, and at the data."


@dataclass(frozen=True)
class Choice:
    """A recommendation, the evidence for it, how strong that is, and what to run."""

    n_clusters: int
    rank: int
    gamma: float | None
    is_weak: bool
    """Whether the criteria disagree or none of them is clear: then do not trust the number."""
    reason: str
    table: Table
    """A row per number of clusters (and width of the kernel)."""
    kernel: Any = "neighbors"
    """As ``KernelKMeans`` takes it."""
    width: Any = None
    """γ as ``KernelKMeans`` takes it, such as "4*median"; None where the kernel has none."""
    kernels: Table | None = None
    """A row per kernel and width, with the recommended number of clusters, where several were
    tried."""
    command: str = ""
    """What to run."""

    def __str__(self) -> str:
        word = "Weak evidence" if self.is_weak else "Recommendation"
        name = self.kernel if isinstance(self.kernel, str) else called_kernel(self.kernel)
        width = "" if self.width is None else f", gamma {_width(self.width, self.gamma)}"
        head = f"{word}: {self.n_clusters} clusters, {name} kernel{width}. {self.reason}"
        tables = [str(table) for table in (self.table, self.kernels) if table is not None]
        run = [f"Run: {self.command}"] if self.command else []
        return "\n\n".join([head, *tables, *run])

    @property
    def has_rank(self) -> bool:
        """Whether the rank is part of the recommendation: not where it is that of any fit."""
        return self.kernels is None and self.kernel != "neighbors"

    def running(self, command: str) -> Choice:
        """Return the same with another command to run."""
        return replace(self, command=command)


def called_kernel(kernel: Any) -> str:
    """Return the name of a kernel that is a function."""
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def _width(width: Any, gamma: float | None) -> str:
    """Return a width as it was given, and the number that it is.

    >>> _width("4*median", 0.25), _width(0.25, 0.25)
    ('4*median (0.25)', '0.25')
    """
    return f"{width} ({gamma:.4g})" if isinstance(width, str) else f"{width:.4g}"


def python_line(choice: Choice, options: Mapping[str, Any]) -> str:
    """Return the line of Python that fits what is recommended.

    Parameters
    ----------
    choice : Choice
    options : mapping
        Of the fits that were looked at; what was chosen takes their place. A seed that is no
        number cannot be written down, and is left out.
    """
    given = {"kernel": choice.kernel}
    if choice.width is not None:
        given["gamma"] = choice.width
    if choice.has_rank:
        given["rank"] = choice.rank
    chosen = {"kernel", "gamma", "rank", "verbose"}
    if not isinstance(options.get("random_state"), Integral):
        chosen.add("random_state")
    given |= {name: value for name, value in options.items() if name not in chosen}
    shown = (
        f"{name}={called_kernel(value) if callable(value) else repr(value)}"
        for name, value in given.items()
    )
    return f"KernelKMeans({choice.n_clusters}, {', '.join(shown)}).fit(X)"


def check_halves(n: int, n_clusters: int) -> None:
    """Refuse more clusters than half of the samples."""
    if n < 2 * n_clusters:
        raise ValueError(
            f"{called('n_clusters')}={n_clusters} needs at least {2 * n_clusters} samples here, "
            f"and there are {n}: halves of them are clustered. Try fewer clusters."
        )


def stability(
    Y: FloatArray, n_clusters: int, *, n_splits: int, random: np.random.Generator
) -> float:
    """Return the mean agreement (ARI) of K-means on two halves, each extended to both."""
    check_halves(len(Y), n_clusters)
    scores = []
    # Small problems: threads would only wait for each other.
    with OneBlasThread(), without_warnings_of_starts():
        for _ in range(n_splits):
            order = random.permutation(len(Y))[:ROWS]
            halves = order[: len(order) // 2], order[len(order) // 2 :]
            seed = int(random.integers(2**31 - 1))
            seen = Y if len(order) == len(Y) else Y[order]
            labels = [
                KMeans(n_clusters, n_init=3, random_state=seed).fit(Y[half]).predict(seen)
                for half in halves
            ]
            scores.append(adjusted_rand_score(*labels))
    return float(np.mean(scores))
