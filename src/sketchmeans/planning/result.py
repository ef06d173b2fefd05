"""What a plan says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sketchmeans.text import Table, called, counted, human, setting

STAGES = (
    "prepare",
    "kernel passes",
    "recover",
    "embed",
    "K-means",
    "refine",
    "certify",
    "proof",
)
"""Of a fit, in their order."""


@dataclass(frozen=True)
class Alternative:
    """Another way to the same clusters, or nearly, and what it costs."""

    change: Mapping[str, Any]
    """The parameters that ask for it."""
    method: str
    passes: int
    kernel_entries: int
    distances: int
    memory: int
    """Bytes at the highest point."""
    seconds: float | None
    """In all; None where there was no time left to measure it."""

    @property
    def asked_by(self) -> str:
        """The change as one writes it."""
        return " ".join(_written(name, value) for name, value in self.change.items())


def _written(name: str, value: Any) -> str:
    if called("n_graphs") == "n_graphs":
        return setting(name, value)
    if name == "kernel_params":  # options of the command line, each by itself
        return " ".join(_written(one, each) for one, each in value.items())
    return setting(name, value) if called(name) != name else f"--{name} {value}"


@dataclass(frozen=True)
class FitPlan:
    """How a fit would go about data, and what it would cost; nothing has been fitted.

    ``print`` it. What the data decide, such as how many iterations change labels, is stated as the
    most; ``…_at_least`` has the least. Where both are the same, a fit spends exactly that.
    """

    n_samples: int
    n_features: int
    n_clusters: int | None
    kernel: str
    method: str
    why: str
    """Why this method."""
    precision: str
    rank: int
    """Columns of the embedding; the most, where it is a share of the trace."""
    width: int
    """Columns of the sketch, landmarks, or anchors."""
    n_refine: int
    n_init: int
    n_threads: int
    passes: int
    """Passes over the kernel, at the most."""
    passes_at_least: int
    kernel_entries: int
    """Kernel entries that are evaluated or read, at the most: ``stats_["kernel_entries"]``."""
    kernel_entries_at_least: int
    distances: int
    """Distances of samples and anchors, at the most: ``stats_["distances"]``."""
    distances_at_least: int
    memory: int
    """Bytes beyond the data at the highest point: ``stats_["planned_bytes"]``."""
    memory_by_stage: Mapping[str, int]
    """Bytes that each stage holds at its highest point."""
    memory_limit: int | None
    copied: int
    """Bytes of the copy of X that the fit makes; 0 where it takes X as it is."""
    seconds_by_stage: Mapping[str, float]
    """Estimated, by the stages of ``stats_["seconds"]``; empty where nothing was measured."""
    alternatives: tuple[Alternative, ...]
    """What else there is, the cheapest first."""
    notes: tuple[str, ...]
    """What the figures do not hold."""
    calibration: float
    """Seconds that were spent to measure this machine."""

    @property
    def seconds(self) -> float:
        """Estimated time of the whole fit."""
        return sum(self.seconds_by_stage.values())

    @property
    def cheaper(self) -> tuple[Alternative, ...]:
        """The alternatives that take less time or less memory."""
        return tuple(
            one
            for one in self.alternatives
            if one.memory < self.memory or (one.seconds is not None and one.seconds < self.seconds)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        alternatives = [asdict(one) | {"asked_by": one.asked_by} for one in self.alternatives]
        return asdict(self) | {"seconds": self.seconds, "alternatives": alternatives}

    def __str__(self) -> str:
        parts = [self._heading(), *self._costs(), str(self._stages())]
        if self.alternatives:
            parts.append(f"Other ways\n\n{self._others()}")
        if self.notes:
            parts.append("\n".join(f"Note: {note}" for note in self.notes))
        return "\n\n".join(parts)

    def _heading(self) -> str:
        into = "" if self.n_clusters is None else f" into {counted(self.n_clusters, 'cluster')}"
        said = (
            f"{counted(self.n_samples, 'row')} of {counted(self.n_features, 'column')}{into}: "
            f"{self.kernel} kernel, method {self.method}, because {self.why}."
        )
        if self.why == "as asked":
            said = said.replace(", because as asked", ", as asked")
        took = f"about {duration(self.seconds)} with {counted(self.n_threads, 'thread')}"
        return f"{said}\nIt would take {took}, and {human(self.memory)} of memory beyond the data."

    def _costs(self) -> list[str]:
        lines = []
        for name, least, most in (
            ("Passes over the kernel", self.passes_at_least, self.passes),
            ("Kernel entries", self.kernel_entries_at_least, self.kernel_entries),
            ("Distances of rows and anchors", self.distances_at_least, self.distances),
        ):
            if most:
                between = f"{most:,}" if least == most else f"{least:,} to {most:,}"
                lines.append(f"{name}: {between}.")
        copied = f"copied, {human(self.copied)}" if self.copied else "taken as they are, not copied"
        limit = "none" if self.memory_limit is None else f"{human(self.memory_limit)}, kept"
        lines.append(f"The data are {copied}. Memory limit: {limit}.")
        return ["\n".join(lines)]

    def _stages(self) -> Table:
        known = {*self.seconds_by_stage, *self.memory_by_stage}
        names = [name for name in STAGES if name in known]
        return Table(
            tuple(
                {
                    "stage": name,
                    "time": duration(self.seconds_by_stage[name])
                    if name in self.seconds_by_stage
                    else "",
                    "memory": human(self.memory_by_stage[name])
                    if name in self.memory_by_stage
                    else "",
                }
                for name in names
            )
        )

    def _others(self) -> Table:
        rows = [
            {
                "with": one.asked_by,
                "time": "not measured" if one.seconds is None else duration(one.seconds),
                "memory": human(one.memory),
                "kernel entries": one.kernel_entries,
                "distances": one.distances,
            }
            for one in self.alternatives
        ]
        for name in ("kernel entries", "distances"):
            if not any(row[name] for row in rows):
                rows = [{key: row[key] for key in row if key != name} for row in rows]
        return Table(tuple(rows))


def duration(seconds: float) -> str:
    """Write a time for a person.

    >>> duration(0.0123), duration(8.26), duration(95), duration(7300)
    ('0.01 s', '8.3 s', '1 min 35 s', '2 h 01 min')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
