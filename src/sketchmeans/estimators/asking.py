"""What a proof may be asked for."""

from __future__ import annotations

from numbers import Real
from typing import Any

from sketchmeans.certificate.proving import LEVELS
from sketchmeans.checks import check_choice, check_count, check_number
from sketchmeans.text import called


def check_asked(
    effort: Any, seconds: Any, block_size: Any, failure_probability: Any, checkpoint: Any
) -> None:
    """Refuse bad options before anything is computed."""
    if checkpoint is not None and seconds is not None:
        raise ValueError(
            f"{called('checkpoint')} goes on where a proof has ended, and {called('seconds')}="
            f"{seconds} ends it for good, with what that time was enough for. Leave one of them "
            "out."
        )
    check_choice("effort", effort, ["auto", *LEVELS])
    if seconds is not None:
        check_number("seconds", seconds, least=0.0)
    if isinstance(block_size, str):
        check_choice("block_size", block_size, ["auto"])
    else:
        check_count("block_size", block_size, 2)
    if effort == "free" and (seconds is not None or block_size != "auto"):
        raise ValueError(
            'effort="free" reads neither seconds nor block_size: it makes one pass over the '
            'kernel. Leave them out, or leave effort="auto".'
        )
    if failure_probability is not None and not (
        isinstance(failure_probability, Real) and 0 < float(failure_probability) < 1
    ):
        raise ValueError(
            f"failure_probability={failure_probability!r} is no probability: give a number between "
            "0 and 1, such as 1e-6, or None for bounds that always hold."
        )
