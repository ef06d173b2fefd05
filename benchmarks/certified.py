"""How near to the best clusterings are proved to be: digits, segmentation, tables, a million rows.

Parts, each by name, or all of them. ``sets``: the digits and the image segmentation (standardized)
with the linear kernel and rbf of several widths, labels of fits with many starts; in few seconds
and in 90. ``tables``: scikit-learn's KMeans on iris, wine and breast cancer, standardized.
``large``: cores and shells of 20 features in float32, c = 4, each in a process of its own, peak
memory above the data; ``--full`` adds a million samples, by all blocks and by drawn ones. ::

    python -m benchmarks.certified [sets] [tables] [large] [--full] [--only SET] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from benchmarks.data import cores_and_shells
from benchmarks.processes import forget_peak, measured, peak_bytes
from benchmarks.timing import SEED, Report, Target, environment, facts
from sketchmeans import KernelKMeans, certify
from sketchmeans.atomic import write_whole
from sketchmeans.datasets import load_segmentation

LATER = 90.0
SETS: dict[str, tuple[float, dict[str, tuple[float, float]]]] = {
    "digits": (
        8.0,
        {"linear": (2.6, 1.2), "c = 1": (1.9, 0.8), "c = 4": (0.8, 0.4), "c = 16": (0.25, 0.2)},
    ),
    "segmentation": (
        10.0,
        {"linear": (6.9, 3.45), "c = 1": (3.1, 1.55), "c = 16": (0.9, 0.45)},
    ),
}
"""Seconds, and the gaps in per cent that were promised after them and after 90."""
PARTS = ("sets", "tables", "large")


def rows_of(name: str) -> tuple[np.ndarray, int]:
    """Return the rows of a set and its number of clusters."""
    if name == "digits":
        return load_digits().data, 10
    return scale(load_segmentation()[0][:, [*range(2), *range(3, 19)]]), 7


def labels_of(X: np.ndarray, k: int, kernel: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Return labels from many starts, and the options of the kernel that they minimise."""
    if kernel == "linear":
        labels = KMeans(k, n_init=50, random_state=SEED).fit_predict(X)
        return labels, {"kernel": "linear"}
    gamma = f"{kernel.removeprefix('c = ')}*median"
    model = KernelKMeans(
        k, kernel="rbf", gamma=gamma, n_init=50, n_refine=50, n_passes=3, random_state=SEED
    ).fit(X)
    return model.labels_, {"kernel": "rbf", "gamma": model.gamma_}


def timed(X: Any, labels: Any, **options: Any) -> tuple[Any, float]:
    """Return a certificate and the seconds that it took."""
    start = time.perf_counter()
    found = certify(X, labels, random_state=SEED, **options)
    return found, time.perf_counter() - start


def sets(report: Report, only: str) -> Iterator[Target]:
    """Certify digits and segmentation, those whose name and kernel hold ``only``."""
    rows = []
    for name, (soon, kernels) in SETS.items():
        X, k = rows_of(name)
        for kernel, promised in kernels.items():
            if only not in f"{name} {kernel}":
                continue
            labels, options = labels_of(X, k, kernel)
            free = timed(X, labels, effort="free", **options)[0].relative_gap
            row = [name, kernel, "–" if free is None else f"{100 * free:.1f}"]
            for seconds, limit in zip((soon, LATER), promised, strict=True):
                found, took = timed(X, labels, seconds=seconds, **options)
                gap = 100 * found.relative_gap
                row += [f"{gap:.3f}", f"{took:.1f}", limit, found.level]
                yield Target(f"{name} {kernel}, {seconds:.0f} s", gap, limit, "%", at_most=True)
            rows.append(row)
    header = ["set", "kernel", "free, %", "soon, %", "s", "promised", "by"]
    report.table([*header, "later, %", "s", "promised", "by"], rows)


