"""The native Walsh–Hadamard transform against SciPy's DCT, and batches on two threads.

One column of 2^16 and of 2^20 numbers, float32, one thread; then batches of such columns, on one
thread and on two. The gain of a second thread is promised for a batch that the outermost cache
holds. Larger ones are read from memory and written to it twice; each batch is also negated in
place, which is nothing but such traffic, once. The faster one thread is, the less there is to
gain, so the time on two threads is held to a promise of its own, for every batch. ::

    python -m benchmarks.transform_speed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy.fft import dct

from benchmarks.timing import Report, Target, interleaved, need_native, on, standalone
from sketchmeans.blocks import row_blocks
from sketchmeans.engine import Crew, fwht
from sketchmeans.engine.native import aligned_zeros, compiled

SIZES = (16, 20)
BATCHES = ((16, 64), (16, 128), (16, 256), (20, 4), (20, 16))
PROMISED = (16, 64)
NUMBERS = 1 << 28
"""That a turn transforms, in as many calls as it takes."""
ONE_THREAD, GAIN = 1.2, 1.7
"""Nanoseconds an element that one thread may take, and what a second one should gain."""

Way = Callable[[int], object]


def column(bits: int) -> dict[str, float]:
    """Return nanoseconds an element of the transform of one column, by everyone."""
    # Zeros: a transform in place, again and again, would overflow with anything else.
    numbers, flat = (aligned_zeros((1 << bits, 1), np.float32) for _ in range(2))
    seconds = interleaved(
        {
            "native": lambda: compiled().transform(numbers),
            "NumPy": on("numpy", lambda: fwht(numbers)),
            "SciPy's DCT": lambda: dct(flat[:, 0], overwrite_x=True),
        },
        calls=10,
    )
    return {name: 1e9 * value / numbers.size for name, value in seconds.items()}


def negate(batch: np.ndarray, n_threads: int) -> None:
    """Negate the batch in place: every number read and written once."""
    with Crew(n_threads, blas=False) as crew:
        crew.each(
            lambda rows: np.negative(batch[rows], out=batch[rows]),
            row_blocks(len(batch), len(batch) // 8),
        )


def ways_of(bits: int, columns: int) -> dict[str, Way]:
    """Return what is done to a batch, by a number of threads."""
    batch = aligned_zeros((1 << bits, columns), np.float32)
    return {
        "transform": lambda threads: fwht(batch, n_threads=threads, overwrite=True),
        "negation": lambda threads: negate(batch, threads),
    }


def gains(ways: Mapping[str, Way], numbers: int) -> dict[str, tuple[float, float]]:
    """Return nanoseconds a number of a batch, on one thread and on two, for each way."""
    tasks = {(name, k): partial(way, k) for name, way in ways.items() for k in (1, 2)}
    seconds = interleaved(tasks, repeats=10, calls=NUMBERS // numbers)
    each = {task: 1e9 * value / numbers for task, value in seconds.items()}
    return {name: (each[name, 1], each[name, 2]) for name in ways}


def main() -> Report:
    need_native()
    report, targets = Report(), []
    columns = {bits: column(bits) for bits in SIZES}
    header = ["ns an element, float32", *columns[SIZES[0]]]
    report.table(header, [[f"2^{bits}", *times.values()] for bits, times in columns.items()])
    for bits, times in columns.items():
        name = f"transform at 2^{bits}"
        targets += [
            Target(name, times["native"], ONE_THREAD, "ns an element", at_most=True),
            Target(f"{name} against SciPy's DCT", times["SciPy's DCT"] / times["native"], 5),
        ]
    rows, slowest = [], 0.0
    for bits, width in BATCHES:
        found = gains(ways_of(bits, width), width << bits)
        rows.append([f"2^{bits} × {width}", f"{(4 * width << bits) >> 20} MB"])
        for one, two in found.values():
            rows[-1] += [one, two, one / two]
        one, two = found["transform"]
        slowest = max(slowest, two)
        if (bits, width) == PROMISED:
            targets.append(Target("batch of transforms, two threads", one / two, GAIN))
    name, limit = "slowest batch on two threads", ONE_THREAD / GAIN
    targets.append(Target(name, slowest, limit, "ns an element", at_most=True))
    header = ["ns an element, float32", "batch"]
    for way in ("transform", "negation"):
        header += [way, f"{way}, two threads", "gain"]
    report.table(header, rows)
    return report.conclude(targets)


if __name__ == "__main__":
    standalone(main)
