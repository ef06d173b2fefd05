"""Refusals of single values, which name the value, the limit and the way out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from sketchmeans.text import called, did_you_mean


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a name that is not known, suggest the nearest, and list those that are."""
    known = list(known)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(repr(choice) for choice in known)
        name, nearest = called(name), did_you_mean(value, known) if isinstance(value, str) else ""
        raise ValueError(
            f"{name}={value!r} is not known.{nearest} Known values of {name}: {listed}."
        )


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{called(name)}={value!r} must be a whole number, at least {least}.")
    if value < least:
        raise ValueError(f"{called(name)}={value} is too small: it must be at least {least}.")


def check_number(name: str, value: Any, *, least: float = -math.inf) -> None:
    """Refuse what is not a finite number of at least ``least``."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{called(name)}={value!r} must be a number.")
    if not math.isfinite(value) or value < least:
        limit = f", at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"{called(name)}={value} must be a finite number{limit}.")
