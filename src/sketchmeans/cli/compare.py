"""``sketchmeans compare``: all methods side by side on a data file."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from sketchmeans.cli.options import (
    DATA,
    KERNELS,
    Names,
    examples,
    gathered,
    kernel_option,
    note,
    output_options,
    print_json,
    run_options,
    shape_options,
    stages,
)
from sketchmeans.cli.reading import read, reading_options, training_options

EXACT_LIMIT = 5000
"""Rows beyond which the exact method, which stores the kernel matrix, must be asked for."""


class _Compared(Names):
    """The kernels that methods approximate; of the other one it says why there is none for it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name of a kernel."""
        if value == "neighbors":
            self.fail(
                "methods approximate a kernel, and of this one all that clusters need is computed "
                "exactly: there is nothing to compare. Choose another kernel. To set it beside "
                "others: --kernels neighbors,rbf.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class _Several(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """Names of kernels, with commas between."""

    name = "NAMES"
    one = Names([name for name in KERNELS if name != "precomputed"])

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """Return the names."""
        return [self.one.convert(name.strip(), param, ctx) for name in value.split(",")]


@click.command(
    epilog=examples(
        "sketchmeans compare iris.csv -k 3 --label-column species",
        "sketchmeans compare digits.parquet -k 10 --methods 'one-pass; rpcholesky' --seeds 3",
        "sketchmeans compare iris.csv -k 3 --label-column species --kernels rbf,neighbors",
    )
)
@DATA
@click.option("-k", "--clusters", type=int, required=True, help="Clusters to find.")
@gathered(
    "fitting",
    # Whatever kernel is the default elsewhere: it must be one that methods approximate.
    kernel_option(_Compared([name for name in KERNELS if name != "neighbors"]), "rbf"),
)
@click.option(
    "--kernels",
    type=_Several(),
    help="Instead of --kernel several, with commas between: each with each method that makes sense "
    "for it.",
)
@shape_options
@click.option("--rank", type=int, help="Columns of the embedding; as many as clusters if left out.")
@click.option("--width", type=int, help="Numbers kept per row; twice the rank if left out.")
@click.option(
    "--methods",
    metavar="NAMES",
    help='Rows of the table, with semicolons between: "one-pass; nystrom, kmeans; plain K-means". '
    '"spectral clustering" is there only if asked for: it stores the kernel matrix.',
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Fits of each method, each with a seed of its own, to average over.",
)
@run_options
@reading_options
@training_options
@output_options
def command(
    data: str,
    clusters: int,
    kernels: list[str] | None,
    rank: int | None,
    width: int | None,
    methods: str | None,
    seeds: int,
    fitting: dict[str, Any],
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Cluster DATA by every method at equal memory, and measure all of them exactly.

    Of more than 2,000 rows so many are drawn by the seed.
    """
    if kernels is not None:
        source = click.get_current_context().get_parameter_source("kernel")
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError("--kernel and --kernels cannot both be given. Leave one out.")
        fitting = {name: value for name, value in fitting.items() if name != "kernel"}
    table = read(data, quiet=quiet, **reading)

    from sketchmeans.advice import compare
    from sketchmeans.advice.comparing import default_variants
    from sketchmeans.advice.few import COMPARED

    names = None if methods is None else [name.strip() for name in methods.split(";")]
    is_given = fitting.get("kernel") == "precomputed"  # of which no rows are drawn
    n = len(table.rows) if is_given else min(len(table.rows), COMPARED)
    if names is None and n > EXACT_LIMIT:
        rows = default_variants(fitting.get("kernel"))
        names = [name for name in rows if name != "exact"]
        if not quiet:
            note(
                f"the exact method would store a matrix of {n:,} × {n:,} and is left out. Ask for "
                "it with --methods exact."
            )
    # With -v every fit tells of its stages; two bars at once would write over each other.
    with stages(quiet or verbose) as show:
        found = compare(
            table.X,
            clusters,
            y=table.labels,
            rank=rank,
            width=width,
            variants=names,
            kernels=kernels,
            n_seeds=seeds,
            progress=lambda name, done, total: show(name, done, total, (total, "fits")),
            verbose=int(verbose),
            **fitting,
        )
    if as_json:
        print_json({"data": data, "caption": found.caption, "rows": list(found)})
    else:
        click.echo(str(found))
