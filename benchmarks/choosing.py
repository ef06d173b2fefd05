"""What ``choose`` recommends on the sets of ``benchmarks.kernels``: kernel and number of clusters.

    python -m benchmarks.choosing [--seeds 2] [--first 6] [--sets NAME,NAME]
                                  [--out FILE.json] [--resume]
    python -m benchmarks.choosing --kernel neighbors [--seeds 2] [--first 0]

The first asks ``choose`` with its defaults on every set of ``benchmarks.kernel_sets``, and on some
samples without clusters, where nothing but "weak" is right. The recommended line is run as it
stands: NMI is that of its labels with the true classes. With ``--out`` every answer is kept, and
the table beside it in ``FILE.md``; ``--resume`` asks only what the file lacks. The rule was made on
seeds 0 to 3, and the kept table is of others. Real sets are the same for every seed: there only the
seed of the methods changes.

The second asks for the number alone with one kernel, on sets up to 2,400 samples. "jump" belongs to
the number that is recommended. "gap" is the number with the largest gap of the eigenvalues,
"stable" the largest whose halves agree within 0.01 of the best: what the same table would say by
either alone. "borders" is what borders in the graph of nearest rows separate
(``advice.borders``), and "votes" the share of its votes that say so.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.kernel_sets import SETS, scored
from benchmarks.timing import Report, Target, environment, facts, table
from sketchmeans import KernelKMeans, choose
from sketchmeans.advice.borders import PIECES, separated
from sketchmeans.atomic import write_whole

MOST = 2400
HEADER = ["set", "seed", "classes", "recommended", "evidence", "kernel", "NMI", "seconds"]


def _gaussian(p: int) -> Any:
    return lambda random: random.normal(size=(1500, p))


def _line(random: np.random.Generator) -> np.ndarray:
    return np.column_stack([random.uniform(0, 10, 1500), 0.05 * random.normal(size=1500)])


def _ring(random: np.random.Generator) -> np.ndarray:
    angle = random.uniform(0, 2 * np.pi, 1500)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return circle + 0.05 * random.normal(size=(1500, 2))


ONE = {
    "a line": _line,
    "a ring": _ring,
    "a square": lambda random: random.uniform(size=(1500, 2)),
    "a Gaussian, 2 features": _gaussian(2),
    "a Gaussian, 5 features": _gaussian(5),
    "a Gaussian, 50 features": _gaussian(50),
}
"""Samples without clusters."""


def bordered(X: Any, seed: int, **options: Any) -> tuple[int, float]:
    """Return the number of clusters with most votes, and their share."""
    pieces = [KernelKMeans(k, random_state=seed, **options).fit_predict(X) for k in PIECES]
    votes = separated(X, pieces)
    return votes.number, votes.counts[votes.number] / votes.counts.total()


def chosen(X: Any, seed: int, **options: Any) -> dict[str, Any]:
    """Return what is recommended, and what each column of the table would say alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = choose(X, random_state=seed, **options)
    numbers, stable = found.table["clusters"], np.array(found.table["stability"])
    gap = "gap" if "gap" in found.table.columns else "eigengap"
    gaps = [value or 0.0 for value in found.table[gap]]
    return {
        "chosen": found.n_clusters,
        "jump": max(found.table["jump"]) if "jump" in found.table.columns else None,
        "weak": "weak" if found.is_weak else "",
        "gap": numbers[int(np.argmax(gaps))],
        "stable": numbers[int(np.flatnonzero(stable > stable.max() - 0.01)[-1])],
    }


def drawn(name: str, seed: int) -> tuple[Any, np.ndarray | None, int]:
    """Return samples, their classes and how many there are; one where there are no clusters."""
    if name in ONE:
        return ONE[name](np.random.default_rng(seed)), None, 1
    return SETS[name](seed)


