"""The plots of a run, from its record: who is how fast, and how cost grows with n.

From a record that is there already::

    python -m benchmarks.drawing docs/benchmarks
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.end_to_end import METHODS
from sketchmeans.atomic import Folder
from sketchmeans.plotting.palette import COLOURS
from sketchmeans.reproduce.drawing import draw

MARKERS = "osD^vP<>Xh"


def draw_all(record: dict[str, Any], folder: Path) -> None:
    """Write ``passes`` and ``growth`` as PNG and SVG."""
    rows = record["benchmarks"]["native_tile"]["tables"][0]["rows"]
    draw(Folder(folder), "passes", lambda figure: draw_passes(figure, rows), (8, 4.4))
    cells = record["benchmarks"]["end_to_end"]["data"]["cells"]
    draw(Folder(folder), "growth", lambda figure: draw_growth(figure, cells), (10.5, 4.6))
    curves = record["benchmarks"].get("landmark_curve", {}).get("data", {}).get("curves")
    if curves is not None:
        draw(Folder(folder), "curve", lambda figure: draw_curves(figure, curves), (10.5, 4.2))


def draw_passes(figure: Any, rows: list[list[Any]]) -> None:
    """Draw a bar a rival: the time of the RBF pass in float32 over that of the native engine."""
    bars = sorted((ratio, by) for case, by, _, ratio in rows if case == "RBF, float32")
    axes = figure.subplots()
    for place, (ratio, by) in enumerate(bars):
        ours = by.startswith(("native", "NumPy"))
        colour = "0.75" if by == "roofline" else COLOURS[0 if ours else 3]
        axes.barh(place, ratio, color=colour)
        axes.text(1.04 * ratio, place, f"{ratio:.3g}", va="center")
    axes.set_yticks(range(len(bars)), [by for _, by in bars])
    axes.set(xscale="log", xlabel="time of one RBF pass over that of the native engine (log scale)")
    axes.set_xlim(0.8 * bars[0][0], 1.6 * bars[-1][0])
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)


def draw_growth(figure: Any, cells: list[dict[str, Any]]) -> None:
    """Draw seconds and peak memory of whole clusterings by n: a line per method."""
    axes = figure.subplots(1, 2, sharex=True)
    methods = list(dict.fromkeys(cell["method"] for cell in cells))
    for i, method in enumerate(methods):
        done = [cell for cell in cells if cell["method"] == method and "seconds" in cell]
        look = {
            "color": COLOURS[i % (len(COLOURS) - 1)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": "-" if METHODS[method].needs == "sketchmeans" else "--",
            "label": method,
        }
        sizes = [cell["n"] for cell in done]
        axes[0].plot(sizes, [cell["seconds"] for cell in done], **look)
        axes[1].plot(sizes, [cell["peak"] / 1e6 for cell in done], **look)
    for ax, label in zip(axes, ("seconds", "peak memory above the data, MB"), strict=True):
        ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel=label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")


def draw_curves(figure: Any, curves: dict[str, dict[str, list[float]]]) -> None:
    """Draw the excess of the exact objective against time, a panel per n, a line per method."""
    axes = figure.subplots(1, len(curves))
    for ax, (n, points) in zip(axes, curves.items(), strict=True):
        for i, who in enumerate(("ours", "Nystroem")):
            mine = {name: point for name, point in points.items() if name.startswith(who)}
            seconds, excess = zip(*mine.values(), strict=True)
            above = [100 * value for value in excess]
            ax.plot(seconds, above, marker=MARKERS[i], color=COLOURS[3 * i], label=who)
            for name, x, y in zip(mine, seconds, above, strict=True):
                ax.annotate(name.split()[1], (x, y), xytext=(3, 3), textcoords="offset points")
        ax.set(xscale="log", yscale="symlog", xlabel="seconds", title=f"n = {int(n):,}")
        ax.set_yscale("symlog", linthresh=0.01)
        ax.set_ylabel("objective above the least, %")
        ax.legend()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    draw_all(json.loads((folder / "results.json").read_text()), folder)
