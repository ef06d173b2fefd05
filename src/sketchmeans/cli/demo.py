"""``sketchmeans demo``: two data sets clustered, or written as files to try the commands on."""

from __future__ import annotations

import click

from sketchmeans.cli.options import examples


@click.command(
    epilog=examples(
        "sketchmeans demo",
        "sketchmeans demo --write examples",
    )
)
@click.option(
    "--write",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Write rings.csv, digits.csv and new-digits.csv to a folder instead.",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def command(write: str | None, force: bool) -> None:
    """Cluster two rings and handwritten digits, and show what was found."""
    from sketchmeans import demo

    if write is None:
        demo.main()
        return
    for path in demo.write_examples(write, force=force):
        click.echo(path)
