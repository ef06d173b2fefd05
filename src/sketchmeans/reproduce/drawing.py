"""Draws what the experiments gave; the only module here that imports matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.atomic import Folder
from sketchmeans.reproduce.experiments import Figure3, LocalKernel, RingsPicture
from sketchmeans.reproduce.trials import Row

STYLES: dict[str, dict[str, Any]] = {
    "exact decomposition": {"color": "black", "linestyle": "-", "marker": "", "linewidth": 2.6},
    "full kernel K-means": {"color": "0.45", "linestyle": (0, (1, 1.2)), "marker": ""},
    "one-pass, late": {"color": "#005a9c", "linestyle": "--", "marker": ""},
    "one-pass, early, as printed": {"color": "#56b4e9", "linestyle": "-.", "marker": ""},
    "one-pass, late, two passes": {"color": "#003057", "linestyle": (0, (6, 2)), "marker": ""},
    "one-pass, late, one refinement": {
        "color": "#007d5c",
        "linestyle": (0, (3, 1, 1, 1)),
        "marker": "",
    },
    "Nyström, early": {"color": "#d55e00", "linestyle": "-", "marker": "s"},
    "Nyström, late": {"color": "#8c3b00", "linestyle": "-", "marker": "D"},
    "RPCholesky": {"color": "#b5679a", "linestyle": "-", "marker": "^"},
    "one pass": {"color": "#56a0d8", "linestyle": "-", "marker": "o"},
    "two passes": {"color": "#005a9c", "linestyle": "-", "marker": "s"},
    "two passes, one refinement": {"color": "#001f3a", "linestyle": "-", "marker": "D"},
    "Nyström, uniform": {"color": "#d55e00", "linestyle": "--", "marker": "v"},
    "Nyström, K-means landmarks": {"color": "#8c3b00", "linestyle": "--", "marker": "P"},
    "greedy Cholesky": {"color": "0.65", "linestyle": "--", "marker": "X"},
}
"""A method: its colour, and a line or marker that no other in its figure has, for grey print."""

SETTINGS: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "sketchmeans",  # the same picture gives the same file
    "savefig.dpi": 130,
}


def save(figure: Any, folder: Folder, name: str) -> None:
    """Write a figure as PNG and as SVG."""
    for suffix in (".png", ".svg"):
        metadata = {"Date": None} if suffix == ".svg" else {}
        with folder.whole_file(name + suffix) as temporary:
            figure.savefig(temporary, format=suffix[1:], metadata=metadata)


def draw(folder: Folder, name: str, plot: Callable[[Any], Any], size: tuple[float, float]) -> None:
    """Let ``plot`` fill a new figure of this size in inches, and write it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=size)
        plot(figure)
        save(figure, folder, name)


def draw_results(folder: Folder, name: str, found: Any) -> None:
    """Draw what an experiment gave as the figure of this name, and write it."""
    plot, size = FIGURES[name]
    draw(folder, name, lambda figure: plot(figure, found), size)


def plot_rings(figure: Any, picture: RingsPicture) -> None:
    """Draw the two classes and the centroids that plain K-means finds."""
    axes = figure.subplots()
    _two_classes(axes, picture.X, picture.truth)
    axes.plot(
        *picture.centroids.T,
        linestyle="",
        marker="X",
        markersize=13,
        color="black",
        markeredgecolor="white",
        label="centroids of K-means",
        gid="centroids",
    )
    axes.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    axes.set_title(
        f"Figure 1: {len(picture.X):,} points, and K-means without a kernel\n"
        f"(accuracy {picture.accuracy:.2f})"
    )
    legend = _legend_below(figure, axes, 3)
    for handle in legend.legend_handles:
        handle.set_markersize(7)


def plot_embeddings(figure: Any, picture: RingsPicture) -> None:
    """Draw the embeddings: the paper's four panels, and two beyond it."""
    panels = figure.subplots(2, 3).ravel()
    for letter, axes, mapped in zip("abcdef", panels, picture.mapped, strict=True):
        # An eigenvector has no sign; the inner ring goes to the left.
        Y = mapped.embedding * np.where(mapped.embedding.sum(axis=0) < 0, -1.0, 1.0)
        _two_classes(axes, Y, picture.truth)
        beyond = "" if letter in "abcd" else "beyond the paper\n"
        axes.set_title(f"({letter}) {beyond}{mapped.name}\naccuracy {mapped.accuracy:.2f}")
        axes.set(xlabel="first coordinate of y", ylabel="second coordinate of y")
    _legend_below(figure, panels[0], 2, markerscale=2.5)
    figure.suptitle("Figure 2: the points of Figure 1 mapped by K ≈ YYᵀ, rank 2, ⟨x, y⟩²; one draw")


