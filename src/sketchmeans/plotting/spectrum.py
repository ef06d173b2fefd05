"""SpectrumDisplay: eigenvalues of the approximation, and where the rank cuts them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.estimators.fitted import embedding_of
from sketchmeans.plotting.axes import Display, axes_for
from sketchmeans.plotting.given import unpiped
from sketchmeans.plotting.palette import COLOURS


class SpectrumDisplay(Display):
    """Eigenvalues of the approximation, falling, and the rank that was chosen.

    Parameters
    ----------
    eigenvalues : array of shape (rank,)
        Of the embedding that was kept.
    beyond : array, optional
        Further ones, which the sketch saw and the rank dropped. They are less accurate.
    trace : float, optional
        Of the kernel: then the title says what share of it the embedding holds.
    near_one : bool
        Whether the kernel is that of neighbours: all its eigenvalues are exact and at most 1, those
        of clusters close to it. Then the scale is linear, and the title tells the two at the cut.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.
    kept_, beyond_ : Line2D
        The two sets of points; ``beyond_`` is None where there are none.
    rank_line_ : Line2D
        The cut.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import KernelEmbedding
    >>> from sketchmeans.plotting import SpectrumDisplay
    >>> model = KernelEmbedding(5, random_state=0).fit(load_iris().data)
    >>> len(SpectrumDisplay.from_estimator(model).kept_.get_ydata())
    5
    """

    def __init__(
        self,
        eigenvalues: FloatArray,
        beyond: FloatArray | None = None,
        *,
        trace: float | None = None,
        near_one: bool = False,
    ) -> None:
        self.eigenvalues = eigenvalues
        self.beyond = beyond
        self.trace = trace
        self.near_one = near_one

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, random_state: int = 0, ax: Any = None
    ) -> Self:
        """Draw the spectrum of a fitted estimator.

        Parameters
        ----------
        estimator : KernelKMeans, KernelEmbedding or FullKernelKMeans
            Or a Pipeline with one of them at its end.
        X : array or CSR matrix, optional
            The training samples, which only ``FullKernelKMeans`` needs: it has no spectrum, and
            they are sketched by one pass.
        random_state : int
            Seed of that sketch.
        ax : matplotlib Axes, optional
        """
        model, X = unpiped(estimator, X)
        source = embedding_of(model, X, random_state=random_state)
        certificate = getattr(model, "certificate_", None)
        trace = None if certificate is None else certificate.trace_kernel
        near_one = source.near_one
        return cls(source.eigenvalues, source.beyond, trace=trace, near_one=near_one).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure. The scale is logarithmic; zeros are left out.

        Eigenvalues of neighbours have a linear scale.
        """
        ax = axes_for(ax, (7.0, 4.2))
        values = np.asarray(self.eigenvalues, float)
        further = np.zeros(0) if self.beyond is None else np.asarray(self.beyond, float)
        rank = len(values)
        positive = not self.near_one and bool((values > 0).any())
        # A logarithm has no place for zeros, which are what a rank above that of K leaves.
        drawn = np.where(values > 0, values, np.nan) if positive else values
        (self.kept_,) = ax.plot(
            np.arange(1, rank + 1), drawn, "o-", color=COLOURS[0], markersize=5, label="kept"
        )
        self.beyond_ = None
        if len(further):
            (self.beyond_,) = ax.plot(
                np.arange(rank + 1, rank + len(further) + 1),
                np.where(further > 0, further, np.nan) if positive else further,
                "o:",
                color=COLOURS[3],
                markerfacecolor="none",
                markersize=5,
                label="beyond the rank" if self.near_one else "seen by the sketch, dropped",
            )
        self.rank_line_ = ax.axvline(
            rank + 0.5, color="0.35", linestyle="--", linewidth=1, label=f"rank {rank}"
        )
        if positive:
            ax.set_yscale("log")
            seen = np.concatenate([values, further])
            seen = seen[seen > 0]
            if seen.max() < 10 * seen.min():  # or the axis would have a single number, or none
                ax.set_ylim(seen.min() / 3, seen.max() * 3)
        ax.set_xlim(0.5, rank + len(further) + 1)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("number of the eigenvalue")
        ax.set_ylabel("eigenvalue")
        ax.set_title(self._title(values, further))
        ax.legend(frameon=False)
        return self._finish(ax)

    def _title(self, values: FloatArray, further: FloatArray) -> str:
        rank = len(values)
        if self.near_one:
            title = f"Spectrum of the kernel: eigenvalue {rank} is {values[-1]:.4f}"
            return title + (f", the next {further[0]:.4f}" if len(further) else "")
        title = f"Spectrum of the embedding, rank {rank}"
        return title + (f": {values.sum() / self.trace:.1%} of the trace" if self.trace else "")
