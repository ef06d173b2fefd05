"""``sketchmeans predict``: labels of new rows, by a model that ``cluster --save`` wrote."""

from __future__ import annotations

from typing import Any

import click

from sketchmeans.cli.agreement import agreement_line, agreement_of
from sketchmeans.cli.options import (
    DATA,
    examples,
    output_options,
    print_json,
    refuse_shared,
    stages,
)
from sketchmeans.cli.reading import read_prepared, reading_options, room_for


@click.command(
    epilog=examples(
        "sketchmeans demo --write .    # makes digits.csv and new-digits.csv",
        "sketchmeans cluster digits.csv -k 10 --id-column image --label-column digit --save d.skm",
        "sketchmeans predict d.skm new-digits.csv",
        "sketchmeans predict d.skm new-digits.csv --id-column image -o labels.csv",
        "sketchmeans predict d.skm new-digits.csv -o labels.npy --force",
    )
)
@click.argument("model", type=click.Path(), metavar="MODEL")
@DATA
@reading_options
@click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    default="-",
    show_default=True,
    help="Where to write the labels: .csv, .tsv, .parquet, .feather or .npy; - is standard output.",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help='As "2GB": where the rows do not fit, they are read from a scratch file in blocks.',
)
@click.option("--jobs", type=int, metavar="N", help="Threads; all cores if left out.")
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@output_options
def command(
    model: str,
    data: str,
    reading: dict[str, Any],
    output: str,
    memory_limit: str | None,
    jobs: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Assign the rows of DATA to the clusters of MODEL.

    Columns are found by their names, where both the model and DATA have names; other columns are
    left alone. Data that were standardized for the model are standardized in the same way here;
    missing values that were filled in for it are filled in by the same numbers, and columns of
    text become the same columns of zeros and ones.
    """
    import numpy as np

    from sketchmeans.estimators.fitted import predicted
    from sketchmeans.io import check_output, write_labels

    if output == "-" and as_json:
        raise click.UsageError("--json and the labels both go to standard output. Add -o FILE.")
    refuse_shared({"DATA": data, "--output": output})
    refuse_shared({"MODEL": model, "--output": output})
    check_output(output, force=force, labels=True)
    fitted = loaded(model)
    room = room_for(data, memory_limit, output)
    table = read_prepared(fitted, data, quiet=quiet, room=room, **reading)
    rows = len(table.rows)
    estimator, X = through_steps(fitted, table.X)
    with stages(quiet) as show:
        show("predict", 0, rows, (rows, "rows"), count=True)
        labels = predicted(
            estimator.set_params(n_jobs=jobs, memory_limit=memory_limit),
            X,
            lambda done, total: show("predict", done, total, (rows, "rows"), count=True),
        )
    write_labels(output, table, labels, force=force)
    counts = dict(enumerate(np.bincount(labels).tolist()))
    found = agreement_of(table, labels, estimator.n_clusters)
    if as_json:
        prepared = {"rows_dropped": table.n_dropped, "values_imputed": table.n_imputed}
        print_json(
            {"model": model, "data": data, "rows": rows, **prepared, "clusters": counts, **found}
        )
    elif not quiet:
        if output != "-":
            click.echo(f"{rows:,} rows. Labels: {output}")
        if found:
            click.echo(agreement_line(found["agreement"]), err=output == "-")
    if verbose:
        shown = ", ".join(f"{size:,} in {cluster}" for cluster, size in counts.items())
        click.echo(f"Rows by cluster: {shown}.", err=True)


def through_steps(model: Any, X: Any) -> tuple[Any, Any]:
    """Return our estimator, and the rows as it wants them: a pipeline prepares them first."""
    if not hasattr(model, "steps"):
        return model, X
    prepared = model[:-1].transform(X) if len(model.steps) > 1 else X
    return model.steps[-1][1], getattr(prepared, "to_numpy", lambda: prepared)()


def loaded(path: str) -> Any:
    """Return the model, which must have clusters."""
    from sketchmeans.models import load

    model: Any = load(path)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which has no clusters. Save a model of "
            "KernelKMeans or FullKernelKMeans."
        )
    return model
