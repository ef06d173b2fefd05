"""The native engine: whether it runs, and what it needs to know of kernels and arrays.

The compiled module (sources in ``native/``) is built by ``pip install`` where there is a compiler
with vector extensions. ``SKETCHMEANS_ENGINE`` = ``numpy`` or ``native`` forces one of the two
engines; otherwise the native one runs if it was built.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from sketchmeans._arrays import FloatArray
from sketchmeans.blocks import row_blocks
from sketchmeans.kernels import (
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    Statistic,
)

VARIABLE = "SKETCHMEANS_ENGINE"

_MAPS: dict[type[Kernel], str] = {
    Linear: "IDENTITY",
    Cosine: "IDENTITY",
    Polynomial: "POWER",
    Gaussian: "EXP2",
    Laplacian: "EXP2",
    Sigmoid: "TANH",
}
"""The compiled map of a kernel. A kernel that is not here runs on the NumPy engine."""


@cache
def compiled() -> Any:
    """Return the compiled module; None where it was not built or cannot run."""
    try:
        from sketchmeans.engine import _native
    except ImportError:
        return None
    return _native


compiled()  # now: a child forked while another thread imports it, in its first fit, would hang


def engine_name() -> str:
    """Return which engine runs: the one that ``SKETCHMEANS_ENGINE`` asks for, or the better one."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "numpy", "native"):
        raise ValueError(
            f"{VARIABLE}={wanted!r} is not an engine: set it to numpy or native, or unset it to "
            "have the native engine where it was built."
        )
    if wanted == "native" and compiled() is None:
        raise ImportError(
            f"{VARIABLE}=native, but the native engine was not built or cannot run on this "
            "processor. Install GCC or Clang and then the package again, with "
            "SKETCHMEANS_REQUIRE_NATIVE=1 to see why a build fails; or unset the variable."
        )
    return wanted or ("numpy" if compiled() is None else "native")


def has_map(kernel: Kernel) -> bool:
    """Whether the compiled module knows the scalar map of this very kernel."""
    return type(kernel) in _MAPS


@dataclass(frozen=True)
class Argument:
    """What the native tile computes of a statistic: map(scale · statistic + shifts).

    NOTE: e^x is computed as 2^(x log₂ e), with log₂ e in the scale: it costs nothing there, and
    the argument is rounded as often as before.
    """

    map: int
    degree: int
    scale: float
    """Of the dot product or the L1 distance."""
    norm_scale: float
    """Of ‖x‖² in squared distances; 0 for other statistics."""
    shift: float

    @classmethod
    def of(cls, kernel: Kernel, dtype: np.dtype) -> Argument:
        """Return the argument of a kernel, its scale rounded to the precision of the tiles.

        Rounded once, the scale errs by the same factor in ‖x‖², ‖y‖² and −2⟨x, y⟩, so that nothing
        is lost where they cancel.
        """
        code = _MAPS[type(kernel)]
        unit = math.log2(math.e) if code == "EXP2" else 1.0
        with np.errstate(over="ignore"):  # what has such a scale does not fold, and reads it not
            scale = float(dtype.type(kernel.scale * unit))
        squared = kernel.statistic is Statistic.SQUARED_DISTANCE
        return cls(
            map=getattr(compiled(), code),
            degree=kernel.degree if isinstance(kernel, Polynomial) else 1,
            scale=-2 * scale if squared else scale,
            norm_scale=scale if squared else 0.0,
            shift=kernel.shift * unit,
        )


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> FloatArray:
    """Return an uninitialised array that begins at a cache line: vectors then never cross two."""
    return _aligned(np.empty, shape, dtype)


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> FloatArray:
    """Return an array of zeros that begins at a cache line."""
    return _aligned(np.zeros, shape, dtype)


def _aligned(make: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> FloatArray:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = make(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


class Panels:
    """Rows of a matrix in the layout of the native tile: all packed once, or each block when asked.

    Parameters
    ----------
    rows : callable
        Returns a block of rows, in any precision.
    n, width : int
        Of the matrix.
    dtype : dtype
        Of the tiles.
    whole : bool
        Pack all rows now, n × width numbers.
    block : int
        Rows packed at a time; a multiple of 16, as is every row where a block begins.
    """

    def __init__(
        self,
        rows: Callable[[slice], FloatArray],
        n: int,
        width: int,
        dtype: np.dtype,
        *,
        whole: bool,
        block: int,
    ) -> None:
        self._rows, self.width, self.dtype = rows, width, dtype
        self.panel = compiled().PANEL_BYTES // dtype.itemsize  # 16 or 8 samples
        self._whole: FloatArray | None = None
        if whole:
            packed = aligned_empty((-(-n // self.panel), width, self.panel), dtype)
            for here in row_blocks(n, block):
                self._pack(here, packed[self._places(here)])
            self._whole = packed

    def _places(self, rows: slice) -> slice:
        return slice(rows.start // self.panel, -(-rows.stop // self.panel))

    def _pack(self, rows: slice, out: FloatArray) -> None:
        block = np.ascontiguousarray(self._rows(rows), self.dtype)
        compiled().pack(block, out)

    def of(self, rows: slice) -> FloatArray:
        """Return the panels of a block of rows."""
        if self._whole is not None:
            return self._whole[self._places(rows)]
        count = -(-(rows.stop - rows.start) // self.panel)
        out = aligned_empty((count, self.width, self.panel), self.dtype)
        self._pack(rows, out)
        return out
