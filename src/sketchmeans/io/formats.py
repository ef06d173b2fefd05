"""The formats that are read: one line for each, and one ``Source`` in a module of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """How files of a format are recognised, and who reads them."""

    source: str
    """The module of this room and the class. It is imported when such a file is read: ``--help``
    lists the formats, and must not wait for NumPy."""
    extensions: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    """What its files begin with."""
    is_text: bool = False
    """Whether files may be packed by gzip; other formats pack themselves."""


FORMATS = {
    "csv": Format("delimited:DelimitedSource", (".csv",), is_text=True),
    "tsv": Format("delimited:DelimitedSource", (".tsv", ".tab"), is_text=True),
    "parquet": Format("columnar:ParquetSource", (".parquet", ".pq"), (b"PAR1",)),
    "feather": Format("columnar:ArrowSource", (".feather",)),
    "arrow": Format("columnar:ArrowSource", (".arrow", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")),
    "npy": Format("arrays:ArraySource", (".npy",), (b"\x93NUMPY",)),
    "npz": Format("arrays:ArchiveSource", (".npz",), (b"PK\x03\x04",)),
    "libsvm": Format("libsvm:LibsvmSource", (".libsvm", ".svm", ".svmlight"), is_text=True),
}


def by_extension(suffix: str) -> str | None:
    """Return the format of files whose name ends so.

    >>> by_extension(".PQ")
    'parquet'
    """
    return next((name for name, it in FORMATS.items() if suffix.lower() in it.extensions), None)


def by_magic(start: bytes) -> str | None:
    """Return the format of files that begin so, where it can be told."""
    return next((name for name, it in FORMATS.items() if start.startswith(it.magic)), None)
