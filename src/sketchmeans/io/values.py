"""What a text in a table means: a number, true or false, nothing, or a date."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, time, timedelta
from typing import Any

MISSING = (
    *("", "-", "--", ".", "?", "NA", "na", "N/A", "n/a", "#N/A", "#NA", "<NA>"),
    *("NaN", "nan", "-nan", "-NaN", "NaT", "NULL", "null", "Null", "None", "none"),
    *("#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"),  # errors of Excel's formulas
)
"""Texts that stand for a missing value."""
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
"""Texts that stand for 1 and 0."""

_TRUTH = dict.fromkeys(TRUE, 1.0) | dict.fromkeys(FALSE, 0.0)

_MONTH = r"(?:jan|feb|m[aä]r|mrz|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*\.?"
_DAY = "|".join(
    [
        r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?",
        r"\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})",
        rf"\d{{1,2}}[-. ]*{_MONTH}[-,. ]*(?:\d{{4}}|\d{{2}})",
        rf"{_MONTH}[-,. ]*(?:\d{{1,2}},? +)?(?:\d{{4}}|\d{{2}})",
    ]
)
_CLOCK = (
    r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]\.?m\.?)?(?: ?(?:z|utc|gmt|[-+]\d{2}:?\d{2}))?"
)
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
DATE = re.compile(rf"{_WEEKDAY}(?:{_DAY})(?:[T ,]+{_CLOCK})?|{_CLOCK}", re.IGNORECASE)
"""Dates and times, as people and programs write them."""


def number(text: str, decimal: str = ".") -> float:
    """Return a number, or 1 and 0 for true and false; anything else is a ``ValueError``.

    >>> number(" 1.5e3"), number("1,5", ","), number("True")
    (1500.0, 1.5, 1.0)

    Python reads 2019_1 as 20191; in a table it is a name. And with a decimal comma, a point may
    stand between thousands: then nobody knows what 1.500 is.
    """
    if "_" in text or (decimal != "." and "." in text):
        raise ValueError(f"{text!r} is no number")
    try:
        return float(text if decimal == "." else text.replace(decimal, "."))
    except ValueError:
        if (truth := _TRUTH.get(text.strip())) is None:
            raise
        return truth


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number, true or false.

    >>> is_number("1e5"), is_number("1,5"), is_number("")
    (True, False, False)
    """
    try:
        number(text, decimal)
    except ValueError:
        return False
    return True


def is_truth(text: str) -> bool:
    """Whether a text says true or false."""
    return text in _TRUTH


def is_date(value: Any) -> bool:
    """Whether a value is a date or a time, or a text that looks like one.

    >>> is_date("2024-02-29 12:30"), is_date("5.3.2024"), is_date("Mar 5, 2024"), is_date("7:45 pm")
    (True, True, True, True)
    >>> is_date("1.5"), is_date("1.2.3"), is_date("12")
    (False, False, False)
    """
    if isinstance(value, str):
        return DATE.fullmatch(value.strip()) is not None
    return isinstance(value, date | time | timedelta)


def numbers_of(texts: Iterable[str]) -> list[float]:
    """Return those of some texts that are plain numbers.

    >>> numbers_of(["-999", "none", "1e3"])
    [-999.0, 1000.0]
    """
    return [float(text) for text in texts if is_number(text) and not is_truth(text)]
