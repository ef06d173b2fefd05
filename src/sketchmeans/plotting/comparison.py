"""ComparisonDisplay: the methods of a comparison beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.advice import compare
from sketchmeans.estimators.fitted import KERNEL_OPTIONS, options_of
from sketchmeans.plotting.axes import Display, axes_for
from sketchmeans.plotting.palette import COLOURS
from sketchmeans.text import Table

if TYPE_CHECKING:
    from matplotlib.container import BarContainer

MEASURES = {
    "above least": "objective above the least of the table",
    "objective": "objective, exact",
    "kernel error": "relative kernel error, Frobenius norm",
    "trace error": "relative kernel error, trace",
    "neighbor agreement": "agreement of neighbours, beyond chance",
    "accuracy": "accuracy",
    "ARI": "adjusted Rand index",
    "NMI": "normalised mutual information",
    "seconds": "seconds per fit",
    "kernel entries": "kernel entries evaluated",
    "peak MB": "peak memory of a fit, MB",
}
"""What can be drawn, and how the axis is called."""
_PATTERNS = {"above least": "{:.2%}", "kernel entries": "{:,.0f}"}
_MORE_IS_BETTER = ("neighbor agreement", "accuracy", "ARI", "NMI")
_WITHIN = ("above least", "objective", "kernel error", "trace error")
"""What can be compared only within a kernel."""


class ComparisonDisplay(Display):
    """One measure of every method of a comparison, as bars; the best is dark.

    Where a method has no such measure, its bar is missing. Of several kernels, what cannot be
    compared across them has the best of each kernel dark.

    Parameters
    ----------
    table : Table
        From ``sketchmeans.compare``.
    measure : str
        A column of it: "above least", "kernel error", "NMI", "seconds", …

    Attributes
    ----------
    ax_, figure_
        What was drawn on.
    bars_ : BarContainer
        One bar per row of the table, in its order.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import compare
    >>> from sketchmeans.plotting import ComparisonDisplay
    >>> table = compare(load_iris().data, 3, variants=["exact", "one-pass"], n_seeds=1)
    >>> len(ComparisonDisplay.from_table(table).bars_)
    2
    """

    def __init__(self, table: Table, *, measure: str = "above least") -> None:
        self.table = table
        self.measure = measure

    @classmethod
    def from_table(cls, table: Table, *, measure: str = "above least", ax: Any = None) -> Self:
        """Draw one measure of a table that ``compare`` returned."""
        return cls(table, measure=measure).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        measure: str = "above least",
        variants: Sequence[str] | None = None,
        n_seeds: int = 5,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Run ``compare`` with the kernel, the clusters and the width of an estimator, and draw.

        Parameters
        ----------
        estimator : KernelKMeans or FullKernelKMeans
            Fitted or not. If it is fitted, γ, rank and width are those of the fit.
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            True labels.
        measure : str
        variants, n_seeds, random_state
            See ``compare``, which clusters X so many times by each method.
        ax : matplotlib Axes, optional
        """
        table = compare(
            X,
            estimator.n_clusters,
            y=y,
            rank=getattr(estimator, "rank_", None),
            width=getattr(estimator, "width_", None),
            variants=variants,
            n_seeds=n_seeds,
            random_state=random_state,
            **options_of(estimator, (*KERNEL_OPTIONS, "n_init", "max_iter", "n_jobs")),
        )
        return cls(table, measure=measure).plot(ax)

    def plot(self, ax: Any = None, *, measure: str | None = None) -> Self:
        """Draw on ``ax``, or on a new figure; ``measure`` may name another column."""
        measure = self.measure if measure is None else measure
        known = [name for name in MEASURES if name in self.table.columns]
        if measure not in known:
            raise ValueError(
                f"measure={measure!r} is not in this table. It has: {', '.join(known)}."
            )
        names = self._names()
        values = np.array(self.table[measure], float)  # None becomes NaN
        ax = axes_for(ax, (7.5, 1.4 + 0.32 * len(names)))
        is_best = self._best(measure, values)
        fill = [COLOURS[0] if best else "#BBD6E8" for best in is_best]
        self.bars_: BarContainer = ax.barh(
            range(len(names)), values, color=fill, edgecolor=COLOURS[0], linewidth=0.8, height=0.7
        )
        pattern = _PATTERNS.get(measure, "{:.3g}")
        numbers = ax.bar_label(
            self.bars_,
            ["" if np.isnan(value) else pattern.format(value) for value in values],
            padding=4,
            fontsize=9,
        )
        for number, best in zip(numbers, is_best, strict=True):
            number.set_fontweight("bold" if best else "normal")
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.margins(x=0.14)  # room for the numbers
        if not (values < 0).any():
            ax.set_xlim(left=0)
        if measure in _PATTERNS:
            from matplotlib.ticker import EngFormatter, PercentFormatter

            percent = measure == "above least"
            ax.xaxis.set_major_formatter(PercentFormatter(1.0) if percent else EngFormatter(sep=""))
        better = "more" if measure in _MORE_IS_BETTER else "less"
        ax.set_xlabel(f"{MEASURES[measure]} ({better} is better)")
        what = "kernels and methods" if "kernel" in self.table.columns else "methods"
        ax.set_title(f"{len(names)} {what} at equal memory")
        return self._finish(ax)

    def _names(self) -> list[str]:
        """Return the names of the bars."""
        several = "kernel" in self.table.columns
        return [
            f"{row['kernel']}: {row['method']}" if several else row["method"] for row in self.table
        ]

    def _best(self, measure: str, values: FloatArray) -> list[bool]:
        """Say of each value whether it is the best of those that it can be compared with."""
        within = measure in _WITHIN and "kernel" in self.table.columns
        groups = np.array(self.table["kernel"] if within else [""] * len(values))
        sign = -1.0 if measure in _MORE_IS_BETTER else 1.0
        costs = np.where(np.isnan(values), np.inf, sign * values)
        return [
            bool(cost == costs[groups == group].min() and not np.isnan(value))
            for cost, group, value in zip(costs, groups, values, strict=True)
        ]
