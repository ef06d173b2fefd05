"""Leading eigenvectors of a symmetric matrix that is here, orthonormal to rounding."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from sketchmeans._arrays import FloatArray


def leading_eigenvectors(
    A: FloatArray, count: int, *, overwrite: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of A, rising, and their vectors.

    NOTE: where some vectors are asked for, LAPACK finds them by relatively robust representations,
    which lose orthogonality where eigenvalues are close: 300 n·eps was seen, and YYᵀ is then as far
    above K. One step towards the nearest orthonormal vectors leaves less than n·eps, and the
    subspaces as they are (test_leading_eigenvectors_are_orthonormal_to_rounding).
    """
    n = len(A)
    values, V = linalg.eigh(A, subset_by_index=[n - count, n - 1], overwrite_a=overwrite)
    return values, V @ (1.5 * np.eye(count) - 0.5 * (V.T @ V))
