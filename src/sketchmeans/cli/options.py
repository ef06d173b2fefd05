"""Options that several commands share, and what follows from them.

Options of the library's own parameters reach a command gathered: ``fitting`` goes to the estimator,
and ``reading``, of the options in ``cli.reading``, to ``read_table``.
"""

from __future__ import annotations

import functools
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from sketchmeans.text import called, did_you_mean

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

# The names stand here again so that --help and completion need not import NumPy; a test compares
# them with the registries.
_NAMED = ("rbf", "gaussian", "linear", "polynomial", "poly", "laplacian", "cosine", "sigmoid")
KERNELS = ("neighbors", *_NAMED, "precomputed")
DEFAULT_KERNEL = "neighbors"
"""As ``KernelKMeans`` has it, which a test compares too."""
METRICS = ("euclidean", "cosine")
METHODS = ("auto", "one-pass", "nystrom", "rpcholesky", "greedy-cholesky", "exact")

DATA = click.argument("data", type=click.Path(allow_dash=True), metavar="DATA")
"""A data file, or ``-`` for standard input."""


COMPLETION = """
Completion of commands, options and file names, for the start-up file of your shell:
  bash:  eval "$(_SKETCHMEANS_COMPLETE=bash_source sketchmeans)"
  zsh:   eval "$(_SKETCHMEANS_COMPLETE=zsh_source sketchmeans)"
  fish:  _SKETCHMEANS_COMPLETE=fish_source sketchmeans | source
"""


def examples(*commands: str, completion: bool = False) -> str:
    """Return the end of a help page: commands to try, on lines of their own."""
    mark = "\b\n"  # click then leaves the lines as they are
    text = mark + "Examples:\n" + "".join(f"  {command}\n" for command in commands)
    return text + ("\n" + mark + COMPLETION.lstrip() if completion else "")


def number_or(*words: str, free: bool = False) -> Callable[[str], Any]:
    """Return a type of option: a number or one of some words, and any text where ``free``."""

    def convert(value: str) -> Any:
        if value in words:
            return value
        for kind in (int, float):
            try:
                number = kind(value)
            except ValueError:
                continue
            if math.isfinite(number):
                return number
        if free:
            return value
        listed = "".join(f", and not {word!r}" for word in words)
        raise click.BadParameter(f"{value!r} is no finite number{listed}.")

    return convert


