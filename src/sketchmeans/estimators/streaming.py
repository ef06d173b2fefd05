"""When rows are read from files in blocks, and what a fit leaves behind then.

What cannot be streamed (kernels of a matrix or a function, methods that want whole columns of K,
proofs) is given a memory map in the place of an array: of the file itself, or of a scratch file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sketchmeans.blas import count_threads
from sketchmeans.blocks import row_blocks
from sketchmeans.checkpoints import Checkpoint
from sketchmeans.disk import Desk, FileRows, Outputs, as_source, is_source
from sketchmeans.disk.ahead import Ahead
from sketchmeans.disk.npy import watch_of
from sketchmeans.disk.outputs import Results
from sketchmeans.disk.sources import ArraySource, float_dtype, is_memory_map
from sketchmeans.engine import Crew, Run
from sketchmeans.estimators.checks import first_bad, refuse_value
from sketchmeans.estimators.memory import parse_bytes
from sketchmeans.estimators.outline import Kind

SHARE = 4
"""A memory map is streamed where this times its numbers exceed the memory limit or, without one,
the memory of the machine: what a fit makes of rows, and may hold, takes as much."""


def to_stream(estimator: Any, X: Any, folder: Path | None = None) -> Any:
    """Return X as rows in a file where it is none in memory, or too large for it; nothing is read.

    Arrays and all that is in memory stay what they are.

    Parameters
    ----------
    estimator : estimator
        Its options say what can be streamed.
    X : object
    folder : Path, optional
        Where scratch files lie.
    """
    if not is_source(X) and not (is_memory_map(X) and X.ndim == 2 and X.dtype.kind in "fiub"):
        return X
    if not is_source(X) and not (streamable(estimator) and is_large(estimator, X)):
        return X
    rows = FileRows(as_source(X), Desk(count_threads(estimator.n_jobs), folder))
    for size, what in zip(rows.shape, ("samples", "features"), strict=True):
        if size == 0:
            raise ValueError(f"X has shape {rows.shape}: there are no {what} to work on.")
    return rows


def saved_by(checkpoint: Checkpoint, X: Any) -> None:
    """Let streams and passes over rows in files save what they have done; others are told so."""
    if isinstance(X, FileRows):
        X.desk.checkpoint = checkpoint


def in_file(estimator: Any, X: Any) -> Any:
    """Return X as it is, or if it is no array but has rows to be read, these; nothing is read."""
    return FileRows(as_source(X), Desk(count_threads(estimator.n_jobs))) if is_source(X) else X


def is_large(estimator: Any, X: Any) -> bool:
    """Whether a memory map is too large to be worked on as if it were in memory."""
    size = math.prod(X.shape) * float_dtype(X.dtype).itemsize
    return size > most_in_memory(estimator.memory_limit)


def as_fitted(kind: Kind, estimator: Any) -> Kind:
    """Return the kind of data as a fit of this estimator will have them: streamed, or not."""
    elsewhere = kind.place == "file" or (kind.place == "map" and is_large(estimator, kind))
    spills = elsewhere and streamable(estimator)
    return replace(kind, spills=spills, copied=0 if spills else kind.copied)


def most_in_memory(memory_limit: Any) -> int:
    """Return how many bytes of rows are worked on in memory."""
    limit = parse_bytes(memory_limit)
    return (machine_bytes() if limit is None else limit) // SHARE


def machine_bytes() -> int:
    """Return the memory of the machine; where that is not known, a few gigabytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def streamable(estimator: Any) -> bool:
    """Whether a fit can work on rows in blocks."""
    if callable(estimator.kernel) or estimator.kernel == "precomputed":
        return False
    if not hasattr(estimator, "method") or getattr(estimator, "certificate", "free") not in (
        None,
        "free",
    ):
        return False
    if estimator.kernel == "neighbors":
        return True
    return estimator.method != "exact" and estimator.sketch not in ("leverage", "column-norm")


def refuse_bad_rows(rows: FileRows) -> None:
    """Refuse rows that are not finite, by their number among all: one stream."""
    for index, found in enumerate(rows.map(first_bad, name="check")):
        if found is not None:
            refuse_value(index * rows.span + found[0], *found[1:])


