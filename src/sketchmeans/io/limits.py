"""What a file may unpack to, and the error that says what is wrong with one."""

from __future__ import annotations

from sketchmeans.text import human

FREE = 8_000_000
"""Bytes that any packed file may unpack to: below, a ratio says nothing."""
TEXT_RATIO = 100
"""Times its size that packed text may unpack to. Its numbers take four times the text at most, so
that a bomb is found within FREE · 4 bytes; gzip reaches 1030 on zeros, tables 3 to 50."""
ARRAY_RATIO = 500
"""Times its size that a file of arrays may unpack to, in memory."""


class DataError(ValueError):
    """A data file that cannot be used; the message names the file and the way out."""

    notes: tuple[str, ...] = ()
    """What was guessed before that, in sentences: a wrong guess may be why."""


def check_expansion(
    name: str,
    packed: int,
    unpacked: int,
    *,
    ratio: int = ARRAY_RATIO,
    way_out: str = "write it again without compression",
) -> None:
    """Refuse what would unpack to far more than its size: a bomb, or damage."""
    if unpacked > FREE and unpacked > ratio * packed:
        raise DataError(
            f"{name} holds {human(packed)} that would unpack to {human(unpacked)} or more: over "
            f"{ratio} times as much, so it is taken for damaged or hostile. If you trust it, "
            f"{way_out}."
        )
