"""Bounds that hold except with a stated probability, from Gaussian columns in a later pass.

For one Gaussian column ψ, |u₁ᵀψ|·‖E‖₂ ≤ ‖Eψ‖; for b of them ‖EΨ‖₂ ≥ ‖E‖₂·‖g‖ with ‖g‖² a
chi-squared number of b degrees of freedom. Weyl's inequality does the rest.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from sketchmeans.certificate.gap import truncated
from sketchmeans.certificate.moments import Moments
from sketchmeans.lowrank import LowRank

PROBES = 10
"""Gaussian columns that a pass carries."""


def norm_bound(size: float, known: Moments, failure_probability: float) -> float:
    """Bound ‖E‖₂ from above by ``size`` = ‖EΨ‖₂, except with this probability."""
    return float(size / np.sqrt(chi2.ppf(failure_probability, PROBES))) + known.slack


def probable_optimum(known: Moments, n_clusters: int, norm: float) -> float:
    """Bound L(C*) from below by ‖E‖₂ ≤ norm."""
    k = n_clusters - 1
    leading = float(np.maximum(known.eigenvalues[:k], 0.0).sum()) + k * norm
    return known.trace_lower - leading - known.error


def probable_gap(approximation: LowRank, known: Moments, n_clusters: int, norm: float) -> float:
    """Bound the gap for an optimal clustering of the embedding by ‖E‖₂ ≤ norm."""
    if approximation.early is not None:
        return np.inf
    k = n_clusters - 1
    return truncated(known, approximation.rank, k) + k * norm + known.slack
