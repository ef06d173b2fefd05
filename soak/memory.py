"""Anonymous memory against ``memory_limit``: every method, kernel, truncation, sampling, precision.

Each case is asked for the least limit that is not refused, and fitted with it: the peak of what the
process holds must stay below what was planned, and that below the limit. Every two options that go
together come together in some case. What measures is shared with ``tests/test_memory_limits.py``,
which has the cases that were wrong once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sketchmeans.estimators.full import INITS
from sketchmeans.lowrank import METHODS
from soak.running import Cases, Check

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import test_memory_limits

Case = dict[str, Any]

BATCH = 40
"""Cases that one process measures, one after the other."""
CANDIDATES = 60
"""Cases of which the one is taken that has most pairs of options that were not together yet."""
DATA = ("many", "narrow", "float32", "whole numbers", "thousands", "few", "sparse")
GIVEN = ("precomputed", "graph", "communities")
KERNELS = ("linear", "polynomial", "rbf", "laplacian", "cosine", "sigmoid", "neighbors")
LARGE = ("many", "narrow", "float32", "whole numbers")
"""Data of 12,000 samples: a pass over their kernel takes long without a feature map."""
OPTIONS = (
    *("method", "kernel", "data", "sketch", "truncation", "n_passes", "precision", "n_refine"),
    *("weighted", "init"),
)
"""What is brought together; ranks and numbers of clusters are drawn beside."""


def drawn(random: np.random.Generator) -> Case:
    """Draw a case as ``tests/test_memory_limits.py`` writes them."""
    kernel, data = str(random.choice(KERNELS)), str(random.choice(DATA))
    if kernel == "neighbors":
        case: Case = {"kernel": kernel, "data": data, "rank": int(random.integers(2, 30)), "k": 6}
        return case | ({"weighted": True} if random.random() < 0.3 else {})
    method = str(random.choice([*METHODS, "full"]))
    if random.random() < 0.15:
        kernel, data = "precomputed", str(random.choice(GIVEN))
    by_tiles = kernel not in ("linear", "polynomial") or data == "whole numbers"
    if data in LARGE and by_tiles and method in ("one-pass", "exact", "full"):
        data = "thousands"
    case = {"kernel": kernel, "data": data, "k": int(random.integers(2, 20))}
    if random.random() < 0.3:
        case["weighted"] = True
    if random.random() < 0.3:
        case["precision"] = str(random.choice(["float32", "float64"]))
    if method == "full":
        return case | {"init": str(random.choice(INITS)), "max_iter": 2}
    case |= {"method": method, "rank": int(random.integers(5, 60))}
    reads = METHODS[method].reads
    if METHODS[method].sketches:
        sketches = list(METHODS[method].sketches)
        if data in LARGE and "column-norm" in sketches:
            sketches.remove("column-norm")  # takes a pass over K, feature map or not
        if kernel == "precomputed" and "kmeans" in sketches:
            sketches.remove("kmeans")
        case["sketch"] = str(random.choice(sketches))
    if "truncation" in reads:
        case["truncation"] = str(random.choice(["late", "early"]))
    if "n_passes" in reads and data != "sparse":
        case["n_passes"] = int(random.integers(1, 3))
    if random.random() < 0.3 and not (data in LARGE and by_tiles):
        case["n_refine"] = 2
    return case


def pairs(case: Case) -> set[tuple[tuple[str, Any], tuple[str, Any]]]:
    """Return every two options of a case, those that are left at their default among them."""
    return set(combinations([(name, case.get(name)) for name in OPTIONS], 2))


def spread(seed: int, count: int) -> Iterator[Case]:
    """Draw cases that soon bring every two options together."""
    random = np.random.default_rng(seed)
    met: set[tuple[tuple[str, Any], tuple[str, Any]]] = set()
    for _ in range(count):
        candidates = [drawn(random) for _ in range(CANDIDATES)]
        case = max(candidates, key=lambda one: len(pairs(one) - met))
        met |= pairs(case)
        yield case


def measured(cases: list[Case]) -> Iterator[tuple[list[int], str]]:
    """Yield peak, plan and limit of each case as it comes, or why there are none.

    They come from a process of their own, or from several if one ends before its time.
    """
    while cases:
        process = subprocess.Popen(
            [sys.executable, "-c", test_memory_limits.MEASURE],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with process:
            process.stdin.write(json.dumps(cases))
            process.stdin.close()
            for line in process.stdout:
                cases = cases[1:]
                yield json.loads(line), ""
            error = process.stderr.read()
        if cases:
            cases = cases[1:]
            yield [], f"ended with {process.returncode}: {error.strip()[-800:]}"


def limited(seed: int, count: int) -> Cases:
    """Draw cases and measure them."""
    cases = list(spread(seed, count))
    for start in range(0, count, BATCH):
        batch = cases[start : start + BATCH]
        for index, (case, (sizes, error)) in enumerate(zip(batch, measured(batch), strict=True)):
            wrong = [error] if error else []
            if sizes and not 0 < sizes[0] <= sizes[1] <= sizes[2]:
                told = " / ".join(f"{size / 1e6:.1f}" for size in sizes)
                wrong = [f"peak / plan / limit {told} MB"]
            where = f"{case} (seed {seed}, case {start + index})"
            yield case["kernel"], [f"{text}: {where}" for text in wrong]


CHECKS = {"peak against limit": Check(400, limited)}