def tables(report: Report) -> Iterator[Target]:
    """Certify scikit-learn's KMeans on small tables."""
    rows = []
    for load, k in ((load_iris, 3), (load_wine, 3), (load_breast_cancer, 2)):
        X, name = scale(load().data), load.__name__.removeprefix("load_")
        labels = KMeans(k, n_init=10, random_state=SEED).fit_predict(X)
        found, took = timed(X, labels, kernel="linear", seconds=25)
        gap = 100 * found.relative_gap
        rows.append([name, len(X), k, f"{gap:.4f}", f"{took:.1f}", found.level])
        yield Target(f"{name}, KMeans", gap, 0.5, "%", at_most=True)
    report.table(["table", "n", "clusters", "gap, %", "s", "by"], rows)


def large_one(n: int, seconds: float, failure_probability: float | None) -> dict[str, Any]:
    """Certify cores and shells, in this process."""
    X, _ = cores_and_shells(n, 20, np.float32)
    start = time.perf_counter()
    model = KernelKMeans(8, kernel="rbf", gamma="4*median", random_state=SEED).fit(X)
    fitted = time.perf_counter() - start
    labels, gamma = model.labels_, model.gamma_
    del model
    held = forget_peak()
    found, took = timed(
        X,
        labels,
        kernel="rbf",
        gamma=gamma,
        seconds=seconds,
        effort="lifted",
        failure_probability=failure_probability,
    )
    gap = found.relative_gap_probabilistic if failure_probability else found.relative_gap
    return {
        "gap": None if gap is None else 100 * gap,
        "seconds": took,
        "fit": fitted,
        "peak": (peak_bytes() - held) / 1e9,
        "blocks": found.n_blocks,
        "size": found.block_size,
        "above": found.objective_from,
    }


def large(report: Report, *, full: bool) -> Iterator[Target]:
    """Certify a hundred thousand samples, and a million."""
    asked: list[tuple[int, float, float | None, float | None]] = [(100_000, 110.0, None, 2.0)]
    if full:
        asked += [(1_000_000, 840.0, None, 4.0), (1_000_000, 170.0, 1e-6, None)]
    rows = []
    for n, seconds, delta, limit in asked:
        one = measured(
            "benchmarks.certified:large_one", n=n, seconds=seconds, failure_probability=delta
        )
        gap = one["gap"]
        rows.append(
            [
                f"{n:,}",
                "all blocks" if delta is None else f"drawn, except with {delta:g}",
                "–" if gap is None else f"{gap:.2f}",
                f"{one['seconds']:.0f}",
                f"{one['blocks']:,} of {one['size']:,}",
                one["above"],
                f"{one['peak']:.2f}",
            ]
        )
        if limit is not None and gap is not None:
            yield Target(f"{n:,} samples, {seconds:.0f} s", gap, limit, "%", at_most=True)
        yield Target(f"{n:,} samples, memory", one["peak"], 1.0, "GB", at_most=True)
    header = ["n", "bound", "gap, %", "s", "blocks", "upper side", "peak GB above the data"]
    report.table(header, rows)


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--full", action="store_true", help="also a million samples")
    parser.add_argument("--only", default="", help='of the sets, such as "digits c = 1"')
    parser.add_argument("--out", type=Path, help="a page to write")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    report = Report(arguments=[*asked.parts, *(["--full"] if asked.full else [])])
    load = os.getloadavg()[0]
    for part in asked.parts or PARTS:
        found = {
            "sets": lambda: sets(report, asked.only),
            "tables": lambda: tables(report),
            "large": lambda: large(report, full=asked.full),
        }[part]()
        report.conclude(found)
    if asked.out is not None:
        _write(asked.out, report, load)
    return report


def _write(path: Path, report: Report, load: float) -> None:
    """Write what was found as a page."""
    from benchmarks.timing import table

    command = " ".join(["python -m benchmarks.certified", *report.arguments])
    parts = [
        "# How near to the best clusterings are proved to be",
        f"`{command}`, {facts(environment())}; load average at the start {load:.1f}.",
        *(table(one["header"], one["rows"]) for one in report.tables),
        "\n".join(f"- {target}" for target in report.targets),
    ]
    write_whole(path, "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    print(facts(environment()), "\n")
    main()
