"""Rows and kernels that are larger than memory: what a fit takes, in time and anonymous memory.

Neighbours and landmarks on float32 rows of 20 features, from a memory map and from Parquet, under
a memory limit, against a tenth of the rows: features are made anew in both, for rows that are
given by their path are always streamed. A precomputed kernel of float32 in a file, read by one
pass, against NumPy reading the file, both cold (as one that is larger than memory is) and both
warm. Memory is anonymous memory (RssAnon) above the
imports, looked at from outside every few milliseconds. The full size needs 12 GB of disk in
``--folder``; with ``--keep`` the page ``docs/benchmarks/out_of_core.md`` is written. ::

    python -m benchmarks.out_of_core [--quick] [--keep] [--folder build]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import ROOT, Failed
from benchmarks.timing import SEED, Report, Target, environment, facts, standalone, table
from sketchmeans import KernelKMeans
from sketchmeans.atomic import write_whole
from sketchmeans.blas import count_threads
from sketchmeans.blocks import row_blocks
from sketchmeans.disk.outputs import npy_file
from sketchmeans.engine import Run
from sketchmeans.lowrank import one_pass
from sketchmeans.operators import PrecomputedOperator
from sketchmeans.sketches import HadamardSketch

ROWS, LIMIT, ORDER = 10_000_000, 1_500_000_000, 44_721
"""Rows, the memory limit, and the order of the precomputed kernel: 8 GB of float32."""
FEATURES, CLUSTERS = 20, 8
KERNELS = {
    "neighbours": {"kernel": "neighbors"},
    "landmarks": {"kernel": "rbf", "method": "nystrom"},
}
PAGE = ROOT / "docs" / "benchmarks" / "out_of_core.md"
EACH = 0.005
"""Seconds between two looks at the memory of a process."""


def blobs(n: int, start: int, centers: np.ndarray) -> np.ndarray:
    """Draw rows of blobs; any block of them can be drawn alone."""
    random = np.random.default_rng([SEED, start])
    rows = random.standard_normal((n, FEATURES), np.float32)
    rows += centers[random.integers(len(centers), size=n)]
    return rows


def write_rows(folder: Path, n: int) -> dict[str, Path]:
    """Write the same rows as a .npy file and as Parquet."""
    import pyarrow
    from pyarrow import parquet

    centers = np.random.default_rng(SEED).uniform(-2, 2, (CLUSTERS, FEATURES)).astype(np.float32)
    files = {"memory map": folder / f"rows-{n}.npy", "Parquet": folder / f"rows-{n}.parquet"}
    names = [f"x{index}" for index in range(FEATURES)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    with (
        npy_file(files["memory map"], (n, FEATURES), np.float32) as append,
        parquet.ParquetWriter(files["Parquet"], schema) as writer,
    ):
        for rows in row_blocks(n, 1 << 17):
            block = blobs(rows.stop - rows.start, rows.start, centers)
            append(block)
            columns = [pyarrow.array(np.ascontiguousarray(column)) for column in block.T]
            writer.write_table(pyarrow.table(columns, schema=schema))
    return files


def write_kernel(path: Path, n: int) -> None:
    """Write a kernel matrix of rank 20, and a diagonal that makes it regular."""
    F = np.random.default_rng(SEED).standard_normal((n, FEATURES), np.float32)
    F += (
        3
        * np.random.default_rng(SEED + 1).standard_normal((CLUSTERS, FEATURES), np.float32)[
            np.arange(n) % CLUSTERS
        ]
    )
    with npy_file(path, (n, n), np.float32) as append:
        for rows in row_blocks(n, 256):
            block = F[rows] @ F.T
            block[np.arange(len(block)), np.arange(rows.start, rows.stop)] += 1
            append(block)


def fit(path: str, name: str, limit: int) -> dict[str, Any]:
    """Fit in this process; return seconds, and what is known of the labels."""
    model = KernelKMeans(CLUSTERS, memory_limit=limit, random_state=SEED, **KERNELS[name])
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        model.fit(path, out=f"{folder}/labels.npy", embedding_out=f"{folder}/embedding.npy")
        seconds = time.perf_counter() - start
        sizes = np.bincount(model.labels_, minlength=CLUSTERS).tolist()
    planned, stages = model.stats_["planned_bytes"], model.stats_["seconds"]
    return {"seconds": seconds, "sizes": sorted(sizes), "planned_bytes": planned, "stages": stages}


class Counted(np.ndarray):
    """A memory map whose slices of rows are counted."""

    read_bytes = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(key, slice) and self.ndim == 2:
            Counted.read_bytes += found.nbytes
        return found


def embed_kernel(path: str) -> dict[str, Any]:
    """Embed a precomputed kernel by one pass over the file; count what it reads."""
    K = np.load(path, mmap_mode="r").view(Counted)
    operator = PrecomputedOperator(K, dtype=np.float32)
    sketch = HadamardSketch(len(K), 2 * CLUSTERS, SEED)
    run = Run(count_threads(None))
    start = time.perf_counter()
    found = one_pass(operator, sketch, rank=CLUSTERS, run=run)
    seconds = time.perf_counter() - start
    read = Counted.read_bytes / K.nbytes
    return {"seconds": seconds, "read": read, "passes": found.cost.passes}


def read_all(path: str) -> dict[str, Any]:
    """Read a file through NumPy, as many rows at a time as the pass does, and add them up."""
    K = np.load(path, mmap_mode="r")
    start, total = time.perf_counter(), 0.0
    for rows in row_blocks(len(K), max(1, (1 << 20) // len(K))):
        total += float(np.array(K[rows]).sum())
    return {"seconds": time.perf_counter() - start, "total": total}


def watched(function: str, **arguments: Any) -> dict[str, Any]:
    """Call a function of this module in a process of its own; add its peak of anonymous memory."""
    command = [sys.executable, "-m", "benchmarks.out_of_core", "--call", function]
    process = subprocess.Popen(
        [*command, json.dumps(arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak = 0

    def look() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, anonymous_bytes(process.pid))
            time.sleep(EACH)

    looking = threading.Thread(target=look)
    looking.start()
    out, err = process.communicate()
    looking.join()
    if process.returncode:
        raise Failed((err.strip().splitlines() or ["?"])[-1])
    found = json.loads(out.splitlines()[-1])
    return found | {"peak": peak - found["imported"]}


def anonymous_bytes(pid: int | str = "self") -> int:
    """Return the anonymous memory of a process; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def called(function: str, arguments: str) -> None:
    """Call a function in this process, and print what it returned."""
    import pyarrow.parquet  # noqa: F401

    imported = anonymous_bytes()
    found = globals()[function](**json.loads(arguments))
    print(json.dumps(found | {"imported": imported}))