def asked(name: str, seed: int) -> dict[str, Any]:
    """Ask ``choose`` with its defaults, run the line that it recommends, and return a row."""
    X, y, k = drawn(name, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = choose(X, random_state=seed)
        seconds = time.perf_counter() - start
        labels = eval(found.command, {"KernelKMeans": KernelKMeans, "X": X}).labels_
    width = "" if found.width is None else f" {found.width}"
    nmi = None
    if y is not None:
        rows = scored(y)
        nmi = float(normalized_mutual_info_score(y[rows], labels[rows]))
    return {
        "set": name,
        "seed": seed,
        "classes": k,
        "recommended": found.n_clusters,
        "evidence": "weak" if found.is_weak else "firm",
        "kernel": found.kernel + width,
        "NMI": nmi,
        "seconds": seconds,
    }


def targets(rows: list[dict[str, Any]]) -> Iterator[Target]:
    """Yield what was promised: firm on half of the sets, of these nine in ten right."""
    sets = [row for row in rows if row["set"] in SETS]
    firm = [row for row in sets if row["evidence"] == "firm"]
    right = [row for row in firm if row["recommended"] == row["classes"]]
    if sets:
        yield Target("share of the sets where it is firm", len(firm) / len(sets), 0.5)
    if firm:
        yield Target("share of firm numbers that are right", len(right) / len(firm), 0.9)
    if without := [row for row in rows if row["set"] in ONE]:
        wrong = float(sum(row["evidence"] == "firm" for row in without))
        name = f"firm on {len(without)} samples without clusters"
        yield Target(name, wrong, 0.0, "samples", at_most=True)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Return how many numbers are right, firm and weak, and what the recommended lines reach."""
    lines = []
    for word in ("firm", "weak"):
        of = [row for row in rows if row["set"] in SETS and row["evidence"] == word]
        right = sum(row["recommended"] == row["classes"] for row in of)
        nmi = f", mean NMI {np.mean([row['NMI'] for row in of]):.3f}" if of else ""
        lines.append(f"{word}: {len(of)}, of which {right} have the number of the classes{nmi}")
    return lines


def show(rows: list[dict[str, Any]], report: Report) -> Report:
    """Print the table, the summary, and what was promised."""
    shown = [[_cell(row[name]) for name in HEADER] for row in rows]
    report.table(HEADER, shown)
    report.data["notes"] = summary(rows)
    print(*report.data["notes"], sep="\n", flush=True)
    return report.conclude(targets(rows))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def page(report: Report, found_on: dict[str, Any]) -> str:
    """Return the table and what was promised as Markdown."""
    command = " ".join(["python -m benchmarks.choosing", *report.arguments])
    parts = ["# What choose recommends", f"`{command}` on {facts(found_on)}."]
    parts += [table(shown["header"], shown["rows"]) for shown in report.tables]
    parts.append("\n".join(f"- {line}" for line in [*report.data["notes"], *report.targets]))
    return "\n\n".join(parts) + "\n"


def ask_all(names: list[str], seeds: list[int], out: Path | None, resume: bool) -> Report:
    """Ask for every set and seed, and keep the answers."""
    kept: dict[str, Any] = {"environment": environment(), "rows": []}
    if resume and out is not None and out.exists():
        kept = json.loads(out.read_text())
    known = {(row["set"], row["seed"]): row for row in kept["rows"]}
    for name in names:
        for seed in seeds:
            if (name, seed) not in known:
                known[name, seed] = asked(name, seed)
                print(*(_cell(value) for value in known[name, seed].values()), sep=", ", flush=True)
            if out is not None:
                kept["rows"] = list(known.values())
                write_whole(out, json.dumps(kept, indent=1) + "\n")
    rows = [known[name, seed] for name in names for seed in seeds]
    said = [f"--seeds {len(seeds)}", f"--first {seeds[0]}"]
    report = show(rows, Report(arguments=said))
    if out is not None:
        write_whole(out.with_suffix(".md"), page(report, kept["environment"]))
    return report


def main(arguments: list[str] | None = None) -> Report:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=6, help="the first seed")
    parser.add_argument("--sets", help="names, commas between; all if left out")
    parser.add_argument("--kernel", help="ask for the number alone, with this kernel")
    parser.add_argument("--out", type=Path, help="a JSON file; the table goes beside it")
    parser.add_argument("--resume", action="store_true", help="keep the answers of the file")
    options = parser.parse_args(arguments)
    seeds = list(range(options.first, options.first + options.seeds))
    names = [*SETS, *ONE] if options.sets is None else options.sets.split(",")
    if unknown := {*names} - {*SETS, *ONE}:
        raise SystemExit(f"--sets {', '.join(sorted(unknown))} is not known.")
    if options.kernel is None:
        return ask_all(names, seeds, options.out, options.resume)
    return compare_columns(names, seeds, options.kernel)


def compare_columns(names: list[str], seeds: list[int], kernel: str) -> Report:
    """Ask for the number alone, and show what each column would say by itself."""
    report, rows = Report(), []
    for name in names:
        for seed in seeds:
            X, _, k = drawn(name, seed)
            options: dict[str, Any] = {"kernel": kernel}
            if name in SETS and SETS[name].cosine and kernel == "neighbors":
                options["kernel_params"] = {"metric": "cosine"}
            if X.shape[0] <= MOST:
                found = chosen(X, seed, **options).values()
                rows.append([name, seed, k, *found, *bordered(X, seed, **options)])
                print(*rows[-1], sep=", ", flush=True)
    report.table(
        ["set", "seed", "clusters", "chosen", "jump", "weak", "gap", "stable", "borders", "votes"],
        rows,
    )
    sets = [row for row in rows if row[2] > 1]
    for column, by in (
        (3, "the recommendation"),
        (6, "the largest gap"),
        (7, "stability"),
        (8, "borders"),
    ):
        right = sum(row[column] == row[2] for row in sets)
        print(f"{by} is right in {right} of {len(sets)}")
    clear = [row for row in sets if not row[5]]
    print(f"not called weak: {len(clear)}, of which {sum(r[3] == r[2] for r in clear)} are right")
    agreed = [row for row in sets if row[9] == 1]
    right = sum(row[8] == row[2] for row in agreed)
    print(f"all votes of borders agree: {len(agreed)}, of which {right} are right")
    print(f"without clusters, borders: {sum(row[8] > 1 for row in rows if row[2] == 1)}")
    print(f"without clusters, not called weak: {sum(not r[5] for r in rows if r[2] == 1)}")
    return report


if __name__ == "__main__":
    main()
