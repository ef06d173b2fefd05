"""A checkpoint: stages of long work that save what they have done, and go on from there."""

from __future__ import annotations

import numbers
import os
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sketchmeans.checkpoints.folder import CheckpointWarning, Damaged, Folder
from sketchmeans.checkpoints.identity import described
from sketchmeans.checkpoints.stage import IDLE, Make, Stage, State
from sketchmeans.container import ModelFileError
from sketchmeans.text import human

SECONDS = 30.0
"""Of work that a kill may cost; ``SKETCHMEANS_CHECKPOINT_SECONDS`` sets another number."""
IN_STAGE, BETWEEN, INSIDE = 0.75, 0.25, 0.2
"""Shares of these seconds: how long a stage goes on before it saves; how much time finished stages
may have taken in all that were not saved because they were short; and how much of that may lie in
one stage before it saves itself, and they are done with."""
SHARE = 0.05
"""Of the time of a fit that saving may take."""
PACE = 2e8
"""Bytes that are saved in a second, for want of a better guess."""


class Checkpoint:
    """What a fit has done so far; ``NOTHING`` keeps nothing.

    Parameters
    ----------
    folder : str or path, optional
        Where it is kept; locked until ``close``.
    """

    def __init__(self, folder: Any = None) -> None:
        self._seconds = SECONDS if folder is None else seconds_asked()  # refused before it is taken
        self._folder = None if folder is None else Folder(folder)
        self._parts: dict[str, int] = {}
        self._stages = [Stage()]
        self._number, self._token = 0, secrets.token_hex(8)
        self._of: dict[str, str] = {}
        self._random: list[Any] | None = None
        self._given = "None"
        self._thread = threading.get_ident()
        self._last = self._opened = time.perf_counter()
        self._spent, self._spent_in_all, self._pace = 0.0, 0.0, PACE
        self._began = time.time()
        self._failed = False
        self.owed = 0.0
        """Seconds of finished stages that were not saved, and would be spent again."""
        self.resumes = False
        """Whether there is something to go on from."""
        if self._folder is not None:
            try:
                self._open(self._folder)
            except BaseException:
                self._folder.close()
                raise

    def _open(self, folder: Folder) -> None:
        try:
            listed = folder.read()
        except Damaged as error:
            folder.set_aside()
            warnings.warn(
                f"the checkpoint in {folder.path} is damaged and was not used: {error}. The fit "
                "starts anew; the damaged files were given names that begin with damaged-, and can "
                "be deleted.",
                CheckpointWarning,
                stacklevel=5,
            )
            return
        finally:
            self._number = folder.last()
        if listed is not None and listed["parts"]:
            self._parts, self._token = listed["parts"], listed["token"]
            self._of, self._random = listed["of"], listed["random"]
            self.resumes = True

    def random_state(self, given: Any) -> np.random.RandomState:
        """Return the generator of a fit; where none was given, the one that it began with."""
        if self._folder is None:
            return check_random_state(given)
        if given is not None:
            random = check_random_state(given)
            seeded = isinstance(given, numbers.Integral)
            # Before anything is drawn. NOTE: np.random, the module, is a generator with a state.
            self._given = described(given if seeded else random)
            return random
        if self._random is None:
            random = check_random_state(None)
            name, keys, *rest = random.get_state(legacy=True)
            self._random = [name, [int(key) for key in keys], *(_plain(one) for one in rest)]
            return random
        random = np.random.RandomState()
        name, keys, *rest = self._random
        random.set_state((name, np.array(keys, np.uint32), *rest))
        return random

    def belongs_to(self, fingerprint: Callable[[], dict[str, str]]) -> None:
        """Refuse to go on with a checkpoint that is not of this; nothing is asked without one."""
        if self._folder is None:
            return
        here = fingerprint() | {"random_state": self._given}
        if self.resumes and here != self._of:
            raise ValueError(
                f"the checkpoint in {self._folder.path} is of another fit: "
                f"{_differences(self._of, here)}. Call as before to go on with it, name another "
                "folder, or delete this one to start anew."
            )
        self._of = here

    def stage(
        self, name: str, *sizes: int, new: Callable[..., Any] = np.empty
    ) -> AbstractContextManager[Stage]:
        """Return the next stage; where one of this name and sizes was saved here, with its state.

        ``new(shape, dtype)`` makes the arrays of a state that have room for more rows.
        Stages are those of the thread that made the checkpoint; others' keep nothing.
        """
        if self._folder is None or threading.get_ident() != self._thread:
            return nullcontext(IDLE)
        return self._stage(":".join([name, *map(str, sizes)]), new)

    @contextmanager
    def _stage(self, name: str, new: Callable[..., Any] = np.empty) -> Iterator[Stage]:
        assert self._folder is not None
        outer = self._stages[-1]
        number = f"{outer.place}/{outer.inner}:"
        outer.inner += 1
        stage = Stage(self, number + name)
        if stage.place in self._parts:
            header, arrays = self._folder.read_part(self._parts[stage.place], new)
            stage.state = {**header["state"], **arrays}
        # Another one may have stood here, where memory was more or less.
        ours = (stage.place, f"{stage.place}/")
        self._parts = {
            at: n
            for at, n in self._parts.items()
            if not at.startswith(number) or at == ours[0] or at.startswith(ours[1])
        }
        self._stages.append(stage)
        try:
            yield stage
        finally:
            self._stages.pop()

    def is_due(self, stage: Stage | None = None) -> bool:
        """Whether it is time to save what is done so far, of a stage with others in it."""
        late = time.perf_counter() - self._last >= IN_STAGE * self._seconds
        much = stage is not None and self.owed - stage.owed >= INSIDE * self._seconds
        return (late or much) and self._is_affordable(self._spent)

    def _is_affordable(self, seconds: float) -> bool:
        """Whether so many seconds may be spent on saving."""
        return self._spent_in_all + seconds <= SHARE * (time.perf_counter() - self._opened)

    def has_time(self, size: int) -> bool:
        """Whether so many bytes may be saved now, as fast as the last ones were."""
        return self._is_affordable(size / self._pace)

    def finish(self, stage: Stage, make: Make) -> None:
        """Save the state of a stage that has ended, if it would be much to do again."""
        if stage.state is not None and stage.state.get("final"):
            return
        unsaved = time.perf_counter() - max(stage.began, self._last)
        if self.owed + unsaved >= BETWEEN * self._seconds:
            state = {**make(), "final": True}
            size = sum(one.nbytes for one in state.values() if isinstance(one, np.ndarray))
            if self.has_time(size):
                self.save(stage, state)
                return
        self.owed += unsaved

    def save(self, stage: Stage, state: State) -> None:
        """Save the state of a stage; what was saved of stages in it is let go.

        A disk that takes no more is said once, and the fit goes on.
        """
        assert self._folder is not None
        began = time.perf_counter()
        self._number = number = self._number + 1  # also of one that fails: none is written twice
        arrays = {name: one for name, one in state.items() if isinstance(one, np.ndarray)}
        plain = {name: one for name, one in state.items() if name not in arrays}
        header = {"token": self._token, "place": stage.place, "number": number, "state": plain}
        parts = {at: n for at, n in self._parts.items() if not at.startswith(f"{stage.place}/")}
        parts[stage.place] = number
        listed = {"token": self._token, "parts": parts, "of": self._of, "random": self._random}
        try:
            if (
                not self._parts
            ):  # parts that no list belongs to are damage, and never somebody's kill
                self._folder.write_list(listed | {"parts": {}})
            self._folder.write_part(number, header, arrays)
            self._folder.write_list(listed)
        except (OSError, ModelFileError) as error:
            self._last = time.perf_counter()
            self._warn(self._folder, error)
            return
        with suppress(OSError):  # they are removed at the end at the latest
            self._folder.remove_others(set(parts.values()))
        self._parts, stage.inner, self.owed = parts, 0, stage.owed
        self._last = time.perf_counter()
        self._spent = self._last - began
        self._spent_in_all += self._spent
        size = sum(one.nbytes for one in arrays.values())
        if size > 1e6:
            self._pace = size / self._spent

    def _warn(self, folder: Folder, error: OSError | ModelFileError) -> None:
        if self._failed:
            return
        self._failed = True
        why = getattr(error, "strerror", None) or str(error).rstrip(".")
        kept = "what was saved before is kept" if self._parts else "nothing has been saved yet"
        warnings.warn(
            f"the checkpoint in {folder.path} could not be written: {why}. The "
            f"fit goes on, and tries again from time to time; {kept}.",
            CheckpointWarning,
            stacklevel=6,
        )

    def told(self) -> str:
        """Return what has been saved and how to go on, for whoever has interrupted the fit."""
        if self._folder is None:
            return ""
        where, saved = self._folder.path, self._folder.saved()
        if saved is None:
            return f"The checkpoint in {where} had saved nothing yet: the fit would start anew."
        (when, size), since = saved, ""
        if when >= self._began:
            at = time.strftime("%H:%M:%S", time.localtime(when))
            since = f" what was done until {at}, {max(time.time() - when, 0):.0f} s ago, in"
        return (
            f"The checkpoint in {where} has saved{since} {human(size)}: the same call goes on from "
            "there."
        )

    def close(self, *, finished: bool) -> None:
        """End: of a fit that is finished nothing stays behind."""
        if self._folder is None:
            return
        try:
            if finished:
                self._folder.clear()
            self._folder.close()
        except OSError as error:  # as where somebody has taken the folder away
            warnings.warn(
                f"the checkpoint in {self._folder.path} could not be removed: "
                f"{error.strerror or error}. Delete the folder.",
                CheckpointWarning,
                stacklevel=5,
            )
        self._folder = None


