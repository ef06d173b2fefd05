"""Checks of parameters and data: every message names the value, the limit and the way out."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from sketchmeans._arrays import FloatArray, IntArray
from sketchmeans.checks import check_choice, check_count, check_number
from sketchmeans.disk.sources import float_dtype, is_memory_map
from sketchmeans.kernels import ALIASES, KERNELS, kernel_class
from sketchmeans.kernels.bandwidth import resolve_gamma
from sketchmeans.kernels.neighbors import NeighborOptions
from sketchmeans.operators.graphs import first_asymmetry, refuse_stored
from sketchmeans.text import called, counted, setting

PAIRS = 1000
"""Entries of a precomputed kernel that are compared with their mirror images before a pass."""


def check_kernel_options(estimator: Any) -> None:
    """Refuse an unknown kernel, bad values of its options, and options that it does not read."""
    kernel = estimator.kernel
    check_kernel(kernel)
    reads = options_read(kernel)
    label = setting("kernel", kernel) if isinstance(kernel, str) else "a callable kernel"
    unread = {"gamma", "degree", "coef0", "kernel_params"} - reads
    if kernel == "neighbors":
        readers = {"gamma": "rbf", "degree": "polynomial", "coef0": "polynomial"}
        refuse_unread(estimator, unread, label, readers)
        NeighborOptions.of(_as_dict(estimator.kernel_params))
    refuse_unread(estimator, unread, label)
    if "degree" in reads:
        check_count("degree", estimator.degree)
    if "coef0" in reads:
        check_number("coef0", estimator.coef0)
    if "gamma" in reads and not isinstance(estimator.gamma, str):
        check_number("gamma", estimator.gamma, least=0.0)
        if estimator.gamma == 0:
            raise ValueError(
                f"gamma=0 makes any two samples alike: {label} would be the same for all pairs. "
                'Give a positive number, or "median".'
            )
    elif "gamma" in reads:
        resolve_gamma(estimator.gamma, kernel_class(kernel), np.eye(2), 0)  # is it understood?
    _as_dict(estimator.kernel_params)


def check_kernel(kernel: Any) -> None:
    """Refuse what is neither the name of a kernel nor a callable."""
    if not callable(kernel):
        check_choice("kernel", kernel, [*KERNELS, *ALIASES, "neighbors", "precomputed"])


def options_read(kernel: Any) -> set[str]:
    """Return the options of a kernel that it reads, of those that any kernel has."""
    if callable(kernel) or kernel == "neighbors":
        return {"kernel_params"}
    return set() if kernel == "precomputed" else set(kernel_class(kernel).options())


def _as_dict(kernel_params: Any) -> dict[str, Any] | None:
    if kernel_params is not None and not isinstance(kernel_params, dict):
        raise TypeError(
            f"kernel_params={kernel_params!r} must be a dict of options of the neighbours kernel, "
            "or of keyword arguments for a callable kernel, or None."
        )
    return kernel_params


def refuse_unread(
    estimator: Any, names: Iterable[str], reader: str, readers: dict[str, str] | None = None
) -> None:
    """Refuse options that are set although ``reader`` does not read them.

    ``readers`` names the kernel that reads an option: likely it was meant.
    """
    defaults = inspect.signature(type(estimator).__init__).parameters
    for name in sorted(names):
        value, default = getattr(estimator, name), defaults[name].default
        if value is not default and value != default:
            add = setting("kernel", readers[name]) if readers and name in readers else None
            raise ValueError(
                f"{called(name)}={value!r} is not read with {reader}. "
                + (f"Add {add}, or leave" if add else "Leave")
                + f" {called(name)} at its default, {default!r}."
            )


def check_rank(rank: Any, n: int, *, truncation: str) -> None:
    """Refuse a rank that is no number from 1 to n, no fraction in (0, 1), and not "auto"."""
    if isinstance(rank, str):
        check_choice("rank", rank, ["auto"])
    elif isinstance(rank, Integral) and not isinstance(rank, bool):
        check_count("rank", rank)
        if int(rank) > n:
            raise ValueError(
                f"rank={rank} exceeds n_samples={n}: a kernel matrix of {n} samples has rank at "
                f'most {n}. Lower rank, or leave rank="auto".'
            )
    elif isinstance(rank, Real) and not isinstance(rank, bool):
        if not 0 < float(rank) < 1:
            raise ValueError(
                f"rank={rank} must be a whole number from 1 to n_samples={n}, a fraction of the "
                'trace strictly between 0 and 1, or "auto".'
            )
        if truncation == "early":
            raise ValueError(
                f'rank={rank} asks for a fraction of the trace, which needs truncation="late": '
                "the early form must know the rank before it sees the eigenvalues."
            )
    else:
        raise TypeError(f'rank={rank!r} must be a whole number, a fraction in (0, 1), or "auto".')


def check_count_or_auto(name: str, value: Any, least: int) -> None:
    """Refuse what is neither "auto" nor a whole number from ``least`` on."""
    if isinstance(value, str):
        check_choice(name, value, ["auto"])
    else:
        check_count(name, value, least)


def check_landmarks(n_landmarks: int, rank: int) -> None:
    """Refuse fewer landmarks than the embedding has columns."""
    if n_landmarks < rank:
        raise ValueError(
            f"{called('n_landmarks')}={n_landmarks} is less than rank={rank}: from so many "
            f"landmarks come at most as many columns. Raise {called('n_landmarks')}, or lower rank."
        )


def check_clusters(n_clusters: int, n: int) -> None:
    """Refuse more clusters than samples."""
    if n_clusters > n:
        raise ValueError(
            f"{called('n_clusters')}={n_clusters} exceeds n_samples={n}: every cluster needs at "
            f"least one sample. Lower {called('n_clusters')}."
        )


def refuse_value(row: int, column: int, value: float) -> None:
    """Say what is not finite, and where."""
    name = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"row {row} of X holds {name} in column {column}, and kernels need finite numbers. Leave "
        "that row out, or fill in a number first."
    )


def first_bad(block: Any) -> tuple[int, int, float] | None:
    """Return row, column and value of the first number of a block that is not finite."""
    if np.isfinite(block.sum(dtype=np.float64)):
        return None
    bad = np.argwhere(~np.isfinite(block))
    return None if not len(bad) else (int(bad[0, 0]), int(bad[0, 1]), float(block[tuple(bad[0])]))


def refuse_masked(X: Any) -> None:
    """Refuse values that are masked, which are missing ones.

    NOTE: scikit-learn's checks pass such an array, and take what lies behind the mask.
    """
    masked = int(np.sum(X.mask)) if isinstance(X, np.ma.MaskedArray) else 0
    if masked:
        raise ValueError(
            f"X is a masked array with {counted(masked, 'masked value')}: kernels need all of "
            "them. Fill them in, such as X.filled(0), or leave their rows out."
        )


def plain_array(X: Any) -> Any:
    """Return an array whose numbers lie in memory as compiled code reads them; X itself mostly.

    Arrays made from a buffer may begin at any byte, and files may hold the other order of bytes.
    A copy is in C order: were it not, the next check would make another one beside it.
    """
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub":
        return X
    if X.flags.aligned and X.dtype.isnative:
        return X
    return np.require(X, X.dtype.newbyteorder("="), ["A", "C"])


def plain_floats(X: Any) -> Any:
    """Return such an array of floats, by one copy where one is needed; X itself mostly."""
    plain = isinstance(X, np.ndarray) and (X.flags.aligned and X.dtype.isnative)
    if plain or not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub":
        return X
    return np.require(X, float_dtype(X.dtype), ["A", "C"])


def plain_csr(X: Any) -> Any:
    """Return a CSR matrix whose three arrays are such arrays, and contiguous; X itself mostly."""
    parts = X.data, X.indices, X.indptr
    plain = tuple(np.ascontiguousarray(plain_array(part)) for part in parts)
    if all(new is old for new, old in zip(plain, parts, strict=True)):
        return X
    return type(X)(plain, shape=X.shape)


def canonical_csr(X: Any) -> Any:
    """Return a plain CSR matrix without an entry that is stored twice; X itself mostly."""
    X = plain_csr(X)
    if not X.has_canonical_format:
        X = X.copy()  # scikit-learn would sum duplicates in place, in the caller's matrix
        X.sum_duplicates()
    return X


def is_sideways(K: Any) -> bool:
    """Whether a kernel matrix lies in a file column by column.

    Its rows would be read from all over the file; it is symmetric, so columns do for them.
    """
    is_array = isinstance(K, np.ndarray) and K.ndim == 2 and K.shape[0] == K.shape[1]
    if not is_array or K.flags.c_contiguous or not K.flags.f_contiguous:
        return False
    while K is not None and not is_memory_map(K):
        K = getattr(K, "base", None)
    return K is not None


def refuse_not_square(shape: tuple[int, ...]) -> None:
    """Refuse a precomputed kernel that has not as many columns as rows."""
    if shape[0] != shape[1]:
        raise ValueError(
            f"a precomputed kernel must be square, not {shape[0]} × {shape[1]}: pass the kernel of "
            "all samples with all samples, or choose a kernel to compute one from data."
        )


def check_precomputed(K: Any, seed: int) -> FloatArray:
    """Return the diagonal of a precomputed kernel, which is square, symmetric and K_ii ≥ 0.

    Symmetry is tested on a seeded sample of pairs: no pass over K. Of a sparse one, whose entries
    are few, all are looked at.
    """
    refuse_not_square(K.shape)
    if K.dtype.kind not in "fiub":
        raise ValueError(f"a precomputed kernel must hold real numbers, not {K.dtype}.")
    diagonal = np.asarray(K.diagonal(), dtype=np.float64)
    if not np.isfinite(diagonal).all():
        worst = int(np.isfinite(diagonal).argmin())
        value = "NaN" if np.isnan(diagonal[worst]) else f"{diagonal[worst]:g}"
        raise ValueError(
            f"K[{worst}, {worst}] is {value} on the diagonal: a precomputed kernel must be finite. "
            "Leave that sample out, or compute its kernel again."
        )
    if (diagonal < 0).any():
        worst = int(np.argmin(diagonal))
        raise ValueError(
            f"K[{worst}, {worst}] = {diagonal[worst]:g} is negative: a kernel matrix has a "
            "non-negative diagonal. Was a distance matrix passed, or a matrix that was centred "
            "twice?"
        )
    tolerance = 1e-3 if K.dtype.itemsize <= 4 and K.dtype.kind == "f" else 1e-6
    if sparse.issparse(K):
        refuse_stored(K, np.arange(K.shape[0]))
        found = first_asymmetry(K, np.sqrt(diagonal), tolerance)
        mend = (
            "In a graph of nearest neighbours one of two may be alone in its choice: "
            "K = K.maximum(K.T) joins them, K = (K + K.T) / 2 does so by half."
        )
    else:
        found = _sampled_asymmetry(K, diagonal, tolerance, seed)
        mend = "Symmetrise it, (K + K.T) / 2, if that is what you mean."
    if found is not None:
        i, j, here, there = found
        raise ValueError(
            f"a precomputed kernel must be symmetric, but K[{i}, {j}] = {here:g} and "
            f"K[{j}, {i}] = {there:g}. {mend}"
        )
    return diagonal


def _sampled_asymmetry(
    K: Any, diagonal: FloatArray, tolerance: float, seed: int
) -> tuple[int, int, float, float] | None:
    """Return i, j, K_ij and K_ji that differ, among pairs that are drawn; None if none do."""
    rows, columns = np.random.default_rng(seed).integers(0, K.shape[0], (2, PAIRS))
    here, there = _entries(K, rows, columns), _entries(K, columns, rows)
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.sqrt(diagonal[rows]) * np.sqrt(diagonal[columns]) + np.abs(here) + np.abs(there)
        off = ~(np.abs(here - there) <= tolerance * scale)
    off &= np.isfinite(here) & np.isfinite(there)  # the pass finds those and says where
    if not off.any():
        return None
    worst = int(off.argmax())
    return int(rows[worst]), int(columns[worst]), float(here[worst]), float(there[worst])


def _entries(K: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return K[rows, columns] as a float64 vector."""
    return np.asarray(K[rows, columns], dtype=np.float64).ravel()


def describe_text(X: Any) -> str | None:
    """Say which column of X holds something that is no number, and what to do; None if none."""
    found = first_text(X)
    if found is None:
        return None
    row, column, value = found
    names = getattr(X, "columns", None)
    return text_said(column if names is None else names[column], row, repr(value))


def text_said(column: Any, row: int, value: str) -> str:
    """Say where something is no number, by the name or the number of its column."""
    return (
        f"Column {column!r} holds {value} in row {row}: kernels need numbers. Leave such columns "
        "out, or encode them first."
    )


def first_text(X: Any) -> tuple[int, int, Any] | None:
    """Return row, column and value of something in X that is no number; None if there is none."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if not hasattr(X, "columns") and kind not in "OUST":
        return None  # an array of numbers has other troubles
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:
        return None
    if table.ndim != 2:
        return None
    for column in range(table.shape[1]):
        for row, value in enumerate(table[:, column]):
            try:
                float(value)
            except (TypeError, ValueError):
                return row, column, value
    return None
