"""Data files in, labels out.

``read_table`` opens a file, asks a ``Source`` for its columns, and returns one frozen
``TableData``, whatever the format::

    file ──▶ DataFile ──▶ Source ──▶ columns chosen ──▶ missing values ──▶ TableData
             (format,     (one a     (features, id,     (an error, dropped
              unpacking)   format)    label)             or filled in)

A format is one ``Source`` in a module of its own. Files come from strangers, so a source checks
what a file declares against what it holds before it allocates, unpickles nothing, and writes
nothing. What goes wrong is a ``ValueError`` that names the file, the column, the row, and an
option of the command line that helps.
"""

from sketchmeans.io.labels import check_output, write_labels
from sketchmeans.io.opening import FORMATS
from sketchmeans.io.table import TableData, read_table

__all__ = ["FORMATS", "TableData", "check_output", "read_table", "write_labels"]
