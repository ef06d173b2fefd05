"""Sections of the report on the clusters: sizes, profiles, typical members, true labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sketchmeans.report.charts import bar, mark
from sketchmeans.report.findings import Findings
from sketchmeans.report.html import (
    Markup,
    breakable,
    cells,
    figure,
    join,
    scrolling,
    short,
    table,
    tag,
)
from sketchmeans.report.profiles import FULL, LEVELS, STANDS_OUT

NO_VALUES = "The kernel was given, or X was not, so that there are no values to show."
SHAPES = (
    "Here none is: the clusters differ in their shapes, or in several features together, as the "
    "pictures show."
)
FEW = 4
"""Clusters up to which the heat map has room for its numbers on a small screen."""
MANY = 6
"""Clusters up to which it has room beside another table on a wide one."""


def clusters(found: Findings) -> Iterator[Markup]:
    """Sizes and silhouettes."""
    n = len(found.labels)
    largest = max(int(found.sizes.max()), 1)
    known, silhouette = found.agreement, found.silhouette
    head = ["cluster", "samples", "share"]
    if silhouette is not None:
        head.append("silhouette")
    if known is not None:
        head.append("mostly")
    rows = []
    for k in found.clusters:
        size = int(found.sizes[k])
        row: list[Any] = [_cluster(k), f"{size:,}", _barred(f"{size / n:.1%}", size / largest)]
        if silhouette is not None:
            value = silhouette.of_cluster.get(k)
            row.append("" if value is None else _barred(f"{value:z.3f}", value))
        if known is not None:
            common = int(known.counts[:, k].argmax())
            share = f" ({known.counts[common, k] / max(size, 1):.0%})"
            row.append(join([breakable(short(known.classes[common])), share]) if size else "")
        rows.append(row)
    yield _how_many(found)
    yield table(head, rows, label="Clusters", numbers=(1,), style="sizes")
    yield tag("p", _silhouette_words(found))


def _silhouette_words(found: Findings) -> str:
    silhouette = found.silhouette
    if silhouette is None:
        return (
            "Silhouettes need at least two clusters, and fewer of them than samples; so there are "
            "none here."
        )
    which = "all samples" if silhouette.n_samples == len(found.labels) else (
        f"a random choice of {silhouette.n_samples:,} samples (seed {found.seed})"
    )  # fmt: skip
    return (
        f"The mean silhouette is {silhouette.mean:z.3f}, in the embedding, over {which}. It is "
        "near 1 where clusters are tight and far apart, near 0 where they touch, and below 0 where "
        "samples are nearer to another cluster than to their own."
    )


def _cluster(k: int) -> Markup:
    return tag("span", mark(k), f" {k}", class_="cluster")


def _barred(number: str, share: float) -> Markup:
    return tag("span", tag("span", number), bar(share), class_="barred")


def _how_many(found: Findings) -> Markup:
    """Say so where a table does not list all clusters."""
    listed, k = len(found.clusters), found.model.n_clusters
    return Markup("") if listed == k else (
        tag("p", f"The {listed} largest of {k:,} clusters are listed.")
    )  # fmt: skip


def profiles(found: Findings) -> Iterator[Markup]:
    """What is high and low in each cluster: in words, and as a heat map."""
    if not found.features:
        yield tag("p", NO_VALUES)
        return
    if np.count_nonzero(found.sizes) == 1:
        yield tag("p", "All samples are in one cluster: there is nothing to compare it with.")
        return
    words = (
        "A feature is high or low in a cluster where its mean there is half a standard deviation "
        f"or more from the mean of all samples. {_feature_words(found)}"
    )
    words += _drawn_words(found)
    if not any(found.profiles.high(k) or found.profiles.low(k) for k in found.clusters):
        words += f" {SHAPES}"
    yield tag("p", words)
    yield _how_many(found)
    yield tag("div", _high_and_low(found), _heat_map(found), class_=_room(found))


def _room(found: Findings) -> str:
    return "beside stacked" if len(found.clusters) > MANY else "beside"


def _high_and_low(found: Findings) -> Markup:
    """Return a table of what stands out, the furthest first."""
    rows = []
    for k in found.clusters:
        sides = (found.profiles.high(k), found.profiles.low(k))
        rows.append([_cluster(k), *(_standing_out(found, k, side) for side in sides)])
    kind = "words many" if len(found.clusters) > FEW else "words"
    return table(["cluster", "high", "low"], rows, label="High and low", style=kind)


def _standing_out(found: Findings, cluster: int, features: list[int]) -> Any:
    if not features:
        return tag("span", "nothing", class_="soft")
    items = [
        tag(
            "li",
            tag("b", breakable(found.feature_names[one])),
            f": {found.profiles.mean(cluster, one)}",
        )
        for one in features
    ]
    return tag("ul", *items, class_="plain")


def _heat_map(found: Findings) -> Markup:
    """Return the means as a table, shaded by how far they are from those of all."""
    known = found.profiles
    head = ["mean", *(_cluster(k) for k in found.clusters), "all"]
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    rows = []
    for place, name in enumerate(found.feature_names):
        shaded = [_shaded(found, k, place) for k in found.clusters]
        overall = tag("td", known.mean(None, place), class_="all")
        rows.append(tag("tr", tag("th", breakable(name), scope="row"), *shaded, overall))
    kind = "heat many" if len(found.clusters) > FEW else "heat"
    heat = tag("table", tag("thead", top), tag("tbody", *rows), class_=kind)
    key = tag(
        "p",
        *(tag("span", class_=f"key h{level}") for level in range(-LEVELS, LEVELS + 1)),
        f" from {FULL:g} standard deviations below the mean of all to {FULL:g} above",
        class_="hint",
    )
    return tag("div", scrolling(heat, "Means by cluster, as a heat map"), key)


def _shaded(found: Findings, cluster: int, feature: int) -> Markup:
    known = found.profiles
    level, score = known.level(cluster, feature), known.scores[cluster, feature]
    mean = known.mean(cluster, feature)
    if abs(score) < STANDS_OUT:
        return tag("td", mean, class_=f"h{level}")
    word, sign = ("high", "up") if score > 0 else ("low", "down")
    # The style draws the sign; the word is for those who listen.
    return tag("td", mean, tag("i", f" {word}"), class_=f"h{level} {sign}")


def typical(found: Findings) -> Iterator[Markup]:
    """The members nearest to each centroid, with their values."""
    samples, known = found.samples, found.agreement
    numbers = [place for place in range(len(found.features)) if place not in found.indicators]
    columns = [found.features[place] for place in numbers]
    before = [
        *([] if known is None else ["true label"]),
        *(short(text.column) for text in found.texts),
    ]
    head = ["cluster", "sample", "distance", *before]
    right = (2, *range(len(head), len(head) + len(numbers)))
    head += [found.feature_names[place] for place in numbers]
    bodies = []
    for k, rows in found.typical.items():
        lines: list[list[Any]] = [
            [found.row_id(row), f"{found.away[row]:.4g}"]
            + ([] if known is None else [short(known.classes[known.codes[row]])])
            + [short(text.names[text.codes[row]]) for text in found.texts]
            + [figure(value, 5) for value in values]
            for row, values in zip(rows, samples.values(rows, columns), strict=True)
        ]
        if lines and numbers:
            shown = [figure(value, 5) for value in found.profiles.means[k, numbers]]
            name = tag("em", "mean of the cluster")
            lines.insert(0, [name, *[""] * (1 + len(before)), *shown])
        if lines:
            group = [cells(line, right, first=1) for line in lines]
            group[0].insert(0, tag("th", _cluster(k), scope="rowgroup", rowspan=str(len(lines))))
            bodies.append(tag("tbody", *(tag("tr", *line) for line in group)))
    top = tag("thead", tag("tr", *cells(head, right, "th", scope="col")))
    nearest = "In the embedding, the nearest samples to each centroid."
    nearest += _drawn_words(found)
    yield tag("p", f"{nearest} {_feature_words(found) if found.features else NO_VALUES}")
    yield _how_many(found)
    yield scrolling(tag("table", top, *bodies, class_="groups"), "Typical members")


def _drawn_words(found: Findings) -> str:
    """Say how many samples were looked at, where it is not all of them."""
    if found.seen is None:
        return ""
    n = len(found.labels)
    return f" Looked at are {len(found.seen):,} of {n:,} samples, drawn by the seed {found.seed}."


def _feature_words(found: Findings) -> str:
    """Say which features are shown, where it is not all of them."""
    shown, p = len(found.features), found.samples.X.shape[1]
    if p == shown:
        return ""
    if np.count_nonzero(found.sizes) == 1:
        return f"Shown are the first {shown} of {p:,} features."
    return (
        f"Shown are the {shown} of {p:,} features whose variance lies most between clusters, those "
        "that tell most first."
    )


def truth(found: Findings) -> Iterator[Markup]:
    """A confusion table, and two numbers."""
    known = found.agreement
    assert known is not None  # the page asks for this section where there are labels
    rows = []
    for code in known.listed:
        line = known.counts[code]
        counts = [
            tag("strong", f"{line[k]:,}") if line[k] == line.max() else f"{line[k]:,}"
            for k in found.clusters
        ]
        rows.append([breakable(short(known.classes[code])), *counts, f"{line.sum():,}"])
    words = (
        f"Normalised mutual information {known.nmi:z.3f}, adjusted Rand index {known.ari:z.3f}; "
        "both are 1 where clusters and labels agree, and near 0 where they have nothing to do with "
        "each other. The commonest cluster of each label is bold."
    )
    if len(rows) < len(known.classes):
        words += f" The {len(rows)} commonest of {len(known.classes):,} labels are listed."
    yield tag("p", words)
    yield _how_many(found)
    head = ["true label", *(_cluster(k) for k in found.clusters), "all"]
    yield table(
        head, rows, label="True labels by cluster", numbers=range(1, len(head)), style="counts"
    )
