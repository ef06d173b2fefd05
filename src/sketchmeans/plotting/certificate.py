"""CertificateDisplay: the objective found, that of plain K-means, and the best possible one."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from sketchmeans.advice.plain import PASS_ROWS, PlainKMeans, plain_kmeans
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.intervals import (
    FOUND,
    PLAIN,
    RANDOM,
    Interval,
    intervals,
    measures_cut,
    verdict,
)
from sketchmeans.estimators.fitted import has_neighbors
from sketchmeans.plotting.axes import Display, axes_for
from sketchmeans.plotting.given import unpiped
from sketchmeans.plotting.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_LINES = {FOUND: COLOURS[3], PLAIN: COLOURS[1], RANDOM: "0.5"}
"""Colours of what is not the best possible."""


class CertificateDisplay(Display):
    """The objective of the labels found, that of plain K-means, and where the best possible lies.

    On one line of objectives, or of normalized cuts with ``kernel="neighbors"``. What it says is of
    this kernel alone: whether the kernel and the number of clusters suit the data it cannot tell.

    Parameters
    ----------
    certificate : Certificate
    plain : float, optional
        What the labels of K-means without the kernel have under it.
    at_most : bool
        Whether that is an upper bound.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.
    intervals_ : list of Interval
        What is known; empty where the certificate has no bound, and the reason is drawn instead.
    lines_ : list of Line2D
        One per interval, from its lower to its upper end.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sketchmeans import KernelKMeans
    >>> from sketchmeans.plotting import CertificateDisplay
    >>> X = load_iris().data
    >>> model = KernelKMeans(3, kernel="neighbors", random_state=0).fit(X)
    >>> display = CertificateDisplay.from_estimator(model, X)
    >>> [interval.name for interval in display.intervals_]
    ['found', 'plain K-means', 'best possible']
    """

    def __init__(
        self, certificate: Certificate, plain: float | None = None, *, at_most: bool = False
    ) -> None:
        self.certificate = certificate
        self.plain = plain
        self.at_most = at_most

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, random_state: int = 0, ax: Any = None
    ) -> Self:
        """Draw the certificate of a fitted estimator.

        Parameters
        ----------
        estimator : KernelKMeans or FullKernelKMeans
            Or a Pipeline with one of them at its end.
        X : array, CSR matrix or frame, optional
            The training samples, which K-means without the kernel clusters: without them its line
            is left out.
        random_state : int
            Seed of that K-means.
        ax : matplotlib Axes, optional
        """
        check_is_fitted(estimator)
        model, X = unpiped(estimator, X)
        if not hasattr(model, "certificate_"):
            raise ValueError(
                f"{type(model).__name__} has no certificate: it does not cluster. Fit "
                "KernelKMeans, or give a Certificate from certify."
            )
        plain = None if X is None else plain_kmeans(model, X, random_state=random_state)
        objective, at_most = objective_of(plain, model)
        return cls(model.certificate_, objective, at_most=at_most).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure."""
        self.intervals_ = intervals(self.certificate, self.plain, at_most=self.at_most)
        height = 1.5 + 0.5 * len(self.intervals_) if self.intervals_ else 0.8
        ax = axes_for(ax, (8.0, height))
        self.lines_: list[Line2D] = []
        for place, interval in enumerate(self.intervals_):
            (line,) = ax.plot(
                [interval.low, interval.high],
                [place, place],
                color=_LINES.get(interval.name, COLOURS[0]),
                linewidth=2.5,
                marker="|" if interval.low < interval.high else "o",
                markersize=14 if interval.low < interval.high else 7,
                markeredgewidth=2.5,
            )
            self.lines_.append(line)
        if self.intervals_:
            ax.set_yticks(range(len(self.intervals_)), [name(one) for one in self.intervals_])
            ax.set_ylim(len(self.intervals_) - 0.5, -0.5)
            self._scale(ax)
            ax.ticklabel_format(axis="x", useOffset=False)
            ax.grid(axis="x", color="0.9")
            ax.set_axisbelow(True)
        else:
            ax.set_axis_off()
        ax.set_title("\n".join(textwrap.wrap(verdict(self.certificate), 56)), loc="left")
        return self._finish(ax)

    def _scale(self, ax: Axes) -> None:
        """Name the axis, and choose its ends."""
        low = min(interval.low for interval in self.intervals_)
        high = max(interval.high for interval in self.intervals_)
        if measures_cut(self.certificate):
            ax.set_xlabel("normalized cut")
            high = high or 1.0
            ax.set_xlim(-0.02 * high, 1.02 * high)  # or marks at the ends would be cut in half
            return
        ax.set_xlabel("objective (sum of squared distances in feature space)")
        if high - low < 0.02 * high:  # or ticks would differ in the last digits only
            ax.set_xlim(0.98 * low, 1.01 * high)
        elif low == 0:
            ax.set_xlim(left=0)


def name(interval: Interval) -> str:
    """Return the words beside an interval, in lines that are short."""
    return "\n".join(textwrap.wrap(interval.words, 34))


def objective_of(plain: PlainKMeans | None, model: Any) -> tuple[float | None, bool]:
    """Return the objective of plain K-means under a model's kernel, and whether it is a bound.

    It is where the kernel of many samples is known by its landmarks alone.
    """
    if plain is None:
        return None, False
    landmarks = getattr(model, "n_landmarks_", None) is not None and not has_neighbors(model)
    return plain.objective, landmarks and len(model.labels_) > PASS_ROWS
