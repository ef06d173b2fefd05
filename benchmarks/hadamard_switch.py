"""From what width the fast transform beats the product with explicit rows of a Hadamard sketch.

Both on one thread. "Pushed" are batches of 256 columns as ``ColumnStream`` gets them, "read" the
panels of whole rows in which a stored kernel is read. A gain above 1 means that the transform is
faster. The last n is not a power of two: there the transform pays for the padding. ::

    python -m benchmarks.hadamard_switch [--brief]
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.timing import Report, Target, interleaved, standalone
from sketchmeans.engine import Crew, engine_name
from sketchmeans.engine.passes import strip_rows
from sketchmeans.sketches import FWHT_MIN_WIDTH, HadamardSketch, Sketch

SIZES = (4096, 16_384, 65_536, 40_000)
WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
STEP = 64
TOLERATED = 1.5


def columns_of(n: int, dtype: str, way: str) -> np.ndarray:
    """Return columns of some kernel, in the layout in which the sketch gets them."""
    random = np.random.default_rng(0)
    if way == "pushed":
        return random.standard_normal((n, 256)).astype(dtype)
    return random.standard_normal((strip_rows(n), n)).astype(dtype).T


def gains(columns: np.ndarray, widths: tuple[int, ...], repeats: int) -> list[float]:
    """Return seconds of explicit rows over seconds of the transform, for every width."""
    found = []
    for width in widths:
        sketch = HadamardSketch(len(columns), width, seed=0)
        np.testing.assert_allclose(
            sketch.apply_by_transform(columns), Sketch.apply(sketch, columns), rtol=0, atol=0.1
        )
        tasks = {
            "rows": lambda sketch=sketch: Sketch.apply(sketch, columns),
            "transform": lambda sketch=sketch: sketch.apply_by_transform(columns),
        }
        with Crew(1):
            seconds = interleaved(tasks, repeats=repeats)
        found.append(seconds["rows"] / seconds["transform"])
    return found


def crossing(widths: tuple[int, ...], gain: list[float]) -> float:
    """Return the width where the gain passes 1, interpolated between powers of two."""
    last = max((i for i, value in enumerate(gain) if value < 1), default=-1)
    if last in (-1, len(gain) - 1):
        return float(widths[last])
    share = -np.log(gain[last]) / (np.log(gain[last + 1]) - np.log(gain[last]))
    return float(widths[last] * (widths[last + 1] / widths[last]) ** share)


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true", help="one size and few widths")
    brief = parser.parse_args(arguments).brief
    sizes, widths = ((16_384,), (64, 256, 512, 1024)) if brief else (SIZES, WIDTHS)
    report = Report()
    switch = FWHT_MIN_WIDTH[engine_name()]
    rows, recommended, worst = [], {}, 1.0
    for dtype in ("float32", "float64"):
        itemsize = np.dtype(dtype).itemsize
        crossings = []
        for way in ("pushed", "read"):
            for n in sizes:
                columns = columns_of(n, dtype, way)
                gain = gains(columns, widths, repeats=5)
                crossings.append(crossing(widths, gain))
                shown = [f"{value:.2f}" for value in gain]
                rows.append([dtype, way, n, columns.shape[1], *shown, round(crossings[-1])])
                for width, value in zip(widths, gain, strict=True):
                    by_transform = width >= switch[itemsize]
                    worst = max(worst, 1 / value if by_transform else value)
        mean = float(np.exp(np.mean(np.log(crossings))))
        recommended[itemsize] = STEP * round(mean / STEP)
    header = ["", "columns", "n", "batch", *(f"width {width}" for width in widths), "equal at"]
    report.table(header, rows)
    print(
        f"\nFWHT_MIN_WIDTH[{engine_name()!r}] is {switch}; these figures recommend {recommended}."
    )
    name = "sketching of columns, slower than the other way at worst"
    return report.conclude([Target(name, worst, TOLERATED, at_most=True)])


if __name__ == "__main__":
    standalone(main)
