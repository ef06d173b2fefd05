"""From Dask collections to rows on workers, checked where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sketchmeans._arrays import BoolArray
from sketchmeans.dask.placed import DaskRows, follow
from sketchmeans.estimators.checks import canonical_csr, first_text, plain_array, text_said


class Trouble(NamedTuple):
    """What is wrong in a block, at its row and column; only the client knows the row among all."""

    what: str
    """NaN, infinity, "masked", or the value that is no number."""
    row: int
    column: int
    text: bool = False

    def refuse(self, start: int, names: list[str] | None) -> None:
        """Raise the error, given the first row of the block and the names of columns."""
        row, column = start + self.row, self.column if names is None else names[self.column]
        if self.text:
            said = text_said(column, row, self.what)
            raise ValueError(f"X holds something that is no number. {said}")
        if self.what == "masked":
            raise ValueError(
                f"X is a masked array with a masked value in row {row}, column {column!r}: kernels "
                "need all of them. Fill them in, such as dask.array.ma.filled(X, 0), or leave "
                "their rows out."
            )
        raise ValueError(
            f"Input X contains {self.what}: the first is in row {row}, column {column!r}. Leave "
            "such rows out, or fill in what is missing, such as by sklearn.impute.SimpleImputer."
        )


class Facts(NamedTuple):
    """What a task saw of a block of rows."""

    rows: int
    columns: int
    dtype: str = "<f8"
    nnz: int | None = None
    trouble: Trouble | None = None


def checked_block(block: Any) -> Any:
    """Return a block of rows as the estimators take it: float32 or float64, dense or CSR.

    Where it holds what is no number, it is left there, and the trouble is returned as ``Facts``.
    """
    given = block
    if hasattr(block, "to_numpy") and not isinstance(block, np.ndarray):
        block = block.to_numpy()
    if sparse.issparse(block) or hasattr(block, "tocsr"):
        block = sparse.csr_matrix(block)
        _refuse_complex(block.dtype)
        kind = block.dtype
        block = block if kind in (np.float32, np.float64) else block.astype(np.float64)
        return canonical_csr(block)
    mask = np.ma.getmask(block)
    block = np.asarray(block)
    if block.ndim != 2:
        raise ValueError(
            f"X has blocks of {block.ndim} dimensions, where rows and columns are needed. Reshape "
            "X, such as X.reshape(-1, 1) for one feature."
        )
    if mask.any():
        return _troubled(block, Trouble("masked", *_first(mask)))
    _refuse_complex(block.dtype)
    if block.dtype not in (np.float32, np.float64):
        try:
            block = block.astype(np.float64)
        except (TypeError, ValueError) as error:
            found = first_text(given)
            if found is None:
                raise ValueError(
                    f"X holds something that is no number ({error}): kernels need numbers. Leave "
                    "such columns out, or encode them first."
                ) from error
            row, column, value = found
            return _troubled(block, Trouble(f"{value!r:.80}", row, column, text=True))
    return np.ascontiguousarray(plain_array(block))


def _troubled(block: Any, trouble: Trouble) -> Facts:
    return Facts(block.shape[0], block.shape[1], trouble=trouble)


def _refuse_complex(dtype: Any) -> None:
    """Refuse numbers with an imaginary part, which a conversion would drop."""
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: X holds {dtype}. Give the real part, X.real, or both "
            "parts as columns of their own."
        )


def _first(bad: BoolArray) -> tuple[int, int]:
    """Return row and column of the first that is bad, row by row."""
    row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return int(row), int(column)


def facts_of(block: Any) -> Facts:
    """Look at a block of rows: sizes, and where something is not finite."""
    if isinstance(block, Facts):
        return block
    values = block.data if sparse.issparse(block) else block
    trouble = None
    bad = np.isfinite(values)
    np.logical_not(bad, out=bad)
    if bad.any():
        if sparse.issparse(block):
            place = int(np.argmax(bad))
            row = int(np.searchsorted(block.indptr, place, side="right")) - 1
            column, value = int(block.indices[place]), values[place]
        else:
            row, column = _first(bad)
            value = values[row, column]
        trouble = Trouble("NaN" if np.isnan(value) else "infinity", row, column)
    nnz = int(block.nnz) if sparse.issparse(block) else None
    return Facts(block.shape[0], block.shape[1], block.dtype.str, nnz, trouble)


def is_frame(X: Any) -> bool:
    """Whether a collection is a dataframe, or a column of one."""
    return hasattr(X, "to_dask_array")


def without_rows(X: Any) -> Any:
    """Return a table that has the columns of a collection and no row, as scikit-learn checks it."""
    if not is_frame(X):
        return np.empty((0, X.shape[1]))
    import pandas as pd  # whoever has a dataframe has it

    return pd.DataFrame(columns=X.columns)


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of a dataframe where all are text, as scikit-learn has it."""
    reader = BaseEstimator()
    validate_data(reader, without_rows(X), skip_check_array=True)
    names = getattr(reader, "feature_names_in_", None)
    return None if names is None else list(names)


def blocks_of(X: Any) -> tuple[list[Delayed], list[str] | None]:
    """Return the blocks of rows of a Dask array or dataframe, and the names of its columns."""
    if not is_dask_collection(X):
        raise TypeError(
            f"X is a {type(X).__name__}, and sketchmeans.dask takes Dask arrays and dataframes: "
            "dask.array.from_array(X, chunks=(100_000, -1)), or fit sketchmeans.KernelKMeans."
        )
    if not is_frame(X) and not isinstance(X, da.Array):
        raise TypeError(f"X is a {type(X).__name__}: give a Dask array or dataframe.")
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, where rows and columns are needed. Reshape it first, "
            "such as X.reshape(-1, 1) for one feature."
        )
    if is_frame(X):
        return list(X.to_delayed()), names_of(X)
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
            one.trouble.refuse(int(start), names)
    full = [index for index, size in enumerate(sizes) if size]
    if not full:
        raise ValueError("X has no rows: a fit needs at least one sample.")
    futures, facts = [futures[index] for index in full], [facts[index] for index in full]
    _check_alike(facts)
    if not facts[0].columns:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({starts[-1]}, 0)) while a minimum of 1 is "
            "required."
        )
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


def weights_of(sample_weight: Any, client: Client) -> Any:
    """Return weights here as they were given, which the fit checks; they may be a collection."""
    return array_of(sample_weight, client) if is_dask_collection(sample_weight) else sample_weight


def array_of(collection: Any, client: Client) -> Any:
    """Return a collection as an array here."""
    if is_frame(collection):
        collection = collection.to_dask_array()
    return np.asarray(client.compute(collection).result())
