"""What a checkpoint is of: data, parameters, and what computes with them.

Bits depend on all of it. They do not depend on threads, on the memory limit or on who is told, so
that these may change from one call to the next.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
import sklearn

from sketchmeans._package import __version__
from sketchmeans.checkpoints.identity import Undescribed, described
from sketchmeans.text import called

FREE = ("n_jobs", "memory_limit", "verbose", "checkpoint")
"""Parameters that no bit depends on."""


def fingerprint(
    what: str, parameters: Mapping[str, Any], engine: str, **data: Any
) -> dict[str, str]:
    """Return what a checkpoint is of, by names that people know.

    Parameters
    ----------
    what : str
        What is computed, such as the name of an estimator.
    parameters : mapping
        Those of ``FREE`` are left out.
    engine : str
        What computes the tiles.
    **data : arrays, sparse matrices, anything with rows, or None
    """
    named = {name: _known(name, one) for name, one in parameters.items() if name not in FREE}
    versions = {"numpy": np.__version__, "scipy": scipy.__version__}
    return {
        "the work": what,
        **{name: described(one) for name, one in data.items()},
        **named,
        "sketchmeans": __version__,
        **versions,
        "scikit-learn": sklearn.__version__,
        "engine": engine,
        "byte order": sys.byteorder,
    }


def _known(name: str, value: Any) -> str:
    try:
        return described(value)
    except Undescribed as error:
        raise ValueError(
            f"a {called('checkpoint')} cannot be kept: {called(name)} uses {error}, and nothing "
            "tells whether the next call has the same. Let it use numbers, texts, arrays, and "
            "functions and objects made of these, or give no checkpoint."
        ) from error
