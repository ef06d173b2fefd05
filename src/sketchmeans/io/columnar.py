"""Parquet, and Arrow's own format in its two forms (files, which are Feather, and streams)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blas import count_threads
from sketchmeans.io.batches import count_rows
from sketchmeans.io.extras import arrow
from sketchmeans.io.limits import DataError, check_expansion
from sketchmeans.io.opening import DataFile
from sketchmeans.io.source import Source
from sketchmeans.io.texts import GrowingTexts, GrowingWords
from sketchmeans.io.trouble import Trouble, refuse_text

BATCH = 1 << 16
"""Rows of a Parquet file that are decoded at a time where its row groups are large."""
FEW = 16
"""Rows that are decoded to show a value: a text may be long, and stand in every row."""
GROUP = 1 << 20
"""Rows of a row group that is decoded whole, which is faster: pyarrow writes them so."""
STRIP = 1 << 14
"""Rows that a thread turns from columns into rows at a time: they stay in the processor's cache
(``python -m benchmarks.files``)."""
TEXTS = ("string", "large_string", "binary", "large_binary")
INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index that has no name."""
METADATA_LIMIT = 20_000_000
"""Bytes, and elements, that a text or a list in the footer of a Parquet file may have."""


class ColumnarSource(Source):
    """A file of typed columns, read a batch of rows at a time."""

    named = True
    _schema: Any
    _count: int
    """Rows that the file declares."""

    @abstractmethod
    def _batches(self, columns: Sequence[int], size: int = BATCH) -> Iterator[Any]:
        """Yield record batches of these columns, in this order, of about ``size`` rows."""

    def _set_schema(self, schema: Any) -> None:
        self._schema = schema
        self.set_names(schema.names)
        self.nameless = [self.names.index(name) for name in self.names if INDEX.fullmatch(name)]

    def texts(self, features: Sequence[int]) -> list[int]:
        """Return the columns whose type is text, unless they begin with a date."""
        types = [str(_plain_type(self._schema.field(index).type)) for index in features]
        found = [index for index, type in zip(features, types, strict=True) if "string" in type]
        return [index for index in found if not self._trouble(index).is_date]

    def read(self, features: Sequence[int], kept: Sequence[int]) -> tuple[Any, list[Any]]:
        """Return the features as rows, in float32 if no column needs more, and the others."""
        types = [self._schema.field(index).type for index in features]
        bad = [index for index, type in zip(features, types, strict=True) if not _numeric(type)]
        if bad:
            refuse_text(self, features, [self._trouble(index) for index in bad])
        single = types and all(str(type) in ("float", "halffloat") for type in types)
        dtype = np.dtype(np.float32 if single else np.float64)
        row_bytes = len(features) * dtype.itemsize + len(kept) * 8
        check_expansion(self.file.name, self.file.size, self._count * max(row_bytes, 1))
        room = self.file.room
        room.announce((self._count, len(features)), dtype)
        X = room.empty((self._count, len(features)), dtype)
        others = [self._others(index) for index in kept]
        start = 0
        self.complete = True
        with ThreadPoolExecutor(count_threads(None)) as pool:
            for batch in self._batches([*features, *kept]):
                stop = start + batch.num_rows
                if stop > self._count:
                    break
                columns = [_floats(batch.column(index), dtype) for index in range(len(features))]
                fill = partial(_fill_rows, X[start:stop], columns)
                self.complete &= all(list(pool.map(fill, range(0, batch.num_rows, STRIP))))
                for place, other in enumerate(others, start=len(features)):
                    other.add(batch.column(place))
                start = stop
        arrow().default_memory_pool().release_unused()  # it keeps what the batches took
        if start != self._count:
            raise DataError(
                f"{self.file.name} declares {self._count:,} rows and holds another number: it is "
                "damaged."
            )
        return X, [other.whole() for other in others]

    def _others(self, index: int) -> _Values | _Names:
        """Return what takes a column of ids or labels."""
        type = _plain_type(self._schema.field(index).type)
        named = index in self.compact and not arrow().types.is_integer(type)
        room = self.file.room
        return _Names(room) if named and room.scratch is not None else _Values()

    def _trouble(self, index: int) -> Trouble:
        """Return the first value of a column that holds no numbers."""
        start = 0
        for batch in self._batches([index], FEW):
            column = batch.column(0)
            for row in range(len(column)):
                if column[row].is_valid:
                    return Trouble(index, start + row + 1, _shown(column[row : row + 1]))
            start += len(column)
        return Trouble(index, 1, str(self._schema.field(index).type))


