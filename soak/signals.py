"""Fits that are interrupted: by SIGINT or SIGTERM at a random moment, and under joblib's backends.

After SIGINT the same process fits again: the same bits, no thread left, BLAS with the threads that
it had. SIGTERM ends a process at once. Under joblib a fit has the bits of the main thread.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from soak.running import Cases, Check
from soak.threads import library_threads, make_jobs

PATIENCE = 60.0
"""Seconds for a fit that is undisturbed."""
ANSWER = 5.0
"""Seconds in which a signal must be answered; the machine may be busy."""
BACKENDS = ("loky", "threading", "multiprocessing")

FITS = r"""
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # under ``nohup`` it would be ignored
from soak.threads import library_threads, make_jobs
jobs = make_jobs()
job = jobs[sys.argv[1]]
before = library_threads()
wanted = job()
threads = threading.active_count()
print("ready", flush=True)
try:
    while True:
        job()
except KeyboardInterrupt:
    stopped = time.monotonic()
print("stopped", flush=True)
if job() != wanted:
    sys.exit("has other bits after an interrupt")
if library_threads() != before:
    sys.exit(f"libraries had {before} threads, and have {library_threads()} after an interrupt")
deadline = time.monotonic() + 5
while threading.active_count() > threads and time.monotonic() < deadline:
    time.sleep(0.01)
if threading.active_count() > threads:
    sys.exit(f"threads were left: {[thread.name for thread in threading.enumerate()]}")
"""


def _started(job: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", FITS, job],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout is not None
    process.stdout.readline()  # "ready"
    return process


def interrupted(seed: int, count: int) -> Cases:
    """Interrupt fits of every kind at random moments."""
    random = np.random.default_rng(seed)
    names = list(make_jobs())
    for index in range(count):
        name = names[int(random.integers(len(names)))]
        number = signal.SIGINT if index % 3 else signal.SIGTERM
        process = _started(name)
        time.sleep(float(random.uniform(0, 0.5)))
        process.send_signal(number)
        start = time.monotonic()
        wrong = []
        try:
            if number == signal.SIGTERM:
                code, error = process.wait(ANSWER), ""
                if code != -signal.SIGTERM:
                    wrong.append(f"{name}: ended with {code} after SIGTERM")
            else:
                assert process.stdout is not None
                process.stdout.readline()  # "stopped"
                if time.monotonic() - start > ANSWER:
                    wrong.append(f"{name}: took {time.monotonic() - start:.1f} s to stop")
                _, error = process.communicate(timeout=PATIENCE)
                if process.returncode:
                    wrong.append(f"{name}: {error.strip()[-600:]}")
        except subprocess.TimeoutExpired:
            wrong.append(f"{name}: hangs after {number.name}")
            process.kill()
            process.communicate()
        yield number.name, [f"{text} (seed {seed}, case {index})" for text in wrong]


def _one(name: str) -> str:
    return make_jobs()[name]()


def under_joblib(seed: int, count: int) -> Cases:
    """Run fits under every backend of joblib, four at a time."""
    random = np.random.default_rng(seed)
    jobs = make_jobs()
    before = library_threads()
    for index in range(count):
        backend = BACKENDS[index % len(BACKENDS)]
        names = [str(name) for name in random.choice(list(jobs), 4)]
        found = Parallel(2, backend=backend)(delayed(_one)(name) for name in names)
        wrong = [
            f"{backend}: {name} has other bits"
            for name, value in zip(names, found, strict=True)
            if value != jobs[name]()
        ]
        if library_threads() != before:
            wrong.append(f"{backend}: libraries have {library_threads()} threads, had {before}")
        yield backend, wrong


def killed_writers(seed: int, count: int) -> Cases:
    """Kill the command line at random moments: each file is there whole, or not at all."""
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = np.random.default_rng(0).normal(size=(300, 3))
        np.savetxt(folder / "data.csv", data, delimiter=",", header="a,b,c", comments="")
        command = [sys.executable, "-m", "sketchmeans", "cluster", "data.csv", "-k", "3", "--seed"]
        command += ["0", "-o", "labels.csv", "--save", "model.skm", "--report", "report.html"]
        start = time.monotonic()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        took = time.monotonic() - start
        files = ("labels.csv", "model.skm", "report.html")
        wanted = {name: (folder / name).read_bytes() for name in ("labels.csv",)}
        for index in range(count):
            for name in files:
                (folder / name).unlink(missing_ok=True)
            number = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[index % 3]
            # The last third of the time is where files are written.
            pause = took * float(random.uniform(0.5, 1.05))
            process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(pause)
            process.send_signal(number)
            wrong = []
            try:
                process.wait(ANSWER)
            except subprocess.TimeoutExpired:
                wrong.append(f"{number.name}: the command hangs")
                process.kill()
                process.wait()
            there = {path.name for path in folder.iterdir()}
            left = there - set(files) - {"data.csv"}
            if number != signal.SIGKILL and left:  # nobody can tidy up after SIGKILL
                wrong.append(f"{number.name}: left {sorted(left)}")
            for name in left:
                (folder / name).unlink()
            wrong += _damaged(folder, there & set(files), wanted)
            yield number.name, [f"{text} (seed {seed}, case {index})" for text in wrong]


def _damaged(folder: Path, there: set[str], wanted: dict[str, bytes]) -> list[str]:
    """Return files that are there and not whole."""
    from sketchmeans import load

    wrong = []
    for name in there:
        content = (folder / name).read_bytes()
        if name in wanted and content != wanted[name]:
            wrong.append(f"{name} has {len(content)} bytes of {len(wanted[name])}")
        if name.endswith(".skm"):
            try:
                load(folder / name)
            except ValueError as error:
                wrong.append(f"{name}: {error}")
        if name.endswith(".html") and not content.rstrip().endswith(b"</html>"):
            wrong.append(f"{name} is cut")
    return wrong


CHECKS = {
    "interrupted fits": Check(300, interrupted),
    "fits under joblib": Check(60, under_joblib),
    "commands that are killed": Check(150, killed_writers),
}
if not hasattr(os, "fork"):
    del CHECKS["interrupted fits"]  # signals as these are POSIX's
