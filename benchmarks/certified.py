"""How near to the best clusterings are proved to be: digits, segmentation, tables, a million rows.

Parts, each by name; without a name all but the million, which ``--full`` adds. ``sets``: the digits
and the image segmentation (standardized) with the linear kernel and rbf of several widths, labels
of fits with many starts; in few seconds and in 90. ``tables``: scikit-learn's KMeans on iris, wine
and breast cancer, standardized. ``blocks``: blocks that are alike against blocks that have clusters
in their shares, of the digits and of 20,000 cores and shells. ``large``: 100,000 cores and shells
of 20 features in float32, c = 4, in a process of its own, peak memory above the data; ``million``
and ``drawn``: a million of them, by all blocks and by drawn ones.

``--keep`` puts the parts that were run into ``docs/benchmarks/certified.json``, and writes the page
``docs/benchmarks/certified.md`` from all that are there. ::

    python -m benchmarks.certified [PART …] [--full] [--only SET] [--keep]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from benchmarks.data import cores_and_shells
from benchmarks.processes import forget_peak, measured, peak_bytes
from benchmarks.timing import SEED, Report, Target, environment, facts, table
from sketchmeans import KernelKMeans, certify
from sketchmeans.atomic import write_whole
from sketchmeans.certificate import blockwise
from sketchmeans.certificate.parts import stratified
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
PARTS = ("sets", "tables", "blocks", "large", "million", "drawn")
FULL = ("million", "drawn")
"""Parts that take a quarter of an hour and three minutes."""
LARGE: dict[str, tuple[int, float, float | None, float | None]] = {
    "large": (100_000, 115.0, None, 2.0),
    "million": (1_000_000, 870.0, None, 4.0),
    "drawn": (1_000_000, 170.0, 1e-6, None),
}
"""Samples, seconds, failure probability, and the gap in per cent that was promised."""
KEPT = Path(__file__).parents[1] / "docs" / "benchmarks" / "certified.json"
TITLES = {
    "sets": "Digits and image segmentation, in few seconds and in 90",
    "tables": "KMeans of scikit-learn on standardized tables",
    "blocks": "Blocks that are alike",
    "large": "A hundred thousand cores and shells",
    "million": "A million cores and shells",
    "drawn": "A million cores and shells, by blocks that are drawn",
}


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
                found, took = timed(X, labels, seconds=0.95 * seconds, **options)
                gap = 100 * found.relative_gap
                row += [f"{gap:.3f}", f"{took:.1f}", limit, found.level]
                yield Target(f"{name} {kernel}, {seconds:.0f} s", gap, limit, "%", at_most=True)
                if seconds == soon:
                    yield Target(f"{name} {kernel}, time", took, soon, "s", at_most=True)
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


def large(report: Report, part: str) -> Iterator[Target]:
    """Certify a hundred thousand samples, or a million."""
    n, seconds, delta, limit = LARGE[part]
    one = measured(
        "benchmarks.certified:large_one", n=n, seconds=seconds, failure_probability=delta
    )
    gap = one["gap"]
    row = [
        f"{n:,}",
        "all blocks" if delta is None else f"drawn, except with {delta:g}",
        "–" if gap is None else f"{gap:.2f}",
        f"{one['seconds']:.0f}",
        f"{one['blocks'] or 0:,} of {one['size'] or 0:,}",
        one["above"],
        f"{one['peak']:.2f}",
        f"{one['fit']:.0f}",
    ]
    header = ["n", "bound", "gap, %", "s", "blocks", "upper side", "peak GB above the data"]
    report.table([*header, "fit, s"], [row])
    if limit is not None:
        found = float("inf") if gap is None else gap
        yield Target(f"{n:,} samples, {seconds:.0f} s", found, limit, "%", at_most=True)
    yield Target(f"{n:,} samples, {part}, memory", one["peak"], 1.0, "GB", at_most=True)


def blocks(report: Report) -> Iterator[Target]:
    """Set blocks that are alike against blocks in which clusters have their shares, lifted."""
    rows, gains = [], []
    digits, k = rows_of("digits")
    cases = [
        ("digits", digits, k, kernel, size) for kernel in ("linear", "c = 4") for size in (300, 600)
    ]
    cases.append(
        ("cores and shells", cores_and_shells(20_000, 20, np.float32)[0], 8, "c = 4", 1000)
    )
    for name, X, clusters, kernel, size in cases:
        if name == "digits":
            labels, options = labels_of(X, clusters, kernel)
        else:
            model = KernelKMeans(clusters, kernel="rbf", gamma="4*median", random_state=SEED).fit(X)
            labels, options = model.labels_, {"kernel": "rbf", "gamma": model.gamma_}
        options |= {"effort": "lifted", "block_size": size}
        alike, took = timed(X, labels, **options)
        with mock.patch.object(blockwise, "blocks_alike", _in_shares):
            shares, before = timed(X, labels, **options)
        gaps = [100 * (one.relative_gap or np.inf) for one in (shares, alike)]
        gains.append(gaps[0] / gaps[1])
        kind = f"{name}, {kernel}"
        rows.append(
            [kind, len(X), size, *(f"{gap:.2f}" for gap in gaps), f"{before:.1f}", f"{took:.1f}"]
        )
    report.table(["data", "n", "block", "in shares, %", "alike, %", "s", "s"], rows)
    yield Target("blocks alike, the least gain", min(gains), 1.0)


def _in_shares(operator: Any, labels: Any, size: int, seed: int, n_threads: int = 1) -> Any:
    return stratified(labels, size, seed)


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--full", action="store_true", help="also a million samples")
    parser.add_argument("--only", default="", help='of the sets, such as "digits c = 1"')
    parser.add_argument("--keep", action="store_true", help=f"write {KEPT.name} and its page")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if asked.keep and asked.only:
        parser.error("--only is a part of the sets, and a page of all of them is kept.")
    report = Report(arguments=[*asked.parts, *(["--full"] if asked.full else [])])
    parts = asked.parts or [part for part in PARTS if asked.full or part not in FULL]
    for part in parts:
        before = environment()
        own = Report(arguments=[part])
        if part == "sets":
            found = sets(own, asked.only)
        elif part in LARGE:
            found = large(own, part)
        else:
            found = {"tables": tables, "blocks": blocks}[part](own)
        own.conclude(found)
        report.tables += own.tables
        report.targets += own.targets
        if asked.keep:  # part after part: what was measured is not lost if a later one fails
            keep(part, own, before)
    return report


def keep(part: str, report: Report, before: dict[str, Any]) -> None:
    """Keep what a part found, and write the page of all parts that are kept."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept[part] = {"environment": before} | report.as_json()
    write_whole(KEPT, json.dumps(kept, indent=1) + "\n")
    shown = [
        "# How near to the best clusterings are proved to be",
        'Gaps are proved, in per cent above the best possible; "promised" is the target. Each part '
        "was run by the command above it with `--keep`, which wrote this page.",
    ]
    for name in (name for name in PARTS if name in kept):
        one = kept[name]
        shown += [
            f"## {TITLES[name]}",
            f"`python -m benchmarks.certified {name}`, {facts(one['environment'])}.",
            *(table(each["header"], each["rows"]) for each in one["tables"]),
        ]
        targets = [{k: v for k, v in each.items() if k != "met"} for each in one["targets"]]
        shown.append("\n".join(f"- {Target(**each)}" for each in targets))
    write_whole(KEPT.with_suffix(".md"), "\n\n".join(shown) + "\n")


if __name__ == "__main__":
    print(facts(environment()), "\n")
    main()
