"""The neighbours kernel: two samples are alike where they have the same anchors near them.

m anchors stand among the samples. z(x) has 1/s for each of the s nearest anchors of x; Λ =
diag(Σᵢ dᵢ z(xᵢ)) over samples of weights d. Then κ(x, y) = z(x)ᵀ Λ⁻¹ z(y): positive
semidefinite, of rank m at most, with a feature map of s numbers per sample, and K d = 1, so that
every sample has degree one in the graph K, and kernel K-means on K is its normalized cut (Liu, He
and Chang 2010 call it an anchor graph). The mean of the kernels of some sets of anchors is another.
There is no width to choose: the distance to the s-th anchor is the width at x. Weights that fall
with the distance serve no better (docs/defaults.md).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sketchmeans.checks import check_choice, check_count
from sketchmeans.text import called

METRICS = ("euclidean", "cosine")
SAMPLES_PER_ANCHOR, FEWEST_ANCHORS, MOST_ANCHORS = 3, 50, 450
"""n_anchors="auto" is a third of the samples, between these two: see docs/defaults.md."""
AUTO_GRAPHS, MOST_GRAPHS = 4, 1000
"""n_graphs="auto", for which see docs/defaults.md; and the most that there may be."""


@dataclass(frozen=True)
class NeighborOptions:
    """What ``kernel_params`` may say of the neighbours kernel."""

    n_anchors: Any = "auto"
    n_neighbors: int = 5
    n_graphs: Any = "auto"
    metric: str = "euclidean"

    @classmethod
    def of(cls, kernel_params: dict[str, Any] | None) -> NeighborOptions:
        """Check a dictionary of options, and fill in those that it leaves out."""
        given = kernel_params or {}
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise ValueError(
                    f'kernel_params has {name!r}, which kernel="neighbors" does not read: it '
                    f"knows {', '.join(names)}."
                )
        options = cls(**given)
        for name in ("n_anchors", "n_graphs"):
            value = getattr(options, name)
            if isinstance(value, str):
                check_choice(name, value, ["auto"])
            else:
                check_count(name, value)
        check_count("n_neighbors", options.n_neighbors)
        check_choice("metric", options.metric, METRICS)
        if options.graphs > MOST_GRAPHS:
            raise ValueError(
                f"{called('n_graphs')}={options.n_graphs} is more than {MOST_GRAPHS}: a few sets "
                f"of anchors are as good as many. Lower {called('n_graphs')}."
            )
        if not isinstance(options.n_anchors, str) and options.n_anchors < options.n_neighbors:
            raise ValueError(
                f"{called('n_anchors')}={options.n_anchors} is less than "
                f"{called('n_neighbors')}={options.n_neighbors}: a sample has at most as many "
                f"neighbours as there are anchors. Raise the first, or lower the second."
            )
        return options

    def anchors_for(self, n: int) -> int:
        """Return how many anchors a set of them has for n samples; never more than samples."""
        if self.n_anchors != "auto":
            return min(int(self.n_anchors), n)
        wanted = min(max(n // SAMPLES_PER_ANCHOR, FEWEST_ANCHORS), MOST_ANCHORS)
        return min(max(wanted, self.n_neighbors), n)

    @property
    def graphs(self) -> int:
        """How many sets of anchors there are."""
        return AUTO_GRAPHS if self.n_graphs == "auto" else int(self.n_graphs)
