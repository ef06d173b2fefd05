"""``sketchmeans reproduce``: the paper's experiments, run again."""

from __future__ import annotations

from pathlib import Path

import click

from sketchmeans.cli.options import examples, stages


@click.command(
    epilog=examples(
        "sketchmeans reproduce --quick --out quick-look",
        "sketchmeans reproduce --trials 100 --seed 0 --out reproduction",
    )
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder to write to; created if it does not exist.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=2),
    help="Trials of the table and of Figure 3; other experiments take a fifth.  "
    "[default: 100, quick: 10]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same figures, times excepted.",
)
@click.option("--quick", is_flag=True, help="Few trials and few points of each curve.")
@click.option("--force", is_flag=True, help="Overwrite what an earlier run left in the folder.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, and no word at the end.")
def command(
    out: Path, trials: int | None, seed: int, quick: bool, force: bool, quiet: bool
) -> None:
    """Run the paper's experiments and set our figures beside the paper's.

    Writes figures (PNG and SVG), tables (Markdown and JSON) and README.md, the page that brings
    them together. On two cores a full run takes under half an hour, a quick one about a minute.
    """
    from sketchmeans.reproduce import reproduce

    with stages(quiet) as show:
        page = reproduce(out, trials=trials, seed=seed, quick=quick, overwrite=force, show=show)
    if not quiet:
        click.echo(f"Written: {page}")
