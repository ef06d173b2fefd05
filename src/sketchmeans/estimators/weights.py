"""Weights of samples: what a fit takes, and what a proof does not."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray

WEIGHTS = (1e-100, 1e100)
"""Where the sum of the weights must lie."""

LIGHT = 1e-20
"""Weights below this part of the largest are taken for zero."""


def check_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return the weights in float64, or None; refuse negative ones and all zeros.

    Weights below LIGHT of the largest become zero: float64 would not notice them beside it.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    if np.asarray(sample_weight).dtype.kind == "c":
        raise ValueError(
            "sample_weight holds complex numbers: weights must be real. Give their sizes, such as "
            "abs(sample_weight)."
        )
    weights = np.require(sample_weight, np.float64, ["C", "A"])
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, where ({n},) is needed: one weight per "
            "sample."
        )
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity: weights must be finite.")
    if (weights < 0).any():
        worst = int(np.argmin(weights))
        raise ValueError(
            f"sample_weight[{worst}] = {weights[worst]:g} is negative: weights must not be. "
            "Use 0 to leave a sample out."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for all samples: at least one must be positive.")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    largest = float(weights.max())
    if not WEIGHTS[0] <= total <= WEIGHTS[1]:
        raise ValueError(
            f"sample_weight sums to {total:g}, outside {WEIGHTS[0]:g} to {WEIGHTS[1]:g}: sums "
            "of squares would leave float64. Divide all weights by the largest, "
            f"{largest:g}: labels do not depend on their scale."
        )
    light = (weights > 0) & (weights < LIGHT * largest)
    return np.where(light, 0.0, weights) if light.any() else weights


def refuse_light(sample_weight: Any) -> None:
    """Refuse weights that a fit would take for zero: a proof is of the samples that are given.

    However light, a sample that lies far out can have all of the objective.
    """
    weights = np.asarray(sample_weight)
    if sample_weight is None or weights.ndim != 1 or weights.dtype.kind not in "iuf":
        return
    largest = weights.max(initial=0)
    light = np.flatnonzero((weights > 0) & (weights < LIGHT * largest))
    if len(light):
        raise ValueError(
            f"sample_weight[{light[0]}] = {weights[light[0]]:g} is less than {LIGHT:g} of the "
            f"largest, {largest:g}: fits take it for zero, and what it adds to the objective is "
            "not known. Use 0 to leave a sample out, or a larger weight."
        )
