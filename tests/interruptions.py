"""Work that is interrupted right after it saved a checkpoint, and what it is held against."""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest

from sketchmeans.checkpoints import Checkpoint, stages


@contextmanager
def often_saved(turns=40):
    """Save at the end of all stages, after all iterations, and at some chances of so many."""
    asked = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKETCHMEANS_CHECKPOINT_SECONDS", "0")
        patch.setattr(stages, "SHARE", np.inf)
        patch.setattr(
            Checkpoint,
            "is_due",
            lambda self, stage=None: stage is not None or not next(asked) % turns,
        )
        yield


def rows():
    """Return 700 samples."""
    random = np.random.default_rng(0)
    return random.normal(size=(700, 4)) + 2 * random.integers(0, 2, size=(700, 4))


class Interrupted(Exception):
    """Stands for whatever ends a process, right after something was saved."""


def interrupted(work, saves, monkeypatch):
    """Do some work until it has saved so many times; return what was saved where it ended.

    That is the place of each stage, and whether it was complete.
    """
    places, plain = [], Checkpoint.save

    def save_and_count(self, stage, state):
        plain(self, stage, state)
        places.append((stage.place, bool(state.get("final"))))
        if len(places) == saves:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_count)
        try:
            work()
        except Interrupted:
            return None
    return places


def found_by(model):
    """Return all that a fit has found but for times and threads."""
    arrays = {k: np.asarray(v) for k, v in vars(model).items() if isinstance(v, np.ndarray)}
    bits = {name: (one.dtype.str, one.shape, one.tobytes()) for name, one in arrays.items()}
    costs = ("passes", "kernel_entries", "distances")
    stats = [model.stats_[name] for name in costs]
    return bits, repr(getattr(model, "certificate_", None)), stats
