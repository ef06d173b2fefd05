"""``sketchmeans reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("reproduce", short_help="the paper's table and figures, beside ours")
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
    help="Trials of every method.  [default: 100; quick: 10]",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--quick", is_flag=True, help="Few trials and few points of each curve.")
@click.option("--force", is_flag=True, help="Overwrite what an earlier run left in the folder.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def command(
    out: Path, trials: int | None, seed: int, quick: bool, force: bool, quiet: bool
) -> None:
    r"""Run the paper's experiments and set our figures beside the paper's.

    Writes figures (PNG and SVG), tables (Markdown and JSON) and README.md, the page that brings
    them together. A full run takes about ten minutes on two cores, a quick one under 90 seconds.

    \b
    Examples:
      sketchmeans reproduce --quick --out quick-look
      sketchmeans reproduce --trials 100 --seed 0 --out reproduction
    """
    from sketchmeans.progress import Bar
    from sketchmeans.reproduce import reproduce

    bar = None if quiet else Bar(sys.stderr)
    try:
        page = reproduce(
            out,
            trials=trials,
            seed=seed,
            quick=quick,
            overwrite=force,
            show=None if bar is None else bar.show,
        )
    finally:
        if bar is not None:
            bar.close()
    click.echo(f"Written: {page}")
