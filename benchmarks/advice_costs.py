"""What advice, report, ``choose`` and ``compare`` cost beside the fit that they are about.

    python -m benchmarks.advice_costs [--rows 1000000 3000000] [--kernel neighbors] [--only report]

Rows of 20 features are fitted; then each is timed, in seconds and over the fit. All look at some
rows, so that what they take does not grow; from three million rows on none should cost more than
the fit, and the advice of ``cluster`` and the report not together either. ``choose`` and
``compare`` have the kernel of the fit; ``compare``, which the neighbours kernel has nothing for,
has rbf.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.data import cores_and_shells
from benchmarks.timing import SEED, Report, Target
from sketchmeans import KernelKMeans, choose, compare
from sketchmeans.advice.guidance import guidance
from sketchmeans.report import write_report

CLUSTERS, FEATURES = 8, 20
STATED = 3_000_000
"""Rows from which docs/out_of_core.md says that none costs more than the fit."""


def tasks(model: Any, X: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by its name."""
    kernel = model.kernel
    compared = "rbf" if kernel == "neighbors" else kernel
    return {
        "advice": lambda: guidance(model, X),
        "report": lambda: write_report(folder / "report.html", model, X, overwrite=True),
        "choose": lambda: choose(X, random_state=SEED),
        "choose, this kernel": lambda: choose(X, kernel=kernel, random_state=SEED),
        "compare": lambda: compare(X, CLUSTERS, kernel=compared, random_state=SEED),
    }


def _seconds(task: Callable[[], Any]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, STATED])
    parser.add_argument("--kernel", default="neighbors")
    parser.add_argument("--only", nargs="+", default=None, help="names of what is timed")
    arguments = parser.parse_args()
    report, targets = Report(), []
    rows: list[list[Any]] = []
    for n in arguments.rows:
        X = cores_and_shells(n, FEATURES, "float32")[0]
        model = KernelKMeans(CLUSTERS, kernel=arguments.kernel, random_state=SEED)
        fit = _seconds(lambda model=model, X=X: model.fit(X))
        rows.append([f"{n:,}", "fit", fit, 1.0])
        shares = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, task in tasks(model, X, Path(folder)).items():
                if arguments.only is None or name in arguments.only:
                    took = _seconds(task)
                    shares[name] = took / fit
                    rows.append([f"{n:,}", name, took, took / fit])
                    print(f"{n:,} {name}: {took:.1f} s, {took / fit:.2f} of the fit", flush=True)
        both = shares.pop("advice", 0.0) + shares.pop("report", 0.0)
        shares = {"advice and report": both, **shares}
        targets += [
            Target(f"{n:,} rows: {name} over the fit", share, 1.0, at_most=True)
            for name, share in shares.items()
            if n >= STATED
        ]
    report.table([f"× {FEATURES}, {arguments.kernel}", "what", "seconds", "over the fit"], rows)
    report.conclude(targets)


if __name__ == "__main__":
    main()