def rows_in_files(report: Report, folder: Path, n: int, limit: int) -> None:
    """Fit n rows and a tenth of them, from both kinds of files."""
    rows, targets = [], []
    few, many = write_rows(folder, n // 10), write_rows(folder, n)
    for kind in many:
        for name in KERNELS:
            small = watched("fit", path=str(few[kind]), name=name, limit=limit)
            large = watched("fit", path=str(many[kind]), name=name, limit=limit)
            times, peak = large["seconds"] / small["seconds"], large["peak"]
            planned = large["planned_bytes"]
            sizes = [size // 10**6 for size in (peak, planned, limit)]
            seconds = [round(one["seconds"], 1) for one in (small, large)]
            rows.append([f"{name}, {kind}", *seconds, f"{times:.1f} ×", *sizes])
            label = f"{name} from a {kind}" if kind == "memory map" else f"{name} from {kind}"
            targets.append(Target(f"{label}: time over a tenth", times, 12, at_most=True))
            share = peak / limit
            targets.append(Target(f"{label}: memory over the limit", share, 1.1, at_most=True))
    header = [f"{n:,} × {FEATURES}", "a tenth, s", "all, s", "ratio", "MB", "planned", "limit"]
    report.table(header, rows)
    report.conclude(targets)


def forget_pages(path: str) -> None:
    """Let the system drop what it holds of a file: the next to read it reads the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def kernel_in_a_file(report: Report, folder: Path, n: int) -> None:
    """Set one pass over a kernel in a file against reading it, in turns, both cold or both warm."""
    path = str(folder / "kernel.npy")
    write_kernel(Path(path), n)
    size, peak, rows, shares = 4 * n * n, 0, [], []
    for state in ("cold", "warm"):
        found: dict[str, list[Any]] = {"embed_kernel": [], "read_all": []}
        for _ in range(3):
            for name, runs in found.items():
                if state == "cold":
                    forget_pages(path)
                elif not runs:
                    watched("read_all", path=path)
                runs.append(watched(name, path=path))
        ours, theirs = (min(runs, key=lambda one: one["seconds"]) for runs in found.values())
        speeds = [size / one["seconds"] / 1e9 for one in (ours, theirs)]
        peak = max(peak, *(one["peak"] for one in found["embed_kernel"]))
        shares.append(speeds[0] / speeds[1])
        rows.append([state, *speeds, f"{shares[-1]:.0%}", ours["read"], peak // 10**6])
    header = [f"K of {n:,}, {size / 1e9:.1f} GB", "pass, GB/s", "NumPy, GB/s", "share", "read"]
    report.table([*header, "MB"], rows)
    report.conclude(
        [
            Target("a pass over a kernel, both cold: speed over NumPy's", shares[0], 0.6),
            Target(
                "bytes read a pass over those of the file",
                ours["read"] / ours["passes"],
                1.001,
                at_most=True,
            ),
            Target("memory of the pass", peak / 1e6, 1000, "MB", at_most=True),
        ]
    )


def main(arguments: list[str] | None = None) -> Report:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and bytes")
    parser.add_argument("--only", choices=("rows", "kernel"), help="one of the two parts")
    parser.add_argument("--keep", action="store_true", help="write the page in docs/benchmarks")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="where the files lie")
    options = parser.parse_args(arguments)
    n, limit, order = ROWS, LIMIT, ORDER
    if options.quick:
        n, limit, order = n // 10, 400_000_000, order // 3
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="out-of-core-", dir=options.folder))
    report = Report(arguments=["--quick"] if options.quick else [])
    try:
        if options.only != "kernel":
            rows_in_files(report, folder, n, limit)
        if options.only != "rows":
            kernel_in_a_file(report, folder, order)
    finally:
        shutil.rmtree(folder)
    if options.keep:
        write_whole(PAGE, page_of(report))
    return report


def page_of(report: Report) -> str:
    """Return the kept page."""
    command = " ".join(["python -m benchmarks.out_of_core --keep", *report.arguments])
    parts = ["# Larger than memory", f"`{command}`", facts(environment())]
    parts += [table(one["header"], one["rows"]) for one in report.tables]
    parts += ["\n".join(f"- {target}" for target in report.targets)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--call"]:
        called(*sys.argv[2:4])
    else:
        standalone(main)
