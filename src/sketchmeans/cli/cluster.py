"""``sketchmeans cluster``: a data file in, labels out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sketchmeans._package import __version__
from sketchmeans.cli.agreement import agreement_line, agreement_of
from sketchmeans.cli.options import (
    DATA,
    METHODS,
    Names,
    checkpoint_option,
    command_line,
    examples,
    gathered,
    kernel_options,
    number_or,
    output_options,
    print_json,
    refuse_shared,
    run_options,
    verbosity,
)
from sketchmeans.cli.reading import (
    beside,
    keep_preparation,
    read,
    reading_options,
    room_for,
    training_options,
)

if TYPE_CHECKING:
    from sketchmeans.io import TableData

FILES = {"output": "labels_file", "save": "model_file", "report": "report_file"}
"""What ``--json`` calls the file of each option."""


@click.command(
    epilog=examples(
        "sketchmeans demo --write .    # makes rings.csv and digits.csv",
        "sketchmeans cluster rings.csv -k 2 --label-column ring",
        "sketchmeans cluster rings.csv -k 2 --columns x,y -o labels.csv --report rings.html",
        "sketchmeans cluster digits.csv -k 10 --id-column image --label-column digit --save d.skm",
        "sketchmeans cluster rings.csv -k 2 --label-column ring --standardize --kernel gaussian",
        "sketchmeans cluster rings.csv -k 2 --label-column ring --kernel poly --degree 2 "
        "--coef0 0 --rank 2",
        "gzip -c rings.csv | sketchmeans cluster - -k 2 --columns x,y -o - > ring-labels.csv",
    )
)
@DATA
@click.option("-k", "--clusters", type=int, required=True, help="Clusters to find.")
@kernel_options
@gathered(
    "fitting",
    click.option(
        "--method",
        type=Names(METHODS),
        default="auto",
        show_default=True,
        help="How the kernel is approximated; auto: two passes over it, or landmarks where there "
        "are so many rows that these are cheaper.",
    ),
    click.option(
        "--rank",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        default="auto",
        show_default=True,
        help="Columns of the embedding, or the fraction of the trace to hold (0 to 1).",
    ),
    click.option(
        "--landmarks",
        "n_landmarks",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        help="Columns of the kernel that nystrom and the Cholesky methods take.",
    ),
    click.option(
        "--passes",
        "n_passes",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        help="Passes of one-pass over the kernel; 2 is better than 1.",
    ),
    click.option(
        "--refine",
        "n_refine",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        help="Iterations in feature space after K-means: exact ones, each one more pass, or with "
        "landmarks in theirs.",
    ),
    click.option("--memory-limit", metavar="SIZE", help='As "2GB"; refused if it cannot be kept.'),
    checkpoint_option,
)
@click.option(
    "--certify",
    "certify_seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Prove for so long how near the clusters are to the best possible; see certify.",
)
@run_options
@reading_options
@training_options
@gathered(
    "outputs",
    click.option(
        "-o",
        "--output",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Write the labels: .csv, .tsv, .parquet, .feather or .npy; - is standard output.",
    ),
    click.option(
        "--report", type=click.Path(), metavar="FILE", help="Write a report to read in a browser."
    ),
    click.option("--save", type=click.Path(), metavar="FILE", help="Write the model, for predict."),
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say what the fit would do, how long it would take and how much memory; fit nothing, "
    "write nothing.",
)
@output_options
def command(
    data: str,
    clusters: int,
    fitting: dict[str, Any],
    certify_seconds: float | None,
    reading: dict[str, Any],
    outputs: dict[str, str],
    force: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Cluster the rows of DATA by kernel K-means.

    DATA is CSV or other text, JSON lines or LIBSVM (also packed by gzip, bzip2, xz, Zstandard or
    zip), Excel, Parquet, Feather, Arrow, NPY or NPZ; - is standard input. All rows are clustered;
    advice looks at 5,000 rows at the most, and the report at 100,000 rows, drawn by the seed.
    """
    _check_outputs(data, outputs, force=force, as_json=as_json)

    def made() -> Any:
        from sketchmeans.estimators import KernelKMeans

        return KernelKMeans(clusters, verbose=verbosity(quiet, verbose), **fitting)

    # With these, how many rows and columns there will be is known only when all are read.
    unknown = reading.get("drop_missing") or "categorical" in reading
    limit = fitting.get("memory_limit")
    room = room_for(data, limit, *outputs.values(), model=None if unknown else made)
    table = read(data, quiet=quiet, room=room, **reading)
    model = made()
    if dry_run:
        _tell_plan(data, model, table, as_json=as_json)
        return
    with beside(table, model):
        model.fit(table.X)
    if certify_seconds is not None:
        model.certificate_ = _proven(model, table, certify_seconds)
    model.set_params(verbose=0)
    _write(data, model, table, outputs, force)
    result = _result(data, model, table)
    result |= {key: outputs[option] for option, key in FILES.items() if option in outputs}
    if as_json or not quiet:
        result["guidance"] = _guidance(model, table)
    if as_json:
        print_json(result)
    elif not quiet:
        click.echo(_summary(result, model, verbose), err=outputs.get("output") == "-")
    if model.certificate_.interrupted:
        raise click.exceptions.Exit(130)  # as after any Ctrl-C, but with all files written


