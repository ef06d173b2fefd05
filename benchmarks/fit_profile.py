"""Where the time of a whole fit goes: RBF, float32, eight clusters, all defaults.

The stage "kernel passes" holds more than the pass itself (the check of W in float64, the recovery
of the factor), so the pass is timed on its own too and the target counts that. ::

    python -m benchmarks.fit_profile [--n 100000]
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest import mock

from benchmarks.data import noisy_blobs
from benchmarks.timing import Target, conclude, facts, table
from sketchmeans import KernelKMeans
from sketchmeans.operators import DataOperator

FEATURES = 20


def fit(n: int) -> tuple[KernelKMeans, float, float]:
    """Return a fitted model, the seconds of the fit, and those of its passes alone."""
    X = noisy_blobs(n, FEATURES, "float32")
    multiply, spent = DataOperator.multiply, 0.0

    def timed(*arguments: Any, **options: Any) -> Any:
        nonlocal spent
        start = time.perf_counter()
        result = multiply(*arguments, **options)
        spent += time.perf_counter() - start
        return result

    with mock.patch.object(DataOperator, "multiply", timed):
        start = time.perf_counter()
        model = KernelKMeans(n_clusters=8, random_state=0).fit(X)
        return model, time.perf_counter() - start, spent


def main(arguments: list[str] | None = None) -> list[Target]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="samples")
    n = parser.parse_args(arguments).n
    print(facts(), "\n")
    fit(2000)  # what only the first fit pays for
    model, total, passes = fit(n)
    stages = dict(model.stats_["seconds"])
    rest = {"of which the pass over K": passes, "outside the stages": total - sum(stages.values())}
    order = ["prepare", "kernel passes", "of which the pass over K", "embed", "K-means"]
    shown = stages | rest
    rows = [
        [name, f"{shown[name]:.2f} s", f"{shown[name] / total:.1%}"]
        for name in [*order, "outside the stages"]
    ]
    rows.append([f"whole fit, n = {n:,}", f"{total:.2f} s", "100 %"])
    print(table(["stage", "time", "share"], rows))
    print(
        f"\nwidth {model.width_}, {model.stats_['precision']} tiles, "
        f"{model.stats_['n_threads']} threads"
    )
    share = 100 * (passes + stages["K-means"]) / total
    return conclude([Target("pass and K-means of a whole fit", share, 85.0, "%")])


if __name__ == "__main__":
    main()
