"""The parts of one NumPy tile, thin products whole and in slabs, and the side of a tile by threads.

Three tables: nanoseconds an entry of the parts of a tile on one thread; the two thin products of
a tile by ``T @ right`` and by ``thin_product``, for several widths; and a pass with tiles of
several sides, on one thread and on two, for a few n. ::

    python -m benchmarks.tile_parts
"""

from __future__ import annotations

import os
from unittest import mock

import numpy as np

from benchmarks.data import median_rbf, noisy_blobs
from benchmarks.timing import Report, interleaved, standalone
from sketchmeans.engine import Crew, passes, tile_rows
from sketchmeans.engine.native import VARIABLE
from sketchmeans.engine.run import Run
from sketchmeans.operators import DataOperator
from sketchmeans.sketches import HadamardSketch

FEATURES, WIDTH = 20, 12
SIZES = (2000, 6000, 16_384)
SIDES = (64, 128, 256, 512, 640, 768)
WIDTHS = (13, 25, 37, 61)
PRECISIONS = ("float32", "float64")
CALLS = 40


def operator_of(n: int, dtype: str) -> DataOperator:
    """Return the kernel of this benchmark."""
    X = noisy_blobs(n, FEATURES, dtype)
    return DataOperator(X, median_rbf(X))


def parts(operator: DataOperator, side: int) -> list[float]:
    """Return nanoseconds an entry of the product, the exponential and the sum of squares."""
    points, kernel = operator.points, operator.kernel
    rows, columns = slice(0, side), slice(side, 2 * side)
    scratch = np.empty((side, side), operator.dtype)
    argument = points.statistics(rows, points, columns, scale=kernel.scale)
    T = np.exp(argument)
    tasks = {
        "product": lambda: points.statistics(
            rows, points, columns, scale=kernel.scale, out=scratch
        ),
        "exp": lambda: np.exp(argument, out=scratch),
        "squares": lambda: np.vecdot(T, T),
    }
    points.pack()
    with Crew(1):
        seconds = interleaved(tasks, calls=CALLS)
    points.unpack()
    return [1e9 * value / side**2 for value in seconds.values()]


def thin(operator: DataOperator, side: int, width: int) -> tuple[float, float]:
    """Return nanoseconds an entry of both thin products of a tile: whole, and in slabs."""
    T = operator.tile(slice(0, side), slice(side, 2 * side))
    right = np.ones((side, width), operator.dtype)
    tasks = {
        "whole": lambda: (T @ right, T.T @ right),
        "slabs": lambda: (passes.thin_product(T, right), passes.thin_product(T.T, right)),
    }
    with Crew(1):
        seconds = interleaved(tasks, calls=CALLS)
    return 1e9 * seconds["whole"] / side**2, 1e9 * seconds["slabs"] / side**2


def pass_of_side(operator: DataOperator, side: int) -> tuple[float, float]:
    """Return the seconds of a pass with tiles of this side, on one thread and on two."""
    sketch = HadamardSketch(operator.shape[0], WIDTH, seed=0)
    with mock.patch.object(passes, "tile_rows", return_value=side):
        seconds = interleaved(
            {
                "one": lambda: operator.multiply(sketch, Run(1)),
                "two": lambda: operator.multiply(sketch, Run(2)),
            }
        )
    return seconds["one"], seconds["two"]


def scaling(operator: DataOperator) -> list[str]:
    """Return a cell a side: milliseconds on one thread, on two, and their ratio."""
    cells = []
    for side in SIDES:
        one, two = pass_of_side(operator, side)
        taken = " (taken)" if side == tile_rows(operator.shape[0]) else ""
        cells.append(f"{1000 * one:.0f}, {1000 * two:.0f}: {one / two:.2f}×{taken}")
    return cells


def main() -> Report:
    os.environ[VARIABLE] = "numpy"  # these are the parts of a NumPy tile
    report = Report()
    operators = {dtype: operator_of(SIZES[-1], dtype) for dtype in PRECISIONS}
    cases = [(dtype, side) for dtype in PRECISIONS for side in (256, 512)]
    rows = [[dtype, side, *parts(operators[dtype], side)] for dtype, side in cases]
    report.table(["ns an entry", "side", "product", "exp", "sum of squares"], rows)

    rows = []
    for dtype, side in cases:
        for width in WIDTHS:
            whole, slabs = thin(operators[dtype], side, width)
            rows.append([dtype, side, width, whole, slabs, f"{whole / slabs:.2f}×"])
    report.table(["ns an entry", "side", "columns", "whole", "in slabs", "gain"], rows)

    rows = [[dtype, n, *scaling(operator_of(n, dtype))] for dtype in PRECISIONS for n in SIZES]
    header = ["ms on 1 thread, on 2: gain", "n", *(f"side {side}" for side in SIDES)]
    report.table(header, rows)
    return report.conclude([])


if __name__ == "__main__":
    standalone(main)
