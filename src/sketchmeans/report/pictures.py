"""The pictures of the samples: what the script draws, and the page around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.plotting.given import Categories
from sketchmeans.plotting.palette import DISTINCT, MARKS, colour_and_mark
from sketchmeans.plotting.telling import ALIKE
from sketchmeans.report.charts import MARK_PATHS
from sketchmeans.report.content import CLUSTERS, POINTS, Agreement, columns_to_draw
from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, short, tag

BUTTONS = (
    ("closer", "+", "Zoom in"),
    ("farther", "−", "Zoom out"),
    ("whole", "all", "Show the whole picture"),
)
REPEATED = 20
"""A feature with no more values than this, and five samples or more for each of them, is shaken in
the picture: else points would lie on each other."""
KEYS = (
    "Point at a sample to see its cluster, id and values. Click a picture, and the wheel zooms; "
    "dragging moves, dragging with Shift zooms into a box, Escape lets go. Keys: ← → walk through "
    "the samples, + and − zoom, Shift with arrows moves, 0 shows all. Choose clusters in the "
    "legend to highlight them."
)


def pictures(found: Findings) -> Iterator[Markup]:
    """The samples in two of their features, and in the embedding; the script draws them."""
    yield tag("div", id="legend", role="group", aria_label="Highlight clusters")
    figures = []
    if found.features:
        figures.append(_figure("features", "In the features", _features_words(found)))
    figures.append(_figure("embedding", "In the embedding", _embedding_words(found)))
    yield tag("div", *figures, class_="pictures" if len(figures) > 1 else "pictures alone")
    yield tag("p", _how_many(found), " ", tag("span", KEYS, id="keys"), class_="hint")
    yield tag("noscript", tag("p", "The pictures need JavaScript; the rest does not."))


def _figure(name: str, heading: str, words: str) -> Markup:
    """Return the place of a picture, and its controls."""
    selects = (tag("label", f"{axis} ", tag("select")) for axis in ("across", "up"))
    buttons = (
        tag("button", sign, type="button", data_do=action, aria_label=label)
        for action, sign, label in BUTTONS
    )
    plot = tag(
        "div",
        tag("div", class_="tip", role="status", aria_live="polite"),
        class_="plot",
        tabindex="0",
        role="application",
        aria_label=f"Scatter plot of the samples {heading.lower()}",
        aria_describedby="keys",
    )
    caption = tag("figcaption", tag("h3", heading), tag("p", words, class_="hint"))
    controls = tag("div", *selects, *buttons, class_="controls")
    return tag("figure", caption, controls, plot, id=name, class_="picture")


def _how_many(found: Findings) -> str:
    rows, chosen = found.drawn
    if not chosen:
        return f"All {len(rows):,} samples." if len(rows) > 1 else "The one sample."
    return (
        f"A random choice of {POINTS:,} of the {len(found.labels):,} samples (seed {found.seed}) "
        f"and the typical members, {len(rows):,} points in all."
    )


def _features_words(found: Findings) -> str:
    count = len(found.features)
    if count == 1:
        return (
            "The samples as they were measured: there is one feature, and the picture sets "
            "clusters, shaken a little, above each other."
        )
    shaken = " Values that many samples share are shaken a little." if any(shakes(found)) else ""
    which = "their two features" if count == 2 else (
        "two of their features, first the pair in which neighbours share a cluster most often"
    )  # fmt: skip
    return f"The samples as they were measured, in {which}.{shaken}"


def _embedding_words(found: Findings) -> str:
    words = "The samples as the kernel sees them"
    if len(columns_to_draw(found.embedded)[0]) > 1:
        words += (
            ": distances are those of its feature space, as far as the rank goes. Two columns of "
            "the embedding are drawn."
        )
    else:
        only = "" if found.embedded.embedding.shape[1] == 1 else " that is not constant"
        words += (
            f". The embedding has one column{only}: the picture sets clusters, shaken a little, "
            "above each other."
        )
    if found.embedded.is_extra:
        words += (
            " The model itself works without an embedding: this one was made for the report, with "
            "the same kernel, by one pass."
        )
    return words


def picture_data(found: Findings) -> dict[str, Any]:
    """Return what the script draws: coordinates, ids and values of the samples shown."""
    rows, _ = found.drawn
    labels, known = found.labels[rows], found.agreement
    place = {int(row): index for index, row in enumerate(rows)}
    drawn = [_of_features(found, labels)] if found.features else []
    return {
        "pictures": [*drawn, _of_embedding(found, labels)],
        "cluster": labels.tolist(),
        "id": [found.row_id(row) for row in rows],
        "truth": None if known is None else _true_names(known, rows),
        "texts": [_text(column, rows) for column in found.texts],
        "features": found.feature_names,
        "indicators": found.indicators,
        "values": [rounded(column) for column in found.drawn_values.T],
        "shakes": shakes(found),
        "alike": ALIKE,
        "looks": [list(colour_and_mark(cluster)) for cluster in range(DISTINCT)],
        "marks": [MARK_PATHS[name] for name in MARKS],
        "clusters": [
            {
                "number": k,
                "size": int(found.sizes[k]),
                "at": place[int(found.typical[k][0])] if len(found.typical[k]) else None,
            }
            for k in found.clusters
        ],
    }


def shakes(found: Findings) -> list[float]:
    """Return by how much each feature is shaken in the picture: less than to the next value."""
    widths = []
    for column in found.drawn_values.T:
        distinct = np.unique(column[np.isfinite(column)])
        few = 1 < len(distinct) <= min(REPEATED, len(column) // 5)
        widths.append(float(f"{0.35 * np.diff(distinct).min():.3g}") if few else 0.0)
    return widths


def _of_features(found: Findings, labels: IntArray) -> dict[str, Any]:
    axes: list[dict[str, Any]] = [{"feature": place} for place in range(len(found.features))]
    if len(axes) == 1:
        return _strips("features", axes, labels, found)
    return {"id": "features", "axes": axes, "start": found.pair, "scale": "alike"}


def _of_embedding(found: Findings, labels: IntArray) -> dict[str, Any]:
    Y, rows = found.embedded.embedding, found.drawn[0]
    columns, first = columns_to_draw(found.embedded)
    axes = [{"name": f"column {column}", "at": rounded(Y[rows, column])} for column in columns]
    if len(axes) == 1:
        return _strips("embedding", axes, labels, found)
    start = [columns.index(column) for column in first]
    return {"id": "embedding", "axes": axes, "start": start, "scale": "equal"}


def _strips(
    name: str, axes: list[dict[str, Any]], labels: IntArray, found: Findings
) -> dict[str, Any]:
    """Set clusters, shaken a little, above each other where there is one axis."""
    shake = found.random(2).uniform(-0.3, 0.3, len(labels))
    axes = [*axes, {"name": "cluster", "at": rounded(labels + shake)}]
    return {"id": name, "axes": axes, "start": [0, 1], "scale": "free"}


def _true_names(known: Agreement, rows: IntArray) -> dict[str, Any]:
    """Return names of true labels, and which of them each row has; rare ones share the last."""
    return _names(known.classes, known.codes[rows], known.listed)


def _text(column: Categories, rows: IntArray) -> dict[str, Any]:
    """Return a column of text as true labels are given."""
    listed = np.sort(np.argsort(-np.bincount(column.codes), kind="stable")[:CLUSTERS])
    return {"name": short(column.column)} | _names(column.names, column.codes[rows], listed)


def _names(names: list[str], codes: IntArray, listed: IntArray) -> dict[str, Any]:
    place = np.full(len(names), len(listed))
    place[listed] = np.arange(len(listed))
    shown = [short(names[code]) for code in listed]
    return {"names": [*shown, "a rare one"], "of": place[codes].tolist()}


def rounded(values: FloatArray) -> list[float | None]:
    """Return numbers of five digits, or so many that five tell them apart; None for no number.

    >>> rounded(np.array([1.23456789, np.nan])), rounded(np.array([1e6 + 0.123456, 1e6]))
    ([1.2346, None], [1000000.1235, 1000000.0])
    """
    finite = values[np.isfinite(values)]
    digits = 5
    if len(finite):
        largest = float(np.abs(finite).max())
        half = float(finite.max() / 2 - finite.min() / 2)  # the whole might overflow
        if 0 < half < largest / 2:
            digits = min(5 + int(np.log10(largest / 2 / half)), 11)
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values.tolist()]
