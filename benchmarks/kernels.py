"""Which kernel finds the clusters that people see: every kernel of ours against every rival.

The sets of ``benchmarks.kernel_sets``; the number of clusters is given, labels are not, and nothing
is tuned. Drawn sets are drawn anew with every seed, on real ones only the method's seed changes.
NMI, ARI and seconds are means over the seeds; the peak of memory above the data is that of one fit
in a fresh process. HDBSCAN is not told the number of clusters: it is shown, and stays outside
means and comparisons. Where a fit fails the table says why, and its NMI and ARI count as zero.

With ``--out FILE.json`` every fit is kept there, and the tables beside it in ``FILE.md``. What a
run is not asked for (``--sets``, ``--only``: names with commas between, "ours" and "rivals" among
the latter) stays in the file; the tables show everyone in the file on the sets asked for. What it
is asked for is measured anew, with ``--resume`` only where the file lacks it or has a failure. ::

    python -m benchmarks.kernels [--seeds 10] [--sets NAME,NAME] [--only NAME,NAME]
                                 [--kernel NAME] [--out FILE.json] [--resume]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.kernel_methods import METHODS, OURS, RIVALS, Cell, known
from benchmarks.kernel_sets import SETS
from benchmarks.kernel_tables import Table, show
from benchmarks.processes import Failed, measured
from benchmarks.timing import Report, environment, facts, standalone, table
from sketchmeans import KernelKMeans
from sketchmeans.atomic import write_whole

NEW = "neighbors"
"""The kernel in question: left out where this version does not have it."""
CHOICES = {
    "sets": {name: [name] for name in SETS} | {"all": list(SETS)},
    "only": {name: [name] for name in METHODS}
    | {"ours": list(OURS), "rivals": list(RIVALS), "all": list(METHODS)},
}


def names(given: str, option: str) -> list[str]:
    """Return what the words between commas stand for; refuse one that is not known."""
    found: list[str] = []
    for word in (part.strip() for part in given.split(",")):
        if word not in CHOICES[option]:
            known_words = ", ".join(CHOICES[option])
            raise SystemExit(f"--{option} {word!r} is not known. Known: {known_words}.")
        found += CHOICES[option][word]
    return found


class Kept:
    """The fits, by set, method and seed, in a file that is whole after every process."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.environment = path, environment()
        self.cells: dict[str, dict[str, dict[str, Cell]]] = {}
        if path is not None and path.exists():
            self.cells = json.loads(path.read_text())["cells"]

    def of(self, data: str, method: str) -> dict[str, Cell]:
        """Return the fits of a method on a set, by seed."""
        return self.cells.setdefault(data, {}).setdefault(method, {})

    def write(self) -> None:
        """Write the file, if there is one."""
        if self.path is not None:
            record = {"environment": self.environment, "cells": self.cells}
            write_whole(self.path, json.dumps(record, indent=1) + "\n")

    def missing(self, data: str, method: str, seeds: int) -> list[int]:
        """Return the seeds that are still to be fitted; those that failed are tried again."""
        done = [seed for seed, cell in self.of(data, method).items() if "failed" not in cell]
        return [seed for seed in range(seeds) if str(seed) not in done]

    def measure(self, data: str, method: str, seeds: list[int]) -> None:
        """Fit the seeds in a process of their own, and keep what it found."""
        arguments: dict[str, Any] = {"data": data, "method": method, "seeds": seeds}
        try:
            found = measured("benchmarks.kernel_methods:fits", **arguments)
        except Failed as error:  # the process itself died, or the warming fit
            found = [{"failed": str(error)} for _ in seeds]
        self.of(data, method).update(zip(map(str, seeds), found, strict=True))
        self.write()

    def shown(self, data: list[str], seeds: int) -> Table:
        """Return the fits of these sets and seeds, methods in the order of their registry."""
        return {
            name: {
                method: [fits[str(seed)] for seed in range(seeds) if str(seed) in fits]
                for method in METHODS
                if (fits := self.cells[name].get(method))
            }
            for name in data
            if name in self.cells
        }


def page(report: Report, found_on: dict[str, Any]) -> str:
    """Return the tables and targets as Markdown."""
    command = " ".join(["python -m benchmarks.kernels", *report.arguments])
    parts = ["# Kernels and rivals", f"`{command}` on {facts(found_on)}."]
    parts += [table(shown["header"], shown["rows"]) for shown in report.tables]
    parts.append("\n".join(f"- {line}" for line in [*report.data["notes"], *report.targets]))
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10, help="fits of each method on each set")
    parser.add_argument("--sets", default="all", help="names, commas between")
    parser.add_argument("--only", default="all", help='methods, commas between; "ours", "rivals"')
    parser.add_argument(
        "--kernel", choices=list(OURS), help=f"the one judged: {NEW} if known, or our default"
    )
    parser.add_argument("--out", type=Path, help="a JSON file; tables go beside it as Markdown")
    parser.add_argument("--resume", action="store_true", help="keep the fits that the file has")
    options = parser.parse_args(arguments)
    data, asked = names(options.sets, "sets"), names(options.only, "only")
    if NEW in asked and not known(NEW):
        print(f'kernel="{NEW}" is not known to this version: left out.\n', flush=True)
        asked.remove(NEW)
    kept = Kept(options.out)
    pairs = [(one, name) for one in data for name in asked if METHODS[name].suits(SETS[one])]
    if not options.resume:
        for pair in pairs:
            kept.of(*pair).clear()
    for pair in pairs:
        if seeds := kept.missing(*pair, options.seeds):
            print(*pair, sep=": ", flush=True)
            kept.measure(*pair, seeds)
    shown = kept.shown(data, options.seeds)
    measured_new = any(NEW in methods for methods in shown.values())
    judged = options.kernel or (NEW if measured_new else KernelKMeans().kernel)
    said = [f"--seeds {options.seeds}"]
    if options.sets != "all":
        said.append(f"--sets {options.sets!r}")
    report = show(shown, judged, Report(arguments=said))
    if options.out is not None:
        write_whole(options.out.with_suffix(".md"), page(report, kept.environment))
    return report


if __name__ == "__main__":
    standalone(main)
