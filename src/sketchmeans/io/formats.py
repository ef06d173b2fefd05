"""The formats that are read: one line for each, and one ``Source`` in a module of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """How files of a format are recognised, and who reads them."""

    title: str
    """What messages call it."""
    source: str
    """The module of this room and the class. It is imported when such a file is read: ``--help``
    lists the formats, and must not wait for NumPy."""
    extensions: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    """What its files begin with."""
    is_text: bool = False
    """Whether files may be packed, by gzip and others; other formats pack themselves."""
    reads: tuple[str, ...] = ()
    """Parameters of ``read_table`` that its source takes, and that other formats refuse."""


_TEXT = ("header", "delimiter", "decimal", "encoding", "na_values")

FORMATS = {
    "csv": Format("CSV", "delimited:DelimitedSource", (".csv",), is_text=True, reads=_TEXT),
    "tsv": Format("TSV", "delimited:DelimitedSource", (".tsv", ".tab"), is_text=True, reads=_TEXT),
    "txt": Format(
        "text",
        "delimited:DelimitedSource",
        (".txt", ".dat", ".data"),
        is_text=True,
        reads=_TEXT,
    ),
    "jsonl": Format(
        "JSON lines",
        "jsonlines:JsonLinesSource",
        (".jsonl", ".ndjson"),
        is_text=True,
        reads=("encoding", "na_values"),
    ),
    "xlsx": Format(
        "Excel", "excel:ExcelSource", (".xlsx", ".xlsm"), reads=("header", "sheet", "na_values")
    ),
    "parquet": Format("Parquet", "columnar:ParquetSource", (".parquet", ".pq"), (b"PAR1",)),
    "feather": Format("Feather", "columnar:ArrowSource", (".feather",)),
    "arrow": Format(
        "Arrow", "columnar:ArrowSource", (".arrow", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")
    ),
    "npy": Format("NPY", "arrays:ArraySource", (".npy",), (b"\x93NUMPY",)),
    "npz": Format("NPZ", "arrays:ArchiveSource", (".npz",)),
    "libsvm": Format(
        "LIBSVM",
        "libsvm:LibsvmSource",
        (".libsvm", ".svm", ".svmlight"),
        is_text=True,
        reads=("libsvm_base",),
    ),
}

OTHERS = {
    ".xls": "it is Excel's old format: save it as .xlsx or CSV",
    ".ods": "save it as .xlsx or CSV",
    ".json": "rows are read from JSON lines, one object a line (.jsonl): jq -c '.[]' makes them of "
    "an array",
    ".pkl": "a pickle can run any program, so none is read: save Parquet or NPY",
    ".pickle": "a pickle can run any program, so none is read: save Parquet or NPY",
    ".mat": "save the matrix as CSV or NPY",
    ".rds": "save it as CSV (write.csv in R)",
    ".rdata": "save it as CSV (write.csv in R)",
}
"""Extensions of files that people have and that are not read, and the way out."""


def by_extension(suffix: str) -> str | None:
    """Return the format of files whose name ends so.

    >>> by_extension(".PQ")
    'parquet'
    """
    return next((name for name, it in FORMATS.items() if suffix.lower() in it.extensions), None)


def by_magic(start: bytes) -> str | None:
    """Return the format of files that begin so, where it can be told."""
    return next((name for name, it in FORMATS.items() if start.startswith(it.magic)), None)


def by_members(names: list[str]) -> str | None:
    """Return the format of a zip archive that holds files of these names; None: a packed file.

    >>> by_members(["X.npy", "y.npy"]), by_members(["xl/workbook.xml"]), by_members(["a.csv"])
    ('npz', 'xlsx', None)
    """
    if "xl/workbook.xml" in names:
        return "xlsx"
    return "npz" if names and all(name.endswith(".npy") for name in names) else None
