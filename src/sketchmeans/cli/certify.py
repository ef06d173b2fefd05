"""``sketchmeans certify``: how far a clustering, whoever made it, is from the best possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sketchmeans._package import __version__
from sketchmeans.cli.cluster import write_fit_report
from sketchmeans.cli.options import (
    DATA,
    KERNELS,
    Names,
    checkpoint_option,
    command_line,
    examples,
    gathered,
    neighbor_options,
    number_or,
    output_options,
    print_json,
    refuse_shared,
    run_options,
    shape_options,
    verbosity,
)
from sketchmeans.cli.predict import loaded, through_steps
from sketchmeans.cli.reading import (
    read,
    read_prepared,
    reading_options,
    room_for,
    training_options,
)

if TYPE_CHECKING:
    from sketchmeans.io import TableData

EFFORTS = ("auto", "free", "blocks", "lifted", "triangles")
"""As ``certify`` has them, which a test compares."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, as a shell reckons."""


@click.command(
    epilog=examples(
        "sketchmeans demo --write .    # makes digits.csv",
        "sketchmeans cluster digits.csv -k 10 --id-column image --label-column digit -o l.csv "
        "--save d.skm --kernel rbf",
        "sketchmeans certify digits.csv --model d.skm --id-column image --seconds 2",
        "sketchmeans certify digits.csv --labels l.csv --kernel rbf --id-column image "
        "--label-column digit --seconds 2",
        "sketchmeans certify digits.csv --cluster-column digit --kernel linear --id-column image "
        "--effort lifted",
    )
)
@DATA
@gathered(
    "source",
    click.option(
        "--labels",
        type=click.Path(),
        metavar="FILE",
        help="File with a cluster for each row: beside its id, its number, or in the same order.",
    ),
    click.option("--cluster-column", metavar="NAME", help="Column of DATA that holds clusters."),
    click.option(
        "--model",
        type=click.Path(),
        metavar="FILE",
        help="Model of cluster --save on these rows; it brings its kernel.",
    ),
)
@gathered(
    "fitting",
    click.option(
        "--kernel",
        type=Names(KERNELS),
        help="What to judge by; linear: plain K-means. Needed, but for a model.",
    ),
)
@shape_options
@neighbor_options
@gathered(
    "fitting",
    click.option(
        "-k", "--clusters", "n_clusters", type=int, help="Clusters that the best may have."
    ),
    click.option(
        "--effort",
        type=Names(EFFORTS),
        default="auto",
        show_default=True,
        help="How far to go for the proof, from one pass over the kernel to cuts of triples.",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Go on while it gains, up to this time; Ctrl-C then ends with the best so far.",
    ),
    click.option(
        "--block-size",
        "block_size",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        help="Rows of a block; bounds of blocks add up.",
    ),
    click.option(
        "--failure-probability",
        "failure_probability",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="NUMBER",
        help="Allow bounds that fail with this probability, such as 1e-6.",
    ),
    click.option("--memory-limit", metavar="SIZE", help='As "2GB"; refused if it cannot be kept.'),
    checkpoint_option,
)
@run_options
@reading_options
@training_options
@click.option(
    "--report",
    type=click.Path(),
    metavar="FILE",
    help="Write a report to read in a browser.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@output_options
def command(
    data: str,
    source: dict[str, str],
    fitting: dict[str, Any],
    kernel_params: dict[str, Any],
    reading: dict[str, Any],
    report: str | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Prove how far the clusters of the rows of DATA are from the best possible.

    The clusters may come from anywhere; they stand in a file, in a column, or in a model.
    """
    from dataclasses import asdict

    from sketchmeans.estimators import certify

    _check(data, source, fitting, kernel_params, report, force)
    if kernel_params:
        fitting = fitting | {"kernel_params": kernel_params}
    fitting = fitting | {"verbose": verbosity(quiet, verbose)}
    reading = reading | {"room": room_for(data, fitting.get("memory_limit"), report)}
    if "model" in source:
        table, X, judged = _of_model(data, source["model"], reading, quiet)
    else:
        table, judged = _of_labels(data, source, reading, quiet)
        X = table.X
    certificate = certify(X, judged, **fitting)
    if report is not None:
        _report(data, judged if "model" in source else None, table, report, certificate, force)
    if as_json:
        result: dict[str, Any] = {
            "command": command_line(),
            "version": __version__,
            "data": data,
            "rows": len(table.rows),
            "certificate": asdict(certificate),
        }
        print_json(result | ({} if report is None else {"report_file": report}))
    elif not quiet:
        click.echo(str(certificate))
        if report is not None:
            click.echo(f"\nReport: {report}")
    if certificate.interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _check(
    data: str,
    source: dict[str, str],
    fitting: dict[str, Any],
    kernel_params: dict[str, Any],
    report: str | None,
    force: bool,
) -> None:
    """Refuse, before any long work, options that contradict each other."""
    from sketchmeans.io import check_output

    if len(source) != 1:
        raise click.UsageError(
            "Say where the clusters are, in one place: --labels FILE, --cluster-column NAME or "
            "--model FILE."
        )
    if "model" not in source and "kernel" not in fitting:
        raise click.UsageError(
            "labels do not say what they minimised: give the --kernel to judge them by, such as "
            "--kernel linear for plain K-means."
        )
    if kernel_params and fitting.get("kernel") != "neighbors":
        raise click.UsageError(
            "--anchors, --neighbors, --graphs and --metric need --kernel neighbors."
        )
    if report is None:
        return
    if report == "-":
        raise click.UsageError("--report - would be standard output. Name a file.")
    files = {f"--{name}": path for name, path in source.items() if name != "cluster_column"}
    for option, path in ({"DATA": data} | files).items():
        refuse_shared({option: path, "--report": report})
    check_output(report, force=force)


def _report(
    data: str, model: Any, table: TableData, path: str, certificate: Any, force: bool
) -> None:
    """Write the report of a model with what was proved of it, or a page of the proof alone."""
    from sketchmeans.report import write_proof

    if model is not None:
        model.certificate_ = certificate
        write_fit_report(data, model, table, path, force)
        return
    write_proof(
        path,
        certificate,
        source="standard input" if data == "-" else data,
        command=command_line(),
        rows=len(table.rows),
        overwrite=force,
    )


def _of_model(
    data: str, path: str, reading: dict[str, Any], quiet: bool
) -> tuple[TableData, Any, Any]:
    """Return the rows as the model knows them, as a table and for it, and the model itself."""
    done = [name for name in ("impute", "categorical", "standardize") if reading.pop(name, None)]
    if done:
        raise click.UsageError(
            f"--{done[0]} is not read with --model: columns are prepared as they were for it."
        )
    fitted = loaded(path)
    table = read_prepared(fitted, data, quiet=quiet, **reading)
    model, X = through_steps(fitted, table.X)
    return table, X, model


def _of_labels(
    data: str, source: dict[str, str], reading: dict[str, Any], quiet: bool
) -> tuple[TableData, Any]:
    """Return the table of the data, and the clusters of its rows."""
    from sketchmeans.io.clusters import read_clusters

    if "cluster_column" in source:
        if "label_column" in reading:
            raise click.UsageError(
                "--label-column and --cluster-column: leave the classes out with --columns instead."
            )
        table = read(data, quiet=quiet, **reading, label_column=source["cluster_column"])
        return table, table.labels
    found = read_clusters(source["labels"], reading.get("id_column"), reading.get("encoding"))
    table = read(data, quiet=quiet, **reading)
    return table, found.of(table)