def _tell_plan(data: str, model: Any, table: TableData, *, as_json: bool) -> None:
    """Print what a fit of the model to the table would do and cost."""
    from dataclasses import replace

    from sketchmeans.estimators.memory import parse_bytes
    from sketchmeans.planning import plan

    with beside(table, model):
        planned = plan(table.X, model)
    planned = replace(planned, memory_limit=parse_bytes(model.memory_limit))
    if as_json:
        print_json({"command": command_line(), "data": data, "plan": planned.as_dict()})
    else:
        click.echo(str(planned))


def _proven(model: Any, table: TableData, seconds: float) -> Any:
    """Return the certificate of a fit with what can be proved in so many seconds."""
    from sketchmeans.estimators import certify
    from sketchmeans.estimators.proofs import joined

    found = certify(
        table.X,
        model,
        seconds=seconds,
        memory_limit=model.memory_limit,
        n_jobs=model.n_jobs,
        random_state=model.random_state,
        verbose=model.verbose,
    )
    return joined(model.certificate_, found)  # of the same rows


def _check_outputs(data: str, outputs: dict[str, str], *, force: bool, as_json: bool) -> None:
    """Refuse, before any long work, files that could not be written in the end."""
    from sketchmeans.io import check_output

    if outputs.get("output") == "-" and as_json:
        raise click.UsageError("-o - and --json both write to standard output. Choose one of them.")
    for option in ("report", "save"):
        if outputs.get(option) == "-":
            raise click.UsageError(f"--{option} - would be standard output. Name a file.")
    refuse_shared({"DATA": data, **{f"--{option}": path for option, path in outputs.items()}})
    for option, path in outputs.items():
        check_output(path, force=force, labels=option == "output")


def _write(data: str, model: Any, table: TableData, outputs: dict[str, str], force: bool) -> None:
    from sketchmeans.atomic import exists_already
    from sketchmeans.io import write_labels
    from sketchmeans.io.labels import how_to_overwrite

    for option, path in outputs.items():
        try:
            if option == "output":
                write_labels(path, table, model.labels_, force=force)
            elif option == "report":
                write_fit_report(data, model, table, path, force)
            else:
                _save(model, table, path, force)
        except FileExistsError as error:  # it came meanwhile
            raise exists_already(path, how_to_overwrite()) from error


def _save(model: Any, table: TableData, path: str, force: bool) -> None:
    """Write the model, with what ``predict`` must know of the columns."""
    from sketchmeans.models import save

    keep_preparation(model, table)
    save(model, path, overwrite=force)


