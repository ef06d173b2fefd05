"""How work is run: with how many threads, with which copies, who hears of it, what is saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sketchmeans.checkpoints import NOTHING, Checkpoint

Progress = Callable[[int, int], None]
"""Called with the tiles done and the tiles of the pass, from the thread that called the pass."""


@dataclass(frozen=True)
class Run:
    """How a pass or a product is run; nothing of it changes the result.

    Parameters
    ----------
    n_threads : int
        Threads that share the tiles.
    pack : bool
        Allow prepared copies of Ω, and of the data where they take no more than twice W.
    progress : callable, optional
        Called with (tiles done, tiles in all).
    checkpoint : Checkpoint
        What is done is saved there from time to time, and work goes on from there.
    """

    n_threads: int = 1
    pack: bool = True
    progress: Progress | None = None
    checkpoint: Checkpoint = NOTHING

    def part(self, index: int, count: int) -> Run:
        """Return the run of one of ``count`` passes that take equally long."""
        tell = self.progress
        if tell is None:
            return self
        return replace(self, progress=lambda done, total: tell(index * total + done, count * total))

    def report(self, done: int, total: int) -> None:
        """Tell how much is done."""
        if self.progress is not None:
            self.progress(min(done, total), total)


ALONE = Run()
"""On one thread, and in silence."""
