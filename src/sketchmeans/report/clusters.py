"""Sections of the report on the clusters: sizes, picture, typical members, true labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sketchmeans.report.charts import bar, mark
from sketchmeans.report.content import POINTS, columns_to_draw, feature_means
from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, cells, join, scrolling, short, table, tag


def clusters(found: Findings) -> Iterator[Markup]:
    """Sizes and silhouettes."""
    n = len(found.labels)
    largest = max(int(found.sizes.max()), 1)
    known, silhouette = found.agreement, found.silhouette
    head = ["cluster", "samples", "share", ""]
    if silhouette is not None:
        head += ["silhouette", ""]
    if known is not None:
        head += ["mostly", "of it"]
    rows = []
    for k in found.clusters:
        size = int(found.sizes[k])
        row: list[Any] = [_cluster(k), f"{size:,}", f"{size / n:.1%}", bar(size / largest)]
        if silhouette is not None:
            value = silhouette.of_cluster.get(k)
            row += ["", ""] if value is None else [f"{value:z.3f}", bar(value)]
        if known is not None:
            common = int(known.counts[:, k].argmax())
            share = known.counts[common, k] / size if size else 0
            row += [short(known.classes[common]), f"{share:.0%}"] if size else ["", ""]
        rows.append(row)
    yield _how_many(found)
    yield table(head, rows, label="Clusters", numbers=(1, 2, 4))
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
    return join([mark(k), f" {k}"])


def _how_many(found: Findings) -> Markup:
    """Say so where a table does not list all clusters."""
    listed, k = len(found.clusters), found.model.n_clusters
    return Markup("") if listed == k else (
        tag("p", f"The {listed} largest of {k:,} clusters are listed.")
    )  # fmt: skip


def embedding(found: Findings) -> Iterator[Markup]:
    """The picture, which the script draws, and its controls."""
    yield tag("p", _embedding_words(found))
    buttons = (
        ("closer", "+", "Zoom in"),
        ("farther", "−", "Zoom out"),
        ("whole", "show all", "Show the whole picture"),
    )
    yield tag(
        "div",
        *(tag("label", f"{name} ", tag("select", id=name)) for name in ("across", "up")),
        *(
            tag("button", words, type="button", id=name, aria_label=label)
            for name, words, label in buttons
        ),
        class_="controls",
    )
    plot = tag(
        "div",
        tag("div", id="tip", role="status", aria_live="polite"),
        id="plot",
        tabindex="0",
        role="application",
        aria_label="Scatter plot of the embedding",
        aria_describedby="keys",
    )
    legend = tag("div", id="legend", role="group", aria_label="Highlight clusters")
    yield tag("div", plot, legend, class_="scatter")
    keys = (
        "Point at a sample to see its id and values. The wheel zooms, dragging moves, dragging "
        "with Shift zooms into a box. Keys: ← → walk through the samples, + and − zoom, "
        "Shift with arrows moves, 0 shows all. Choose clusters in the legend to highlight them."
    )
    yield tag("p", keys, id="keys", class_="hint")
    yield tag("noscript", tag("p", "The picture needs JavaScript; the rest does not."))


def _embedding_words(found: Findings) -> str:
    rows, chosen = found.drawn
    words = f"All {len(rows):,} samples."
    if chosen:
        words = (
            f"A random choice of {POINTS:,} of the {len(found.labels):,} samples (seed "
            f"{found.seed}) and the typical members, {len(rows):,} points in all."
        )
    words += (
        " Distances in the embedding are distances in the feature space of the kernel, as far as "
        "its rank goes"
    )
    if len(columns_to_draw(found.embedded)[0]) > 1:
        words += "; the picture shows two of its columns."
    else:
        only = "" if found.embedded.embedding.shape[1] == 1 else " that is not constant"
        words += (
            f". It has one column{only}: the picture sets clusters, shaken a little, above each "
            "other."
        )
    if found.embedded.is_extra:
        words += (
            " The model itself works without an embedding: this one was made for the report, with "
            "the same kernel, by one pass."
        )
    return words


def typical(found: Findings) -> Iterator[Markup]:
    """The members nearest to each centroid, with their values."""
    samples, known = found.samples, found.agreement
    means = feature_means(samples, found.labels, found.model.n_clusters, found.features)
    label_names = [] if known is None else ["true label"]
    head = ["cluster", "sample", "distance", *label_names, *found.feature_names]
    numbers = (2, *range(3 + len(label_names), len(head)))
    bodies = []
    for k, rows in found.typical.items():
        lines: list[list[Any]] = [
            [found.row_id(row), f"{found.away[row]:.4g}"]
            + ([] if known is None else [short(known.classes[known.codes[row]])])
            + [f"{value:.5g}" for value in values]
            for row, values in zip(rows, samples.values(rows, found.features), strict=True)
        ]
        if lines and found.features:
            blank = [""] * (1 + len(label_names))
            name = tag("em", "mean of the cluster")
            lines.insert(0, [name, *blank, *(f"{value:.5g}" for value in means[k])])
        if lines:
            group = [cells(line, numbers, first=1) for line in lines]
            group[0].insert(0, tag("th", _cluster(k), scope="rowgroup", rowspan=str(len(lines))))
            bodies.append(tag("tbody", *(tag("tr", *line) for line in group)))
    top = tag("thead", tag("tr", *cells(head, numbers, "th", scope="col")))
    words = f"In the embedding, the nearest samples to each centroid. {_feature_words(found)}"
    yield tag("p", words)
    yield _how_many(found)
    yield scrolling(tag("table", top, *bodies, class_="groups"), "Typical members")


def _feature_words(found: Findings) -> str:
    """Say which features are shown, where it is not all of them."""
    shown = len(found.features)
    if not shown:
        return "The kernel was given, or X was not, so that there are no values to show."
    p = found.samples.X.shape[1]
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
    if known is None:
        yield tag("p", "No true labels were given.")
        return
    rows = []
    for code in known.listed:
        line = known.counts[code]
        counts = [
            tag("strong", f"{line[k]:,}") if line[k] == line.max() else f"{line[k]:,}"
            for k in found.clusters
        ]
        rows.append([short(known.classes[code]), *counts, f"{line.sum():,}"])
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
    yield table(head, rows, label="True labels by cluster", numbers=range(1, len(head)))
