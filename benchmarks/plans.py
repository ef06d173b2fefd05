"""Plans against the fits that they are of: time, memory, kernel entries.

Fits are drawn by a seed: samples, features, clusters, kernel, method, precision and kind of data.
Each is planned and then fitted, in a process of its own, and counts if it takes 1 to 60 s. With
``--keep`` the page ``docs/benchmarks/plans.md`` is written. On a machine that does other things
too, ``--cpu`` compares processor time with processor time. ::

    python -m benchmarks.plans [--fits 20] [--seed 0] [--longest 60] [--cpu] [--keep]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import cores_and_shells, noisy_blobs
from benchmarks.processes import forget_peak, measured, peak_bytes
from benchmarks.timing import Report, Target, environment, facts, standalone
from sketchmeans import KernelKMeans, plan
from sketchmeans.atomic import write_whole

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "plans.md"
SHORTEST, LONGEST = 1.0, 60.0
FACTOR = 1.5
TRIES = 20
"""Draws for each fit that is wanted, at the most."""
KERNELS = ("neighbors", "rbf", "rbf", "laplacian", "cosine", "polynomial", "linear", "sigmoid")
METHODS = ("auto", "auto", "one-pass", "nystrom", "rpcholesky", "greedy-cholesky")
KINDS = ("blobs", "shells", "noise")


def drawn(seed: int) -> Iterator[dict[str, Any]]:
    """Yield fits without end."""
    random = np.random.default_rng(seed)
    while True:
        kernel = str(random.choice(KERNELS))
        method = "auto" if kernel == "neighbors" else str(random.choice(METHODS))
        if kernel == "sigmoid":
            method = "one-pass"
        quadratic = method == "one-pass" and kernel not in ("polynomial", "linear")
        largest = 6e4 if quadratic else 1e6 if kernel == "neighbors" else 3e5
        yield {
            "n": int(np.exp(random.uniform(np.log(1e4), np.log(largest)))),
            "p": int(np.exp(random.uniform(np.log(3), np.log(60)))),
            "k": int(np.exp(random.uniform(np.log(2), np.log(30)))),
            "kernel": kernel,
            "method": method,
            "dtype": str(random.choice(["float32", "float64"])),
            "kind": str(random.choice(KINDS)),
        }


def rows(n: int, p: int, k: int, dtype: str, kind: str) -> np.ndarray:
    """Return data of a kind."""
    if kind == "shells":
        return cores_and_shells(n, p, dtype, n_pairs=max(k // 2, 1))[0]
    if kind == "blobs":
        return noisy_blobs(n, p, dtype, n_blobs=k)
    return noisy_blobs(n, p, dtype, n_blobs=1, noise=0.0)


def compare(
    n: int,
    p: int,
    k: int,
    kernel: str,
    method: str,
    dtype: str,
    kind: str,
    longest: float,
    cpu: bool,
) -> dict[str, Any]:
    """Plan a fit and, if it is neither too short nor too long, run it."""
    warnings.simplefilter("ignore")
    X = rows(n, p, k, dtype, kind)
    options = {"kernel": kernel, "method": method, "random_state": 0}
    if kernel == "polynomial":
        options["degree"] = 2
    KernelKMeans(2, kernel="rbf", n_init=1).fit(X[:500])  # what only the first fit pays for
    KernelKMeans(2, n_init=1).fit(X[:500])
    clock = time.process_time if cpu else time.perf_counter
    start = time.perf_counter()
    planned = plan(X, KernelKMeans(k, **options), clock=clock)
    planning = time.perf_counter() - start
    found: dict[str, Any] = {
        "planning": planning,
        "estimated": planned.seconds,
        "by stage": dict(planned.seconds_by_stage),
        "method": planned.method,
    }
    if not SHORTEST / 2 <= planned.seconds <= longest:
        return found
    before = forget_peak()
    start = clock()
    model = KernelKMeans(k, **options).fit(X)
    found["measured"] = clock() - start
    stats = model.stats_
    found["peak"] = peak_bytes() - before
    found["planned"] = planned.memory
    found["stages"] = stats["seconds"]
    found["entries"] = (
        planned.kernel_entries_at_least <= stats["kernel_entries"] <= planned.kernel_entries
        and planned.distances_at_least <= stats["distances"] <= planned.distances
        and stats["planned_bytes"] == planned.memory
    )
    return found


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds of a fit")
    parser.add_argument("--cpu", action="store_true", help="processor time, on a busy machine")
    parser.add_argument("--stages", action="store_true", help="show the stages of every fit")
    parser.add_argument("--keep", action="store_true", help=f"write docs/benchmarks/{PAGE.name}")
    options = parser.parse_args(arguments)
    report, shown, ratios, room, plans = Report(), [], [], [], []
    wanted = drawn(options.seed)
    for _, fit in zip(range(TRIES * options.fits), wanted, strict=False):
        found = measured(
            "benchmarks.plans:compare", **fit, longest=options.longest, cpu=options.cpu
        )
        plans.append(found["planning"])
        if not SHORTEST <= found.get("measured", 0.0) <= options.longest:
            continue
        ratio = found["estimated"] / found["measured"]
        ratios.append(max(ratio, 1 / ratio))
        room.append(found["planned"] / max(found["peak"], 1))
        asked = [fit[name] for name in ("n", "p", "k", "kernel", "dtype", "kind")]
        times = [found["estimated"], found["measured"], ratio]
        sizes = [found["planned"] / 1e6, found["peak"] / 1e6]
        said = "yes" if found["entries"] else "NO"
        shown.append([*asked, found["method"], *times, *sizes, said])
        print(
            fit, f"estimated {found['estimated']:.2f}, measured {found['measured']:.2f}", flush=True
        )
        if options.stages:
            print("   ", {name: round(one, 2) for name, one in found["by stage"].items()})
            print("   ", {name: round(one, 2) for name, one in found["stages"].items()}, flush=True)
        if len(shown) == options.fits:
            break
    header = ["n", "p", "K", "kernel", "dtype", "data", "method", "estimated, s", "measured, s"]
    header += ["ratio", "planned, MB", "peak, MB", "entries as stated"]
    report.table(header, shown)
    within = sum(ratio <= FACTOR for ratio in ratios)
    report.conclude(
        [
            Target(f"fits whose time is within {FACTOR} ×", within, len(ratios), "fits"),
            Target("the farthest estimate", max(ratios), FACTOR, at_most=True),
            Target("planned memory over the peak, least", min(room), 1.0),
            Target("entries as stated", sum(row[-1] == "yes" for row in shown), len(shown), "fits"),
            Target("seconds of a plan, median", float(np.median(plans)), 3.0, "s", at_most=True),
        ]
    )
    if options.keep:
        write_whole(PAGE, page(report, options.seed))
    return report


def page(report: Report, seed: int) -> str:
    """Return the page that is kept."""
    from benchmarks.timing import table

    lines = [
        "# Plans and fits",
        "",
        f"`python -m benchmarks.plans --seed {seed} --keep` on {facts(environment())}",
        "",
        table(report.tables[0]["header"], report.tables[0]["rows"]),
        "",
        *(f"- {target}" for target in report.targets),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    standalone(main)
