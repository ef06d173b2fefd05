"""Static drawings of a report, as inline SVG: they print, and need no script.

Places across are shares of the width and places down are pixels: a drawing is as wide as the page
lets it be, and its letters keep their size. Matplotlib's SVG is no substitute: it is an extra that
a report does without, its drawings are many times larger, and they do not take the page's colours,
which turn in the dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.certificate.intervals import BEST, FOUND, PLAIN, RANDOM, Interval
from sketchmeans.plotting.palette import MARKS, colour_and_mark
from sketchmeans.report.html import Markup, join, tag

NO_CUT = "Nothing is cut: no two clusters share a neighbour."

_STAR = "L".join(
    f"{radius * math.sin(math.pi * k / 5):.2f},{-radius * math.cos(math.pi * k / 5):.2f}"
    for k, radius in enumerate([5.4, 2.2] * 5)
)
MARK_PATHS = dict(
    zip(
        MARKS,
        (
            "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
            "M-3.6,-3.6h7.2v7.2h-7.2z",
            "M0,-4.8L4.5,3.4H-4.5z",
            "M0,-5L4.4,0L0,5L-4.4,0z",
            "M-1.6,-4.8h3.2v3.2h3.2v3.2h-3.2v3.2h-3.2v-3.2h-3.2v-3.2h3.2z",
            "M0,-2.2L2.6,-4.8L4.8,-2.6L2.2,0L4.8,2.6L2.6,4.8L0,2.2L-2.6,4.8L-4.8,2.6"
            "L-2.2,0L-4.8,-2.6L-2.6,-4.8z",
            f"M{_STAR}z",
            "M0,4.8L-4.5,-3.4H4.5z",
        ),
        strict=True,
    )
)
"""Outlines of the marks, about 9 units wide, around the origin."""

_KINDS = {FOUND: "found", PLAIN: "other", RANDOM: "random", BEST: "best"}
"""Styles of intervals."""


def mark(cluster: int) -> Markup:
    """Return the mark of a cluster in its colour, for a line of text."""
    colour, shape = colour_and_mark(cluster)
    path = tag("path", d=MARK_PATHS[MARKS[shape]], class_=f"mark c{colour}")
    return tag("svg", path, class_="swatch", viewBox="-6 -6 12 12", aria_hidden="true")


def bar(share: float) -> Markup:
    """Return a bar of this share of its length, or to the left for a negative one."""
    width = f"{min(abs(share), 1) * 100:.2f}"
    rect = tag("rect", width=width, height="10", class_="bad" if share < 0 else None)
    return tag(
        "svg", rect, class_="bar", viewBox="0 0 100 10", preserveAspectRatio="none",
        aria_hidden="true",
    )  # fmt: skip


def _share(part: float) -> str:
    return f"{100 * part:.2f}%"


def _text(across: float, y: float, words: str, place: str = "middle", dx: float = 0) -> Markup:
    shift = f"{dx:g}" if dx else None
    return tag("text", words, x=_share(across), y=f"{y:.1f}", dx=shift, text_anchor=place)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag(
        "line", x1=_share(x1), y1=f"{y1:.1f}", x2=_share(x2), y2=f"{y2:.1f}", class_=kind
    )  # fmt: skip


def _dot(across: float, y: float, radius: str, kind: str, title: str | None = None) -> Markup:
    words = None if title is None else tag("title", title)
    return tag("circle", words, cx=_share(across), cy=f"{y:.1f}", r=radius, class_=kind)


def _ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return round numbers between two others; a report has no matplotlib to ask for them."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [k * step for k in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Return round numbers for a logarithmic scale between two powers of ten."""
    powers = [10.0**k for k in range(math.ceil(low), math.floor(high) + 1)]
    if len(powers) < 3:
        powers = [
            f * 10.0**k
            for k in range(math.floor(low), math.ceil(high) + 1)
            for f in (1, 2, 5)
            if low <= math.log10(f * 10.0**k) <= high
        ]
    powers = powers or _ticks(10.0**low, 10.0**high, 4)  # a flat spectrum has none of these
    return powers[:: -(-len(powers) // 8)]


def spectrum_chart(eigenvalues: FloatArray, beyond: FloatArray, *, near_one: bool) -> Markup:
    """Draw eigenvalues on a logarithmic scale; kept ones filled, those beyond the rank hollow.

    On a linear one where they are near 1: there it is their distance from 1 that tells.
    """
    rank = len(eigenvalues)
    values = np.concatenate([eigenvalues, beyond])
    positive = values[values > 0]
    if not len(positive):
        return tag("p", "All eigenvalues are zero: the kernel is.")
    top, bottom = 8.0, 222.0
    scale = float if near_one else math.log10
    low, high = scale(positive.min()), scale(positive.max())
    margin = max(0.05 * (high - low), 1e-3 if near_one else 0.1)
    low, high = low - margin, high + margin

    def across(number: float) -> float:
        return (number - 0.5) / len(values)

    def down(value: float) -> float:
        return bottom - (bottom - top) * (scale(value) - low) / (high - low)

    parts = [_line(0, bottom, 1, bottom, "axis"), _line(0, top, 0, bottom, "axis")]
    for value in _ticks(low, high) if near_one else _powers(low, high):
        words = f"{value:.5g}" if near_one else f"{value:.3g}"
        parts += [
            _line(0, down(value), 1, down(value), "grid"),
            _text(0, down(value) + 4, words, "end", -8),
        ]
    step = max(1, round(_ticks(0, len(values))[1])) if len(values) > 1 else 1
    numbers = [1, *range(step if step > 1 else 2, len(values) + 1, step)]
    parts += [_text(across(k), bottom + 18, str(k)) for k in numbers]
    radius = f"{min(4.0, max(1.2, 160 / len(values))):.1f}"
    parts += [
        _dot(
            across(k), down(value), radius, "kept" if k <= rank else "beyond",
            f"eigenvalue {k}: {value:.5g}",
        )
        for k, value in enumerate(values, start=1)
        if value > 0
    ]  # fmt: skip
    cut = across(rank + 0.5)
    parts.append(_line(cut, top, cut, bottom, "cut"))
    # The words stand where the spectrum, which falls, leaves room: to the right, if there is any;
    # near 1 it falls late.
    place, height = "start" if cut < 0.75 else "end", bottom - 10 if near_one else top + 10
    parts.append(_text(cut, height, f"rank {rank}", place, 6 if place == "start" else -6))
    parts.append(_text(0.5, bottom + 38, "number of the eigenvalue"))
    words = f"Spectrum: {len(values)} eigenvalues, falling; rank {rank}"
    return _drawing(parts, 264, words, "chart spectrum")


def certificate_chart(known: Sequence[Interval], *, cuts: bool) -> Markup:
    """Draw what was found, what others have and where the best lies, on one line."""
    low = min(interval.low for interval in known)
    high = max(interval.high for interval in known)
    if high <= 0:
        return tag("p", NO_CUT if cuts else "The objective is zero: every cluster is one point.")
    if cuts or low < 0.5 * high:
        low = 0.0
    # Not too close: or ticks would differ in the last digits only.
    margin = max(0.03 * (high - low), 0.005 * high)
    low, high = low - margin if low else 0.0, high + margin

    def across(value: float) -> float:
        return (value - low) / (high - low)

    row, top = 44, 6
    bottom = top + row * len(known)
    parts = [_line(0, bottom, 1, bottom, "axis")]
    for value in _ticks(low, high, 4):
        parts += [
            _line(across(value), top, across(value), bottom, "grid"),
            _text(across(value), bottom + 18, f"{value:,.6g}"),
        ]
    for place, interval in enumerate(known):
        y = top + row * place + 30
        start, stop = across(interval.low), across(interval.high)
        kind = _KINDS[interval.name]
        parts += [
            _text(0, y - 13, interval.words, "start"),
            _line(start, y, stop, y, f"interval {kind}"),
        ]
        if interval.name == BEST:
            parts.append(_line(start, y - 7, start, y + 7, f"interval {kind}"))
        else:
            parts += [_dot(end, y, "5", f"dot {kind}") for end in sorted({start, stop})]
    name = "normalized cut" if cuts else "objective"
    parts.append(_text(0.5, bottom + 38, f"{name} under this kernel (less is better)"))
    words = "; ".join(one.words for one in known)
    return _drawing(parts, bottom + 44, f"{name.capitalize()}s: {words}", "chart")


def _drawing(parts: Sequence[Markup], height: int, label: str, kind: str) -> Markup:
    drawing = tag("svg", join(parts), height=str(height), role="img", aria_label=label)
    return tag("div", drawing, class_=kind)
