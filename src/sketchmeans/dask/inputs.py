"""From Dask collections to rows on workers, checked where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from scipy import sparse

from sketchmeans._arrays import FloatArray
from sketchmeans.dask.placed import DaskRows, follow
from sketchmeans.estimators.checks import canonical_csr, plain_array


class Facts(NamedTuple):
    """What a task saw of a block of rows."""

    rows: int
    columns: int
    dtype: str
    nnz: int | None
    trouble: tuple[int, str] | None
    """Where something is not finite, and what."""


def checked_block(block: Any) -> Any:
    """Return a block of rows as the estimators take it: float32 or float64, dense or CSR."""
    if hasattr(block, "to_numpy") and not isinstance(block, np.ndarray):
        block = block.to_numpy()
    if sparse.issparse(block) or hasattr(block, "tocsr"):
        block = sparse.csr_matrix(block)
        kind = block.dtype
        block = block if kind in (np.float32, np.float64) else block.astype(np.float64)
        return canonical_csr(block)
    block = np.asarray(block)
    if block.ndim != 2:
        raise ValueError(
            f"X has blocks of {block.ndim} dimensions, where rows and columns are needed. Reshape "
            "X, such as X.reshape(-1, 1) for one feature."
        )
    if block.dtype not in (np.float32, np.float64):
        if block.dtype.kind not in "fiub":
            block = numbers(block)
        block = block.astype(np.float64)
    return np.ascontiguousarray(plain_array(block))


def numbers(block: Any) -> Any:
    """Return objects as numbers, or say which is none."""
    try:
        return block.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X holds something that is no number ({error}): kernels need numbers. Leave such "
            "columns out, or encode them first."
        ) from error


def facts_of(block: Any) -> Facts:
    """Look at a block of rows: sizes, and where something is not finite."""
    values = block.data if sparse.issparse(block) else block
    trouble = None
    finite = np.isfinite(values)
    if not finite.all():
        if sparse.issparse(block):
            place = int(np.argmin(finite))
            row, value = int(np.searchsorted(block.indptr, place, side="right")) - 1, values[place]
        else:
            row = int(np.argmin(finite.all(axis=1)))
            value = values[row][~finite[row]][0]
        trouble = (row, "NaN" if np.isnan(value) else "infinity")
    nnz = int(block.nnz) if sparse.issparse(block) else None
    return Facts(block.shape[0], block.shape[1], block.dtype.str, nnz, trouble)


def blocks_of(X: Any) -> tuple[list[Delayed], list[str] | None]:
    """Return the blocks of rows of a Dask array or dataframe, and the names of its columns."""
    if not is_dask_collection(X):
        raise TypeError(
            f"X is a {type(X).__name__}, and sketchmeans.dask takes Dask arrays and dataframes: "
            "dask.array.from_array(X, chunks=(100_000, -1)), or fit sketchmeans.KernelKMeans."
        )
    if hasattr(X, "to_dask_array"):  # a dataframe
        return list(X.to_delayed()), [str(name) for name in X.columns]
    if not isinstance(X, da.Array):
        raise TypeError(f"X is a {type(X).__name__}: give a Dask array or dataframe.")
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, where rows and columns are needed. Reshape it first, "
            "such as X.reshape(-1, 1) for one feature."
        )
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return list(X.to_delayed().ravel()), None


class Placed(NamedTuple):
    """Data on workers, as a fit takes them."""

    rows: DaskRows
    sizes: list[int]
    """Rows of the blocks of the collection, empty ones too."""


def place(X: Any, client: Client) -> Placed:
    """Bring a collection to the workers, where each block is made once, and check it there.

    Empty blocks are left out. What is not finite is refused, by its row among all.
    """
    blocks, names = blocks_of(X)
    futures: list[Future] = client.compute([delayed(checked_block)(block) for block in blocks])
    follow(futures, None)
    facts: list[Facts] = client.gather(client.map(facts_of, futures, pure=False))
    sizes = [one.rows for one in facts]
    starts = np.cumsum([0, *sizes])
    for start, one in zip(starts[:-1], facts, strict=True):
        if one.trouble is not None:
            row, value = one.trouble
            raise ValueError(
                f"Input X contains {value}: the first is in row {start + row}. Leave such rows "
                "out, or fill in what is missing, such as by sklearn.impute.SimpleImputer."
            )
    full = [index for index, size in enumerate(sizes) if size]
    if not full:
        raise ValueError("X has no rows: a fit needs at least one sample.")
    futures, facts = [futures[index] for index in full], [facts[index] for index in full]
    _check_alike(facts)
    dtypes = {np.dtype(one.dtype) for one in facts}
    dtype = max(dtypes, key=lambda one: one.itemsize)
    if len(dtypes) > 1:
        futures = client.map(_cast, futures, [dtype] * len(futures), pure=False)
    nnz = None if facts[0].nnz is None else sum(one.nnz or 0 for one in facts)
    full_sizes = [one.rows for one in facts]
    rows = DaskRows(client, futures, full_sizes, facts[0].columns, dtype, nnz)
    rows.names = names
    return Placed(rows, sizes)


def _check_alike(facts: list[Facts]) -> None:
    """Refuse blocks that cannot be rows of one matrix."""
    if len({one.nnz is None for one in facts}) > 1:
        raise ValueError(
            "some blocks of X are sparse and some are dense: make all of one kind, such as by "
            "X.map_blocks(scipy.sparse.csr_matrix)."
        )
    columns = {one.columns for one in facts}
    if len(columns) > 1:
        raise ValueError(
            f"blocks of X have {min(columns)} to {max(columns)} columns, where all must have as "
            "many."
        )


def _cast(block: Any, dtype: Any) -> Any:
    return block.astype(dtype)


def weights_of(sample_weight: Any, client: Client) -> FloatArray | None:
    """Return weights as an array here, a number for each sample; they may be a collection."""
    if sample_weight is None or not is_dask_collection(sample_weight):
        return sample_weight
    return array_of(sample_weight, client).astype(np.float64, copy=False)


def array_of(collection: Any, client: Client) -> Any:
    """Return a collection of one number, or text, a sample as an array here."""
    if hasattr(collection, "to_dask_array"):
        collection = collection.to_dask_array()
    return np.asarray(client.compute(collection).result()).reshape(-1)
