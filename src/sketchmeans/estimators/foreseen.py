"""What a fit will do, known before it starts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.memory import Plan, copied_bytes
from sketchmeans.estimators.outline import Outline
from sketchmeans.estimators.streaming import to_stream
from sketchmeans.lowrank import Request
from sketchmeans.operators import KernelOperator


@dataclass(frozen=True)
class Foreseen:
    """How a fit goes about data of which it knows the sizes."""

    data: Any
    """``base.Checked``: an outline of the data, and the operator of it."""
    decision: Decision
    ask: Request
    plan: Plan
    dtype: np.dtype
    """Of the embedding."""

    @property
    def operator(self) -> KernelOperator:
        """The kernel of the outline."""
        operator: KernelOperator = self.data.operator
        return operator


def foresee(estimator: Any, X: Any, sample_weight: Any = None) -> Foreseen:
    """Return what a fit of an estimator to data will do; the estimator stays as it is.

    Options are checked, and X is not: of an array in memory the sizes of its numbers are looked at
    once, of anything else those of a few rows. What only a conversion tells, as of a list or a
    frame, is converted.
    """
    model = clone(estimator)
    model._check_options()
    if model.kernel == "neighbors":
        model._check_neighbors()
    seed = int(check_random_state(deepcopy(estimator.random_state)).randint(2**31 - 1, size=2)[1])
    X = to_stream(model, X)
    data = model._outlined(X, sample_weight, seed, look=True)
    if data is None:
        checked = model._check_data(X, reset=True, given_rows=model.kernel == "precomputed")
        data = model._outlined(checked, sample_weight, seed, look=True)
        copied = copied_bytes(X, checked)
        if isinstance(data.X, Outline):
            data.X.kind = replace(data.X.kind, copied=copied)
        data = replace(data, copied=copied)
    found: Foreseen = model._planned(data)
    return found
