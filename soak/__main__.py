"""``python -m soak [PART …] [--seed S] [--minutes M] [--cases N]``: look for broken promises.

Prints a table of cases and violations at the end; exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import signal
import sys
import warnings

from soak.registry import PARTS, checks_of
from soak.running import run_part, table


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; or all")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default: 0)")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="at most so many for a part (default: 60)"
    )
    parser.add_argument("--cases", type=int, help="of each check (default: each check's own)")
    parser.add_argument("--check", help="only the checks whose name has this in it")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    # What is started in the background ignores SIGINT, and so would every command that is sent one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = []
    for part in given.parts or PARTS:
        checks = checks_of(part)
        if given.check:
            checks = {name: check for name, check in checks.items() if given.check in name}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results += run_part(part, checks, given.seed, given.minutes, given.cases)
    print(table(results, given.seed))
    return 1 if any(found.violations for found in results) else 0


if __name__ == "__main__":
    sys.exit(main())
