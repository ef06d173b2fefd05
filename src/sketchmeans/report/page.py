"""The page: sections in the order in which a reader asks, and the head that keeps it safe."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from importlib import resources

from sketchmeans.plotting.palette import CLUSTER_COLOURS
from sketchmeans.report.clusters import clusters, profiles, truth, typical
from sketchmeans.report.findings import Findings
from sketchmeans.report.fit import asked, certificate, cost, repeat, spectrum
from sketchmeans.report.html import Markup, join, script_data, short, tag
from sketchmeans.report.next_steps import next_steps
from sketchmeans.report.pictures import picture_data, pictures

SECTIONS: dict[str, Callable[[Findings], Iterator[Markup]]] = {
    "Picture": pictures,
    "Clusters": clusters,
    "What to do next": next_steps,
    "Profiles": profiles,
    "Typical members": typical,
    "True labels": truth,
    "What was asked": asked,
    "Spectrum": spectrum,
    "Certificate": certificate,
    "Time and memory": cost,
    "Repeat it": repeat,
}
"""Each section by its heading, in the order of the page."""
TOP = 5
"""Sections that stand first, in rows; those on the fit follow in columns."""
FULL = ("Picture", "Profiles", "Typical members")
"""Of the first, those that take the whole width of a wide screen; the others stand two by two."""


def page(found: Findings) -> str:
    """Return the whole page."""
    script = asset("pictures.js")
    title = "Clusters" if found.source is None else f"Clusters of {short(found.source)}"
    shown = [name for name in SECTIONS if name != "True labels" or found.agreement is not None]
    links = join([tag("a", name, href=f"#s{at}") for at, name in enumerate(shown)], " ")
    sections = [section(name, at, found) for at, name in enumerate(shown)]
    body = tag(
        "body",
        tag("a", "Skip to the clusters", href="#s1", class_="skip"),
        tag(
            "header",
            tag("h1", title),
            tag("p", lead(found), class_="lead"),
            facts(found),
            tag("nav", links, aria_label="Sections"),
        ),
        tag("main", *sections[:TOP], tag("div", *sections[TOP:], class_="columns full")),
        script_data("samples", picture_data(found)),
        Markup(f"<script>{script}</script>"),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head(title, script)}{body}</html>\n'


def section(name: str, number: int, found: Findings) -> Markup:
    """Return a section under its heading."""
    return tag(
        "section",
        tag("h2", name, id=f"s{number}h"),
        *SECTIONS[name](found),
        id=f"s{number}",
        class_="full" if name in FULL else None,
        aria_labelledby=f"s{number}h",
    )


def lead(found: Findings) -> str:
    """Say what was found, in a sentence."""
    n, k, sizes = len(found.labels), found.model.n_clusters, found.sizes
    rows = f"{n:,} sample{'s' if n > 1 else ''}"
    if k == 1:
        return f"{rows} in one cluster."
    least, most = int(sizes.min()), int(sizes.max())
    if least == most:
        return f"{rows} in {k} clusters of {most:,} each."
    return (
        f"{rows} in {k} clusters: the largest has {most:,} ({most / n:.1%}), the smallest "
        f"{least:,} ({least / n:.1%})."
    )


def facts(found: Findings) -> Markup:
    """Return a few numbers that a reader looks for first."""
    model, known, silhouette = found.model, found.agreement, found.silhouette
    table = found.samples.table
    kernel = model.kernel if isinstance(model.kernel, str) else "a function"
    told = {
        "samples": f"{len(found.labels):,}",
        "features": None if table is None else f"{table.n_numeric + len(table.texts):,}",
        "clusters": f"{model.n_clusters:,}",
        "kernel": short(kernel, 20),
        "mean silhouette": None if silhouette is None else f"{silhouette.mean:z.2f}",
        "NMI with the true labels": None if known is None else f"{known.nmi:z.2f}",
    }
    items = [
        tag("div", tag("dt", name), tag("dd", value))
        for name, value in told.items()
        if value is not None
    ]
    return tag("dl", *items, class_="facts")


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
    rules = "".join(f".c{index}{{--c:{colour}}}" for index, colour in enumerate(CLUSTER_COLOURS))
    black = CLUSTER_COLOURS.index("#000000")
    return f"{rules}@media screen and (prefers-color-scheme:dark){{.c{black}{{--c:#ffffff}}}}"
