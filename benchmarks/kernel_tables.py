"""What the fits of ``benchmarks.kernels`` say: means, best rivals, and where a kernel loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.kernel_methods import METHODS, OURS, RIVALS, Cell
from benchmarks.timing import Report, Target

Table = dict[str, dict[str, list[Cell]]]
"""Fits by set and method."""
LOSS = 0.05
"""A difference in NMI that asks for a reason."""
BASE = "rbf"
"""The kernel that a new default would replace."""
MB = 1e6
TOLD = [name for name, method in RIVALS.items() if method.told]


def mean(cells: list[Cell], figure: str) -> float:
    """Return the mean of a figure over seeds; a fit that failed agrees with nothing: zero."""
    agreement = figure in ("nmi", "ari")
    values = [cell.get(figure, 0.0) for cell in cells if agreement or figure in cell]
    return float(np.mean(values)) if values else np.nan


def peak(cells: list[Cell], _: str = "peak") -> float:
    """Return the peak in MB of the fits that came first in their processes."""
    return max((cell["peak"] / MB for cell in cells if "peak" in cell), default=np.nan)


def methods_in(found: Table) -> list[str]:
    """Return who was measured on any set, in the order of the registry."""
    return [name for name in METHODS if any(name in methods for methods in found.values())]


def means(found: Table, figure: str) -> dict[str, float]:
    """Return the mean over sets, of those who were measured on all of them."""
    return {
        name: float(np.mean([mean(methods[name], figure) for methods in found.values()]))
        for name in methods_in(found)
        if all(name in methods for methods in found.values())
    }


def figures(report: Report, found: Table, title: str, figure: str, form: str) -> None:
    """Add the table of one figure, a row a set, and its means."""
    names, of = methods_in(found), peak if figure == "peak" else mean
    rows = []
    for data, methods in found.items():
        values = {name: of(cells, figure) for name, cells in methods.items()}
        shown = {
            name: "failed" if all("failed" in cell for cell in methods[name]) else f"{value:{form}}"
            for name, value in values.items()
        }
        rows.append([data, *(shown.get(name, "–") for name in names)])
    if figure in ("nmi", "ari"):
        averages = means(found, figure)
        told = {name: value for name, value in averages.items() if METHODS[name].told}
        rows.append(["mean", *(f"{told[name]:.3f}" if name in told else "–" for name in names)])
    report.table([title, *names], rows)


def best_rival(methods: dict[str, list[Cell]]) -> tuple[str, float] | None:
    """Return the rival of the highest mean NMI, of those who are told the number of clusters."""
    rivals = {name: mean(methods[name], "nmi") for name in TOLD if name in methods}
    return max(rivals.items(), key=lambda item: item[1]) if rivals else None


def beside_best(report: Report, found: Table, judged: str) -> list[float]:
    """Add a row a set: ours, the best rival and the share; return the shares."""
    rows: list[list[Any]] = []
    shares = []
    for data, methods in found.items():
        best = best_rival(methods)
        if best is None or judged not in methods:
            continue
        ours = mean(methods[judged], "nmi")
        # Where no rival finds anything there is nothing to fall short of.
        shares.append(ours / best[1] if best[1] > 0 else 1.0)
        rows.append([data, f"{ours:.3f}", best[0], f"{best[1]:.3f}", f"{shares[-1]:.3f}"])
    if shares:
        rows.append(["mean", "", "", "", f"{np.mean(shares):.3f}"])
        rows.append(["mean, none above 1", "", "", "", f"{np.mean(np.minimum(shares, 1)):.3f}"])
        report.table(["NMI", judged, "best rival", "its NMI", "ours / best"], rows)
    return shares


def losses(found: Table, judged: str, other: str) -> list[str]:
    """Return the sets where the judged kernel loses to another, or to the best rival, and how far.

    ``other`` is a method, or "best rival".
    """
    lines = []
    for data, methods in found.items():
        name, theirs = other, np.nan
        if other == "best rival":
            name, theirs = best_rival(methods) or (other, np.nan)
        elif other in methods:
            theirs = mean(methods[other], "nmi")
        ours = mean(methods[judged], "nmi") if judged in methods else np.nan
        if ours < theirs - LOSS:
            lines.append(f"{data} ({ours:.2f}, {name} {theirs:.2f})")
    return lines


def failures(found: Table) -> Iterator[str]:
    """Yield a line a set and method with fits that failed, and the first reason."""
    for data, methods in found.items():
        for name, cells in methods.items():
            failed = [cell["failed"] for cell in cells if "failed" in cell]
            if failed:
                yield f"{name} on {data} failed, {len(failed)} of {len(cells)}: {failed[0]}"


def targets(found: Table, judged: str, shares: list[float]) -> Iterator[Target]:
    """Yield what the issue asks of our default, as far as it was measured."""
    averages = means(found, "nmi")
    rivals = [averages[name] for name in TOLD if name in averages]
    others = [averages[name] for name in OURS if name in averages and name != judged]
    if judged in averages and rivals:
        name = f"mean NMI of {judged} over the highest mean of a rival"
        yield Target(name, averages[judged] / max(rivals), 1.0)
    if shares:
        yield Target(f"mean share of the best rival of each set, {judged}", np.mean(shares), 0.95)
    if judged in averages and others:
        name = f"mean NMI of {judged} over the highest of our other kernels"
        yield Target(name, averages[judged] / max(others), 1.0)
    if judged != BASE and BASE in averages:
        lost = float(len(losses(found, judged, BASE)))
        yield Target(f"sets that {judged} loses to {BASE}", lost, 3.0, "sets", at_most=True)


def show(found: Table, judged: str, report: Report) -> Report:
    """Print all tables, where the judged kernel loses, what failed, and the targets."""
    for title, figure, form in (
        ("NMI", "nmi", ".2f"),
        ("ARI", "ari", ".2f"),
        ("seconds", "seconds", ".2f"),
        ("peak above the data, MB", "peak", ".1f"),
    ):
        figures(report, found, title, figure, form)
    shares = beside_best(report, found, judged)
    notes = list(failures(found))
    if any(judged in methods for methods in found.values()):
        for other in ("best rival", BASE):
            if other != judged:
                lines = "; ".join(losses(found, judged, other)) or "none"
                notes.append(f"sets where {judged} loses more than {LOSS} to {other}: {lines}")
    print(*notes, sep="\n", flush=True)
    report.data["notes"] = notes
    return report.conclude(targets(found, judged, shares))
