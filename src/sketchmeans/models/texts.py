"""Texts of any length as two arrays: all of them one after the other, and where each ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sketchmeans._arrays import Array
from sketchmeans.container import ModelFileError
from sketchmeans.models.checks import Spec


def as_arrays(prefix: str, texts: Sequence[str]) -> dict[str, Array]:
    """Return the two arrays under the names that they have in a file."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return {
        f"{prefix}_text": np.array(bytearray(b"".join(encoded)), np.uint8),
        f"{prefix}_ends": np.cumsum([len(text) for text in encoded], dtype=np.int64),
    }


def specs_of(prefix: str, count: str) -> dict[str, Spec]:
    """Return what the two arrays are; ``count`` is the symbol of the number of texts."""
    return {
        f"{prefix}_text": ((f"{prefix} text",), ("|u1",)),
        f"{prefix}_ends": ((count,), ("<i8",)),
    }


def from_arrays(prefix: str, arrays: dict[str, Array]) -> list[str]:
    """Cut the text where each of the texts ends."""
    text, ends = arrays[f"{prefix}_text"].tobytes(), arrays[f"{prefix}_ends"]
    starts = np.concatenate([[0], ends])[: len(ends)]
    if (ends < starts).any() or (ends[-1] if len(ends) else 0) != len(text):
        said = prefix.replace("_", " ")
        raise ModelFileError(f"its {said} do not end one after the other.")
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return [text[start:end].decode("utf-8", "surrogatepass") for start, end in spans]
