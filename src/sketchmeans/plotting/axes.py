"""Where a Display draws: the caller's axes, or those of a new figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_MATPLOTLIB = 'plots need matplotlib: pip install "sketchmeans[plots]".'


def axes_for(ax: Any, size: tuple[float, float]) -> Axes:
    """Return ``ax``, or the axes of a new figure of this size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(NO_MATPLOTLIB) from error
    if ax is not None:
        return ax
    # A constrained layout makes room for a legend beside the axes.
    figure = plt.figure(figsize=size, layout="constrained")
    return figure.add_subplot()


def tidy(ax: Axes) -> None:
    """Take away the frame's upper and right lines, which carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)
