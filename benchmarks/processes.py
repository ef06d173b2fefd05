"""One measurement in a process of its own, so that its peak of memory is its own.

The function is named ``module:function``, gets JSON as keyword arguments, and returns JSON::

    python -m benchmarks.processes benchmarks.peak_memory:fit '{"n": 1000, "dtype": "float32"}'
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STATUS, MEMORY = Path("/proc/self/status"), Path("/proc/meminfo")


class Failed(RuntimeError):
    """The process ended without a result; the message is the end of what it said."""


def peak_bytes() -> int:
    """Return the most memory that this process ever held.

    NOTE: on Linux ``ru_maxrss`` of a new process begins at the peak of the one that started it;
    VmHWM begins at zero.
    """
    if STATUS.exists():
        return _bytes_in(STATUS, "VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def available_bytes() -> int:
    """Return the memory that can still be had."""
    if MEMORY.exists():
        return _bytes_in(MEMORY, "MemAvailable")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _bytes_in(file: Path, name: str) -> int:
    """Return a line ``name: 123 kB`` of one of Linux's own files, in bytes."""
    lines = dict(line.split(":", 1) for line in file.read_text().splitlines())
    return 1024 * int(lines[name].split()[0])


def forget_peak() -> int:
    """Let the peak begin anew at what this process holds now, where Linux can; return that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def measured(
    function: str,
    *,
    timeout: float | None = None,
    environment: dict[str, str] | None = None,
    **arguments: Any,
) -> Any:
    """Call a function in a fresh process, and return what it returned."""
    command = [sys.executable, "-m", "benchmarks.processes", function, json.dumps(arguments)]
    try:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | (environment or {}),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {timeout:.0f} s") from None
    if ended.returncode:
        said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        raise Failed(said[-1])
    return json.loads(ended.stdout.splitlines()[-1])


def main() -> None:
    module, function = sys.argv[1].split(":")
    found = getattr(import_module(module), function)(**json.loads(sys.argv[2]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
