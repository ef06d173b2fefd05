"""Fits that are killed at random times, and go on from their checkpoints.

    python -m soak.resume --kills 50

Every method, full kernel K-means and every kind of certificate is run in a process of its own,
which gets SIGKILL at a random time, and is started again until it comes to its end; some are killed
several times. The result must have the bits of a run without a checkpoint, no more than an interval
may be lost, and nothing may be left in the folder. Exits with 1 if not.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from soak.running import Cases, Check

INTERVAL = 0.5
"""Seconds that may be lost; the fits here take a few."""
SLACK = 1.5
"""Seconds for what cannot be saved in its middle, and for a machine with other things to do."""


class Told:
    """Who is told that work begins, once its data are made, and that it has ended."""

    begun: Callable[[], None] = staticmethod(lambda: None)
    ended: Callable[[], None] = staticmethod(lambda: None)


def make_data(n: int) -> Any:
    """Return four round clusters that touch."""
    random = np.random.default_rng(0)
    return random.normal(size=(n, 6)) + 2 * random.integers(0, 2, size=(n, 6))


def in_a_file(X: Any) -> Any:
    """Return rows as a memory map, which is read in blocks; its file is gone with the process."""
    from sketchmeans.disk import as_source
    from sketchmeans.disk.scratch import scratch_array

    mapped = scratch_array(None, X.shape, X.dtype)
    mapped[:] = X
    return as_source(mapped)


def fitted(
    estimator: str, n: int, folder: str | None, *, in_file: bool = False, **options: Any
) -> str:
    """Fit, to rows in a file if asked, and return a hash of all that was found."""
    import sketchmeans

    X = make_data(n)
    if options.get("kernel") == "precomputed":
        X = X @ X.T
    model = getattr(sketchmeans, estimator)(random_state=0, checkpoint=folder, **options)
    rows = in_a_file(X) if in_file else X
    Told.begun()
    model.fit(rows)
    Told.ended()
    found = hashlib.sha256(repr(getattr(model, "certificate_", None)).encode())
    for name in sorted(vars(model)):
        value = getattr(model, name)
        if isinstance(value, np.ndarray):
            found.update(name.encode() + np.ascontiguousarray(value).tobytes())
    found.update(repr(getattr(model, "inertia_", None)).encode())
    return found.hexdigest()


def certified(n: int, folder: str | None, **options: Any) -> str:
    """Certify clusters that are easily had, and return the certificate."""
    from sketchmeans import certify

    X = make_data(n)
    labels = (X[:, 0] > 1) + 2 * (X[:, 1] > 1)
    Told.begun()
    found = certify(X, labels, random_state=0, checkpoint=folder, **options)
    Told.ended()
    return repr(found)


def _fit(n: int, estimator: str = "KernelKMeans", **options: Any) -> Callable[[str | None], str]:
    return lambda folder: fitted(estimator, n, folder, **options)


def _proof(n: int, **options: Any) -> Callable[[str | None], str]:
    return lambda folder: certified(n, folder, **options)


RBF = {"n_clusters": 5, "kernel": "rbf"}
WORK: dict[str, Callable[[str | None], str]] = {
    "one-pass": _fit(16_000, **RBF, method="one-pass", n_passes=2, n_refine=3),
    "nystrom": _fit(60_000, **RBF, method="nystrom", n_landmarks=300),
    "rpcholesky": _fit(30_000, **RBF, method="rpcholesky", n_landmarks=200),
    "greedy-cholesky": _fit(30_000, **RBF, method="greedy-cholesky", n_landmarks=200),
    "exact": _fit(8_000, **RBF, method="exact"),
    "neighbors": _fit(60_000, n_clusters=5),
    "read": _fit(5_000, n_clusters=5, kernel="precomputed", method="one-pass", n_refine=5),
    "embedding": _fit(14_000, "KernelEmbedding", rank=10, kernel="laplacian", method="one-pass"),
    "full": _fit(10_000, "FullKernelKMeans", n_clusters=6, n_init=3, max_iter=12, init="sketch"),
    "many passes": _fit(
        8_000, "FullKernelKMeans", n_clusters=8, n_init=2, max_iter=20, init="random"
    ),
    "nystrom, in a file": _fit(60_000, **RBF, method="nystrom", n_landmarks=300, in_file=True),
    "one-pass, in a file": _fit(14_000, **RBF, method="one-pass", n_passes=2, in_file=True),
    "neighbors, in a file": _fit(60_000, n_clusters=5, in_file=True),
    "proof of a fit": _fit(4_000, **RBF, certificate="blocks"),
    "blocks": _proof(5_000, kernel="rbf", effort="lifted", block_size=400),
    "one block": _proof(900, kernel="linear", effort="lifted"),
    "triangles": _proof(300, kernel="rbf", effort="triangles"),
}
"""Everything that a checkpoint is offered for."""


@dataclass(frozen=True)
class Outcome:
    """What became of some work that was killed."""

    result: str
    kills: int
    """Times that it was."""
    lost: float
    """Seconds of work that a kill cost, at the most."""
    resumed: int
    """Kills after which there was something to go on from."""


def start(name: str, folder: Path, interval: float) -> subprocess.Popen[str]:
    """Start some work in a process of its own; it says when it begins, and then the result."""
    program = [sys.executable, "-m", "soak.resume", "--work", name, "--folder", str(folder)]
    known = {**os.environ, "SKETCHMEANS_CHECKPOINT_SECONDS": str(interval)}
    root = Path(__file__).parents[1]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=root, env=known)


def killed_and_resumed(
    name: str,
    folder: Path,
    waits: list[float],
    interval: float = INTERVAL,
    *,
    saved_before: bool = False,
) -> Outcome:
    """Kill some work so many seconds after it began, again and again, and let it come to its end.

    With ``saved_before``, so many seconds after it has saved something. Work that ends before it
    would have been killed is not killed any more.
    """
    kills, lost, resumed, listed = 0, 0.0, 0, folder / "checkpoint.skc"
    for wait in waits:
        process = start(name, folder, interval)
        assert process.stdout is not None
        process.stdout.readline()
        began = time.time()
        while saved_before and process.poll() is None and _saved_at(listed) < began:
            time.sleep(0.01)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        ended = time.time()
        said = process.stdout.read().splitlines()
        process.stdout.close()
        if process.returncode == 0:
            return Outcome(said[-1], kills, lost, resumed)
        assert process.returncode == -signal.SIGKILL, process.returncode
        if "ended" in said:
            break  # the work was done, and its checkpoint gone: nothing could be lost
        kills += 1
        saved = _saved_at(listed)
        resumed += saved > 0
        lost = max(lost, ended - max(saved, began))
    process = start(name, folder, interval)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return Outcome(out.splitlines()[-1], kills, lost, resumed)


def _saved_at(listed: Path) -> float:
    """Return when something was saved last; 0 where nothing was."""
    return listed.stat().st_mtime if listed.exists() else 0.0


def work(name: str, folder: str) -> None:
    """Do some work with a checkpoint, and print what came of it."""
    import sketchmeans.estimators  # noqa: F401 - imported before it is said that work begins
    from sketchmeans.checkpoints import stages

    stages.SHARE = 1.0  # a second of work is little to save a twentieth of it
    Told.begun = lambda: print("begun", flush=True)
    Told.ended = lambda: print("ended", flush=True)
    print(WORK[name](folder), flush=True)


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=WORK, help="one kind of work")
    parser.add_argument("--work", choices=WORK, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.folder)
        return 0
    kills = resumed = wrong = 0
    worst = 0.0
    for name, seconds, found, problems in drawn(asked.seed, asked.only):
        kills, resumed = kills + found.kills, resumed + found.resumed
        wrong, worst = wrong + bool(problems), max(worst, found.lost)
        print(
            f"{name}: {seconds:.1f} s, killed {found.kills} times, lost {found.lost:.2f} s at the "
            f"most: {'; '.join(problems) or 'as it should be'}",
            flush=True,
        )
        if kills >= asked.kills:
            break
    print(
        f"{kills} kills, {resumed} with something to go on from; {worst:.2f} s lost at the most, "
        f"where {INTERVAL} s may be, and {SLACK} s of slack; {wrong} wrong."
    )
    return 1 if wrong else 0


def drawn(seed: int, only: str | None = None) -> Iterator[tuple[str, float, Outcome, list[str]]]:
    """Kill work of one kind after the other, for ever; yield what came of it, and what is wrong."""
    random = np.random.default_rng(seed)
    expected: dict[str, tuple[str, float]] = {}
    for turn, name in enumerate(cycle([only] if only else WORK), start=1):
        if name not in expected:
            began = time.perf_counter()
            expected[name] = WORK[name](None), time.perf_counter() - began
        result, seconds = expected[name]
        # From the first moment to the last, and twice in a row now and then.
        waits = [float(random.uniform(0, 1.2 * seconds)) for _ in range(1 + turn % 2)]
        with tempfile.TemporaryDirectory() as place:
            found = killed_and_resumed(name, Path(place) / "checkpoint", waits)
            left = os.listdir(place)
        late = found.lost > INTERVAL + SLACK
        told = ((found.result != result, "other bits"), (bool(left), f"left {left}"))
        told = (*told, (late, f"{found.lost:.2f} s lost"))
        problems = [f"{name}: {text}" for is_so, text in told if is_so]
        yield name, seconds, found, problems


def soaked(seed: int, count: int) -> Cases:
    """Kill work so many times; each time is a case, and what ended before it was killed is none."""
    kills = 0
    for name, _, found, problems in drawn(seed):
        for _ in range(found.kills):
            yield name, problems
            problems = []  # they are told once
        kills += found.kills
        if not found.kills and problems:
            yield f"{name}, not killed", problems
        if kills >= count:
            return


CHECKS = {"fits and proofs that are killed and go on": Check(50, soaked)}


if __name__ == "__main__":
    sys.exit(main())
