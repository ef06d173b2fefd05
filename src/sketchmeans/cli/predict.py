"""``sketchmeans predict``: labels of new rows, by a model that ``cluster --save`` wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sketchmeans.cli.options import (
    DATA,
    examples,
    output_options,
    print_json,
    read,
    reading_options,
    refuse_shared,
    stages,
)

if TYPE_CHECKING:
    from sketchmeans.io import TableData


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
@click.option("--jobs", type=int, metavar="N", help="Threads; all cores if left out.")
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@output_options
def command(
    model: str,
    data: str,
    reading: dict[str, Any],
    output: str,
    jobs: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Assign the rows of DATA to the clusters of MODEL.

    Columns are found by their names, where both the model and DATA have names; other columns are
    left alone. Data that were standardized for the model are standardized in the same way here;
    missing values that were filled in for it are filled in by the same numbers.
    """
    import numpy as np

    from sketchmeans.estimators.fitted import predicted
    from sketchmeans.io import check_output, write_labels

    if output == "-" and as_json:
        raise click.UsageError("--json and the labels both go to standard output. Add -o FILE.")
    refuse_shared({"DATA": data, "--output": output})
    refuse_shared({"MODEL": model, "--output": output})
    check_output(output, force=force, labels=True)
    fitted = _loaded(model)
    table = _prepared(fitted, data, quiet, reading)
    rows = len(table.rows)
    with stages(quiet) as show:
        show("predict", 0, rows, (rows, "rows"), count=True)
        labels = predicted(
            fitted.set_params(n_jobs=jobs),
            table.X,
            lambda done, total: show("predict", done, total, (rows, "rows"), count=True),
        )
    write_labels(output, table, labels, force=force)
    counts = dict(enumerate(np.bincount(labels).tolist()))
    if as_json:
        prepared = {"rows_dropped": table.n_dropped, "values_imputed": table.n_imputed}
        print_json({"model": model, "data": data, "rows": rows, **prepared, "clusters": counts})
    elif output != "-" and not quiet:
        click.echo(f"{rows:,} rows. Labels: {output}")
    if verbose:
        shown = ", ".join(f"{size:,} in {cluster}" for cluster, size in counts.items())
        click.echo(f"Rows by cluster: {shown}.", err=True)


def _loaded(path: str) -> Any:
    """Return the model, which must have clusters."""
    from sketchmeans.models import load

    model: Any = load(path)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, which has no clusters. Save a model of "
            "KernelKMeans or FullKernelKMeans."
        )
    return model


def _prepared(model: Any, data: str, quiet: bool, reading: dict[str, Any]) -> TableData:
    """Return the rows as the model knows them: its columns, filled in and scaled as its own."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        # The columns are put in the model's order here, so that it need not look at names again.
        del model.feature_names_in_
    table = read(
        data,
        quiet=quiet,
        expected=None if names is None else list(names),
        n_features=model.n_features_in_,
        fill_values=getattr(model, "fill_values_", None),
        **reading,
    )
    if hasattr(model, "standard_scale_"):
        table.standardize(model.standard_center_, model.standard_scale_)
    return table
