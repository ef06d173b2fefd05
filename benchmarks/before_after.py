"""Whether a change costs speed: a pass and a fit of two trees, in turns, in one run.

``python -m benchmarks.before_after BEFORE AFTER`` takes the Python of two environments, each with
its own sketchmeans installed, runs the same tasks in fresh processes of both in turns, and prints
the median of before over after: below 0.95 something was lost.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess

TASKS = """
import json, time, warnings
import numpy as np
from sketchmeans import FullKernelKMeans, KernelKMeans
from sketchmeans.kernels import Gaussian
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import make_sketch

try:
    from sketchmeans.engine import Run
    two = {"run": Run(2)}
except ImportError:  # a tree from before there was one
    two = {"n_threads": 2}

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(16_000, 20)).astype(np.float32)
operator, sketch = DataOperator(X, Gaussian(0.02)), make_sketch("hadamard", 16_000, 12, 0)
tasks = {
    "pass, 16,000 samples": lambda: operator.multiply(sketch, **two),
    "pass, 2,000 samples": lambda: small.multiply(few, **two),
    "fit, 16,000 samples": lambda: KernelKMeans(8, random_state=0, n_jobs=2).fit(X),
    "fit, 2,000 samples": lambda: KernelKMeans(8, random_state=0, n_jobs=2).fit(X[:2000]),
    "fit, 300 samples": lambda: KernelKMeans(8, random_state=0, n_jobs=2).fit(X[:300]),
    "Nyström fit, 16,000 samples": lambda: KernelKMeans(
        8, method="nystrom", random_state=0, n_jobs=2
    ).fit(X),
    "refined fit, 8,000 samples": lambda: KernelKMeans(
        8, n_passes=2, n_refine=1, random_state=0, n_jobs=2
    ).fit(X[:8000]),
    "full, 1,000 samples": lambda: FullKernelKMeans(
        8, n_init=2, random_state=0, n_jobs=2
    ).fit(X[:1000]),
}
small, few = DataOperator(X[:2000], Gaussian(0.02)), make_sketch("hadamard", 2000, 12, 0)
taken = {}
for name, task in tasks.items():
    task()
    times = []
    while len(times) < 3 or sum(times) < 0.5:
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    taken[name] = min(times)
print(json.dumps(taken))
"""


def measure(python: str) -> dict[str, float]:
    """Return the seconds of every task in a fresh process, the best of half a second."""
    run = subprocess.run([python, "-c", TASKS], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--turns", type=int, default=5)
    asked = parser.parse_args()
    turns = [(measure(asked.before), measure(asked.after)) for _ in range(asked.turns)]
    for name in turns[0][0]:
        ratios = [before[name] / after[name] for before, after in turns]
        seconds = statistics.median(after[name] for _, after in turns)
        ratio = statistics.median(ratios)
        print(f"{name:32s} {seconds:8.4f} s   before / after {ratio:.2f}")


if __name__ == "__main__":
    main()
