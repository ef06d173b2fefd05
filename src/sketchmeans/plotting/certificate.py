"""CertificateDisplay: the objective or the cut found and the best possible one, as intervals."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from sketchmeans.certificate import Certificate
from sketchmeans.certificate.intervals import Interval, intervals, measures_cut, verdict
from sketchmeans.plotting.axes import Display, axes_for
from sketchmeans.plotting.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_LINES = {"labels found": COLOURS[3], "labels at random": "0.5"}
"""Colours of intervals that are not of the best possible."""


class CertificateDisplay(Display):
    """The objective of the labels found and the best possible one, as intervals on one line.

    With ``kernel="neighbors"`` the normalized cut, on a line from 0 to that of labels at random.

    Parameters
    ----------
    certificate : Certificate

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
    >>> model = KernelKMeans(3, kernel="neighbors", random_state=0).fit(load_iris().data)
    >>> display = CertificateDisplay.from_estimator(model)
    >>> [interval.name for interval in display.intervals_]
    ['labels found', 'best possible', 'labels at random']
    """

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the certificate of a fitted ``KernelKMeans`` or ``FullKernelKMeans``."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "certificate_"):
            raise ValueError(
                f"{type(estimator).__name__} has no certificate: it does not cluster. Fit "
                "KernelKMeans, or give a Certificate from certify."
            )
        return cls(estimator.certificate_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure."""
        self.intervals_ = intervals(self.certificate)
        height = 1.5 + 0.5 * len(self.intervals_) if self.intervals_ else 0.8
        ax = axes_for(ax, (8.0, height))
        self.lines_: list[Line2D] = []
        for place, interval in enumerate(self.intervals_):
            (line,) = ax.plot(
                [interval.low, interval.high],
                [place, place],
                color=_LINES.get(interval.name, COLOURS[0]),
                linestyle="--" if interval.condition else "-",
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
        high = self.intervals_[-1].high
        if measures_cut(self.certificate):
            ax.set_xlabel("normalized cut")
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