def _two_classes(axes: Any, X: Any, truth: Any) -> None:
    for which, color, marker, name in (
        (0, "#e69f00", "o", "inner ring"),
        (1, "#003f72", "^", "outer ring"),
    ):
        # Thousands of points would make a huge drawing: they are a picture in it.
        axes.plot(
            *X[truth == which].T,
            linestyle="",
            marker=marker,
            markersize=2.2,
            alpha=0.7,
            markeredgewidth=0,
            color=color,
            label=name,
            rasterized=True,
        )


def plot_figure_3(figure: Any, found: Figure3) -> None:
    """Draw error and accuracy against m: the paper's comparison above, what is beyond it below."""
    trials = found.lines[0].accuracy.trials
    titles = (
        "Figure 3: image segmentation, ⟨x, y⟩², r = 2, sketches with r' = 7; mean of "
        f"{trials} trials, bands from the 10th to the 90th percentile",
        "Beyond the paper: late truncation, RPCholesky, more passes",
    )
    quantities = (
        ("error", "kernel approximation error", r"$\|K - \hat{K}\|_F \,/\, \|K\|_F$"),
        ("accuracy", "clustering accuracy", "accuracy"),
    )
    letters = iter("abcd")
    for row, (subfigure, title) in enumerate(zip(figure.subfigures(2, 1), titles, strict=True)):
        panels = subfigure.subplots(1, 2)
        for axes, (quantity, what, label) in zip(panels, quantities, strict=True):
            _error_or_accuracy(axes, found, quantity, beyond=row == 1)
            axes.set_title(f"({next(letters)}) {what}")
            axes.set(xlabel="m, sampled columns of K", ylabel=label)
        _legend_below(subfigure, panels[1], 4)
        subfigure.suptitle(title)


def _error_or_accuracy(axes: Any, found: Figure3, quantity: str, *, beyond: bool) -> None:
    names = ("Nyström, late", "RPCholesky") if beyond else ("Nyström, early",)
    for name in names:
        _curve(axes, found.curves[name], quantity, name)
    reference = ("exact decomposition", "one-pass, late")
    for row in found.lines:
        if row.by_paper != beyond or row.method in reference:
            if quantity == "error" and (row.error is None or "refinement" in row.method):
                continue  # a refinement moves labels, not the approximation
            summary = getattr(row, quantity)
            _level(axes, row, quantity)
            if row.method == "one-pass, late":
                axes.axhspan(summary.low, summary.high, color="#005a9c", alpha=0.12, linewidth=0)
    ticks = [row.numbers or 0 for row in found.curves[names[0]]]
    axes.set_xlim(min(ticks) - 2, max(ticks) + 2)


def _level(axes: Any, row: Row, quantity: str) -> None:
    style = STYLES[row.method]
    axes.axhline(getattr(row, quantity).mean, label=row.method, gid=row.method, **style)


def _curve(axes: Any, rows: list[Row], quantity: str, name: str) -> None:
    style = STYLES[name]
    found = [getattr(row, quantity) for row in rows]
    kept = [row.numbers for row in rows]
    axes.plot(kept, [one.mean for one in found], label=name, gid=name, **style)
    low, high = [one.low for one in found], [one.high for one in found]
    axes.fill_between(kept, low, high, color=style["color"], alpha=0.14, linewidth=0)


def plot_local_kernels(figure: Any, local: list[LocalKernel]) -> None:
    """Draw NMI against the numbers kept per sample, a panel per data set and kernel width."""
    panels = figure.subplots(2, 2).ravel()
    for axes, kernel in zip(panels, local, strict=True):
        for row in (kernel.exact, kernel.full):
            _level(axes, row, "nmi")
        for name, rows in kernel.curves.items():
            _curve(axes, rows, "nmi", name)
        axes.set_title(f"{kernel.data}, γ = {kernel.multiple} / median squared distance")
        axes.set(xlabel="numbers kept per sample", ylabel="NMI with the true classes")
        axes.set_xscale("log")
        ticks = [row.numbers for row in kernel.curves["one pass"]]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    _legend_below(figure, panels[0], 5)
    trials = local[0].full.nmi.trials
    figure.suptitle(
        "Local rbf kernels: how much of the clusters is left in so much memory\n"
        f"(mean of {trials} trials, bands from the 10th to the 90th percentile)"
    )


def _legend_below(figure: Any, axes: Any, columns: int, **more: Any) -> Any:
    """List what one panel shows below the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    return figure.legend(handles, labels, loc="outside lower center", ncols=columns, **more)


FIGURES: dict[str, tuple[Callable[[Any, Any], None], tuple[float, float]]] = {
    "figure-1": (plot_rings, (4.8, 5.3)),
    "figure-2": (plot_embeddings, (10.5, 7.4)),
    "figure-3": (plot_figure_3, (10.5, 9.0)),
    "local-kernels": (plot_local_kernels, (10.5, 8.4)),
}
"""Each figure by the name of its files: what draws it, and its size in inches."""
