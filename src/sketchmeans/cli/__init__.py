"""The command line: thin. A command parses, calls the library, and prints.

A command is a module of this package with a ``click`` command called ``command``; it is imported
when it is asked for, so that ``sketchmeans --help`` answers at once. While a command runs,
messages of the library name parameters by the flags below.

May import: disk, datasets, io, estimators, planning, advice, models, report, reproduce.
"""

from __future__ import annotations

import difflib
import importlib
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import click

from sketchmeans._package import __version__
from sketchmeans.cli.options import ARGUMENTS, examples
from sketchmeans.text import vocabulary

COMMANDS = {
    "cluster": "cluster the rows of a data file",
    "predict": "assign new rows to the clusters of a model",
    "compare": "all methods side by side, measured exactly",
    "choose": "how many clusters, which kernel, which width",
    "certify": "how far clusters are from the best possible, proved",
    "info": "what is in a model file",
    "demo": "data sets, clustered or written as files",
    "reproduce": "the paper's table and figures, beside ours",
}
"""Each command and what it is for, in the order of ``--help``."""
FAILURES = (ValueError, TypeError, OSError, ImportError, MemoryError)
"""What the library raises of bad input: its text is written for people."""

FLAGS = {
    "n_clusters": "--clusters",
    "kernel": "--kernel",
    "gammas": "--gammas",
    "kernels": "--kernels",
    "variants": "--methods",
    "n_anchors": "--anchors",
    "n_neighbors": "--neighbors",
    "n_graphs": "--graphs",
    "metric": "--metric",
    "n_landmarks": "--landmarks",
    "n_passes": "--passes",
    "n_refine": "--refine",
    "n_jobs": "--jobs",
    "block_size": "--block-size",
    "failure_probability": "--failure-probability",
    "effort": "--effort",
    "seconds": "--seconds",
    "random_state": "--seed",
    "memory_limit": "--memory-limit",
    "checkpoint": "--checkpoint",
    "columns": "--columns",
    "id_column": "--id-column",
    "label_column": "--label-column",
    "drop_missing": "--drop-missing",
    "impute": "--impute",
    "standardize": "--standardize",
    "categorical": "--categorical",
    "na_values": "--na-values",
    "delimiter": "--delimiter",
    "decimal": "--decimal",
    "encoding": "--encoding",
    "sheet": "--sheet",
    "header": "--header",
    "format": "--format",
    "libsvm_base": "--libsvm-base",
    "force": "--force",
    "overwrite": "--force",
}
"""What the command line calls parameters of the library, in messages."""

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that ask a process to end; Windows has no SIGHUP."""


class _Commands(click.Group):
    """A group whose commands live in modules of their own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, for reports that tell how to repeat them."""
        if not args and not ctx.resilient_parsing:
            # Click before 8.2 ends well here, and writes to standard output.
            click.echo(ctx.get_help(), err=True, color=ctx.color)
            ctx.exit(2)
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library says of bad input is the whole message."""
        try:
            with vocabulary(FLAGS):
                return super().invoke(ctx)
        except FAILURES as error:
            # NOTE: a broken pipe is left to click, which ends without a word.
            if isinstance(error, BrokenPipeError):
                raise
            raise click.ClickException(str(error) or type(error).__name__) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they are listed above."""
        del ctx
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command to one that does not exist."""
        close = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if close and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

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


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "sketchmeans demo --write .",
        "sketchmeans cluster rings.csv -k 2 --label-column ring",
        "sketchmeans cluster --help",
        completion=True,
    ),
)
@click.version_option(__version__, prog_name="sketchmeans")
def cli() -> None:
    """Kernel K-means on data whose kernel matrix nobody can store."""


def main() -> None:
    """Run the command line: exit code 0, 1 where a command failed, 2 where it was misused.

    Where a signal ended it, 128 and the number of the signal, as a shell reckons: 130 for Ctrl-C.
    """
    warnings.showwarning = _shown_once()
    _end_in_order()
    # NOTE: left to itself, click ends with 1 after Ctrl-C, as after a failure.
    try:
        code = cli.main(prog_name="sketchmeans", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        click.echo("Interrupted.", err=True)
        _echo_notes(error)
        code = 128 + signal.SIGINT
    except SystemExit as error:  # by another signal
        _echo_notes(error)
        raise
    sys.exit(code)


def _echo_notes(error: BaseException) -> None:
    """Say what a checkpoint has saved; click puts an error of its own before the one that tells."""
    for one in (error, error.__cause__, error.__context__):
        for note in getattr(one, "__notes__", ()):
            click.echo(note, err=True)
            return


def _end_in_order() -> None:
    """Let SIGTERM and SIGHUP unwind the command as Ctrl-C does: what is half-written is removed.

    A signal that somebody ignores or handles already is left to them, as ``nohup`` wants it.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    """Exit by an exception, so that everybody tidies up, which no further signal disturbs."""
    del frame
    for other in _ENDING:
        if signal.getsignal(other) is _end:
            signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def _shown_once() -> Callable[..., None]:
    """Return what shows a warning as one line on standard error, and the same one never again.

    A command may fit many times, and each fit has the same to say of the same data.
    """
    seen: set[str] = set()

    def show(message: Warning | str, *rest: Any, **others: Any) -> None:
        del rest, others
        if str(message) not in seen:
            seen.add(str(message))
            click.echo(f"Warning: {message}", err=True)

    return show
