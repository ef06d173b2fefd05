"""``sketchmeans info``: what is in a model file."""

from __future__ import annotations

import os
from typing import Any

import click

from sketchmeans.cli.options import examples, print_json


@click.command(epilog=examples("sketchmeans info model.skm", "sketchmeans info model.skm --json"))
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(model: str, as_json: bool) -> None:
    """Tell what is in MODEL, without reading its arrays."""
    from sketchmeans.models import read_description

    found = read_description(model)
    if as_json:
        print_json({"model": model, "bytes": os.path.getsize(model), **found})
    else:
        click.echo(_text(model, found))


def _fitted(found: dict[str, Any]) -> str:
    """Return what the fit came to, in a line."""
    from sketchmeans.estimators.parts import AnchorSets

    rows = next(
        found["arrays"][name][0][0] for name in ("labels_", "embedding_") if name in found["arrays"]
    )
    known = {"rank": found["numbers"].get("rank_"), "gamma": found["numbers"]["gamma_"]}
    said = [f"{name} {value:.4g}" for name, value in known.items() if value is not None]
    points = found["new_points"]
    if points["kind"] == "neighbors":
        said.append(str(AnchorSets(tuple(points["anchors"]), points["n_neighbors"])))
    return f"Fitted to {rows:,} rows{': ' if said else ''}{', '.join(said)}."


def _encoded(found: dict[str, Any]) -> str:
    """Return how many columns come from how many of text."""
    from sketchmeans.text import counted

    count = found["encoded"]["count"]
    return f"{sum(count):,} of them for {counted(len(count), 'column')} of text"


def _steps(found: dict[str, Any]) -> list[str]:
    """Return what a pipeline does before the model, in a line."""
    if "pipeline" not in found:
        return []
    kinds = [step["kind"] for step in found["pipeline"]["steps"]]
    return [f"Pipeline: {', then '.join([*kinds, found['estimator']])}."]


def _text(path: str, found: dict[str, Any]) -> str:
    """Return the description as a person reads it."""
    from sketchmeans.models.schema import certificate_of
    from sketchmeans.text import Table, human

    options = ", ".join(
        f"{name}={value!r}" for name, value in found["parameters"].items() if value is not None
    )
    lines = [
        f"{path}: {found['estimator']}, written by {found['written_by']}, "
        f"{human(os.path.getsize(path))}.",
        *_steps(found),
        f"Columns: {found['n_features_in_']:,}"
        + (", known by name" if found["named"] else "")
        + (f", {_encoded(found)}" if "encoded" in found else "")
        + (", missing values filled in" if found.get("imputed") else "")
        + (", standardized" if found["standardized"] else "")
        + (f", counted from {found['libsvm_base']} in LIBSVM" if "libsvm_base" in found else "")
        + ".",
        f"Options: {options}.",
        _fitted(found),
    ]
    arrays = tuple(
        {"array": name, "shape": " × ".join(f"{size:,}" for size in shape), "type": dtype}
        for name, (shape, dtype) in found["arrays"].items()
        if not name.startswith(("_", "feature_names_", "encoded_columns_"))
    )
    certificate = certificate_of(found["certificate_"], needed=found["certificate_"] is not None)
    parts = ["\n".join(lines), str(Table(arrays))]
    return "\n\n".join([*parts, *([] if certificate is None else [str(certificate)])])
