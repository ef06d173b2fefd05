"""The record of a whole run as JSON and as a page, and its ratios beside those of a kept run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.timing import SEED, Report, Target, facts, table
from sketchmeans.atomic import write_whole

KEPT = Path(__file__).parents[1] / "docs" / "benchmarks" / "results.json"
NOISE = 0.1
"""What is worse by more than this share is shown as worse; on a busy machine noise may reach it."""


def record_of(
    command: str, seconds: float, environment: dict[str, Any], reports: dict[str, Report]
) -> dict[str, Any]:
    """Return what is kept of a run."""
    return {
        "command": command,
        "seconds": round(seconds),
        "seed": SEED,
        "environment": environment,
        "benchmarks": {name: report.as_json() for name, report in reports.items()},
    }


def left_reports(folder: Path, command: str) -> tuple[dict[str, Report], float]:
    """Return the reports that a run of this command has left in a folder, and its seconds."""
    record = json.loads((folder / "results.json").read_text())
    if record["command"] != command:
        raise SystemExit(f"{folder} holds a run of {record['command']}, not of {command}.")
    reports = {}
    for name, part in record["benchmarks"].items():
        targets = [
            Target(**{key: value for key, value in fields.items() if key != "met"})
            for fields in part["targets"]
        ]
        reports[name] = Report(part["tables"], targets, part["data"], part["arguments"])
    return reports, float(record["seconds"])


def targets_in(record: dict[str, Any]) -> dict[str, Target]:
    """Return the targets of a record by their names."""
    found: dict[str, Target] = {}
    for benchmark, part in record["benchmarks"].items():
        for fields in part["targets"]:
            kept = {name: value for name, value in fields.items() if name != "met"}
            found[f"{benchmark}: {fields['name']}"] = Target(**kept)
    return found


def change(new: Target, old: Target | None) -> str:
    """Return how a figure moved since the kept run; a regression is what stands out."""
    if old is None:
        return "new"
    gain = new.figure / old.figure - 1
    worse = gain > NOISE if new.at_most else gain < -NOISE
    return f"{gain:+.0%}" + (" ◀ WORSE" if worse else "")


def comparison(record: dict[str, Any], kept: dict[str, Any] | None) -> Iterator[list[Any]]:
    """Yield a row a target: the figure, what was promised, the kept figure, and the change."""
    now, before = targets_in(record), {} if kept is None else targets_in(kept)
    for name in now | before:
        new, old = now.get(name), before.get(name)
        target = new or old
        assert target is not None
        yield [
            name,
            "" if new is None else f"{new.figure:.3g} {new.unit}",
            f"{'≤' if target.at_most else '≥'} {target.limit:.3g}",
            "NOT MEASURED" if new is None else "met" if new.met else "MISSED",
            "" if old is None else f"{old.figure:.3g} {old.unit}",
            "" if new is None else change(new, old),
        ]


def page(record: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of the page: every table of the run, and every target."""
    yield "# One run of the benchmarks"
    yield (
        f"`{record['command']}`: {record['seconds'] / 60:.0f} minutes, seed {record['seed']}, on "
        f"{facts(record['environment'])}."
    )
    for name, part in record["benchmarks"].items():
        yield f"## {name}"
        yield "`" + " ".join([f"python -m benchmarks.{name}", *part["arguments"]]) + "`"
        for shown in part["tables"]:
            yield table(shown["header"], shown["rows"])
        lines = [str(target) for target in targets_in({"benchmarks": {name: part}}).values()]
        yield "\n".join(f"- {line}" for line in lines)


def write(record: dict[str, Any], folder: Path) -> None:
    """Write the record as ``results.json`` and ``results.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "results.json", json.dumps(record, indent=1) + "\n")
    write_whole(folder / "results.md", "\n\n".join(part for part in page(record) if part) + "\n")


def kept_record() -> dict[str, Any] | None:
    """Return the kept run, if there is one."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else None
