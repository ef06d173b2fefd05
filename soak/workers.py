"""Fits on a cluster whose workers die in the middle: all complete, to the bit, and none hangs.

    python -m soak.workers --fits 30 --seed 0

Each case is a fit of a random kind on a new cluster of two or three worker processes. It is fitted
here, then on the cluster undisturbed, which tells how long it takes; then once more while random
workers are killed, crash or leave at random times, or soon after its end, when what was found is
fetched. Both fits on the cluster must end by the deadline with the bits of the local one.
Prints a line a case as it comes, and the seed; exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client

import sketchmeans
from sketchmeans import dask as placed
from sketchmeans.dask import meetings
from soak.clusters import WAYS, lose, opened, same_fits
from soak.running import Cases, Check

KINDS: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "neighbours": ((5_000, 60_000), {}),
    "neighbours, few anchors": ((5_000, 60_000), {"kernel_params": {"n_anchors": 60}}),
    "landmarks": ((5_000, 60_000), {"kernel": "rbf", "n_landmarks": 200}),
    "landmarks, streamed": ((5_000, 20_000), {"kernel": "laplacian", "method": "nystrom"}),
    "one pass": ((4_000, 12_000), {"kernel": "rbf", "method": "one-pass", "n_passes": 1}),
    "two passes, refined": ((4_000, 9_000), {"kernel": "rbf", "n_passes": 2, "n_refine": 1}),
}
"""Kinds of fits: the least and the most samples, and the options."""

ENTRIES = 2_000_000
"""Kernel entries of a task of a pass, so that a short pass has many."""


@dataclass(frozen=True)
class Case:
    """A fit, and how workers are lost during it."""

    kind: str
    n: int
    dtype: str
    weighted: bool
    n_workers: int
    chunk: int
    losses: list[tuple[str, float]]
    """How, and when, as a share of the time of an undisturbed fit."""
    seed: int

    @staticmethod
    def drawn(seed: int, index: int) -> Case:
        """Draw a case; kinds come in turns."""
        chance = random.Random(f"{seed} {index}")
        kind = list(KINDS)[index % len(KINDS)]
        n = chance.randint(*KINDS[kind][0])
        count = chance.choice([1, 1, 2])
        return Case(
            kind,
            n,
            chance.choice(["float32", "float64"]),
            chance.random() < 0.4,
            chance.choice([2, 3]),
            chance.randint(n // 12, n // 2),
            sorted(
                ((chance.choice(list(WAYS)), chance.uniform(0.0, 0.9)) for _ in range(count)),
                key=lambda loss: loss[1],
            ),
            chance.randrange(2**31),
        )

    def __str__(self) -> str:
        weights = ", weights" if self.weighted else ""
        losses = ", ".join(f"{how} at {share:.0%}" for how, share in self.losses)
        return (
            f"{self.kind}, n = {self.n:,} in {self.chunk:,}s, {self.dtype}{weights}, "
            f"{self.n_workers} workers: {losses}"
        )


class Hang(RuntimeError):
    """Something did not end by its deadline; the message says where it stood."""


def by_deadline(work: Callable[[], Any], seconds: float, client: Client) -> Any:
    """Return what the work returns, from a thread; say where it stands if it does not end."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        frame = sys._current_frames().get(thread.ident or 0)
        where = "".join(traceback.format_stack(frame)[-6:])
        raise Hang(f"not done after {seconds:.0f} s, at\n{where}{standing(client)}")
    if failed:
        raise failed[0]
    return found[0]


def standing(client: Client) -> str:
    """Return what the scheduler has to do, what clients wait for, and how the nannies stand."""
    told: list[str] = []

    def ask() -> None:
        told.append(client.run_on_scheduler(_unfinished))
        nannies = getattr(client.cluster, "workers", {})
        for name, nanny in nannies.items():
            process = getattr(nanny, "process", None)
            told.append(f"nanny {name}: {nanny.status.name}, {getattr(process, 'status', None)}")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(20)
    return "\n".join(told) if told else "the scheduler does not answer"


def _unfinished(dask_scheduler: Any) -> str:
    counts: dict[str, int] = {}
    lines = [f"workers: {[(w.address, w.status.name) for w in dask_scheduler.workers.values()]}"]
    for task in dask_scheduler.tasks.values():
        name = f"{task.state} {task.prefix.name}"
        counts[name] = counts.get(name, 0) + 1
        if task.state in ("processing", "no-worker", "queued") and len(lines) < 12:
            lines.append(f"{task.state}: {task.key} on {task.processing_on}")
        if task.who_wants and len(lines) < 30:
            held = [worker.address for worker in task.who_has or ()]
            story = dask_scheduler.story(task.key)[-3:]
            lines.append(f"wanted: {task.key}, {task.state}, held by {held}; {story}")
    return "\n".join([*lines, *(f"{count} × {name}" for name, count in sorted(counts.items()))])


