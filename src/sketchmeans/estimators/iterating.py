"""Where Lloyd's iterations over blocks of rows are, and the same in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray, IntArray


@dataclass(frozen=True)
class State:
    """Where Lloyd's iterations are."""

    centers: FloatArray
    """From the middle on."""
    labels: Sequence[IntArray] = ()
    """Of each block, from the centers before; of these where they have settled."""
    n_iter: int = 0
    inertia: float = np.inf
    settled: bool = False
    """Whether the last iteration changed no label."""
    still: bool = False
    """Whether the centers moved by less than ``tol``."""

    def saved(self) -> dict[str, Any]:
        """Return it for a checkpoint; see ``restored``. One iteration has been made at least."""
        return {
            "centers": self.centers,
            "labels": np.concatenate(self.labels),
            "rows": [len(block) for block in self.labels],
            "n_iter": self.n_iter,
            "inertia": self.inertia,
            "settled": self.settled,
            "still": self.still,
        }

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> State:
        """Return what ``saved`` was of."""
        blocks = np.split(saved["labels"], np.cumsum(saved["rows"])[:-1])
        rest = (saved[name] for name in ("n_iter", "inertia", "settled", "still"))
        return cls(saved["centers"], blocks, *rest)
