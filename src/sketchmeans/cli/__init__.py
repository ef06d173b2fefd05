"""The command line: thin. A command parses, calls the library, and prints.

A command is a module of this package with a ``click`` command called ``command``; it is imported
when it is asked for, so that ``sketchmeans --help`` answers at once.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import TextIO

import click

import sketchmeans

COMMANDS = {
    "reproduce": "the paper's table and figures, beside ours",
}
"""Each command and what it is for, in the order of ``--help``."""


class _Commands(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they are listed above."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(sketchmeans.__version__, prog_name="sketchmeans")
def cli() -> None:
    """Kernel K-means on data whose kernel matrix nobody can store."""


def main() -> None:
    """Run the command line: exit code 0, 1 where a command failed, 2 where it was misused."""
    warnings.showwarning = _show_warning
    try:
        cli.main(prog_name="sketchmeans", standalone_mode=True)
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        # What the library says of bad input is written for people: no traceback around it.
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as one line on standard error."""
    del category, filename, lineno, file, line
    click.echo(f"Warning: {message}", err=True)
