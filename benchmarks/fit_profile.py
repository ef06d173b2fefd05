"""Where the time of a whole fit goes, stage by stage.

RBF, float32, eight clusters under noise, all options left at their defaults. ::

    python -m benchmarks.fit_profile [--n 100000]
"""

from __future__ import annotations

import argparse
import time

from benchmarks.data import noisy_blobs
from benchmarks.timing import Report, Target, standalone
from sketchmeans import KernelKMeans

FEATURES = 20


def fit(n: int) -> tuple[KernelKMeans, float]:
    """Return a fitted model, and the seconds that the fit took."""
    X = noisy_blobs(n, FEATURES, "float32")
    start = time.perf_counter()
    model = KernelKMeans(n_clusters=8, method="one-pass", random_state=0, kernel="rbf").fit(X)
    return model, time.perf_counter() - start


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="samples")
    n = parser.parse_args(arguments).n
    report = Report()
    fit(2000)  # what only the first fit pays for
    model, total = fit(n)
    seconds = model.stats_["seconds"]
    shown = seconds | {"outside the stages": total - sum(seconds.values()), "whole fit": total}
    rows = [[name, f"{value:.2f} s", f"{value / total:.1%}"] for name, value in shown.items()]
    report.table([f"stage, n = {n:,}", "time", "share"], rows)
    print(
        f"\nwidth {model.width_}, {model.stats_['precision']} tiles, "
        f"{model.stats_['n_threads']} threads"
    )
    share = 100 * (seconds["kernel passes"] + seconds["K-means"]) / total
    return report.conclude([Target("passes and K-means of a whole fit", share, 90.0, "%")])


if __name__ == "__main__":
    standalone(main)
