"""The tables as text, and the page that sets our figures beside the paper's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import resources
from typing import Any

from sketchmeans.blas import count_threads
from sketchmeans.reproduce.claims import Claim
from sketchmeans.reproduce.experiments import Figure3, LocalKernel
from sketchmeans.reproduce.trials import Row, Summary, row_of
from sketchmeans.text import Table

PAPER_TABLE_1: dict[str, tuple[float | None, float]] = {
    "exact decomposition": (0.40, 0.99),
    "one-pass, late (r' = 12)": (0.40, 0.99),
    "Nyström, early, m = 20": (0.56, 0.74),
    "Nyström, early, m = 100": (0.44, 0.75),
    "K-means, no kernel": (None, 0.53),
}
"""Kernel error and accuracy as printed."""
PAPER_FULL = 0.46
"""The one number that the paper's text gives for Figure 3: full kernel K-means' accuracy."""


def _spread(summary: Summary | None) -> str:
    return "" if summary is None else f"{summary.mean:.3f} ± {summary.sd:.3f}"


def _printed(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def table_1_text(rows: list[Row]) -> Table:
    """Return Table 1, ours and the paper's."""
    lines = []
    for row in rows:
        error, accuracy = PAPER_TABLE_1.get(row.method, (None, None))
        lines.append(
            {
                "method": row.method,
                "kernel error": _spread(row.error),
                "paper": _printed(error),
                "accuracy": _spread(row.accuracy),
                "paper ": _printed(accuracy),
            }
        )
    return Table(tuple(lines))


def figure_3_text(found: Figure3, landmarks: Collection[int]) -> Table:
    """Return Figure 3 in numbers: the lines, and the curves at some m."""
    swept = [row for rows in found.curves.values() for row in rows if row.numbers in landmarks]
    lines = [
        {
            "method": row.method,
            "m or r'": row.numbers,
            "kernel error": _spread(row.error),
            "accuracy": _spread(row.accuracy),
            "paper's accuracy": _printed(
                PAPER_FULL if row.method == "full kernel K-means" else None
            ),
        }
        for row in (*found.lines, *swept)
    ]
    return Table(tuple(lines))


def local_text(local: list[LocalKernel]) -> str:
    """Return the figure of local kernels in numbers: NMI by method and memory, a table each."""
    return "\n\n".join(str(_local_table(kernel)) for kernel in local)


def _local_table(kernel: LocalKernel) -> Table:
    widths = [f"{row.numbers} numbers" for row in kernel.curves["one pass"]]
    rows = kernel.curves | {row.method: [row] * len(widths) for row in (kernel.exact, kernel.full)}
    lines = []
    for method, found in rows.items():
        numbers = [f"{row.nmi.mean:.3f}" for row in found]
        lines.append({"NMI": method, **dict(zip(widths, numbers, strict=True))})
    return Table(
        tuple(lines),
        caption=f"{kernel.data}, {kernel.n_clusters} clusters, γ = {kernel.multiple} / median",
    )


def claims_text(claims: list[Claim]) -> str:
    """Return the claims with their verdicts and what was measured."""
    parts = []
    for claim in claims:
        parts.append(f"**{claim.says}** {claim.verdict.capitalize()}.\n")
        parts += [f"- {'holds' if holds else 'fails'}: {text}" for text, holds in claim.parts]
        parts.append(f"\n{claim.reason}\n")
    return "\n".join(parts)


def page_text(
    table: list[Row],
    figure: Figure3,
    local: list[LocalKernel],
    claims: list[Claim],
    facts: Mapping[str, Any],
) -> str:
    """Return the page: the words of ``page.md`` with what was found and the facts of the run."""
    landmarks = [row.numbers or 0 for row in figure.curves["Nyström, early"]]
    middle = min(landmarks, key=lambda m: abs(m - 50))
    words = resources.files(__package__).joinpath("page.md").read_text(encoding="utf-8")
    return words.format(
        **facts,
        cores=count_threads(None),
        trials=table[0].accuracy.trials,
        table=table_1_text(table),
        early=row_of(table, "one-pass, early (r' = 12), as printed"),
        late=row_of(table, "one-pass, late (r' = 12)"),
        nystrom=row_of(table, "Nyström, late, m = 12"),
        plain=_spread(row_of(table, "K-means, no kernel").accuracy),
        figure=figure,
        figure_table=figure_3_text(figure, {landmarks[0], middle, landmarks[-1]}),
        paper_full=PAPER_FULL,
        at_seven=_at_seven(figure),
        claims=claims_text(claims),
        local=local,
        local_tables=local_text(local),
        comparison=_comparison(local),
    )


def _at_seven(figure: Figure3) -> str:
    """Say what the same memory gives: r' = m = 7."""
    ours = row_of(figure.lines, "one-pass, late")
    rows = {"the sketch": ours} | {
        name: next(row for row in figure.curves[name] if row.numbers == ours.numbers)
        for name in ("Nyström, early", "Nyström, late", "RPCholesky")
    }
    parts = [f"{name} {row.mean_error:.3f} / {row.accuracy.mean:.3f}" for name, row in rows.items()]
    return (
        f"With the same {ours.numbers} numbers per sample, error / accuracy: {'; '.join(parts)}. "
        "What the sketch wins here it wins over early truncation."
    )


def _comparison(local: list[LocalKernel]) -> str:
    """Say who wins, from the figures alone."""
    rivals = [name for name in local[0].curves if "pass" not in name]
    lines = []
    for ours in ("one pass", "two passes"):
        wins = []
        for rival in rivals:
            gains = [
                mine.nmi.mean - theirs.nmi.mean
                for kernel in local
                for mine, theirs in zip(kernel.curves[ours], kernel.curves[rival], strict=True)
            ]
            won = sum(gain > 0 for gain in gains)
            mean = sum(gains) / len(gains)
            wins.append(f"{rival} in {won} of {len(gains)} places ({mean:+.2f} on average)")
        lines.append(f"- {ours.capitalize()} against {'; '.join(wins)}.")
    return "\n".join(["At equal numbers kept, better in NMI:", "", *lines])
