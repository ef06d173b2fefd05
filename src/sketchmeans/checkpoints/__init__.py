"""Checkpoints: what a long fit has done so far, in a folder, from which the same call goes on.

A fit computes its bits in a fixed order, so that it can be run once more: what was saved is read
in place of computed, and the rest follows. Whatever takes long is a *stage*, and stages lie in one
another, as passes over K lie in iterations::

    fit ── 0: pass ─────── state: W so far, and how many pairs of strips have met
        ── 1: start ────── 0: refine ─── state: labels, and how many iterations were made
                               └──────── 0: pass ─── state: …

A stage has a place, its number among those of the stage that it lies in, and at most one state.
When a stage saves a state, what lies in it counts from there, and what lay there before is gone.
A stage that is not found is computed once more: nothing has to be saved for the result to be right,
only for the time to be short.

``stages`` has this and ``stage`` one of them, ``folder`` the files, ``lock`` who may write them,
``fingerprint`` what a checkpoint is of: ``identity`` describes values, and ``programs`` takes
kernels apart for that. ``engine.Run`` carries a checkpoint to the loops. May import: no other room.
"""

from sketchmeans.checkpoints.folder import CheckpointWarning
from sketchmeans.checkpoints.stage import IDLE, Portion, Stage, first_rows
from sketchmeans.checkpoints.stages import NOTHING, Checkpoint, kept_in

__all__ = [
    "IDLE",
    "NOTHING",
    "Checkpoint",
    "CheckpointWarning",
    "Portion",
    "Stage",
    "first_rows",
    "kept_in",
]
