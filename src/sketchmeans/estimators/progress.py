"""Progress of a fit: a bar on a terminal, and scikit-learn's callbacks where it has them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar, cast

from sketchmeans.checkpoints import NOTHING, Checkpoint

try:
    from sklearn import callback as _callback
except ImportError:  # scikit-learn before 1.9
    _callback = None

Method = TypeVar("Method", bound=Callable[..., Any])


class _NoCallbacks:
    """Stands in for scikit-learn's mixin where there is none: no callbacks can be set."""


CallbackSupportMixin: Any = _NoCallbacks if _callback is None else _callback.CallbackSupportMixin


def with_callbacks(method: Method) -> Method:
    """Let scikit-learn end the callbacks of a fit, where the installed version has them."""
    return method if _callback is None else cast(Method, _callback.with_callbacks(method))


WRAPPED = 0 if _callback is None else 1
"""Frames that this puts between ``fit`` and who called it."""

TICKS = 50
"""Steps that a stage of the fit is reported in to scikit-learn's callbacks."""

Tick = Callable[[int, int], None]
Work = tuple[float, str]
"""How much a stage does, and of what: (5e9, "entries")."""


class FitProgress:
    """Tells of the stages of one fit.

    Parameters
    ----------
    estimator : estimator
        Its callbacks are told, if it has any; its ``verbose`` asks for a bar on standard error.
    n_stages : int
        The most stages that there will be.
    checkpoint : Checkpoint
        Of the fit.
    """

    def __init__(self, estimator: Any, n_stages: int, checkpoint: Checkpoint = NOTHING) -> None:
        self.estimator, self.checkpoint = estimator, checkpoint
        self.n_stages = n_stages
        self.seconds: dict[str, float] = {}
        self._last = 0.0
        self._whole: WholeFit | None = None
        self._context: Any = None
        self._bar: Bar | None = Bar(sys.stderr) if estimator.verbose else None

    def __enter__(self) -> FitProgress:
        if getattr(self.estimator, "_skl_callbacks", None):
            self._context = self.estimator._init_callback_context(max_subtasks=self.n_stages)
            self._context.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._context is not None and error[0] is None:
            self._context.call_on_fit_task_end(estimator=self.estimator)

    def expect(self, work: Mapping[str, tuple[float, int]]) -> None:
        """Say what stages are to come: their work in all, in one unit, and how often each comes.

        Where a proof follows nothing is reckoned: it goes on while it gains, and may take longer
        than all else. The time left is then that of a stage, and is not called that of all.
        """
        if getattr(self.estimator, "certificate", None) in (None, "free"):
            self._whole = self._whole or WholeFit(work)

    def split(self, name: str, own: float, rest: str) -> None:
        """Leave ``own`` seconds of the last stage, ``name``, to it, and the others to ``rest``."""
        beyond = self._last - own
        self.seconds[name] -= beyond
        self.seconds[rest] = self.seconds.get(rest, 0.0) + beyond

    @contextmanager
    def stage(self, name: str, work: Work | None = None) -> Iterator[Tick]:
        """Time a stage and yield its progress callback, tick(done, total).

        ``work`` says what the whole stage does, for the rate that a bar shows.
        """
        start = time.perf_counter()
        context = None
        if self._context is not None:
            context = self._context.subcontext(task_name=name, max_subtasks=TICKS)
            context.call_on_fit_task_begin(estimator=self.estimator)
        told = 0
        if self._bar is not None:
            self._bar.show(name, 0, 1, work)

        fresh = self.checkpoint.resumes

        def tick(done: int, total: int) -> None:
            nonlocal told, fresh
            if self._bar is not None:
                left = None
                if self._whole is not None:
                    left = self._whole.left(name, done / total, time.perf_counter(), anew=fresh)
                self._bar.show(name, done, total, work, left=left)
            fresh = False
            while context is not None and told < TICKS * done // total:
                told += 1
                step = context.subcontext(task_name="tiles")
                step.call_on_fit_task_begin(estimator=self.estimator)
                step.call_on_fit_task_end(estimator=self.estimator)

        yield tick
        self._last = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + self._last
        tick(1, 1)
        if self._whole is not None:
            self._whole.finish(name)
        if context is not None:
            context.call_on_fit_task_end(estimator=self.estimator)


