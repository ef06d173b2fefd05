"""Draws what the experiments gave; the only module here that imports matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sketchmeans.atomic import Folder
from sketchmeans.reproduce.experiments import Figure3, LocalPanel, RingsPicture
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


def need_matplotlib() -> None:
    """Raise a clear error where matplotlib is missing, before any long work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "figures need matplotlib, which is not installed. Install it: "
            'pip install "sketchmeans[reproduce]".'
        ) from None


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


def draw_figure_1(folder: Folder, picture: RingsPicture) -> None:
    """Draw the two classes and the centroids that plain K-means finds."""

    def plot(figure: Any) -> None:
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
        legend = figure.legend(loc="outside lower center", ncols=3)
        for handle in legend.legend_handles:
            handle.set_markersize(7)

    draw(folder, "figure-1", plot, (4.8, 5.3))


def draw_figure_2(folder: Folder, picture: RingsPicture) -> None:
    """Draw the embeddings: the paper's four panels, and two beyond it."""

    def plot(figure: Any) -> None:
        panels = figure.subplots(2, 3).ravel()
        for letter, axes, mapped in zip("abcdef", panels, picture.mapped, strict=True):
            # An eigenvector has no sign; the inner ring goes to the left.
            Y = mapped.embedding * np.where(mapped.embedding.sum(axis=0) < 0, -1.0, 1.0)
            _two_classes(axes, Y, picture.truth)
            beyond = "" if letter in "abcd" else "beyond the paper\n"
            axes.set_title(f"({letter}) {beyond}{mapped.name}\naccuracy {mapped.accuracy:.2f}")
            axes.set(xlabel="first coordinate of y", ylabel="second coordinate of y")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=2.5)
        figure.suptitle(
            "Figure 2: the points of Figure 1 mapped by K ≈ YYᵀ, rank 2, ⟨x, y⟩²; one draw"
        )

    draw(folder, "figure-2", plot, (10.5, 7.4))


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


def draw_figure_3(folder: Folder, found: Figure3) -> None:
    """Draw error and accuracy against m: the paper's comparison above, what is beyond it below."""

    def plot(figure: Any) -> None:
        rows = figure.subfigures(2, 1)
        for index, (subfigure, beyond) in enumerate(zip(rows, (False, True), strict=True)):
            panels = subfigure.subplots(1, 2)
            for letter, axes, quantity in zip(
                "abcd"[2 * index :], panels, ("error", "accuracy"), strict=False
            ):
                _figure_3_panel(axes, found, quantity, beyond)
                label = r"$\|K - \hat{K}\|_F \,/\, \|K\|_F$" if quantity == "error" else "accuracy"
                what = (
                    "kernel approximation error" if quantity == "error" else "clustering accuracy"
                )
                axes.set_title(f"({letter}) {what}")
                axes.set(xlabel="m, sampled columns of K", ylabel=label)
            handles, labels = panels[1].get_legend_handles_labels()
            subfigure.legend(handles, labels, loc="outside lower center", ncols=4)
            trials = found.lines[0].accuracy.trials
            subfigure.suptitle(
                "Beyond the paper: late truncation, RPCholesky, more passes"
                if beyond
                else "Figure 3: image segmentation, ⟨x, y⟩², r = 2, sketches with r' = 7; mean of "
                f"{trials} trials, bands from the 10th to the 90th percentile"
            )

    draw(folder, "figure-3", plot, (10.5, 9.0))


def _figure_3_panel(axes: Any, found: Figure3, quantity: str, beyond: bool) -> None:
    names = ("Nyström, late", "RPCholesky") if beyond else ("Nyström, early",)
    ticks: list[int] = []
    for name in names:
        ticks = [row.numbers or 0 for row in found.curves[name]]
        _curve(axes, found.curves[name], quantity, name)
    reference = ("exact decomposition", "one-pass, late")
    for row in found.lines:
        if (not row.by_paper if beyond else row.by_paper) or row.method in reference:
            if quantity == "error" and (row.error is None or "refinement" in row.method):
                continue  # a refinement moves labels, not the approximation
            summary = getattr(row, quantity)
            axes.axhline(summary.mean, label=row.method, gid=row.method, **STYLES[row.method])
            if row.method == "one-pass, late":
                axes.axhspan(summary.low, summary.high, color="#005a9c", alpha=0.12, linewidth=0)
    axes.set_xlim(min(ticks) - 2, max(ticks) + 2)


def _curve(axes: Any, rows: list[Row], quantity: str, name: str) -> None:
    style = STYLES[name]
    found = [getattr(row, quantity) for row in rows]
    kept = [row.numbers for row in rows]
    axes.plot(kept, [one.mean for one in found], label=name, gid=name, **style)
    axes.fill_between(
        kept,
        [one.low for one in found],
        [one.high for one in found],
        color=style["color"],
        alpha=0.14,
        linewidth=0,
    )


def draw_local_kernels(folder: Folder, panels: list[LocalPanel]) -> None:
    """Draw NMI against the numbers kept a sample, a panel a data set and kernel width."""

    def plot(figure: Any) -> None:
        all_axes = figure.subplots(2, 2).ravel()
        for axes, panel in zip(all_axes, panels, strict=True):
            for row in (panel.exact, panel.full):
                axes.axhline(row.nmi.mean, label=row.method, gid=row.method, **STYLES[row.method])
            for name, rows in panel.curves.items():
                _curve(axes, rows, "nmi", name)
            axes.set_title(f"{panel.data}, γ = {panel.multiple} / median squared distance")
            axes.set(xlabel="numbers kept a sample", ylabel="NMI with the true classes")
            axes.set_xscale("log")
            ticks = [row.numbers for row in panel.curves["one pass"]]
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        trials = panels[0].full.nmi.trials
        figure.suptitle(
            "Local rbf kernels: how much of the clusters is left in so much memory\n"
            f"(mean of {trials} trials, bands from the 10th to the 90th percentile)"
        )

    draw(folder, "local-kernels", plot, (10.5, 8.4))
