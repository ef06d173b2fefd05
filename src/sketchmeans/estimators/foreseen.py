"""What a fit will do, known before it starts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sketchmeans.estimators.checks import refuse_masked
from sketchmeans.estimators.deciding import Decision
from sketchmeans.estimators.memory import Plan, copied_bytes
from sketchmeans.estimators.outline import Kind, Outline
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


def looked_at(estimator: Any, X: Any) -> Any:
    """Return an outline of data, which any number of plans may be made of; a kernel as it is.

    Of an array in memory the sizes of its numbers are looked at once, and when they are asked for;
    of anything else those of a few rows. What only a conversion tells, as of a list or a frame, is
    converted.
    """
    model = clone(estimator)
    _check(model)
    given_rows = model.kernel == "precomputed"
    refuse_masked(X)
    X = to_stream(model, X)
    kind = Kind.of(X, given_rows=given_rows)
    if kind is None:
        checked = model._check_data(X, reset=True, given_rows=given_rows)
        kind = Kind.of(checked, given_rows=given_rows)
        assert kind is not None
        kind, X = replace(kind, copied=copied_bytes(X, checked)), checked
    if 0 in kind.shape:
        model._check_data(X, reset=True, given_rows=given_rows)  # says which of both is missing
    return X if given_rows else Outline.looked_at(kind, X)


def foresee(estimator: Any, X: Any, sample_weight: Any = None) -> Foreseen:
    """Return what a fit of an estimator to data will do; the estimator stays as it is.

    Options are checked, and X is not: see ``looked_at``.
    """
    model = clone(estimator)
    _check(model)
    seed = int(check_random_state(deepcopy(estimator.random_state)).randint(2**31 - 1, size=2)[1])
    X = X if isinstance(X, Outline) else looked_at(model, X)
    try:
        data = model._outlined(X, sample_weight, seed, look=True)
    except ValueError:
        if isinstance(X, Outline) and X.whole is not None:
            model._check_data(X.whole, reset=True, given_rows=False)  # it may have a better reason
        raise
    found: Foreseen = model._planned(data)
    return found


def _check(model: Any) -> None:
    """Refuse options that a fit would refuse."""
    model._check_options()
    if model.kernel == "neighbors":
        model._check_neighbors()
