"""One against two workers of a Dask cluster, and where the time goes that tasks do not take.

Workers are processes with a thread each. Neighbours: cores with shells, float32, made on the
workers. Landmarks and one pass: the rbf kernel. Each fit is made on a cluster of its own, by a
client in a fresh process, after a small fit that loads the code; the local fit has one thread.
With ``--keep`` the page ``docs/benchmarks/dask.md`` is written. ::

    python -m benchmarks.dask_scaling [--quick] [--keep]

What the columns are: *in tasks*, seconds summed over the workers; *not in tasks*, the share of
workers × seconds in which no task ran (scheduler, transfers, client, waiting); *moved*, bytes that
workers fetched from each other; *scheduler*, the processor time of the thread in which the
scheduler (and what the client sends and receives) runs, and its share of the fit; *client*,
*worker*, the peak of memory above that before the fit, of the worker that had the most.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import forget_peak, measured, peak_bytes
from benchmarks.timing import SEED, Report, Target, environment, facts, standalone, table
from sketchmeans.atomic import write_whole

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "dask.md"
FEATURES, CLUSTERS, BLOCK = 20, 8, 100_000
CASES: dict[str, tuple[int, dict[str, Any], float | None]] = {
    "neighbours": (5_000_000, {}, 1.4),
    "landmarks": (1_000_000, {"kernel": "rbf", "method": "nystrom"}, None),
    "one pass": (200_000, {"kernel": "rbf", "method": "one-pass", "n_passes": 1}, 1.6),
}
"""Samples, options, and how many times as fast two workers are to be, where that was promised."""
TOKEN = re.compile(r"-[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}(-\d+)?$")
"""What makes the name of a task its own."""


def some_rows(start: int, stop: int) -> np.ndarray:
    """Draw cores and shells as ``benchmarks.data`` does: any rows by themselves, in float32."""
    centers = np.random.default_rng(SEED).uniform(-2, 2, (CLUSTERS // 2, FEATURES))
    random = np.random.default_rng([SEED, start])
    y = random.integers(CLUSTERS, size=stop - start)
    offset = random.standard_normal((stop - start, FEATURES), np.float32)
    shell = y % 2 == 1
    lengths = np.linalg.norm(offset[shell], axis=1, keepdims=True)
    offset[~shell] *= 0.5
    offset[shell] *= 4.0 / lengths + 0.1
    return offset + centers[y // 2].astype(np.float32)


def _block(block_info: Any = None) -> np.ndarray:
    (start, stop), _ = block_info[None]["array-location"]
    return some_rows(start, stop)


def lazy_rows(n: int, block: int = BLOCK) -> Any:
    """Return these rows as a Dask array, to be made where they are wanted."""
    import dask.array as da

    sizes = (block,) * (n // block) + ((n % block,) if n % block else ())
    return da.map_blocks(_block, chunks=(sizes, (FEATURES,)), dtype=np.float32)


def block_of(n: int) -> int:
    """Return the rows of a chunk: forty of them, up to ``BLOCK``."""
    return min(BLOCK, max(n // 40, 1))


def digest(labels: np.ndarray) -> str:
    """Return a hash of labels."""
    return hashlib.sha256(np.ascontiguousarray(labels).tobytes()).hexdigest()


def local_fit(case: str, n: int) -> dict[str, Any]:
    """Fit on one thread of this process."""
    from sketchmeans import KernelKMeans

    _, options, _ = CASES[case]
    block = block_of(n)
    starts = range(0, n, block)
    X = np.concatenate([some_rows(start, min(start + block, n)) for start in starts])
    KernelKMeans(CLUSTERS, n_jobs=1, random_state=SEED, **options).fit(X[:5000])
    before = forget_peak()
    start = time.perf_counter()
    model = KernelKMeans(CLUSTERS, n_jobs=1, random_state=SEED, **options).fit(X)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "client": peak_bytes() - before,
        "labels": digest(model.labels_),
    }


def received_bytes(dask_worker: Any) -> int:
    """Return what a worker has fetched from others, as far back as its log goes."""
    # A copy, made at once: the worker goes on and adds to it.
    return sum(one["total"] for one in dask_worker.transfer_incoming_log.copy())


def forget_received(dask_worker: Any) -> None:
    """Let that begin anew."""
    dask_worker.transfer_incoming_log.clear()


async def _spent_here() -> float:
    """Return the processor time of the thread that runs this."""
    return time.thread_time()


def cluster_fit(case: str, n: int, n_workers: int) -> dict[str, Any]:
    """Fit on a cluster of as many workers, and return what it took."""
    from distributed import Client, LocalCluster
    from distributed.diagnostics.task_stream import TaskStreamPlugin

    from sketchmeans.dask import KernelKMeans

    _, options, _ = CASES[case]
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers, timeout=120)

        def fit(X: Any) -> Any:
            return KernelKMeans(CLUSTERS, random_state=SEED, client=client, **options).fit(X)

        fit(lazy_rows(5000, 1000))
        # The data are there before the clock starts, as on a cluster that has read them.
        X = client.persist(lazy_rows(n, block_of(n)))
        client.gather(client.map(len, client.futures_of(X)))
        client.run(forget_peak)
        held = client.run(peak_bytes)
        client.run(forget_received)
        before = forget_peak()
        stream = TaskStreamPlugin(cluster.scheduler, maxlen=1_000_000)
        cluster.scheduler.add_plugin(stream)
        spent, scheduled = client.run(time.process_time), cluster.sync(_spent_here)
        start, start_here = time.perf_counter(), time.process_time()
        model = fit(X)
        seconds, here = time.perf_counter() - start, time.process_time() - start_here
        scheduled = cluster.sync(_spent_here) - scheduled
        spent_then = client.run(time.process_time)
        peak = peak_bytes() - before
        peaks = client.run(peak_bytes)
        fetched = client.run(received_bytes)
        # Its thread goes on and lets tasks go: first it is to look away.
        cluster.scheduler.remove_plugin(name=stream.name)
        records = list(stream.buffer)
        within = sum(
            one["stop"] - one["start"]
            for record in records
            for one in record["startstops"]
            if one["action"] == "compute"
        )
        return {
            "seconds": seconds,
            "in tasks": within,
            "processor of workers": sum(spent_then[one] - spent[one] for one in spent_then),
            "processor of client": here,
            "scheduler": scheduled,
            "tasks": len(records),
            "kinds": kinds_of(records),
            "moved": sum(fetched.values()),
            "client": peak,
            "worker": max(peaks[worker] - held[worker] for worker in peaks),
            "width": int(getattr(model, "width_", 0) or 0),
            "labels": digest(model.labels_.compute()),
        }


def busy(seconds: float) -> None:
    """Take so many seconds of the processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def cores_of_two(seconds: float = 2.0) -> float:
    """Return how many cores two plain processes get now: what two workers cannot exceed."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(busy, [0.1, 0.1]))
        start = time.perf_counter()
        list(pool.map(busy, [seconds, seconds]))
        return 2 * seconds / (time.perf_counter() - start)


def kinds_of(records: list[dict[str, Any]]) -> dict[str, tuple[int, float]]:
    """Return how many tasks there were of each kind, and their seconds."""
    found: dict[str, tuple[int, float]] = {}
    for record in records:
        key = record["key"]
        name = (key[0] if isinstance(key, tuple) else str(key)).removeprefix("sketchmeans-")
        name = TOKEN.sub("", name)
        spent = sum(
            one["stop"] - one["start"] for one in record["startstops"] if one["action"] == "compute"
        )
        count, seconds = found.get(name, (0, 0.0))
        found[name] = (count + 1, seconds + spent)
    return found


HEADER = [
    "fit",
    "n",
    "workers",
    "seconds",
    "× one worker",
    "in tasks, s",
    "not in tasks",
    "scheduler, s",
    "of the time",
    "tasks",
    "moved, MB",
    "client, MB",
    "worker, MB",
]


def cells(case: str, n: int, workers: int, found: dict[str, Any], one: float) -> list[Any]:
    """Return a row of the table; with no workers it is the local fit."""
    if not workers:
        local = ["local", found["seconds"], *[""] * 7, found["client"] / 1e6, ""]
        return [case, n, *local]
    idle = 1 - found["in tasks"] / (workers * found["seconds"])
    return [
        case,
        n,
        workers,
        found["seconds"],
        one / found["seconds"],
        found["in tasks"],
        f"{idle:.0%}",
        found["scheduler"],
        f"{found['scheduler'] / found['seconds']:.0%}",
        found["tasks"],
        found["moved"] / 1e6,
        found["client"] / 1e6,
        found["worker"] / 1e6,
    ]


def page(report: Report, found_on: dict[str, Any]) -> str:
    """Return the tables and targets as Markdown."""
    command = " ".join(["python -m benchmarks.dask_scaling", *report.arguments])
    parts = ["# One and two workers of a Dask cluster", f"`{command}` on {facts(found_on)}."]
    parts.append((__doc__ or "").partition("::\n\n")[2].partition("\n\n")[2].strip())
    parts += [table(shown["header"], shown["rows"]) for shown in report.tables]
    parts.append("\n".join(f"- {line}" for line in [*report.targets, *report.data["notes"]]))
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--keep", action="store_true", help=f"write docs/benchmarks/{PAGE.name}")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each; the best counts")
    options = parser.parse_args(arguments)
    found_on = environment()
    said = [*(["--quick"] if options.quick else [])]
    said += [f"--repeats {options.repeats}"] if options.repeats > 1 else []
    report = Report(arguments=said)
    rows: list[list[Any]] = []
    kinds: list[list[Any]] = []
    targets, notes = [], []
    for case, (whole, _, limit) in CASES.items():
        n = whole // 10 if options.quick else whole
        best: dict[int, dict[str, Any]] = {}
        cores = [cores_of_two()]
        for _ in range(options.repeats):
            for workers in (0, 1, 2):  # in turns: others may use the machine
                if workers:
                    arguments_ = {"case": case, "n": n, "n_workers": workers}
                    found = measured("benchmarks.dask_scaling:cluster_fit", **arguments_)
                else:
                    found = measured("benchmarks.dask_scaling:local_fit", case=case, n=n)
                print(f"{case}, {workers} workers: {found['seconds']:.1f} s", flush=True)
                if workers not in best or found["seconds"] < best[workers]["seconds"]:
                    best[workers] = found
        cores.append(cores_of_two())
        one = best[1]["seconds"]
        rows += [cells(case, n, workers, found, one) for workers, found in best.items()]
        by_time = sorted(best[2]["kinds"].items(), key=lambda item: -item[1][1])
        kinds += [[case, name, *spent] for name, spent in by_time[:8]]
        gain = one / best[2]["seconds"]
        if limit is not None:
            targets.append(Target(f"{case}, n = {n:,}: two workers against one", gain, limit))
        same = len({found["labels"] for found in best.values()}) == 1
        notes.append(f"{case}: labels of all three are {'the same' if same else 'NOT THE SAME'}")
        given = " and ".join(f"{count:.2f}" for count in cores)
        notes.append(f"{case}: two plain processes got {given} cores, before and after")
    report.table(HEADER, rows)
    report.table(["fit", "tasks of two workers", "count", "s in all"], kinds)
    print("\n".join(notes))
    report.data["notes"] = notes
    report.conclude(targets)
    if options.keep:
        write_whole(PAGE, page(report, found_on))
    return report


if __name__ == "__main__":
    standalone(main)
