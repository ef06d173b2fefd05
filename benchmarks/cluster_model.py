"""What fits cost on clusters that we do not have: a model of flops, bytes and tasks, simulated.

The plan of each method (its streams over spans, its pairs of strips, its trees of sums) is that of
the code; seconds a row of each kind of task, the client's own time and the scheduler's time for a
task were measured by ``--fit`` on a small cluster of one machine, in time of the processor, and are
kept in ``docs/benchmarks/cluster_model.json``. Bandwidth, latency, stragglers and losses are
assumptions, and are printed. Data have 20 features in float32 and eight clusters, which starts of
K-means and refinement find in as many rounds as they took where they were measured. ::

    python -m benchmarks.cluster_model [--fit] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import measured
from benchmarks.simulation import Cluster, Network, Outcome, Task, losses, stragglers
from benchmarks.timing import environment, facts, table
from sketchmeans.atomic import write_whole
from sketchmeans.dask.meetings import ENTRIES
from sketchmeans.engine.schedule import native_tile_rows
from sketchmeans.engine.strips import strip_length
from sketchmeans.estimators.many_rows import grid
from sketchmeans.operators.streams import span_rows
from sketchmeans.rows import FAN
from sketchmeans.tall import SPAN

KEPT = Path(__file__).parents[1] / "docs" / "benchmarks" / "cluster_model.json"
FEATURES, CLUSTERS, ANCHORS, STORED, LANDMARKS = 20, 8, 2000, 20, 320
RANK, WIDTH = CLUSTERS + 10, 2 * (CLUSTERS + 10)
BANDWIDTH, LATENCY, RESTART = 1.25e9, 1e-3, 10.0
"""Assumed: ten gigabits a second for every worker and the client; a lost worker is back soon."""
LOST_PER_HOUR = 0.1
"""Assumed, of each worker: of a thousand, one every 36 seconds."""
SIZES, WORKERS = (10**6, 10**7, 10**8, 10**9), (1, 10, 100, 1000)
FITTED: dict[str, tuple[int, ...]] = {
    "neighbours": (100_000, 400_000),
    "landmarks": (100_000, 400_000),
    "one pass": (50_000, 100_000),
}
"""Samples of the fits that the constants are taken from, on one worker; the last is also made on
two, and held against the model."""
POINT = ("n", "workers", "seconds", "tasks", "moved", "processor of workers", "processor of client")
"""What is kept of each."""


@dataclass(frozen=True)
class Stream:
    """A kind of task, one for every span of rows.

    Parameters
    ----------
    kind : str
        Its name, as the tasks have it.
    on : {"spans", "blocks", "chunks", "tall"}
        Its grid of rows.
    reads : float
        Bytes a row of what it works on.
    back : float
        Bytes a row that the client fetches.
    summand : float
        Bytes of what each adds to a sum.
    stays : bool
        Whether what it makes stays with the workers, to be made again after a loss.
    """

    kind: str
    on: str = "spans"
    reads: float = 4.0 * FEATURES
    back: float = 0.0
    summand: float = 0.0
    stays: bool = False


F = 12.0 * STORED
"""Bytes of a row of neighbours' features."""
PLANS: dict[str, list[Stream]] = {
    "neighbours": [
        Stream("facts_of", "chunks"),
        Stream("fetch", "chunks"),
        Stream("place", stays=True),
        Stream("nearest-anchors", summand=8 * ANCHORS, stays=True),
        Stream("features", reads=4 * STORED, stays=True),
        Stream("gram", reads=F, back=8, summand=8 * ANCHORS**2),
        Stream("embed", reads=F, stays=True),
        Stream("look", reads=64),
        Stream("embedding", reads=64, stays=True),
        Stream("refine", reads=F, back=4, summand=8 * ANCHORS * CLUSTERS),
        Stream("cluster-sums", reads=F, summand=8 * ANCHORS * CLUSTERS),
    ],
    "landmarks": [
        Stream("facts_of", "chunks"),
        Stream("fetch", "chunks"),
        Stream("norms", "chunks", back=8),
        Stream("look", "chunks"),
        Stream("place", stays=True),
        Stream("gram", back=8, summand=8 * LANDMARKS**2),
        Stream("embed", stays=True),
        Stream("embedding", reads=8.0 * RANK, stays=True),
        Stream("k-means", "blocks", reads=8.0 * RANK, back=4),
        Stream("cluster-sums", summand=8 * LANDMARKS * CLUSTERS),
        Stream("refine", back=4, summand=8 * LANDMARKS * CLUSTERS),
    ],
    "one pass": [
        Stream("facts_of", "chunks"),
        Stream("fetch", "chunks"),
        Stream("norms", "chunks", back=8),
        Stream("look", "chunks"),
        Stream("columns", "tall", reads=8.0 * WIDTH, stays=True),
        Stream("gram", "tall", reads=8.0 * WIDTH, summand=8 * WIDTH**2),
        Stream("recover", "tall", reads=8.0 * WIDTH, back=8, summand=8 * WIDTH**2),
        Stream("multiply", "tall", reads=8.0 * WIDTH, stays=True),
        Stream("embedding", "tall", reads=8.0 * RANK, stays=True),
        Stream("k-means", "blocks", reads=8.0 * RANK, back=4),
        Stream("certify", "tall", reads=8.0 * WIDTH, summand=8 * WIDTH**2),
        Stream("centers", "tall", reads=8.0 * RANK),
    ],
}


