"""The main set of benchmarks, and a line for every target: ``python -m benchmarks``.

Takes a few minutes. The other scripts (``tile_parts``, ``feature_switch``, ``defaults``) are the
evidence behind constants and defaults; run them by name.
"""

from __future__ import annotations

import time

from benchmarks import files, fit_profile, hadamard_switch, linear_growth, pass_speed, peak_memory

MAIN_SET = {
    "pass_speed": pass_speed.main,
    "hadamard_switch": lambda: hadamard_switch.main(["--brief"]),
    "linear_growth": linear_growth.main,
    "fit_profile": lambda: fit_profile.main([]),
    "peak_memory": lambda: peak_memory.main([]),
    "files": files.main,
}


def main() -> None:
    start = time.perf_counter()
    targets = []
    for name, run in MAIN_SET.items():
        print(f"\n## {name}\n", flush=True)
        targets += run()
    print(f"\n## Targets, after {time.perf_counter() - start:.0f} s\n")
    for target in targets:
        print(target)


if __name__ == "__main__":
    main()
