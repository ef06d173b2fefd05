"""The native Walsh–Hadamard transform against SciPy's DCT, and a batch on two threads.

One column of 2^16 and of 2^20 numbers, float32, one thread; then 256 columns of 2^16, on one
thread and on two. The batch is 64 MB and is read and written more than once, so the same batch is
also negated in place, which is nothing but memory traffic: what two threads gain there is what
the machine's memory allows. ::

    python -m benchmarks.transform_speed
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct

from benchmarks.timing import Report, Target, interleaved, need_native, on, standalone
from sketchmeans.engine import Crew, fwht, grid
from sketchmeans.engine.native import compiled

SIZES = (16, 20)
BATCH_BITS, BATCH = 16, 256


def column(bits: int) -> dict[str, float]:
    """Return nanoseconds an element of the transform of one column, by everyone."""
    # Zeros: a transform in place, again and again, would overflow with anything else.
    numbers = np.zeros((1 << bits, 1), np.float32)
    flat = numbers[:, 0].copy()
    seconds = interleaved(
        {
            "native": lambda: compiled().transform(numbers),
            "NumPy": on("numpy", lambda: fwht(numbers)),
            "SciPy's DCT": lambda: dct(flat, overwrite_x=True),
        },
        calls=10,
    )
    return {name: 1e9 * value / numbers.size for name, value in seconds.items()}


def negate(batch: np.ndarray, n_threads: int) -> None:
    """Negate the batch in place: every number read and written once."""
    with Crew(n_threads) as crew:
        crew.each(
            lambda rows: np.negative(batch[rows], out=batch[rows]),
            grid(len(batch), len(batch) // 8),
        )


def batches() -> dict[str, float]:
    """Return nanoseconds an element of a batch, on one thread and on two."""
    batch = np.zeros((1 << BATCH_BITS, BATCH), np.float32)
    seconds = interleaved(
        {
            "transform": lambda: fwht(batch, overwrite=True),
            "transform, two threads": lambda: fwht(batch, n_threads=2, overwrite=True),
            "negation": lambda: negate(batch, 1),
            "negation, two threads": lambda: negate(batch, 2),
        }
    )
    return {name: 1e9 * value / batch.size for name, value in seconds.items()}


def main() -> Report:
    need_native()
    report, targets = Report(), []
    columns = {bits: column(bits) for bits in SIZES}
    header = ["ns an element, float32", *columns[SIZES[0]]]
    report.table(header, [[f"2^{bits}", *times.values()] for bits, times in columns.items()])
    for bits, times in columns.items():
        name = f"transform at 2^{bits}"
        targets += [
            Target(name, times["native"], 1.2, "ns an element", at_most=True),
            Target(f"{name} against SciPy's DCT", times["SciPy's DCT"] / times["native"], 5),
        ]
    times = batches()
    name = f"ns an element, batch of {BATCH} columns of 2^{BATCH_BITS}"
    gains = {way: times[way] / times[f"{way}, two threads"] for way in ("transform", "negation")}
    report.table(
        [name, "one thread", "two threads", "gain"],
        [[way, times[way], times[f"{way}, two threads"], gain] for way, gain in gains.items()],
    )
    targets.append(Target("batch of transforms, two threads", gains["transform"], 1.7))
    return report.conclude(targets)


if __name__ == "__main__":
    standalone(main)