class ParquetSource(ColumnarSource):
    """A Parquet file."""

    def __init__(self, file: DataFile) -> None:
        super().__init__(file)
        arrow()
        self._file = self._opened()
        self._set_schema(self._file.schema_arrow)
        self._count = self._file.metadata.num_rows
        if self._count < 0:
            raise DataError(f"{file.name} declares {self._count} rows: it is damaged.")

    def _batches(self, columns: Sequence[int], size: int = BATCH) -> Iterator[Any]:
        self._check_unpacked(columns)
        given = self._schema.names
        names = {given[index]: None for index in columns}
        # A long text that stands in every row is stored once, and must stay so in memory.
        fields = [self._schema.field(index) for index in columns]
        texts = [field.name for field in fields if str(field.type) in TEXTS]
        # Of a name that several columns have, all come.
        which = [given[:index].count(given[index]) for index in columns] if self.shared else None
        file = self._opened(texts) if texts else self._file
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if size == BATCH and rows <= GROUP and self.file.room.beside(rows * 8 * len(columns)):
                batches = file.read_row_group(group, columns=list(names)).to_batches()
            else:
                batches = file.iter_batches(size, row_groups=[group], columns=list(names))
            for batch in batches:
                yield batch.select(_places(batch.schema.names, fields, which))

    def _opened(self, texts: Sequence[str] = ()) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(
            self.file.handle if self.file.path is None else self.file.path,
            read_dictionary=list(texts),
            memory_map=self.file.path is not None,  # saves a copy: 16 ms instead of 25 for 80 MB
            thrift_string_size_limit=METADATA_LIMIT,
            thrift_container_size_limit=METADATA_LIMIT,
        )

    def _check_unpacked(self, columns: Sequence[int]) -> None:
        """Refuse columns that declare to unpack to far more than the file."""
        metadata = self._file.metadata
        wanted = {self._schema.names[index] for index in columns}
        total = 0
        for group in range(metadata.num_row_groups):
            chunks = metadata.row_group(group)
            for index in range(chunks.num_columns):
                chunk = chunks.column(index)
                path = chunk.path_in_schema  # of a nested column "name.part"
                if path in wanted or path.split(".")[0] in wanted:
                    total += max(chunk.total_uncompressed_size, 0)
        check_expansion(self.file.name, self.file.size, total)


class ArrowSource(ColumnarSource):
    """An Arrow file (Feather, version 2) or an Arrow stream."""

    def __init__(self, file: DataFile) -> None:
        super().__init__(file)
        arrow()
        file.handle.seek(0)
        start = file.handle.read(6)
        if start.startswith(b"FEA1"):
            raise DataError(
                f"{file.name} is Feather of version 1, which is no longer written. Write it again "
                "as version 2, or as Parquet."
            )
        self._is_file = start == b"ARROW1"
        self._count = count_rows(file, 8 if self._is_file else 0)
        with self._open() as reader:
            self._set_schema(reader.schema)

    def _open(self) -> Any:
        from pyarrow import ipc

        self.file.handle.seek(0)
        source = (
            self.file.handle if self.file.path is None else arrow().memory_map(str(self.file.path))
        )
        return ipc.open_file(source) if self._is_file else ipc.open_stream(source)

    def _batches(self, columns: Sequence[int], size: int = BATCH) -> Iterator[Any]:
        del size  # batches are as large as they were written
        with self._open() as reader:
            for index in range(reader.num_record_batches) if self._is_file else [None]:
                for batch in [reader.get_batch(index)] if self._is_file else reader:
                    # Sizes of buffers come from the file: nothing is read before they are checked.
                    batch.validate(full=True)
                    yield batch.select(list(columns))


def _fill_rows(X: FloatArray, columns: Sequence[FloatArray], top: int) -> bool:
    """Put a strip of columns into rows of X, and say whether all of it is finite."""
    rows = slice(top, top + STRIP)
    for place, column in enumerate(columns):
        X[rows, place] = column[rows]
    return bool(np.isfinite(X[rows]).all())  # now, while they are in the cache


def _places(names: Sequence[str], fields: Sequence[Any], which: Sequence[int] | None) -> list[int]:
    """Return where columns stand among names; ``which`` tells those of one name apart."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    which = [0] * len(fields) if which is None else which
    return [found[field.name][number] for field, number in zip(fields, which, strict=True)]


def _plain_type(type: Any) -> Any:
    """Return the type of the values of a column."""
    return type.value_type if arrow().types.is_dictionary(type) else type


def _shown(column: Any) -> Any:
    """Return the one value of a column, for a message; dates as text, whatever their unit."""
    pa = arrow()
    if pa.types.is_temporal(column.type) and not pa.types.is_duration(column.type):
        return column.cast(pa.string())[0].as_py()
    return column[0].as_py()


def _numeric(type: Any) -> bool:
    """Whether a type of pyarrow can be turned into floats."""
    types, type = arrow().types, _plain_type(type)
    kinds = ("integer", "floating", "boolean", "decimal", "null")
    return any(getattr(types, f"is_{kind}")(type) for kind in kinds)


def _floats(column: Any, dtype: Any) -> FloatArray:
    """Return a column as floats, NaN where a value is missing; without a copy where it can be."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    target = pa.float32() if dtype == np.float32 else pa.float64()
    if column.type != target:
        # Whole numbers beyond 2⁵³ are rounded, as everywhere in floating point.
        column = column.cast(target, safe=False)
    return column.to_numpy(zero_copy_only=False)


class _Values(GrowingWords):
    """A column as it comes, as numbers or as texts that repeat."""

    def add(self, column: Any) -> None:
        """Take the next rows."""
        self._parts.append(_values(column))


class _Names(GrowingTexts):
    """A column as it comes, as texts that are kept compactly."""

    def add(self, column: Any) -> None:
        """Take the next rows."""
        super().add(_values(column).tolist())


def _values(column: Any) -> Any:
    """Return a column of ids or labels: whole numbers as such, anything else as text."""
    pa = arrow()
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    words = ["" if word is None else str(word) for word in column.dictionary.to_pylist()]
    codes = column.indices.cast(pa.int64()).fill_null(len(words)).to_numpy(zero_copy_only=False)
    values = np.empty(len(words) + 1, object)
    values[:] = [*words, ""]
    return values[codes]