NOTHING = Checkpoint()
"""Keeps nothing, for fits that ask for no checkpoint."""


@contextmanager
def kept_in(folder: Any) -> Iterator[Checkpoint]:
    """Open the checkpoint of a fit, and close it; a fit that was interrupted is told of it."""
    if folder is None:
        yield NOTHING
        return
    checkpoint = Checkpoint(folder)
    try:
        yield checkpoint
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            error.add_note(checkpoint.told())
        checkpoint.close(finished=False)
        raise
    checkpoint.close(finished=True)


def seconds_asked() -> float:
    """Return the seconds of work that a kill may cost."""
    name = "SKETCHMEANS_CHECKPOINT_SECONDS"
    asked = os.environ.get(name, str(SECONDS))
    try:
        seconds = float(asked)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(
            f"the variable {name}={asked!r} must be a number of seconds, 0 or more, such as "
            f"{SECONDS:.0f}. Set another one, or unset it."
        )
    return seconds


def _differences(there: dict[str, str], here: dict[str, str]) -> str:
    names: Sequence[str] = [*here, *(name for name in there if name not in here)]
    return "; ".join(
        f"{name} is {there.get(name, 'not given')} there and {here.get(name, 'not given')} here"
        for name in names
        if there.get(name) != here.get(name)
    )


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
