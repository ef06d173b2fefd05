"""Rows in files that are larger than memory: read in blocks, in order, ahead of the computation.

A fit asks for rows as ``sketchmeans.rows`` says: what a function makes of every block of them, or a
few by their numbers. Here they lie in a file::

    file ──▶ a thread that reads ──▶ a few blocks ──▶ threads that compute ──▶ sums, in order
             once a stream, in order    ahead                              └──▶ a scratch file

``sources`` and ``parquet`` read rows of memory maps, HDF5, Zarr, Parquet and anything with a shape,
a dtype and slices, ``opening`` says which; ``ahead`` reads them before they are wanted; ``files``
are the ``Rows``, with ``streams`` for what is made of them and ``passes`` for pairs of strips, both
of which a checkpoint may save; ``scratch`` is where what must stay of all
rows is put, and ``outputs`` are files that appear whole or not at all. Bits are those of a fit in
memory: blocks, and the order in which their sums are added, are the same.

May import: checkpoints, engine, operators.
"""

from sketchmeans.disk.files import FileRows
from sketchmeans.disk.opening import as_source, is_source
from sketchmeans.disk.outputs import Outputs
from sketchmeans.disk.sources import Source
from sketchmeans.disk.streams import Desk

__all__ = ["Desk", "FileRows", "Outputs", "Source", "as_source", "is_source"]