def _result(data: str, model: Any, table: TableData) -> dict[str, Any]:
    """Return what was found, as ``--json`` prints it."""
    from dataclasses import asdict

    import numpy as np

    from sketchmeans.estimators.parts import anchors_of

    anchors = anchors_of(model)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    result: dict[str, Any] = {
        "command": command_line(),
        "version": __version__,
        "data": data,
        "rows": len(table.rows),
        "columns": len(table.names),
        "rows_dropped": table.n_dropped,
        "values_imputed": table.n_imputed,
        "kernel": model.kernel,
        "gamma": model.gamma_,
        "method": model.stats_["method"],
        "method_because": model.stats_["why"],
        "rank": model.rank_,
        "width": model.width_,
        "landmarks": model.n_landmarks_,
        "anchors": None if anchors is None else sum(anchors.sizes),
        "graphs": None if anchors is None else len(anchors.sizes),
        "neighbors": None if anchors is None else anchors.n_neighbors,
        "seed": model.random_state,
        "clusters": [{"cluster": i, "rows": int(size)} for i, size in enumerate(sizes)],
        "inertia": model.inertia_,
        "certificate": asdict(model.certificate_),
        "stats": model.stats_,
    }
    return result | agreement_of(table, model.labels_, model.n_clusters)


def _guidance(model: Any, table: TableData) -> list[str]:
    """Return what to do next, a line each."""
    from sketchmeans.advice.guidance import guidance

    lines = guidance(
        model,
        table.X,
        feature_names=table.names,
        standardized=table.scale is not None,
        command=command_line(),
    )
    return list(lines)


def _summary(result: dict[str, Any], model: Any, verbose: bool) -> str:
    """Return the result as a person reads it."""
    from sketchmeans.text import Table, counted

    n = result["rows"]
    rows = [{**cluster, "share": f"{cluster['rows'] / n:.1%}"} for cluster in result["clusters"]]
    parts = [
        f"{counted(n, 'row')} of {counted(result['columns'], 'column')} in "
        f"{counted(model.n_clusters, 'cluster')}: {model.kernel} kernel{_approximation(model)}",
        str(Table(tuple(rows))),
    ]
    if "agreement" in result:
        parts.append(agreement_line(result["agreement"]))
    parts.append(str(model.certificate_))
    if verbose:
        stages = ", ".join(f"{name} {took:.2f} s" for name, took in model.stats_["seconds"].items())
        cost = (
            f"passes over the kernel: {model.stats_['passes']}; kernel entries: "
            f"{model.stats_['kernel_entries']:,}"
        )
        if result["anchors"] is not None:
            cost = f"distances of rows and anchors: {model.stats_['distances']:,}"
        parts.append(f"{stages}; {cost}; threads: {model.stats_['n_threads']}.")
    written = [
        f"{key.removesuffix('_file').capitalize()}: {result[key]}"
        for key in FILES.values()
        if result.get(key, "-") != "-"
    ]
    parts += ["\n".join(written)] if written else []
    parts.append("\n".join(["What to do next", *(f"- {line}" for line in result["guidance"])]))
    return "\n\n".join(parts)


def _approximation(model: Any) -> str:
    """Return how the kernel was met, in words that follow its name."""
    from sketchmeans.estimators.parts import anchors_of
    from sketchmeans.text import counted

    if (anchors := anchors_of(model)) is not None:
        return f", {anchors}."
    gamma = "" if model.gamma_ is None else f", gamma {model.gamma_:.4g}"
    taken = model.stats_["method"]
    if model.n_landmarks_ is not None:
        taken += f" with {counted(model.n_landmarks_, 'landmark')}"
    elif model.stats_["passes"] > 1 and taken == "one-pass":
        taken += f", {model.stats_['passes']} passes"
    said = f"{gamma}, {taken}, rank {model.rank_}."
    if model.method == "auto":
        said += f" Method: {model.stats_['method']}, because {model.stats_['why']}."
    return said


def write_fit_report(data: str, model: Any, table: TableData, path: str, force: bool) -> None:
    """Write the report; rows without ids go by their number in the file."""
    from sketchmeans.report import Preparation, write_report

    write_report(
        path,
        model,
        table.X,
        command=command_line(),
        feature_names=table.names,
        ids=(table.rows if table.ids is None else table.ids).tolist(),
        truth=table.labels,
        source="standard input" if data == "-" else data,
        preparation=Preparation(table.center, table.scale, table.n_dropped, table.n_imputed),
        overwrite=force,
    )
