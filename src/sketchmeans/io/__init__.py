"""Data files in, labels out.

``read_table`` opens a file, asks a ``Source`` for its columns, and returns one ``TableData``,
whatever the format::

    file ──▶ DataFile ──▶ Source ──▶ columns chosen ──▶ missing values ──▶ TableData
             (format,     (one per   (features, id,     (an error, dropped
              packing)     format)    label, one-hot)    or filled in)

A format is one ``Source`` in a module of its own and one line in ``formats``. Rows of text come
through ``encoding`` (lines), ``dialect`` (delimiter and decimals) and ``headers`` (names) to
``delimited``; JSON lines and Excel fill ``cells``. What a text means is said in ``values``. Files
come from strangers, so a source checks what a file declares against what it holds before it
allocates, unpickles nothing, and writes nothing. What goes wrong is a ``ValueError`` that names the
file, the column, the row, and a parameter that helps, by the flag of the command line where that is
running.

A new file format goes here. May import: no other room.
"""

from typing import TYPE_CHECKING

from sketchmeans._package import lazy_names
from sketchmeans.io.formats import FORMATS

if TYPE_CHECKING:
    from sketchmeans.io.labels import check_output, write_labels
    from sketchmeans.io.reading import read_table
    from sketchmeans.io.table import TableData

__all__ = ["FORMATS", "TableData", "check_output", "read_table", "write_labels"]

__getattr__ = lazy_names(
    __name__,
    {
        "TableData": "table",
        "check_output": "labels",
        "read_table": "reading",
        "write_labels": "labels",
    },
)
