"""The types of arrays, by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
"""Float32 or float64."""
IntArray = NDArray[np.integer[Any]]
"""Labels, indices and counts."""
BoolArray = NDArray[np.bool_]
Array = NDArray[Any]
"""Numbers of any kind: the signs of a sketch are bytes, memberships are bytes or weights."""
