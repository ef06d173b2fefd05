"""The types of arrays."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

FloatArray = NDArray[Any]
