"""Sums and products over fixed blocks of rows: the same bits on any machine with the same BLAS."""

from __future__ import annotations

import numpy as np

from sketchmeans.kernels import FloatArray
from sketchmeans.points import row_blocks


def apply_in_place(W: FloatArray, T: FloatArray) -> FloatArray:
    """Overwrite the first columns of W with WT, and return their squared norms."""
    eigenvalues = np.zeros(T.shape[1])
    for rows in row_blocks(len(W)):
        block = W[rows] @ T
        W[rows, : T.shape[1]] = block
        eigenvalues += np.vecdot(block.T, block.T)
    return eigenvalues


def multiply_rows(A: FloatArray, T: FloatArray) -> FloatArray:
    """Return AT in float64, block by block, for a tall A of any dtype."""
    product = np.empty((len(A), T.shape[1]))
    for rows in row_blocks(len(A)):
        product[rows] = A[rows].astype(np.float64, copy=False) @ T
    return product


def gram(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return AᵀB, summed over fixed blocks of rows in float64."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for rows in row_blocks(len(A)):
        left = A[rows].astype(np.float64, copy=False)
        total += left.T @ (left if B is A else B[rows].astype(np.float64, copy=False))
    return total


def orthogonal_columns(F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rotate F in place to orthogonal columns of falling norm; FFᵀ stays as it is.

    Returns
    -------
    eigenvalues : array
        Of FFᵀ: the squared norms of the columns.
    rotation : array
        Z with F_new = F_old Z.
    """
    _, rotation = np.linalg.eigh(gram(F, F))
    rotation = rotation[:, ::-1]
    return apply_in_place(F, rotation), rotation