def settle_points(estimator: Any, data: Any = None) -> None:
    """Let predictions of a fit to rows in a file have their samples as an array, if they need any.

    Samples of a memory map stay there, also of one that a path led to: see ``refuse_changed``.
    Others are put in a scratch file. ``data`` are those of the fit: a file that was written to
    while it was read is refused.
    """
    if (watch := watch_of(data)) is not None:
        watch.refuse_changed()
    for name in ("_new_points", "_samples"):
        points = getattr(estimator, name, None)
        samples = getattr(points, "data", None)
        if points is not None and isinstance(samples, FileRows):
            setattr(estimator, name, points.on(samples.whole()))


def refuse_changed(estimator: Any) -> None:
    """Refuse new points where samples are read from a file that was written to since the fit."""
    for name in ("_new_points", "_samples"):
        points = getattr(estimator, name, None)
        if (watch := watch_of(getattr(points, "data", None))) is not None:
            watch.refuse_changed()


def whole(array: Any, *, symmetric: bool = False) -> Any:
    """Return rows in a file as a memory map that is only read; an array as it is.

    Of a symmetric matrix that lies in the file column by column, the columns are the rows.
    """
    if not isinstance(array, FileRows):
        return array
    source = array.source
    if symmetric and isinstance(source, ArraySource) and is_memory_map(source.array):
        array = FileRows(ArraySource(source.array.T), array.desk) if _turns(source) else array
    return array.whole()


def _turns(source: ArraySource) -> bool:
    flags = source.array.flags
    return bool(flags.f_contiguous and not flags.c_contiguous)


def written(outputs: Outputs, embedding: Any, labels: Any = None) -> dict[str, Any]:
    """Write what a fit found to the files that were asked for; return the attributes that it sets.

    A memory map of the file takes the place of what was found.
    """
    found = outputs.write(out=labels, embedding_out=embedding)
    names = {"out": "labels_", "embedding_out": "embedding_"}
    return {names[name]: array for name, array in found.items()}


def take_plan(X: Any, n_threads: int) -> None:
    """Let rows in a file be worked on by as many threads as the memory limit allows."""
    if isinstance(X, FileRows):
        X.desk.n_threads = n_threads


def in_blocks(
    estimator: Any,
    X: Any,
    work: Callable[[Any, Run], Any],
    shape: tuple[int, ...],
    out: Any,
    run: Run,
) -> Any:
    """Return what ``work`` makes of new points, a result of this shape for each.

    Rows in files are read in blocks, ahead of the work; with ``out``, a path, results go there.
    """
    outputs = Outputs({"out": out})
    outputs.check()
    if not is_source(X) and not (is_memory_map(X) and X.ndim == 2 and is_large(estimator, X)):
        found = work(estimator._check_new(X), run)
        return outputs.write(out=found).get("out", found)
    source = as_source(X)
    check_columns(estimator, source)
    silent = replace(run, progress=None)
    size = points_at_once(estimator, source)
    cuts = row_blocks(source.shape[0], size)

    def read(rows: slice) -> Any:
        block = source.read(rows.start, rows.stop)
        if (bad := first_bad(block)) is not None:
            refuse_value(rows.start + bad[0], *bad[1:])
        return block

    refuse_changed(estimator)
    first = work(read(slice(0, 1)), silent)
    results = Results(source.shape[0], shape, first.dtype)

    with results.opened(out) as append, Crew(1) as crew, Ahead(read, cuts, 2, crew) as blocks:
        for index, block in blocks:
            refuse_changed(estimator)
            append(work(block, silent))
            blocks.done()
            run.report(cuts[index].stop, source.shape[0])
    return results.found(out)


def points_at_once(estimator: Any, source: Any) -> int:
    """Return how many rows are read at once: whole blocks of those that are worked on at once."""
    points = estimator._new_points
    dual = getattr(estimator, "_dual", None)
    grid = points.rows_at_once(1 if dual is None else len(dual))
    grid = both if (both := math.lcm(grid, 256)) <= 1 << 16 else grid
    return int(grid * max(source.block_rows // grid, 1))


def check_columns(estimator: Any, source: Any) -> None:
    """Refuse rows that have other columns than those of the fit."""
    n, p = source.shape
    if n == 0:
        raise ValueError(f"X has shape {source.shape}: there are no samples to work on.")
    if p != estimator.n_features_in_:
        raise ValueError(
            f"X has {p} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and source.names is not None and source.names != list(known):
        missing = [name for name in known if name not in source.names]
        raise ValueError(
            f"the columns of X are not those of the fit, or not in their order: {source.names} "
            f"where {list(known)} are needed"
            + (f"; {', '.join(missing)} are missing." if missing else ".")
        )
