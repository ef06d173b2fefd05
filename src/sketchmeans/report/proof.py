"""A page for a certificate alone: of labels that no model of ours came to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sketchmeans.atomic import refuse_existing, whole_file
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.intervals import intervals, measures_cut, verdict
from sketchmeans.report.charts import certificate_chart
from sketchmeans.report.html import Markup, pairs, short, tag
from sketchmeans.report.page import head


def write_proof(
    path: str | os.PathLike[str],
    certificate: Certificate,
    *,
    source: str,
    command: str,
    rows: int,
    overwrite: bool = False,
) -> Path:
    """Write what is proved of labels as one HTML page.

    Parameters
    ----------
    path : path
    certificate : Certificate
    source : str
        Where the rows came from.
    command : str
        What to type for the same again.
    rows : int
        How many there are.
    overwrite : bool
        Whether an existing file may be replaced.
    """
    way_out = None if overwrite else "Choose another name, or give overwrite=True."
    if way_out is not None:
        refuse_existing(path, way_out=way_out)
    title = f"Proof for clusters of {short(source)}"
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("p", verdict(certificate), class_="lead")),
        tag("main", tag("section", *_section(certificate, command, rows))),
    )
    text = f'<!DOCTYPE html>\n<html lang="en">{head(title, "")}{body}</html>\n'
    with whole_file(path, way_out=way_out) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def _section(known: Certificate, command: str, rows: int) -> Iterator[Markup]:
    """What is known, as a drawing, in numbers and in words."""
    drawn = intervals(known)
    if known.n_clusters > 1:
        yield tag("p", tag("strong", known.scope))
    if drawn:
        yield certificate_chart(drawn, cuts=measures_cut(known))
    numbers = [("rows", f"{rows:,}"), ("clusters", f"{known.n_clusters:,}")]
    numbers += [(one.name, one.told) for one in drawn]
    if drawn and known.how:
        numbers.append(("how the best possible is known", known.how.removeprefix(", ")))
    yield pairs(numbers, label="Certificate in numbers")
    yield tag("pre", str(known))
    yield tag("p", "The same again: ", tag("code", command))
