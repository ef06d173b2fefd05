"""The constants of the native engine: when BLAS takes over, sides of tiles, shared transforms.

Three tables: a pass with dot products from packed panels and from BLAS, by the number of features;
a pass with tiles of several sides, on one thread and on two, for a few n; and a transform on one
thread and on two, by its size. ::

    python -m benchmarks.native_switches
"""

from __future__ import annotations

from unittest import mock

import numpy as np

from benchmarks.data import median_rbf, noisy_blobs
from benchmarks.timing import Report, interleaved, standalone
from benchmarks.transform_speed import gains, ways_of
from sketchmeans.engine import hadamard, native_tile_rows
from sketchmeans.engine.run import Run
from sketchmeans.kernels import Gaussian
from sketchmeans.operators import DataOperator, tiles
from sketchmeans.operators import base as operators
from sketchmeans.sketches import HadamardSketch

FEATURES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
SIZES = (500, 2000, 6000, 20_480)
SIDES = (64, 128, 192, 320, 640, 960, 1280)
BATCHES = ((12, 64), (16, 8), (16, 16), (16, 32), (16, 64), (20, 1), (20, 2), (20, 4))
NEVER = 1 << 30


def wide(dtype: str) -> list[list[object]]:
    """Return a row per number of features: milliseconds from panels, from BLAS, and the gain."""
    n, rows = 2560, []
    for p in FEATURES:
        X = np.random.default_rng(0).normal(size=(n, p)).astype(dtype)
        operator, sketch = DataOperator(X, Gaussian(0.5 / p)), HadamardSketch(n, 36, seed=0)

        def run(least: int, operator=operator, sketch=sketch) -> None:
            with mock.patch.object(tiles, "WIDE", {4: least, 8: least}):
                operator.multiply(sketch)

        seconds = interleaved({"panels": lambda: run(NEVER), "blas": lambda: run(1)})
        gain = seconds["panels"] / seconds["blas"]
        rows.append([dtype, p, 1e3 * seconds["panels"], 1e3 * seconds["blas"], f"{gain:.2f}×"])
    return rows


def sides(dtype: str, n: int) -> list[object]:
    """Return a cell a side: milliseconds on one thread, on two, and their ratio."""
    X = noisy_blobs(n, 20, dtype)
    operator, sketch = DataOperator(X, median_rbf(X)), HadamardSketch(n, 12, seed=0)
    cells: list[object] = [dtype, n]
    for side in SIDES:
        with (
            mock.patch.object(tiles, "native_tile_rows", lambda n, side=side: side),
            mock.patch.object(operators, "native_tile_rows", lambda n, side=side: side),
        ):
            seconds = interleaved(
                {
                    "one": lambda: operator.multiply(sketch, Run(1)),
                    "two": lambda: operator.multiply(sketch, Run(2)),
                }
            )
        one, two = 1e3 * seconds["one"], 1e3 * seconds["two"]
        taken = " (taken)" if side == native_tile_rows(n) else ""
        cells.append(f"{one:.0f}, {two:.0f}: {one / two:.2f}×{taken}")
    return cells


def shared(bits: int, columns: int) -> list[object]:
    """Return a row: microseconds of a transform on one thread, on two, and their ratio."""
    numbers, transform = columns << bits, ways_of(bits, columns)["transform"]
    with mock.patch.object(hadamard, "SHARED", 0):
        one, two = gains({"transform": transform}, numbers)["transform"]
    cells = [one * numbers / 1e3, two * numbers / 1e3, f"{one / two:.2f}×"]
    return [f"2^{bits} × {columns}", numbers >> 10, *cells]


def main() -> Report:
    report = Report()
    rows = [row for dtype in ("float32", "float64") for row in wide(dtype)]
    report.table(["ms a pass, n = 2560", "features", "panels", "BLAS", "gain of BLAS"], rows)
    print(f"WIDE is {tiles.WIDE}.\n")
    rows = [sides(dtype, n) for dtype in ("float32", "float64") for n in SIZES]
    report.table(["ms on 1 thread, on 2: gain", "n", *(f"side {side}" for side in SIDES)], rows)
    header = ["µs a transform, float32", "Ki numbers", "one thread", "two threads", "gain"]
    report.table(header, [shared(*batch) for batch in BATCHES])
    print(f"Threads share a transform from {hadamard.SHARED >> 10} Ki numbers on.\n")
    return report.conclude([])


if __name__ == "__main__":
    standalone(main)
