"""Where a Display draws: the caller's axes, or those of a new figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def need_matplotlib(message: str) -> None:
    """Raise this message where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(message) from None


def axes_for(ax: Any, size: tuple[float, float]) -> Axes:
    """Return ``ax``, or the axes of a new figure of this size in inches."""
    need_matplotlib('plots need matplotlib: pip install "sketchmeans[plots]".')
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    # A constrained layout makes room for a legend beside the axes.
    return plt.figure(figsize=size, layout="constrained").add_subplot()


class Display:
    """What all Displays keep: the axes that they drew on, and their figure."""

    ax_: Axes
    figure_: Figure

    def _finish(self, ax: Any) -> Self:
        """Take away the frame's upper and right lines, which carry nothing, and keep the axes."""
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