class Names(click.Choice):  # type: ignore[type-arg]  # not generic in click 8.1
    """One of some names; of any other it suggests the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(error.message + did_you_mean(str(value), self.choices), param, ctx)


def together(*options: Decorator) -> Decorator:
    """Return one decorator that adds options in this order."""

    def decorate(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def gathered(into: str, *options: Decorator) -> Decorator:
    """Return one decorator that adds options, and hands them on as the dictionary ``into``.

    It holds those that were given: the library knows the defaults of the others. Several decorators
    of a command may share a dictionary.
    """

    def decorate(function: Command) -> Command:
        names: list[str] = []

        @functools.wraps(function)
        def command(**values: Any) -> Any:
            found = given(**{name: values.pop(name) for name in names})
            return function(**{**values, into: values.get(into, {}) | found})

        complete: Any = together(*options)(command)
        # click keeps the options of a function from the last one to the first.
        names += [option.name for option in complete.__click_params__[: -len(options) - 1 : -1]]
        return complete

    return decorate


def kernel_option(choices: click.Choice[str], default: str | None, more: str = "") -> Decorator:
    """Return the option of the kernel, among some of them; with more to say of it."""
    said = "neighbors: by the anchors near both; " if "neighbors" in choices.choices else ""
    return click.option(
        "--kernel",
        type=choices,
        default=default,
        show_default=True,
        help=f"How alike two rows are; {said}precomputed: DATA is the kernel matrix.{more}",
    )


shape_options = gathered(
    "fitting",
    click.option(
        "--gamma",
        type=number_or(free=True),
        metavar="GAMMA",
        help='Width of the kernel: a number, "median" (the default), a multiple of it such as '
        '"4*median", or "scale".',
    ),
    click.option("--degree", type=int, help="Degree of the polynomial kernel; 3 if left out."),
    click.option(
        "--coef0", type=float, help="Constant of the polynomial and sigmoid kernels; 1 if left out."
    ),
)

neighbor_options = gathered(
    "kernel_params",
    click.option(
        "--anchors",
        "n_anchors",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        help="Points of the neighbors kernel that stand among the rows, in each set.",
    ),
    click.option(
        "--neighbors",
        "n_neighbors",
        type=int,
        metavar="NUMBER",
        help="Nearest anchors that count for a row; 5 if left out.",
    ),
    click.option(
        "--graphs",
        "n_graphs",
        type=number_or("auto"),
        metavar="auto|NUMBER",
        help="Sets of anchors, over which the neighbors kernel is a mean.",
    ),
    click.option(
        "--metric",
        type=Names(METRICS),
        help="Distances of rows and anchors; euclidean if left out.",
    ),
)


def _with_the_kernel(function: Command) -> Command:
    """Hand the options of the neighbours kernel on as its ``kernel_params``, if there are any."""

    @functools.wraps(function)
    def command(*, fitting: dict[str, Any], kernel_params: dict[str, Any], **values: Any) -> Any:
        kernel = fitting.get("kernel", DEFAULT_KERNEL)
        if kernel_params and kernel != "neighbors":
            flag = called(next(iter(kernel_params)))
            raise click.UsageError(
                f"{flag} is not read with --kernel {kernel}. Add --kernel neighbors, or "
                f"leave {flag} out."
            )
        if kernel_params:
            fitting = fitting | {"kernel_params": kernel_params}
        return function(fitting=fitting, **values)

    return command


def options_of_kernels(default: str | None, more: str = "") -> Decorator:
    """Return the options of all kernels; ``default`` is None where several are tried."""
    kernel = gathered("fitting", kernel_option(Names(KERNELS), default, more))
    return together(kernel, shape_options, neighbor_options, _with_the_kernel)


kernel_options = options_of_kernels(DEFAULT_KERNEL)

run_options = gathered(
    "fitting",
    click.option("--jobs", "n_jobs", type=int, metavar="N", help="Threads; all cores if left out."),
    click.option(
        "--seed",
        "random_state",
        type=click.IntRange(0, 2**32 - 1),
        default=0,
        show_default=True,
        help="Same seed, same result.",
    ),
)

checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(),
    metavar="FOLDER",
    help="Save there what is done; the same command goes on from it.",
)

output_options = together(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text."),
    click.option("-q", "--quiet", is_flag=True, help="No progress, no notes, no summary."),
    click.option("-v", "--verbose", is_flag=True, help="Tell of every stage and what it took."),
)


def refuse_shared(files: dict[str, str]) -> None:
    """Refuse one file in two places of the command line: one would be written over the other."""
    seen: dict[str, str] = {}
    for option, path in files.items():
        place = os.path.realpath(path)
        if path != "-" and place in seen:
            raise click.UsageError(
                f"{seen[place]} and {option} are the same file, {path}. Name two files."
            )
        seen[place] = option


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def verbosity(quiet: bool, verbose: bool) -> int:
    """Return ``verbose`` for the estimators: progress on a terminal, or where it was asked for."""
    return int(verbose or (sys.stderr.isatty() and not quiet))


@contextmanager
def stages(quiet: bool) -> Iterator[Callable[..., None]]:
    """Yield what draws the stages of a command on a terminal, and does nothing elsewhere."""
    from sketchmeans.estimators.progress import Bar

    if quiet or not sys.stderr.isatty():
        yield lambda *stage, **more: None
        return
    bar = Bar(sys.stderr)
    try:
        yield bar.show
    finally:
        bar.close()


def note(text: str) -> None:
    """Say something beside the results, on standard error."""
    click.echo(f"Note: {text}", err=True)


def print_json(value: Any) -> None:
    """Print one JSON object; what is not finite becomes null."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def command_line() -> str:
    """Return the command that is running, as it can be typed again."""
    arguments = click.get_current_context().find_root().meta.get(ARGUMENTS, [])
    return shlex.join(["sketchmeans", *arguments])


ARGUMENTS = "sketchmeans.arguments"
"""Where the root context keeps the arguments that it was called with."""
