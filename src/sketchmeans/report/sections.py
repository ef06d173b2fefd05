"""What each section of the report says."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy import sparse

from sketchmeans._version import __version__
from sketchmeans.certificate.intervals import intervals, verdict
from sketchmeans.report import charts, content
from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, command_line, join, pairs, scrolling, short, table, tag
from sketchmeans.text import human


def asked(found: Findings) -> Markup:
    """What was asked: data, kernel, method."""
    model, X = found.model, found.fitted_to
    preparation = found.samples.preparation
    rows: list[tuple[str, Any]] = []
    if found.source is not None:
        rows.append(("data", short(found.source, 200)))
    rows.append(("samples", f"{len(found.labels):,}"))
    if found.samples.X is not None:
        kind = f"sparse, {X.nnz:,} numbers stored" if sparse.issparse(X) else str(X.dtype)
        moved = preparation.scale is not None
        standard = ", standardized for clustering, shown as they were" if moved else ""
        rows.append(("features", f"{X.shape[1]:,} ({kind}){standard}"))
    if preparation.n_dropped:
        total = len(found.labels) + preparation.n_dropped
        dropped = f"{preparation.n_dropped:,} of {total:,}, for a missing value"
        rows.append(("rows dropped", dropped))
    if preparation.n_imputed:
        rows.append(("values filled in", f"{preparation.n_imputed:,}"))
    rows.append(("clusters", str(model.n_clusters)))
    kernel = model.kernel if isinstance(model.kernel, str) else _called(model.kernel)
    if model.gamma_ is not None:
        kernel += f", γ = {model.gamma_:.5g}"
        if isinstance(model.gamma, str):
            kernel += f" ({model.gamma})"
    rows.append(("kernel", short(kernel, 200)))
    if hasattr(model, "rank_"):
        passes = f", {model.n_passes} passes" if model.n_passes > 1 else ""
        rows.append(("method", f"{model.method}{passes}"))
        rows.append(("rank of the embedding", f"{model.rank_} (asked: {model.rank})"))
        rows.append(("numbers kept a sample", str(model.width_)))
        if model.n_refine:
            rows.append(("exact iterations after K-means", str(model.n_refine)))
    else:
        rows.append(("method", f"full kernel K-means, started by {model.init}"))
    seed = model.random_state
    rows.append(("seed", "none" if seed is None else short(seed)))
    options = [(name, short(_called(v), 200)) for name, v in sorted(model.get_params().items())]
    return join(
        [
            pairs(rows, label="What was asked"),
            tag(
                "details",
                tag("summary", f"All options of {type(model).__name__}"),
                pairs(options, label="All options"),
            ),
        ]
    )


def _called(value: Any) -> str:
    """Return a value as one writes it; a function by its name, not by its address."""
    return getattr(value, "__qualname__", None) or repr(value)


def clusters(found: Findings) -> Markup:
    """Sizes and silhouettes."""
    n = len(found.labels)
    largest = max(int(found.sizes.max()), 1)
    known, silhouette = found.agreement, found.silhouette
    head = ["cluster", "samples", "share", ""]
    if silhouette is not None:
        head += ["silhouette", ""]
    if known is not None:
        head += ["mostly", "of it"]
    rows = []
    for k in found.clusters:
        size = int(found.sizes[k])
        row: list[Any] = [_cluster(k), f"{size:,}", f"{size / n:.1%}", charts.bar(size / largest)]
        if silhouette is not None:
            value = silhouette.of_cluster.get(k)
            row += ["", ""] if value is None else [f"{value:z.3f}", charts.bar(value)]
        if known is not None:
            common = int(known.counts[:, k].argmax())
            share = known.counts[common, k] / size if size else 0
            row += [short(known.classes[common]), f"{share:.0%}"] if size else ["", ""]
        rows.append(row)
    return join(
        [
            _only(found, "clusters"),
            table(head, rows, label="Clusters", numbers=(1, 2, 4)),
            tag("p", _silhouette_words(found)),
        ]
    )


def _silhouette_words(found: Findings) -> str:
    silhouette = found.silhouette
    if silhouette is None:
        return (
            "Silhouettes need at least two clusters, and fewer of them than samples; so there are "
            "none here."
        )
    n = len(found.labels)
    which = "all samples" if silhouette.n_samples == n else (
        f"a random choice of {silhouette.n_samples:,} samples (seed {found.seed})"
    )  # fmt: skip
    return (
        f"The mean silhouette is {silhouette.mean:z.3f}, in the embedding, over {which}. It is "
        "near 1 where clusters are tight and far apart, near 0 where they touch, and below 0 where "
        "samples are nearer to another cluster than to their own."
    )


def _cluster(k: int) -> Markup:
    return join([charts.mark(k), f" {k}"])


def _only(found: Findings, what: str) -> Markup | None:
    """Say so where a table does not list all clusters."""
    if len(found.clusters) == found.model.n_clusters:
        return Markup("")
    return tag(
        "p", f"The {len(found.clusters)} largest of {found.model.n_clusters:,} {what} are listed."
    )


def embedding(found: Findings) -> Markup:
    """The picture, which the script draws, and its controls."""
    rows, chosen = found.drawn
    n = len(found.labels)
    if chosen:
        words = (
            f"A random choice of {content.POINTS:,} of the {n:,} samples (seed {found.seed}) and "
            f"the typical members, {len(rows):,} points in all."
        )
    else:
        words = f"All {n:,} samples."
    words += (
        " Distances in the embedding are distances in the feature space of the kernel, as far as "
        "its rank goes"
    )
    if found.shown.embedding.shape[1] > 1:
        words += "; the picture shows two of its columns."
    else:
        words += (
            ". It has one column: the picture sets clusters, shaken a little, above each other."
        )
    if found.shown.is_extra:
        words += (
            " The model itself works without an embedding: this one was made for the report, with "
            "the same kernel, by one pass."
        )

    def button(name: str, words: str, label: str) -> Markup:
        return tag("button", words, type="button", id=name, aria_label=label)

    controls = tag(
        "div",
        tag("label", "across ", tag("select", id="across")),
        tag("label", "up ", tag("select", id="up")),
        button("closer", "+", "Zoom in"),
        button("farther", "−", "Zoom out"),
        button("whole", "show all", "Show the whole picture"),
        class_="controls",
    )
    keys = (
        "Point at a sample to see its id and values. The wheel zooms, dragging moves, dragging "
        "with Shift zooms into a box. Keys: ← → walk through the samples, + and − zoom, "
        "Shift with arrows moves, 0 shows all. Choose clusters in the legend to highlight them."
    )
    return join(
        [
            tag("p", words),
            controls,
            tag(
                "div",
                tag(
                    "div",
                    tag("div", id="tip", role="status", aria_live="polite"),
                    id="plot",
                    tabindex="0",
                    role="application",
                    aria_label="Scatter plot of the embedding",
                    aria_describedby="keys",
                ),
                tag("div", id="legend", role="group", aria_label="Highlight clusters"),
                class_="scatter",
            ),
            tag("p", keys, id="keys", class_="hint"),
            tag("noscript", tag("p", "The picture needs JavaScript; the rest does not.")),
        ]
    )


def typical(found: Findings) -> Markup:
    """The members nearest to each centroid, with their values."""
    samples, known = found.samples, found.agreement
    means = content.feature_means(samples, found.labels, found.model.n_clusters, found.features)
    head = ["cluster", "sample", "distance"]
    head += ["true label"] if known is not None else []
    head += found.feature_names
    words_at = {0, 1, 3} if known is not None else {0, 1}

    def cell(name: str, place: int, child: Any, **more: Any) -> Markup:
        return tag(name, child, class_=None if place in words_at else "number", **more)

    bodies = []
    for k, rows in found.typical.items():
        lines: list[list[Any]] = [
            [found.row_id(row), f"{found.away[row]:.4g}"]
            + ([short(known.classes[known.codes[row]])] if known is not None else [])
            + [f"{value:.5g}" for value in values]
            for row, values in zip(rows, samples.values(rows, found.features), strict=True)
        ]
        if lines and found.features:
            blank = ["", ""] if known is not None else [""]
            name = tag("em", "mean of the cluster")
            lines.insert(0, [name, *blank, *(f"{value:.5g}" for value in means[k])])
        trs = [
            [cell("td", place, child) for place, child in enumerate(line, start=1)]
            for line in lines
        ]
        if trs:
            trs[0].insert(0, tag("th", _cluster(k), scope="rowgroup", rowspan=str(len(trs))))
            bodies.append(tag("tbody", *(tag("tr", *cells) for cells in trs)))
    top = tag("tr", *(cell("th", place, name, scope="col") for place, name in enumerate(head)))
    p = 0 if samples.X is None else samples.X.shape[1]
    if not found.features:
        words = "The kernel was given, or X was not, so that there are no values to show."
    elif p > len(found.features) and np.count_nonzero(found.sizes) == 1:
        words = f"Shown are the first {len(found.features)} of {p:,} features."
    elif p > len(found.features):
        words = (
            f"Shown are the {len(found.features)} of {p:,} features whose variance lies most "
            "between clusters, those that tell most first."
        )
    else:
        words = ""
    return join(
        [
            tag("p", f"In the embedding, the nearest samples to each centroid. {words}"),
            _only(found, "clusters"),
            scrolling(tag("table", tag("thead", top), *bodies, class_="groups"), "Typical members"),
        ]
    )


def spectrum(found: Findings) -> Markup:
    """Eigenvalues, and what the rank holds."""
    values, beyond = found.shown.eigenvalues, found.shown.beyond
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
    return join([tag("p", words), charts.spectrum(values, beyond)])


def certificate(found: Findings) -> Markup:
    """How far the labels can be from the best, in words, as a drawing and in numbers."""
    known = found.model.certificate_
    lines = [tag("p", tag("strong", verdict(known)))]
    drawn = intervals(known)
    if drawn:
        lines.append(charts.certificate(drawn))
    rows: list[tuple[str, str]] = []
    if known.objective is not None:
        rows.append(("objective of these labels", f"{known.objective:.6g}, exactly"))
    elif known.objective_upper is not None:
        low, high = drawn[0].low, drawn[0].high
        rows.append(("objective of these labels", f"between {low:.6g} and {high:.6g}"))
    if known.optimum_lower is not None:
        rows.append(("best possible objective", f"at least {known.optimum_lower:.6g}"))
    if known.gap_bound is not None:
        rows.append(
            (
                "if K-means solved the embedding to optimality",
                f"at most {known.gap_bound:.6g} above the best",
            )
        )
    if known.gap_bound_probabilistic is not None:
        rows.append(
            (
                f"the same, except with probability {known.failure_probability:g}",
                f"at most {known.gap_bound_probabilistic:.6g} above the best, which is at least "
                f"{known.optimum_lower_probabilistic:.6g}",
            )
        )
    rows.append(("trace of the kernel", f"{known.trace_kernel:.6g}"))
    rows.append(("trace that the embedding leaves out", f"{known.trace_error:.6g}"))
    lines.append(pairs(rows, label="Certificate in numbers"))
    words = (
        "The objective is the sum of squared distances to the centroids in feature space. No "
        f"clustering into {known.n_clusters} clusters, by any method, is below the best possible."
    )
    if known.assumes_psd:
        words += " This assumes that the kernel is positive semidefinite."
    if hasattr(found.model, "objectives_"):
        words += " Full kernel K-means has no embedding, which is why all of the trace is left out."
    lines.append(tag("p", words))
    return join(lines)


def truth(found: Findings) -> Markup:
    """A confusion table, and two numbers."""
    known = found.agreement
    if known is None:
        return tag("p", "No true labels were given.")
    listed = known.listed
    rows = []
    for code in listed:
        line = known.counts[code]
        top = line.max()
        cells: list[Any] = [
            tag("strong", f"{line[k]:,}") if line[k] == top else f"{line[k]:,}"
            for k in found.clusters
        ]
        rows.append([short(known.classes[code]), *cells, f"{line.sum():,}"])
    words = (
        f"Normalised mutual information {known.nmi:z.3f}, adjusted Rand index {known.ari:z.3f}; "
        "both are 1 where clusters and labels agree, and near 0 where they have nothing to do with "
        "each other. The commonest cluster of each label is bold."
    )
    if len(listed) < len(known.classes):
        words += f" The {len(listed)} commonest of {len(known.classes):,} labels are listed."
    head = ["true label", *(_cluster(k) for k in found.clusters), "all"]
    return join(
        [
            tag("p", words),
            _only(found, "clusters"),
            table(head, rows, label="True labels by cluster", numbers=range(1, len(head))),
        ]
    )


def cost(found: Findings) -> Markup:
    """Time by stage, and memory."""
    stats = found.model.stats_
    seconds: dict[str, float] = stats["seconds"]
    total = sum(seconds.values())
    rows = [
        [name, f"{value:.3f} s", charts.bar(value / total if total else 0.0)]
        for name, value in seconds.items()
    ]
    rows.append([tag("strong", "in all"), tag("strong", f"{total:.3f} s"), ""])
    facts = [
        ("passes over the kernel", f"{stats['passes']:,}"),
        ("kernel entries", f"{stats['kernel_entries']:,}"),
        ("threads", str(stats["n_threads"])),
        ("engine, precision", f"{stats['engine']}, {stats['precision']}"),
    ]
    n = len(found.labels)
    if "sketch_bytes" in stats:
        facts.append(("the sketch", human(stats["sketch_bytes"])))
    if stats.get("planned_bytes"):
        facts.append(("memory of the fit, reckoned", human(stats["planned_bytes"])))
    if (peak := peak_memory()) is not None:
        facts.append(("memory of the process, at its highest", human(peak)))
    facts.append(("the kernel matrix would be", human(8.0 * n * n)))
    return join(
        [
            table(["stage", "time", ""], rows, label="Time by stage", numbers=(1,)),
            pairs(facts, label="Work and memory"),
        ]
    )


def peak_memory() -> int | None:
    """Return the most bytes that this process has held; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def repeat(found: Findings) -> Markup:
    """The command, and the versions."""
    words = "No seed was given: another run may differ." if found.model.random_state is None else (
        "The same data, seed and versions give the same clusters, bit for bit, on any number of "
        "threads."
    )  # fmt: skip
    versions = (
        f"sketchmeans {__version__}, scikit-learn {sklearn.__version__}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, Python {platform.python_version()}"
    )
    return join(
        [
            tag("pre", tag("code", command_line(found.command)), tabindex="0"),
            tag("p", f"{words} {versions}."),
        ]
    )


SECTIONS: dict[str, Callable[[Findings], Markup]] = {
    "What was asked": asked,
    "Clusters": clusters,
    "Embedding": embedding,
    "Typical members": typical,
    "Spectrum": spectrum,
    "Certificate": certificate,
    "True labels": truth,
    "Time and memory": cost,
    "Repeat it": repeat,
}
"""Each section by its heading, in the order of the page."""
