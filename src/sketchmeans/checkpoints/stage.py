"""A stage of long work: where it stands, and when that is saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from sketchmeans._arrays import Array

State = dict[str, Any]
"""Arrays, and numbers and texts that JSON holds, by names. Arrays have one or two dimensions and a
type of ``container.DTYPES``. Of arrays that "room" names, with their rows, the first
rows alone are there; they are given back with room for all."""
Make = Callable[[], State]


def first_rows(arrays: dict[str, Array], count: int) -> State:
    """Return the state of arrays whose first rows are known so far."""
    room = {name: len(whole) for name, whole in arrays.items()}
    return {name: whole[:count] for name, whole in arrays.items()} | {"room": room}


class Crew(Protocol):
    """Whoever calls a function on tasks, side by side; see ``engine.Crew``."""

    def each(
        self,
        work: Callable[[int], Any],
        tasks: Any,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Call ``work`` on every task."""


class Keeper(Protocol):
    """Whoever saves states; see ``Checkpoint``."""

    owed: float

    def is_due(self, stage: Stage | None = None) -> bool:
        """Whether it is time to save."""

    def has_time(self, size: int) -> bool:
        """Whether so many bytes may be saved now."""

    def save(self, stage: Stage, state: State) -> None:
        """Save a state."""

    def finish(self, stage: Stage, make: Make) -> None:
        """Save the state of a stage that has ended."""


class Stage:
    """Work that may be interrupted: ``state`` is where it stands, None at the beginning."""

    def __init__(self, checkpoint: Keeper | None = None, place: str = "") -> None:
        self._checkpoint, self.place = checkpoint, place
        self.state: State | None = None
        self.inner = 0
        """Stages in this one since its last state."""
        self.began = time.perf_counter() if checkpoint is not None else 0.0
        self.owed = checkpoint.owed if checkpoint is not None else 0.0
        """What had not been saved when it began; see ``Checkpoint.owed``."""

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self._checkpoint is not None and self._checkpoint.is_due()

    def has_time(self, size: int) -> bool:
        """Whether a state of so many bytes may be saved now: saving takes a share of the time."""
        return self._checkpoint is not None and self._checkpoint.has_time(size)

    def offer(self, make: Make) -> None:
        """Save the state that is made, if it is time to. Stages in this one begin anew."""
        if self._checkpoint is not None and self._checkpoint.is_due(self):
            self.save(make)

    def save(self, make: Make) -> None:
        """Save the state that is made."""
        if self._checkpoint is not None:
            self._checkpoint.save(self, make())

    def finish(self, make: Make) -> None:
        """Save the state at the end, if it took long to come there."""
        if self._checkpoint is not None:
            self._checkpoint.finish(self, make)

    def until_due(self, tasks: range) -> Portion:
        """Return these tasks, which end when it is time to save."""
        return Portion(tasks.start, tasks.stop, self.is_due)

    def each(
        self,
        crew: Crew,
        work: Callable[[int], Any],
        total: int,
        make: Callable[[int], State],
        report: Callable[[int], None] | None = None,
    ) -> None:
        """Let a crew call ``work`` on 0 to ``total``, and save in between when it is time to.

        ``make`` returns the state when so many tasks, the first ones, are done; "done" is added to
        it, and work goes on there. ``report`` is called with the tasks that are done.
        """
        if self._checkpoint is None:
            crew.each(work, range(total), report)
            return
        done = 0 if self.state is None else int(self.state["done"])
        while done < total:
            portion = self.until_due(range(done, total))
            crew.each(work, portion, _from(done, report))
            done = portion.next
            if done < total:
                self.save(lambda: {**make(done), "done": done})  # noqa: B023 - called at once
        self.finish(lambda: {**make(total), "done": total})


def _from(done: int, report: Callable[[int], None] | None) -> Callable[[int], None] | None:
    return None if report is None else lambda count: report(done + count)


class Portion:
    """Tasks until it is time to save, or none is left; at least one."""

    def __init__(self, first: int, total: int, is_due: Callable[[], bool]) -> None:
        self._first, self.next, self._total, self._is_due = first, first, total, is_due
        """``next`` is the first task that was not taken."""

    def __iter__(self) -> Portion:
        return self

    def __next__(self) -> int:
        if self.next == self._total or (self.next > self._first and self._is_due()):
            raise StopIteration
        self.next += 1
        return self.next - 1


IDLE = Stage()
"""A stage of no checkpoint: nothing is saved, and it takes no time."""