class WholeFit:
    """How long a fit takes as a whole, reckoned from what its stages do.

    >>> whole = WholeFit({"passes": (30.0, 1), "K-means": (10.0, 1)}, now=0.0)
    >>> whole.left("passes", 0.5, 30.0)
    50.0
    >>> whole.finish("passes")
    >>> whole.left("K-means", 0.2, 64.0)
    16.0
    """

    def __init__(self, work: Mapping[str, tuple[float, int]], now: float | None = None) -> None:
        self._work = {name: amount / max(times, 1) for name, (amount, times) in work.items()}
        self._total = sum(amount for amount, _ in work.values())
        self._finished = 0.0
        self._from = (time.perf_counter() if now is None else now), 0.0
        """When it was reckoned from, and what was done then."""

    def left(self, name: str, share: float, now: float, *, anew: bool = False) -> float | None:
        """Return the seconds left where so much of a stage is done; None where nobody knows.

        ``anew`` reckons from here on, as where a checkpoint gave what was done so far.
        """
        done = self._finished + self._work.get(name, 0.0) * share
        if anew:
            self._from = now, done
        began, before = self._from
        if done <= before or now <= began:
            return None
        return max(self._total - done, 0.0) * (now - began) / (done - before)

    def finish(self, name: str) -> None:
        """Take note that a stage has ended."""
        self._finished += self._work.get(name, 0.0)


class Bar:
    """A progress bar on a terminal: rich's if it is installed, else one line of text.

    It shows the stage, how much is done, the rate, and the time left. Where the stream is no
    terminal, a line a finished stage is all that is written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on_terminal = stream.isatty()
        self._rich: Any = None
        self._tasks: dict[str, Any] = {}
        self._started = time.perf_counter()
        self._began: dict[str, float] = {}
        self._open = ""
        self._widest = 0
        if self._on_terminal:
            try:
                from rich.console import Console
                from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
            except ImportError:
                return
            self._rich = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.fields[pace]}"),
                console=Console(file=stream),
            )
            self._rich.start()

    def show(
        self,
        name: str,
        done: int,
        total: int,
        work: Work | None = None,
        *,
        count: bool = False,
        note: str = "",
        left: float | None = None,
    ) -> None:
        """Draw the state of the stage called ``name``, with what is done in numbers if asked.

        ``note`` is said beside it, and ``left``, the seconds until all stages are done.
        """
        now = time.perf_counter()
        if done == 0:
            self._began[name] = now
        spent = now - self._began.setdefault(name, now)
        said = pace(done / total, spent, work, left)
        if count and work is not None:
            said = f"{work[0] * done / total:,.0f} of {work[0]:,.0f} {work[1]}, {said}".rstrip(", ")
        said = ", ".join(part for part in (note, said) if part)
        if self._rich is not None:
            if name not in self._tasks:
                self._tasks[name] = self._rich.add_task(name, total=1.0, pace=said)
            self._rich.update(self._tasks[name], completed=done / total, pace=said)
        elif self._on_terminal:
            line = f"{name}: {done / total:4.0%} {said}".rstrip()
            self._widest = max(self._widest, len(line))
            self._stream.write(f"\r{line:<{self._widest}}")
            self._open = "\n" if done < total else ""
            self._stream.write("\n" if done == total and name not in self._tasks else "")
            self._tasks[name] = done == total or self._tasks.get(name)
            self._stream.flush()
        elif done == total and name not in self._tasks:
            self._tasks[name] = True
            self._stream.write(f"{name}: done at {time.perf_counter() - self._started:.1f} s\n")
            self._stream.flush()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._rich is not None:
            self._rich.stop()
        elif self._open:
            self._stream.write(self._open)


def pace(share: float, seconds: float, work: Work | None, left: float | None = None) -> str:
    """Return the rate and the time left, as far as they are known: of all stages, or of this one.

    >>> pace(0.25, 10.0, (4e9, "entries"))
    '1.0e+08 entries/s, 30 s left'
    >>> pace(0.5, 60.0, None)
    '1 min 00 s left'
    >>> pace(1.0, 2.0, (4e9, "entries"))
    '2.0e+09 entries/s'
    >>> pace(0.5, 60.0, None, 200.0)
    '3 min 20 s left in all'
    """
    if not share > 0 or seconds <= 0:
        return ""
    said = [] if work is None else [f"{share * work[0] / seconds:.1e} {work[1]}/s"]
    if share < 1:
        minutes, rest = divmod(round(seconds * (1 - share) / share if left is None else left), 60)
        hours, minutes = divmod(minutes, 60)
        time_left = f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
        time_left = f"{hours} h {minutes:02d} min" if hours else time_left
        said.append(f"{time_left} left" + (" in all" if left is not None else ""))
    return ", ".join(said)
