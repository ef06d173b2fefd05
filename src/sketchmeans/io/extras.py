"""pyarrow, which some files need and others are read faster by; it is not required."""

from __future__ import annotations

from typing import Any


def arrow(what: str = "Parquet, Feather and Arrow files") -> Any:
    """Return pyarrow, or say what needs it and how to install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f'{what} need pyarrow: pip install "sketchmeans[files]". CSV, JSON lines, Excel, NPY, '
            "NPZ and LIBSVM files do without."
        ) from error
    return pyarrow
