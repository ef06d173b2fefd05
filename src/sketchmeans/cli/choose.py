"""``sketchmeans choose``: how many clusters, which rank, which width of the kernel."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource

from sketchmeans.cli.options import (
    DATA,
    examples,
    gathered,
    kernel_options,
    number_or,
    output_options,
    print_json,
    run_options,
    verbosity,
)
from sketchmeans.cli.reading import read, reading_options, training_options

MOST_CLUSTERS = 1000


def numbers(value: str) -> list[int]:
    """Return whole numbers written as ``2-10`` or ``2,3,5``."""
    found: list[int] = []
    try:
        for part in value.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), min(int(last or first), MOST_CLUSTERS + 1) + 1)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no range such as 2-10, and no list such as 2,3,5."
        ) from None
    if not found or min(found) < 2 or max(found) > MOST_CLUSTERS:
        raise click.BadParameter(f"{value!r} must hold numbers from 2 to {MOST_CLUSTERS}.")
    return found


def _with_widths(kernel: str) -> str:
    """Return the kernel whose widths are asked for: rbf, unless another was."""
    source = click.get_current_context().get_parameter_source("kernel")
    if source is ParameterSource.DEFAULT:
        return "rbf"
    if kernel == "neighbors":
        raise click.UsageError(
            "--gammas is not read with --kernel neighbors, which has no width. Add --kernel rbf, "
            "or leave --gammas out."
        )
    return kernel


@click.command(
    epilog=examples(
        "sketchmeans choose iris.csv --label-column species",
        "sketchmeans choose rings.csv --label-column ring -k 2-6 --gammas 'median,4*median'",
    )
)
@DATA
@click.option(
    "-k",
    "--clusters",
    type=numbers,
    metavar="2-10",
    default="2-10",
    show_default=True,
    help="Numbers to try.",
)
@click.option(
    "--gammas",
    metavar="LIST",
    help='Widths of the kernel to try, with commas between: "median,4*median"; of rbf, if no '
    "kernel is given.",
)
@kernel_options
@gathered(
    "fitting",
    click.option("--passes", "n_passes", type=int, help="Passes over the kernel."),
)
@run_options
@reading_options
@training_options
@output_options
def command(
    data: str,
    clusters: list[int],
    gammas: str | None,
    fitting: dict[str, Any],
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Recommend a number of clusters for DATA, and say how strong the evidence is."""
    if "gamma" in fitting and gammas is not None:
        raise click.UsageError("--gamma and --gammas exclude each other. Choose one of them.")
    if gammas is not None:
        fitting = {**fitting, "kernel": _with_widths(fitting["kernel"])}
    table = read(data, quiet=quiet, **reading)

    from sketchmeans.advice import choose

    widths = None
    if gammas is not None:
        widths = [number_or(free=True)(text.strip()) for text in gammas.split(",")]
    found = choose(
        table.X,
        n_clusters=clusters,
        gammas=widths,
        verbose=verbosity(quiet, verbose),
        **fitting,
    )
    if as_json:
        print_json({"data": data, **asdict(found), "table": list(found.table)})
    else:
        click.echo(str(found))