@dataclass(frozen=True)
class Constants:
    """What was measured."""

    overhead: float
    """Seconds of the scheduler and the client for a task."""
    a_row: dict[str, dict[str, float]]
    """Of each method and kind: seconds a row, all rounds together."""
    a_task: dict[str, dict[str, float]]
    """Of each method and kind: seconds a task that rows do not explain, all rounds together."""
    rounds: dict[str, dict[str, int]]
    sums: dict[str, dict[str, float]]
    """Seconds of a task that adds up."""
    an_entry: float
    """Seconds of a kernel entry of a pass."""
    width: int
    client: dict[str, float]
    """Seconds of the client that do not grow with n."""
    client_a_row: dict[str, float]

    @staticmethod
    def kept() -> Constants:
        """Read what ``--fit`` has left."""
        return Constants(**json.loads(KEPT.read_text())["constants"])


def spans_of(method: str, on: str, n: int) -> int:
    """Return how many tasks a stream has."""
    if on == "chunks":
        return max(-(-n // 250_000), 40 if n > 40 else 1)
    if on == "blocks":
        return len(grid(n, CLUSTERS, RANK))
    if on == "tall":
        return -(-n // SPAN)
    block = 4096 if method == "neighbours" else (1 << 20) // LANDMARKS
    return -(-n // span_rows(n, block))


def stream_tasks(
    stream: Stream, n: int, count: int, seconds: float, lineage: float, adds: float
) -> list[Task]:
    """Return a round of a stream: rows that are there, a task for each span, a tree, the client."""
    rows = n / count
    tasks = [Task(lineage * rows, (), stream.reads * rows, source=True) for _ in range(count)]
    out = stream.back * rows + stream.summand
    tasks += [Task(seconds, (one,), out) for one in range(count)]
    level = list(range(count, 2 * count))
    while stream.summand and len(level) > 1:
        groups = [level[first : first + FAN] for first in range(0, len(level), FAN)]
        level = list(range(len(tasks), len(tasks) + len(groups)))
        share = stream.back * n / len(groups)
        tasks += [Task(adds, group, stream.summand + share) for group in groups]
    if stream.stays and not stream.summand:
        return tasks
    tasks.append(Task(0.0, level, client=True))
    return tasks


def pass_tasks(n: int, constants: Constants) -> list[Task]:
    """Return the pairs of strips of a pass, some in a task, and the sums of each strip."""
    length = strip_length(n, native_tile_rows(n))
    strips = -(-n // length)
    each = max(1, round(ENTRIES / length**2)) if length**2 < ENTRIES else 1
    product = 8.0 * length * (constants.width + 1)
    tasks = [Task(0.0, (), 4.0 * length * FEATURES, source=True) for _ in range(strips)]
    pairs = [(i, j) for i in range(strips) for j in range(i, strips)]
    given: list[list[int]] = [[] for _ in range(strips)]
    for first in range(0, len(pairs), each):
        some = pairs[first : first + each]
        needs = sorted({strip for pair in some for strip in pair})
        entries = sum(length**2 / (2 if i == j else 1) for i, j in some)
        for strip in needs:
            given[strip].append(len(tasks))
        # A task of its own takes the products of each strip out of what a task found.
        events = 2.0 + len(needs)
        tasks.append(Task(constants.an_entry * entries, needs, product, events=events))
    ends = []
    for some in given:
        for first in range(0, len(some), 4):
            before = [len(tasks) - 1] if first else []
            tasks.append(Task(product * 4 / 4e9, [*before, *some[first : first + 4]], product))
        ends.append(len(tasks) - 1)
    tasks.append(Task(0.0, ends, client=True))
    return tasks


@dataclass
class Cost:
    """What a fit costs on some workers."""

    seconds: float = 0.0
    tasks: int = 0
    moved: float = 0.0
    worked: float = 0.0
    lost: int = 0

    def add(self, found: Outcome, rounds: int) -> None:
        """Add a phase that is done so many times."""
        self.seconds += rounds * found.seconds
        self.tasks += rounds * found.runs
        self.moved += rounds * found.moved
        self.worked += rounds * found.worked
        self.lost += rounds * found.lost


def phases(method: str, n: int, constants: Constants) -> Iterator[tuple[list[Task], int]]:
    """Yield the tasks of each phase of a fit, and how often it is done."""
    lineage = 0.0
    for stream in PLANS[method]:
        rounds = constants.rounds[method].get(stream.kind, 0)
        if not rounds:
            continue
        count = spans_of(method, stream.on, n)
        a_row = constants.a_row[method][stream.kind] / rounds
        a_task = constants.a_task[method][stream.kind] / rounds
        adds = constants.sums[method].get(stream.kind, 0.0)
        seconds = a_row * n / count + a_task
        yield stream_tasks(stream, n, count, seconds, lineage, adds), rounds
        lineage += a_row if stream.stays else 0.0
    if method == "one pass":
        yield pass_tasks(n, constants), 1


def cost_of(
    method: str,
    n: int,
    workers: int,
    constants: Constants,
    *,
    slow: bool = False,
    lose: bool = False,
    seed: int = 0,
) -> Cost:
    """Simulate a fit, phase after phase."""
    network = Network(constants.overhead, BANDWIDTH, LATENCY, RESTART)
    total = Cost(constants.client[method] + constants.client_a_row[method] * n)
    for number, (tasks, rounds) in enumerate(phases(method, n, constants)):
        factors = stragglers(len(tasks), seed + number) if slow else None
        calm = Cluster(tasks, workers, network, factors).run()
        if lose:
            # Long enough for what losses add; those after the end are not met.
            times = losses(workers, 3 * calm.seconds, LOST_PER_HOUR, seed + number)
            calm = Cluster(tasks, workers, network, factors).run(times) if times else calm
        total.add(calm, rounds)
    return total


def flops(method: str, n: int, width: int) -> float:
    """Return the multiplications and additions of distances and kernel entries, about."""
    if method == "one pass":
        return n * (n + 1) / 2 * (2 * FEATURES + 4 * width)
    columns = ANCHORS if method == "neighbours" else LANDMARKS
    streams = 1 if method == "neighbours" else 6
    return 2.0 * n * columns * FEATURES * streams


def memory(method: str, n: int, workers: int, width: int) -> tuple[float, float]:
    """Return bytes of a worker, and of the client: what they hold at the peak, above the start."""
    data = 4.0 * FEATURES * n / workers
    if method == "neighbours":
        kept = (4.0 * STORED + F + 2 * 8 * CLUSTERS) * n / workers
        sums = (FAN + 4) * 8.0 * ANCHORS**2
        return data + kept + sums, 32.0 * n + 2 * 8.0 * ANCHORS**2
    if method == "landmarks":
        kept = 2 * 8.0 * RANK * n / workers
        return data + kept + (FAN + 4) * 8.0 * LANDMARKS**2, 96.0 * n + 20e6
    length = strip_length(n, native_tile_rows(n))
    strips = -(-n // length)
    product = 8.0 * length * (width + 1)
    # Some products of each strip wait for their sum, and a task of short strips has many.
    each = max(1.0, ENTRIES / length**2)
    waiting = min(strips**2, 8 * strips) * product / workers
    sketch = 3 * 8.0 * (width + 1) * n / workers  # W as it is summed, and on the grid of spans
    return data + max(waiting, sketch) + 4 * each * product, 8.0 * n * (RANK + 8) + 15e6


def size(value: float) -> str:
    """Return a size with a unit."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value / 1e3:.3g} kB"


def span_of_time(seconds: float) -> str:
    """Return a time with a unit."""
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def closed_form(n: int, workers: int, constants: Constants) -> Cost:
    """Return a pass of too many pairs to simulate: its work, or the scheduler's, as is longer."""
    length = strip_length(n, native_tile_rows(n))
    strips = -(-n // length)
    pairs = strips * (strips + 1) // 2
    worked = constants.an_entry * n * (n + 1) / 2
    seconds = max(worked / workers, 4.25 * pairs * constants.overhead)
    moved = pairs * (8.0 * length * FEATURES + 16.0 * length * (constants.width + 1))
    return Cost(seconds, round(4.25 * pairs), moved if workers > 1 else 0.0, worked)


def scaling_rows(method: str, constants: Constants) -> Iterator[list[Any]]:
    """Yield a line for every number of samples and workers."""
    for n in SIZES:
        for workers in WORKERS:
            known = method != "one pass" or n <= 10**6
            cost = (
                cost_of(method, n, workers, constants)
                if known
                else closed_form(n, workers, constants)
            )
            worker, client = memory(method, n, workers, constants.width)
            yield [
                f"10^{round(math.log10(n))}",
                workers,
                ("" if known else "≥ ") + span_of_time(cost.seconds),
                f"{cost.worked / (workers * cost.seconds):.0%}",
                cost.tasks,
                size(cost.moved),
                size(worker),
                size(client),
                f"{flops(method, n, constants.width):.1g}",
            ]


HEADER = ["n", "workers", "time", "busy", "tasks", "moved", "a worker", "client", "flops"]


def trouble_rows(constants: Constants, seed: int) -> Iterator[list[Any]]:
    """Yield how stragglers and losses slow down fits on many workers."""
    cases = [("neighbours", 10**8, 100), ("neighbours", 10**9, 1000), ("landmarks", 10**8, 100)]
    cases += [("landmarks", 10**9, 1000), ("one pass", 10**6, 100), ("one pass", 10**6, 1000)]
    for method, n, workers in cases:
        calm = cost_of(method, n, workers, constants)
        slow = cost_of(method, n, workers, constants, slow=True, seed=seed)
        lost = cost_of(method, n, workers, constants, lose=True, seed=seed)
        both = cost_of(method, n, workers, constants, slow=True, lose=True, seed=seed)
        yield [
            method,
            f"10^{round(math.log10(n))}",
            workers,
            span_of_time(calm.seconds),
            *(f"{one.seconds / calm.seconds:.2f} ×" for one in (slow, lost, both)),
            both.lost,
            f"{(both.tasks - calm.tasks) / calm.tasks:.1%}",
        ]


def task_overhead(count: int = 4000) -> float:
    """Measure what a task that does nothing takes of the processor, in client and scheduler."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            client.gather(client.map(abs, range(count), pure=False))
            best = min(best, (time.process_time() - start) / count)
    return best


def fit_constants() -> dict[str, Any]:
    """Fit on a small cluster, and return constants and what they were taken from."""
    overhead = measured("benchmarks.cluster_model:task_overhead")
    print(f"overhead of a task: {1e3 * overhead:.2f} ms", flush=True)
    points: dict[str, list[dict[str, Any]]] = {}
    for method, sizes in FITTED.items():
        for n, workers in [*((n, 1) for n in sizes), (sizes[-1], 2)]:
            arguments = {"case": method, "n": n, "n_workers": workers}
            found = measured("benchmarks.dask_scaling:cluster_fit", **arguments)
            points.setdefault(method, []).append({"n": n, "workers": workers, **found})
            print(f"{method}, n = {n:,}, {workers} workers: {found['seconds']:.1f} s", flush=True)
    constants: dict[str, Any] = {"overhead": overhead}
    names = ("a_row", "a_task", "rounds", "sums", "client", "client_a_row")
    constants |= {name: {} for name in names}
    for method, (few, many, _) in points.items():
        rows, single, rounds, sums = {}, {}, {}, {}
        for one in (few, many):
            # Others use the machine: a task's time by the clock is too long by their share.
            share = min(one["processor of workers"] / one["in tasks"], 1.0)
            one["kinds"] = {name: (n, share * s) for name, (n, s) in one["kinds"].items()}
        for stream in PLANS[method]:
            counts = [spans_of(method, stream.on, one["n"]) for one in (few, many)]
            if stream.kind not in many["kinds"]:
                continue
            spent = [one["kinds"].get(stream.kind, (0, 0.0)) for one in (few, many)]
            rounds[stream.kind] = max(round(spent[1][0] / counts[1]), 1)
            # Seconds = a n + b tasks, from two points, none of them negative.
            growth = (spent[1][1] - spent[0][1]) / (many["n"] - few["n"])
            rows[stream.kind] = max(min(growth, spent[1][1] / many["n"]), 0.0)
            rest = spent[1][1] - rows[stream.kind] * many["n"]
            single[stream.kind] = max(rest, 0.0) / counts[1]
            if f"{stream.kind}-sum" in many["kinds"]:
                count, seconds = many["kinds"][f"{stream.kind}-sum"]
                sums[stream.kind] = seconds / count
        client = [
            max(one["processor of client"] - overhead * one["tasks"], 0.0) for one in (few, many)
        ]
        growth = max((client[1] - client[0]) / (many["n"] - few["n"]), 0.0)
        constants["client_a_row"][method] = growth
        constants["client"][method] = max(client[1] - growth * many["n"], 0.0)
        constants["a_row"][method], constants["a_task"][method] = rows, single
        constants["rounds"][method], constants["sums"][method] = rounds, sums
    last = points["one pass"][1]
    constants["an_entry"] = last["kinds"]["pass"][1] / (last["n"] * (last["n"] + 1) / 2)
    constants["width"] = last["width"]
    shown = [
        {key: one[key] for key in POINT}
        | {"method": method, "client": one["client"], "worker": one["worker"]}
        for method, some in points.items()
        for one in some
    ]
    return {"environment": environment(), "constants": constants, "points": shown}


def check_rows(constants: Constants) -> Iterator[list[Any]]:
    """Yield the model beside what was measured."""
    for point in json.loads(KEPT.read_text())["points"]:
        method, n, workers = point["method"], point["n"], point["workers"]
        cost = cost_of(method, n, workers, constants)
        worker, client = memory(method, n, workers, constants.width)
        yield [
            method,
            n,
            workers,
            point["seconds"],
            point["processor of workers"] + point["processor of client"],
            cost.seconds,
            point["tasks"],
            cost.tasks,
            size(point["worker"]),
            size(worker),
            size(point["client"]),
            size(client),
        ]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="measure the constants here; minutes")
    parser.add_argument("--seed", type=int, default=0, help="of stragglers and losses")
    options = parser.parse_args(arguments)
    if options.fit:
        write_whole(KEPT, json.dumps(fit_constants(), indent=1) + "\n")
    constants = Constants.kept()
    print(f"Constants of {facts(json.loads(KEPT.read_text())['environment'])}.")
    print(
        f"{1e3 * constants.overhead:.2f} ms of the scheduler for a task; assumed are "
        f"{8e-9 * BANDWIDTH:.0f} Gb/s, {1e3 * LATENCY:.0f} ms for a fetch.\n"
    )
    header = ["fit", "n", "workers", "s", "s of processors", "model, s", "tasks", "model"]
    print("## The model and what was measured\n")
    print(table([*header, "a worker", "model", "client", "model"], check_rows(constants)), "\n")
    for method in PLANS:
        print(f"## {method}\n")
        print(table(HEADER, scaling_rows(method, constants)), "\n", flush=True)
    print(
        f"## Stragglers and losses\n\nTwo in a hundred tasks are slow, up to 20 ×; a worker is "
        f"lost {LOST_PER_HOUR} times an hour, and back after {RESTART:.0f} s; seed "
        f"{options.seed}.\n"
    )
    header = ["fit", "n", "workers", "calm", "slow tasks", "losses", "both", "lost", "done again"]
    print(table(header, trouble_rows(constants, options.seed)))


if __name__ == "__main__":
    main()
