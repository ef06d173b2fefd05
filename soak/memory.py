"""Anonymous memory against ``memory_limit``: every method, kernel, truncation, sampling, precision.

Each case is asked for the least limit that is not refused, and fitted with it: the peak of what the
process holds must stay below what was planned, and that below the limit. What
measures is shared with ``tests/test_memory_limits.py``, which has the cases that were wrong once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.lowrank import METHODS
from soak.running import Cases, Check

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import test_memory_limits

BATCH = 12
"""Cases that one process measures, one after the other."""
DATA = ("many", "narrow", "float32", "whole numbers", "thousands", "few", "sparse")
KERNELS = ("linear", "polynomial", "rbf", "laplacian", "cosine", "sigmoid", "neighbors")
LARGE = ("many", "narrow", "float32", "whole numbers")
"""Data of 20,000 samples: a pass over their kernel would take a minute without a feature map."""


def drawn(random: np.random.Generator) -> dict[str, Any]:
    """Draw a case as ``tests/test_memory_limits.py`` writes them."""
    kernel, data = str(random.choice(KERNELS)), str(random.choice(DATA))
    if kernel == "neighbors":
        return {"kernel": kernel, "data": data, "rank": int(random.integers(2, 30)), "k": 6}
    method = str(random.choice(list(METHODS)))
    reads = METHODS[method].reads
    by_tiles = kernel not in ("linear", "polynomial") or data == "whole numbers"
    if data in LARGE and by_tiles and method in ("one-pass", "exact"):
        data = "thousands"
    if random.random() < 0.15:
        kernel, data = "precomputed", str(random.choice(["precomputed", "graph", "communities"]))
    case: dict[str, Any] = {"method": method, "kernel": kernel, "data": data}
    case["rank"] = int(random.integers(5, 60))
    case["k"] = int(random.integers(2, 20))
    if METHODS[method].sketches:
        sketches = [one for one in METHODS[method].sketches if one != "column-norm"]
        if kernel == "precomputed":
            sketches = [one for one in sketches if one != "kmeans"]
        case["sketch"] = str(random.choice(sketches))
    if "truncation" in reads:
        case["truncation"] = str(random.choice(["late", "early"]))
    if "n_passes" in reads and case["data"] != "sparse":
        case["n_passes"] = int(random.integers(1, 3))
    if random.random() < 0.3:
        case["weighted"] = True
    if random.random() < 0.3:
        case["precision"] = str(random.choice(["float32", "float64"]))
    if random.random() < 0.3 and not (data in LARGE and by_tiles):
        case["n_refine"] = 2
    return case


def measured(cases: list[dict[str, Any]]) -> list[list[int]]:
    """Return peak, plan and limit of each case, from a process of their own."""
    out = subprocess.run(
        [sys.executable, "-c", test_memory_limits.MEASURE],
        input=json.dumps(cases),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    found = [json.loads(line) for line in out.stdout.splitlines()]
    if len(found) != len(cases):
        raise RuntimeError(f"{cases[len(found)]}: {out.stderr[-800:]}")
    return found


def limited(seed: int, count: int) -> Cases:
    """Draw cases and measure them."""
    random = np.random.default_rng(seed)
    for start in range(0, count, BATCH):
        cases = [drawn(random) for _ in range(min(BATCH, count - start))]
        try:
            found = measured(cases)
        except RuntimeError as error:
            yield "", [f"batch {start} (seed {seed}): {error}"]
            continue
        for case, (peak, planned, limit) in zip(cases, found, strict=True):
            wrong = []
            if not 0 < peak <= planned <= limit:
                sizes = " / ".join(f"{size / 1e6:.1f}" for size in (peak, planned, limit))
                wrong = [f"peak / plan / limit {sizes} MB: {case} (seed {seed})"]
            yield case["kernel"], wrong


CHECKS = {"peak against limit": Check(600, limited)}
