"""The options of data files, and how a command comes from a file to a table.

What was done to the columns for a model is kept with it, so that ``predict`` does the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from sketchmeans.cli.options import Names, gathered, note, number_or
from sketchmeans.io.formats import FORMATS

if TYPE_CHECKING:
    from sketchmeans.io import TableData

reading_options = gathered(
    "reading",
    click.option(
        "--columns",
        metavar="NAMES",
        help="Features: names, numbers from 1 or ranges (2-5), with commas between.",
    ),
    click.option("--id-column", metavar="NAME", help="Column to carry through to the labels."),
    click.option("--label-column", metavar="NAME", help="Column of true classes, to compare with."),
    click.option("--drop-missing", is_flag=True, help="Leave out rows with a missing value."),
    click.option(
        "--na-values",
        metavar="LIST",
        help="Values that are missing, with commas between, beside NA, n/a, -, ., ? and others.",
    ),
    click.option(
        "--format",
        type=Names(list(FORMATS)),
        help="Format of DATA; by its extension if left out.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first row of text or Excel names the columns; it is looked at if left "
        "out.",
    ),
    click.option(
        "--delimiter",
        metavar="MARK",
        help="What separates fields of text: a character, tab, or space for any number of them; "
        "looked for if left out.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="What marks decimals in text; a comma is recognised, and told, if left out.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text; recognised if left out, and told if it is not UTF-8.",
    ),
    click.option(
        "--sheet",
        metavar="NAME",
        help="Sheet of an Excel file, by name or number from 1; the first if left out.",
    ),
    click.option(
        "--libsvm-base",
        type=click.IntRange(0, 1),
        metavar="0|1",
        help="First index of a LIBSVM file; if left out as in the model, or 1, or 0 if 0 is there.",
    ),
)

training_options = gathered(
    "reading",
    click.option(
        "--impute",
        type=number_or("mean", "median"),
        metavar="mean|median|NUMBER",
        help="Fill in missing values: by the mean or the median of the column, or by a number.",
    ),
    click.option(
        "--categorical",
        metavar="one-hot[:NAMES]",
        help="Turn columns of text into a column of zeros and ones for each of their texts: all of "
        "them, or those of these names, with commas between.",
    ),
    click.option("--standardize", is_flag=True, help="Give every column mean 0 and deviation 1."),
)


SMALL = 64_000_000
"""Bytes of a file up to which nobody asks whether its rows are too many for memory."""


HELD = 4
"""Rows in memory are held beside the fit: with a limit they may take this part of what a fit would
take as an array. Others lie in a scratch file, which is as good to the fit and takes no memory."""


def room_for(
    data: str,
    memory_limit: str | None,
    *outputs: str | None,
    model: Callable[[], Any] | None = None,
) -> Any:
    """Return where the rows of a file are put: in a scratch file, where memory is too small.

    That lies beside the first output, or with other temporary files, and is gone at the end. Rows
    for which the ``model`` that is to be fitted cannot keep the limit are refused before they are
    read, where the file says how many there are.
    """
    import os
    from functools import partial
    from pathlib import Path

    from sketchmeans.io.room import Room

    is_small = os.path.isfile(data) and os.path.getsize(data) < SMALL
    if memory_limit is None and is_small:
        return Room()

    from sketchmeans.disk.scratch import scratch_array
    from sketchmeans.estimators.streaming import most_in_memory

    named = [Path(path).absolute().parent for path in outputs if path not in (None, "-")]
    scratch = partial(scratch_array, named[0] if named else None)
    if memory_limit is None:
        return Room(most_in_memory(None), scratch)
    ask = None if model is None else partial(refuse_early, model)
    return Room(most_in_memory(memory_limit) // HELD, scratch, ask)


def refuse_early(made: Callable[[], Any], shape: tuple[int, int], dtype: Any) -> None:
    """Refuse rows of this shape if a fit of the model to them cannot keep its memory limit."""
    from sketchmeans.estimators.outline import Kind, Outline
    from sketchmeans.estimators.streaming import most_in_memory, streamable
    from sketchmeans.planning import plan

    model, (n, p) = made(), shape
    if model.kernel == "precomputed" and n != p:
        return  # which the fit itself tells
    large = streamable(model) and n * p * dtype.itemsize > most_in_memory(model.memory_limit)
    kind = Kind(shape, dtype, None, 0, in_memory=False, spills=large)
    is_width = not isinstance(model.gamma, str) and p * model.gamma > 0
    spread = 1 / (2 * p * model.gamma) ** 0.5 if is_width else 1.0
    with suppress(ValueError, TypeError):  # the checks of the data themselves say it better
        plan(Outline.unread(kind, spread), model, measure=False)


@contextmanager
def beside(table: TableData, model: Any) -> Iterator[None]:
    """Let a model that is fitted meanwhile keep its memory limit beside a table in memory."""
    from sketchmeans.estimators.memory import parse_bytes
    from sketchmeans.text import called, human

    given, held = model.memory_limit, table.held
    limit = parse_bytes(given)
    if limit is None or not held:
        yield
        return
    name = called("memory_limit")
    if held >= limit:
        raise MemoryError(
            f"{name}={human(limit)} cannot be kept: the table itself takes {human(held)}. Raise "
            f"{name}."
        )
    model.set_params(memory_limit=limit - held)
    try:
        yield
    except MemoryError as error:
        told = str(error).replace(f"{name}={human(limit - held)}", f"{name}={human(limit)}")
        raise MemoryError(f"{told} Beside that the table takes {human(held)}.") from None
    finally:
        model.set_params(memory_limit=given)


def read(data: str, *, quiet: bool, **options: Any) -> TableData:
    """Read the table of a command, and tell of what was guessed, left out or filled in."""
    from sketchmeans.io import read_table

    options.setdefault("room", room_for(data, None))
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        try:
            table = read_table(data, **options)
        except ValueError as error:
            for text in () if quiet else getattr(error, "notes", ()):
                note(text)
            raise
    if quiet:
        return table
    for text in table.notes:
        note(text)
    if table.n_dropped:
        note(f"dropped for a missing value: {table.n_dropped:,} of {table.n_rows:,} rows.")
    if table.n_imputed:
        note(f"missing values filled in: {table.n_imputed:,}.")
    return table


def keep_preparation(model: Any, table: TableData) -> None:
    """Let a model know what was done to the columns, for ``save``."""
    import numpy as np

    if table.named:
        model.feature_names_in_ = np.array(table.names, object)
    if table.scale is not None:
        model.standard_center_, model.standard_scale_ = table.center, table.scale
    if table.fill_values is not None:
        model.fill_values_ = table.fill_values
    if table.encoded:
        model.encoded_columns_ = tuple(tuple(column) for column in table.encoded)
    if table.libsvm_base is not None:
        model.libsvm_base_ = table.libsvm_base


def read_prepared(model: Any, data: str, *, quiet: bool, **options: Any) -> TableData:
    """Read rows as a model knows them: its columns, encoded, filled in and scaled as its own.

    A pipeline does that itself, and its first step knows the columns.
    """
    from sketchmeans.io.categories import Encoded

    steps = [step for _, step in getattr(model, "steps", [("", model)]) if step != "passthrough"]
    _refuse_text_steps(steps)
    names = getattr(steps[0], "feature_names_in_", None)
    for step in steps:
        # The columns are put in the model's order here, so that it need not look at names again.
        vars(step).pop("feature_names_in_", None)
    table = read(
        data,
        quiet=quiet,
        expected=None if names is None else list(names),
        n_features=steps[0].n_features_in_,
        keep_missing=any(hasattr(step, "statistics_") for step in steps),
        fill_values=getattr(model, "fill_values_", None),
        encoded=[Encoded(*column) for column in getattr(model, "encoded_columns_", ())],
        trained_base=getattr(model, "libsvm_base_", None),
        **options,
    )
    if hasattr(model, "standard_scale_"):
        table.standardize(model.standard_center_, model.standard_scale_)
    return table


def _refuse_text_steps(steps: list[Any]) -> None:
    """Refuse a pipeline that takes text: a table of the command line holds numbers."""
    for step in steps:
        learned = getattr(step, "categories_", [getattr(step, "statistics_", None)])
        if any(array is not None and array.dtype.kind in "OU" for array in learned):
            raise ValueError(
                f"the model is a pipeline whose {type(step).__name__} takes text, which predict "
                "reads for models of cluster --categorical alone. Predict in Python: "
                "sketchmeans.load(path).predict(frame)."
            )
