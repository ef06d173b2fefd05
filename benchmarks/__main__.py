"""Everyone against everyone, and a line for every target beside the kept run's: ``make bench``.

The default set takes about ten minutes; ``--full`` adds a million samples, slower rivals, the
proofs of ``certified``, workers of a Dask cluster, files that are larger than memory and ``plans``,
and takes more than an hour. The other scripts (``tile_parts``, ``native_switches``,
``hadamard_switch``, ``feature_switch``,
``method_switch``, ``many_rows``, ``methods``, ``defaults``) are the evidence behind constants and
defaults; run them by name. ::

    python -m benchmarks [--full] [--out build/benchmarks]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import (
    certified,
    dask_scaling,
    drawing,
    end_to_end,
    files,
    fit_profile,
    landmark_curve,
    landmark_quality,
    landmark_rates,
    linear_growth,
    native_tile,
    out_of_core,
    peak_memory,
    plans,
    transform_speed,
)
from benchmarks.record import comparison, kept_record, left_reports, record_of, write
from benchmarks.timing import Target, environment, facts, table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--full", action="store_true", help="also a million samples, proofs, and a Dask cluster"
    )
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"), help="a folder")
    parser.add_argument(
        "--resume", action="store_true", help="keep what a run that failed has left in the folder"
    )
    options = parser.parse_args(arguments)
    full = ["--full"] if options.full else []
    main_set = {
        "native_tile": native_tile.main,
        "transform_speed": transform_speed.main,
        "linear_growth": linear_growth.main,
        "fit_profile": lambda: fit_profile.main([]),
        "peak_memory": lambda: peak_memory.main([]),
        "files": files.main,
        "end_to_end": lambda: end_to_end.main(full),
        "landmark_rates": landmark_rates.main,
        "landmark_quality": lambda: landmark_quality.main([]),
        "landmark_curve": landmark_curve.main,
    }
    if options.full:
        main_set["certified"] = lambda: certified.main(full)
        main_set["dask_scaling"] = lambda: dask_scaling.main([])
        main_set["out_of_core"] = lambda: out_of_core.main([])
        main_set["plans"] = lambda: plans.main([])
    found = environment()
    print(facts(found), flush=True)
    command = " ".join(["python -m benchmarks", *full])
    kept, start, reports = kept_record(), time.perf_counter(), {}
    if options.resume:
        reports, spent = left_reports(options.out, command)
        start -= spent
    for name, run in main_set.items():
        if name in reports:
            continue
        print(f"\n## {name}\n", flush=True)
        reports[name] = run()
        seconds = time.perf_counter() - start
        # Written every time: what was measured is not lost if a later benchmark fails.
        write(record_of(command, seconds, found, reports), options.out)
    if not full:
        whole = Target("the whole run", seconds / 60, 15, "minutes", at_most=True)
        reports["end_to_end"].conclude([whole])
    record = record_of(command, seconds, found, reports)
    write(record, options.out)
    drawing.draw_all(record, options.out)
    print(f"\n## Targets, after {record['seconds']} s, beside the run kept in docs/benchmarks\n")
    header = ["target", "figure", "promised", "", "kept", "change"]
    print(table(header, comparison(record, kept)))
    print(f"\nTables, figures and plots: {options.out}")


if __name__ == "__main__":
    main()
