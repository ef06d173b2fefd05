"""TODO."""

from __future__ import annotations

import numpy as np

from sketchmeans._arrays import FloatArray


def memberships(labels: FloatArray, weights: FloatArray | None, n_clusters: int) -> FloatArray:
    """Return the n × K matrix of memberships: ones as bytes, or these weights."""
    inside = labels[:, None] == np.arange(n_clusters)
    return inside.astype(np.int8) if weights is None else inside * weights[:, None]
