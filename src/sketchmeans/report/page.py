"""The page: sections in the order in which a reader asks, and the head that keeps it safe."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.certificate.intervals import verdict
from sketchmeans.plotting.palette import COLOURS, MARKS
from sketchmeans.report.charts import MARK_PATHS
from sketchmeans.report.clusters import clusters, embedding, truth, typical
from sketchmeans.report.content import Agreement, columns_to_draw
from sketchmeans.report.findings import Findings
from sketchmeans.report.fit import asked, certificate, cost, repeat, spectrum
from sketchmeans.report.html import Markup, join, script_data, short, tag

SECTIONS: dict[str, Callable[[Findings], Iterator[Markup]]] = {
    "What was asked": asked,
    "Clusters": clusters,
    "Embedding": embedding,
    "Typical members": typical,
    "Spectrum": spectrum,
    "Certificate": certificate,
    "True labels": truth,
    "Time and memory": cost,
    "Repeat it": repeat,
}
"""Each section by its heading, in the order of the page."""


def page(found: Findings) -> str:
    """Return the whole page."""
    script = asset("scatter.js")
    title = "Clusters" if found.source is None else f"Clusters of {short(found.source)}"
    n, k = len(found.labels), found.model.n_clusters
    certain = verdict(found.model.certificate_)
    lead = f"{n:,} samples in {k} cluster{'s' if k > 1 else ''}. {certain}"
    names = [(f"s{number}", heading) for number, heading in enumerate(SECTIONS)]
    links = join([tag("a", heading, href=f"#{name}") for name, heading in names], " ")
    sections = [
        tag(
            "section",
            tag("h2", heading, id=f"{name}h"),
            *SECTIONS[heading](found),
            id=name,
            aria_labelledby=f"{name}h",
        )
        for name, heading in names
    ]
    body = tag(
        "body",
        tag("a", "Skip to the clusters", href="#s1", class_="skip"),
        tag(
            "header",
            tag("h1", title),
            tag("p", lead, class_="lead"),
            tag("nav", links, aria_label="Sections"),
        ),
        tag("main", *sections),
        script_data("picture", picture(found)),
        Markup(f"<script>{script}</script>"),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head(title, script)}{body}</html>\n'


def head(title: str, script: str) -> Markup:
    """Return the head, whose policy lets the browser run this style and this script alone."""
    style = asset("report.css") + colour_rules()
    policy = (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<link rel="icon" href="data:,">'),  # or the browser asks the host for one
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )


def asset(name: str) -> str:
    """Return a file of this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return what a Content-Security-Policy calls a piece of style or script by."""
    code = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{code}'"


def colour_rules() -> str:
    """Return the colours of clusters as style; black is white in the dark."""
    rules = "".join(f".c{index}{{--c:{colour}}}" for index, colour in enumerate(COLOURS))
    black = COLOURS.index("#000000")
    return f"{rules}@media screen and (prefers-color-scheme:dark){{.c{black}{{--c:#ffffff}}}}"


def picture(found: Findings) -> dict[str, Any]:
    """Return what the script draws: coordinates, ids and values of the samples shown."""
    rows, _ = found.drawn
    Y, labels = found.embedded.embedding, found.labels
    columns, first = columns_to_draw(found.embedded)
    axes = [{"name": f"column {column}", "at": rounded(Y[rows, column])} for column in columns]
    start = [columns.index(column) for column in first]
    if len(axes) == 1:
        shake = found.random(2).uniform(-0.3, 0.3, len(rows))
        axes.append({"name": "cluster", "at": rounded(labels[rows] + shake)})
        start = [0, 1]
    values = found.samples.values(rows, found.features)
    known = found.agreement
    return {
        "axes": axes,
        "start": start,
        "equal": len(columns) > 1,
        "cluster": labels[rows].tolist(),
        "id": [found.row_id(row) for row in rows],
        "truth": None if known is None else named(known, rows),
        "features": found.feature_names,
        "values": [rounded(column) for column in values.T],
        "colours": len(COLOURS),
        "marks": [MARK_PATHS[name] for name in MARKS],
        "clusters": [{"number": k, "size": int(found.sizes[k])} for k in found.clusters],
    }


def named(known: Agreement, rows: IntArray) -> dict[str, Any]:
    """Return names of true labels, and which of them each row has; rare ones share the last."""
    place = np.full(len(known.classes), len(known.listed))
    place[known.listed] = np.arange(len(known.listed))
    names = [short(known.classes[code]) for code in known.listed]
    return {"names": [*names, "a rare one"], "of": place[known.codes[rows]].tolist()}


def rounded(values: FloatArray) -> list[float | None]:
    """Return numbers of five digits; None where there is no number."""
    return [float(f"{v:.5g}") if np.isfinite(v) else None for v in values.tolist()]
