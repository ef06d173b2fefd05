"""The page: sections in the order in which a reader asks, and the head that keeps it safe."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.certificate.intervals import verdict
from sketchmeans.plotting.palette import COLOURS, MARKS
from sketchmeans.report import charts, content
from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, data_block, join, short, tag
from sketchmeans.report.sections import SECTIONS


def page(
    model: Any,
    samples: content.Samples,
    *,
    fitted_to: Any,
    command: str | Sequence[str],
    truth: Any,
    source: str | None,
    random_state: int,
) -> str:
    """Return the whole page."""
    findings = Findings(model, samples, fitted_to, truth, command, source, random_state)
    style = asset("report.css") + colour_rules()
    script = asset("scatter.js")
    title = "Clusters" if source is None else f"Clusters of {short(source)}"
    policy = (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<link rel="icon" href="data:,">'),  # or the browser asks the host for one
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    ]
    n, k = len(findings.labels), model.n_clusters
    lead = f"{n:,} samples in {k} cluster{'s' if k > 1 else ''}. {verdict(model.certificate_)}"
    names = [(f"s{number}", heading) for number, heading in enumerate(SECTIONS)]
    body = [
        tag("a", "Skip to the clusters", href="#s1", class_="skip"),
        tag(
            "header",
            tag("h1", title),
            tag("p", lead, class_="lead"),
            tag(
                "nav",
                join([tag("a", heading, href=f"#{name}") for name, heading in names], " "),
                aria_label="Sections",
            ),
        ),
        tag(
            "main",
            *(
                tag(
                    "section",
                    tag("h2", heading, id=f"{name}h"),
                    SECTIONS[heading](findings),
                    id=name,
                    aria_labelledby=f"{name}h",
                )
                for name, heading in names
            ),
        ),
        data_block("picture", picture(findings)),
        Markup(f"<script>{script}</script>"),
    ]
    top = tag("head", *head)
    return f'<!DOCTYPE html>\n<html lang="en">{top}{tag("body", *body)}</html>\n'


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


def picture(findings: Findings) -> dict[str, Any]:
    """Return what the script draws: coordinates, ids and values of the samples shown."""
    rows, _ = findings.drawn
    Y, labels = findings.shown.embedding, findings.labels
    columns, first = content.columns_to_draw(findings.shown)
    axes = [{"name": f"column {column}", "at": rounded(Y[rows, column], 5)} for column in columns]
    start = [columns.index(column) for column in first]
    if len(axes) == 1:
        shake = findings.random(2).uniform(-0.3, 0.3, len(rows))
        axes.append({"name": "cluster", "at": rounded(labels[rows] + shake, 5)})
        start = [0, 1]
    values = findings.samples.values(rows, findings.features)
    known = findings.agreement
    return {
        "axes": axes,
        "start": start,
        "equal": len(columns) > 1,
        "cluster": labels[rows].tolist(),
        "id": [findings.row_id(row) for row in rows],
        "truth": None if known is None else named(known, rows),
        "features": findings.feature_names,
        "values": [rounded(column, 5) for column in values.T],
        "colours": len(COLOURS),
        "marks": [charts.MARK_PATHS[name] for name in MARKS],
        "clusters": [{"number": k, "size": int(findings.sizes[k])} for k in findings.clusters],
    }


def named(known: content.Agreement, rows: FloatArray) -> dict[str, Any]:
    """Return names of true labels, and which of them each row has; rare ones share the last."""
    place = np.full(len(known.classes), len(known.listed))
    place[known.listed] = np.arange(len(known.listed))
    names = [short(known.classes[code]) for code in known.listed]
    return {"names": [*names, "a rare one"], "of": place[known.codes[rows]].tolist()}


def rounded(values: FloatArray, digits: int) -> list[float | None]:
    """Return numbers of so many digits; None where there is no number."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values.tolist()]
