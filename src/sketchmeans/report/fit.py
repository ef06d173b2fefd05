"""Sections of the report on the fit: what was asked, how good it is, what it cost."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy import sparse

from sketchmeans._package import __version__
from sketchmeans.certificate import Certificate
from sketchmeans.certificate.intervals import (
    BEST,
    FOUND,
    PLAIN,
    Interval,
    intervals,
    measures_cut,
    verdict,
)
from sketchmeans.estimators.fitted import FittedEmbedding, has_neighbors
from sketchmeans.estimators.parts import anchors_of
from sketchmeans.plotting.certificate import objective_of
from sketchmeans.report.charts import bar, certificate_chart, spectrum_chart
from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, command_line, pairs, short, table, tag
from sketchmeans.text import human

UNREAD = (
    *("gamma", "degree", "coef0", "method", "precision"),
    *("oversampling", "n_landmarks", "sketch", "truncation", "n_passes"),
)
"""Options that the neighbours kernel does not read."""
SUITS = (
    "A clustering can be the best of its kernel and still not show the groups that one looks for: "
    "see what to do next."
)


def asked(found: Findings) -> Iterator[Markup]:
    """What was asked: data, kernel, method."""
    model, n, done = found.model, len(found.labels), found.samples.preparation
    dropped = f"{done.n_dropped:,} of {n + done.n_dropped:,}, for a missing value"
    rows = [
        ("data", None if found.source is None else short(found.source, 200)),
        ("samples", f"{n:,}"),
        ("features", _features(found)),
        ("prepared by", _prepared(found)),
        ("rows dropped", dropped if done.n_dropped else None),
        ("values filled in", f"{done.n_imputed:,}" if done.n_imputed else None),
        ("clusters", str(model.n_clusters)),
        ("kernel", _kernel(model)),
    ]
    if hasattr(model, "rank_"):
        asked = model.n_refine if model.n_refine != 0 else None
        rows += [
            ("method", _method(model)),
            ("rank of the embedding", f"{model.rank_} (asked: {model.rank})"),
            ("numbers kept per sample", str(model.width_)),
            ("landmarks", _filled("{:,}", model.n_landmarks_)),
            ("anchors", _filled("{}", anchors_of(model))),
            ("iterations in feature space after K-means", _filled("{} (asked)", asked)),
        ]
    else:
        rows.append(("method", f"full kernel K-means, started by {model.init}"))
    seed = model.random_state
    rows.append(("seed", "none" if seed is None else short(seed)))
    yield pairs(rows, label="What was asked")
    unread = UNREAD if has_neighbors(model) else ()
    options = [
        (name, short(_written(value), 200))
        for name, value in sorted(model.get_params().items())
        if name not in unread
    ]
    summary = f"All options of {type(model).__name__}"
    summary += " that this kernel reads" if unread else ""
    yield tag("details", tag("summary", summary), pairs(options, label="All options"))


def _method(model: Any) -> str:
    """Return the method that was taken; files of earlier versions do not say why."""
    taken = model.stats_.get("method", model.method)
    passes = model.stats_["passes"]
    said = f"{taken}, {passes} passes" if taken == "one-pass" and passes > 1 else str(taken)
    return f"{said} ({model.stats_['why']})" if model.method == "auto" else said


def _features(found: Findings) -> str | None:
    table = found.samples.table
    if table is None:
        return None
    if table.texts:
        text = len(table.texts)
        return f"{table.n_numeric + text:,} ({table.n_numeric:,} of numbers, {text:,} of text)"
    X = table.X
    kind = f"sparse, {X.nnz:,} numbers stored" if sparse.issparse(X) else str(X.dtype)
    moved = found.samples.preparation.scale is not None
    standard = ", standardized for clustering, shown as they were" if moved else ""
    return f"{X.shape[1]:,} ({kind}){standard}"


def _prepared(found: Findings) -> str | None:
    """Return what a Pipeline did before the model."""
    if not found.steps.words:
        return None
    columns = "" if found.fitted_to is None else f" to {found.fitted_to.shape[1]:,} columns"
    return short(f"{found.steps.words}{columns}; values are shown as they were before", 200)


def _kernel(model: Any) -> str:
    kernel = model.kernel if isinstance(model.kernel, str) else _written(model.kernel)
    if model.gamma_ is not None:
        kernel += f", γ = {model.gamma_:.5g}"
        if isinstance(model.gamma, str):
            kernel += f" ({model.gamma})"
    if has_neighbors(model) and model.kernel_params:
        given = [f"{name} = {value}" for name, value in sorted(model.kernel_params.items())]
        kernel += f" ({', '.join(given)})"
    return short(kernel, 200)


def _written(value: Any) -> str:
    """Return a value as one writes it; a function by its name, not by its address."""
    return getattr(value, "__qualname__", None) or repr(value)


def spectrum(found: Findings) -> Iterator[Markup]:
    """Eigenvalues, and what the rank holds."""
    embedded = found.embedded
    words = _near_one(embedded) if embedded.near_one else _held(found)
    yield tag("p", words)
    yield spectrum_chart(embedded.eigenvalues, embedded.beyond, near_one=embedded.near_one)


def _held(found: Findings) -> str:
    values, beyond = found.embedded.eigenvalues, found.embedded.beyond
    trace = found.model.certificate_.trace_kernel
    words = f"The embedding has rank {len(values)}"
    if trace > 0:
        words += f" and holds {values.sum() / trace:.1%} of the trace of the kernel"
        if len(beyond):
            words += f"; the whole sketch holds {(values.sum() + beyond.sum()) / trace:.1%}"
    words += "."
    if len(beyond):
        words += (
            f" Hollow points go on from there: {len(beyond)} of what the sketch saw and the rank "
            "dropped; they are less accurate."
        )
    return words


def _near_one(embedded: FittedEmbedding) -> str:
    rank, beyond = len(embedded.eigenvalues), embedded.beyond
    words = (
        "Eigenvalues of this kernel lie between 0 and 1, and the first is 1. Clusters that share "
        "few neighbours have as many close to 1, and then there is a gap. The embedding has rank "
        f"{rank}: eigenvalue {rank} is {embedded.eigenvalues[-1]:.5f}"
    )
    if not len(beyond):
        return words + "."
    return (
        f"{words}, the next {beyond[0]:.5f}. Hollow points, as exact as the others, go on from "
        "there."
    )


def certificate(found: Findings) -> Iterator[Markup]:
    """What is known of the objective, in words, as a drawing and in numbers; and what is not."""
    known, cuts = found.model.certificate_, measures_cut(found.model.certificate_)
    plain, at_most = objective_of(found.plain, found.model)
    drawn = intervals(known, plain, at_most=at_most)
    yield tag("p", verdict(known))
    if known.n_clusters > 1:
        yield tag("p", tag("strong", known.scope), f" {SUITS}")
    if drawn:
        yield certificate_chart(drawn, cuts=cuts)
    yield from _cut(known, drawn) if cuts else _objective(found, drawn)
    if found.plain is not None and found.plain.rows is not None:
        rows = len(found.plain.rows)
        yield tag("p", f"Plain K-means had {rows:,} samples drawn: its value of all is not stated.")


def _cut(known: Certificate, drawn: list[Interval]) -> Iterator[Markup]:
    """What is cut, and the least that can be."""
    numbers = {one.name: one.told for one in drawn}
    if numbers:
        rows = [
            ("normalized cut of these labels", numbers[FOUND]),
            ("that of plain K-means, under this kernel", numbers.get(PLAIN)),
            ("best possible normalized cut", numbers[BEST]),
            ("normalized cut of labels at random", f"{known.n_clusters - 1}"),
        ]
        yield pairs(rows, label="Certificate in numbers")
    words = (
        "The normalized cut says how much of the neighbourhoods of samples lies in other clusters "
        "than their own: a share for each cluster, summed over the clusters. It is 0 where no two "
        "clusters share a neighbour. No clustering into "
        f"{known.n_clusters} clusters, by any method, cuts less than the bound"
    )
    if known.level == "free":
        words += ", which comes from the eigenvalues alone and may be far below the best there is."
    else:
        words += f"{known.how}."
    yield tag("p", words)


def _objective(found: Findings, drawn: list[Interval]) -> Iterator[Markup]:
    """The objective and its bounds."""
    known = found.model.certificate_
    objective = _filled("{:.6g}, exactly", known.objective)
    if objective is None and known.objective_upper is not None:
        objective = f"between {known.objective_lower:.6g} and {known.objective_upper:.6g}"
        objective = drawn[0].told if drawn else objective
    above = "at most {:.6g} above the best"
    plain = next((one.told for one in drawn if one.name == PLAIN), None)
    rows = [
        ("objective of these labels", objective),
        ("that of plain K-means, under this kernel", plain),
        ("best possible objective", _filled("at least {:.6g}" + known.how, known.optimum_lower)),
        ("if K-means solved the embedding to optimality", _filled(above, known.gap_bound)),
    ]
    if known.gap_bound_probabilistic is not None:
        likely = f"{above}, which is at least {known.optimum_lower_probabilistic:.6g}"
        name = f"the same, except with probability {known.failure_probability:g}"
        rows.append((name, likely.format(known.gap_bound_probabilistic)))
    rows += [
        ("trace of the kernel", f"{known.trace_kernel:.6g}"),
        ("trace that the embedding leaves out", f"{known.trace_error:.6g}"),
    ]
    yield pairs(rows, label="Certificate in numbers")
    words = (
        "The objective is the sum of squared distances to the centroids in feature space. No "
        f"clustering into {known.n_clusters} clusters, by any method, is below the best possible."
    )
    if known.assumes_psd:
        words += " This assumes that the kernel is positive semidefinite."
    if hasattr(found.model, "objectives_"):
        words += " Full kernel K-means has no embedding, which is why all of the trace is left out."
    yield tag("p", words)


def _filled(pattern: str, value: Any) -> str | None:
    return None if value is None else pattern.format(value)


def cost(found: Findings) -> Iterator[Markup]:
    """Time by stage, and memory."""
    stats = found.model.stats_
    seconds: dict[str, float] = stats["seconds"]
    total = sum(seconds.values())
    rows: list[list[Any]] = [
        [name, f"{value:.3f} s", bar(value / total if total else 0.0)]
        for name, value in seconds.items()
    ]
    rows.append([tag("strong", "in all"), tag("strong", f"{total:.3f} s"), ""])
    yield table(["stage", "time", ""], rows, label="Time by stage", numbers=(1,))
    planned, peak = stats.get("planned_bytes"), peak_memory()
    near = has_neighbors(found.model)
    facts = [
        ("passes over the kernel", None if near else f"{stats['passes']:,}"),
        ("kernel entries", None if near else f"{stats['kernel_entries']:,}"),
        ("distances to anchors", f"{stats['distances']:,}" if near else None),
        ("threads", str(stats["n_threads"])),
        ("engine, precision", f"{stats['engine']}, {stats['precision']}"),
        (
            "the features" if near else "the sketch",
            human(stats["sketch_bytes"]) if "sketch_bytes" in stats else None,
        ),
        ("memory of the fit, reckoned", human(planned) if planned else None),
        ("memory of the process, at its highest", None if peak is None else human(peak)),
        ("the kernel matrix would be", human(8.0 * len(found.labels) ** 2)),
    ]
    yield pairs(facts, label="Work and memory")


def peak_memory() -> int | None:
    """Return the most bytes that this process has held; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def repeat(found: Findings) -> Iterator[Markup]:
    """The command, and the versions."""
    words = "No seed was given: another run may differ." if found.model.random_state is None else (
        "The same data, seed and versions give the same clusters, bit for bit, on any number of "
        "threads."
    )  # fmt: skip
    versions = (
        f"sketchmeans {__version__}, scikit-learn {sklearn.__version__}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, Python {platform.python_version()}"
    )
    given = found.steps.code if found.command is None else command_line(found.command)
    yield tag("pre", tag("code", given), tabindex="0")
    yield tag("p", f"{words} {versions}.")