def lose_some(client: Client, losses: list[tuple[str, float]], seconds: float, seed: int) -> None:
    """Lose random workers at their times."""
    chance, start = random.Random(seed), time.monotonic()
    for how, share in losses:
        time.sleep(max(start + share * seconds - time.monotonic(), 0))
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if workers:  # or all are being started anew
            lose(client, WAYS[how], chance.choice(workers))


def alive(process: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def data_of(case: Case) -> tuple[Any, Any]:
    """Return samples of five blobs that touch, and weights."""
    random_ = np.random.default_rng(case.seed)
    centers = random_.uniform(-6, 6, (5, 6))
    X = centers[random_.integers(5, size=case.n)] + 2 * random_.standard_normal((case.n, 6))
    return X.astype(case.dtype), random_.uniform(0.5, 2, case.n) if case.weighted else None


def tried(case: Case, deadline: float) -> tuple[float, float, list[str]]:
    """Run a case; return seconds undisturbed and disturbed, and what was broken."""
    X, weights = data_of(case)
    options = {"random_state": case.seed % 1000, **KINDS[case.kind][1]}
    local = sketchmeans.KernelKMeans(5, **options).fit(X, sample_weight=weights)
    wrong: list[str] = []
    seconds = []
    with opened(case.n_workers) as client:
        processes = list(client.run(os.getpid).values())

        def fit() -> None:
            model = placed.KernelKMeans(5, client=client, **options)
            lazy = da.from_array(X, chunks=(case.chunk, -1))
            same_fits(local, model.fit(lazy, sample_weight=weights))

        for which in ("undisturbed", "disturbed"):
            start = time.monotonic()
            if which == "disturbed":
                arguments = (client, case.losses, seconds[0], case.seed)
                loser = threading.Thread(target=lose_some, args=arguments, daemon=True)
                loser.start()
            try:
                by_deadline(fit, deadline, client)
            except AssertionError as error:
                wrong.append(f"{which}: other bits: {str(error).strip()[:300]}")
            except Hang as error:
                wrong.append(f"{which}: {error}")
                print(wrong[-1], flush=True)
                break  # the thread still uses the client
            except Exception as error:
                wrong.append(f"{which}: {type(error).__name__}: {str(error)[:600]}")
            seconds.append(time.monotonic() - start)
        else:
            loser.join(deadline)
            end = time.monotonic() + 10
            while all(map(alive, processes)) and time.monotonic() < end:
                time.sleep(0.05)
            if all(map(alive, processes)):
                wrong.append("no worker was lost: this case has tried nothing")
    return seconds[0], seconds[-1], wrong


def _prepare() -> None:
    meetings.ENTRIES = ENTRIES
    dask.config.set({"distributed.logging.distributed": "critical"})
    warnings.filterwarnings("ignore", category=UserWarning)


def soaked(seed: int, count: int) -> Cases:
    """Run so many cases."""
    _prepare()
    for index in range(count):
        case = Case.drawn(seed, index)
        wrong = tried(case, deadline=120.0)[2]
        yield case.kind, [f"{index}: {case}: {text}" for text in wrong]


CHECKS = {"clusters that lose workers": Check(60, soaked)}


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fits", type=int, default=30, help="fits that lose workers (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="of the cases (default: 0)")
    parser.add_argument("--only", type=int, help="the number of the one case to run")
    parser.add_argument(
        "--deadline", type=float, default=120.0, help="seconds for a fit (default: 120)"
    )
    given = parser.parse_args(arguments)
    _prepare()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    broken = 0
    print(f"seed {given.seed}, {given.fits} fits")
    print("| | case | s undisturbed | s with losses | |")
    print("|---|---|---|---|---|", flush=True)
    for index in range(given.fits) if given.only is None else [given.only]:
        case = Case.drawn(given.seed, index)
        one, two, wrong = tried(case, given.deadline)
        said = "the same bits" if not wrong else f"{len(wrong)} BROKEN"
        print(f"| {index} | {case} | {one:.1f} | {two:.1f} | {said} |", flush=True)
        if wrong:
            broken += 1
            print("\n".join(wrong), flush=True)
    count = given.fits if given.only is None else 1
    verdict = "all complete, the same bits, none hangs" if not broken else "BROKEN"
    print(f"{broken} of {count} cases broken (seed {given.seed}): {verdict}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
