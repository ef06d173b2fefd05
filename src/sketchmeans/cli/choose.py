"""``sketchmeans choose``: how many clusters, which kernel, and of which width."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from sketchmeans.cli.options import (
    DATA,
    command_line,
    examples,
    gathered,
    number_or,
    options_of_kernels,
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


def _refuse_widths(kernel: str | None) -> None:
    """Refuse widths of a kernel that has none."""
    if kernel == "neighbors":
        raise click.UsageError(
            "--gammas is not read with --kernel neighbors, which has no width. Add --kernel rbf, "
            "or leave --gammas out."
        )


@click.command(
    epilog=examples(
        "sketchmeans choose iris.csv --label-column species",
        "sketchmeans choose digits.csv --id-column image --label-column digit --kernel neighbors",
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
@options_of_kernels(None, " If left out, neighbors and four widths of rbf are tried.")
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
    """Recommend a kernel, its width and a number of clusters for DATA.

    Says how strong the evidence is, and ends with the command to run. Of more than 3,000 rows so
    many are drawn by the seed, or 10,000 with one kernel that is given.
    """
    if "gamma" in fitting and gammas is not None:
        raise click.UsageError("--gamma and --gammas exclude each other. Choose one of them.")
    widths = None
    if gammas is not None:
        _refuse_widths(fitting.get("kernel"))
        widths = [number_or(free=True)(text.strip()) for text in gammas.split(",")]
    table = read(data, quiet=quiet, **reading)

    from sketchmeans.advice import choose

    found = choose(
        table.X,
        n_clusters=clusters,
        gammas=widths,
        verbose=verbosity(quiet, verbose),
        **fitting,
    )
    found = found.running(_to_run(found))
    if as_json:
        tables = {"table": list(found.table), "kernels": list(found.kernels or ())}
        print_json({"data": data, **asdict(found), **tables})
    else:
        click.echo(str(found))


def _to_run(found: Any) -> str:
    """Return the command that clusters the same file as it is recommended."""
    from sketchmeans.advice.follow_up import cluster_after_choose

    options = ["-k", str(found.n_clusters), "--kernel", found.kernel]
    if found.width is not None:
        options += ["--gamma", str(found.width)]
    if found.has_rank:
        options += ["--rank", str(found.rank)]
    return cluster_after_choose(command_line(), *options)
