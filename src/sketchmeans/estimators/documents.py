"""Parameters and attributes that several estimators share are described once.

A line ``[name, name]`` in the docstring of a class stands for the entries that another class has
under these names. Docstrings are read without their margin, which Python 3.13 takes off and those
before it leave.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

Class = TypeVar("Class", bound=type)


def described_by(other: type) -> Callable[[Class], Class]:
    """Write out what the docstring of a class leaves to that of another one."""

    def entry(name: str) -> str:
        pattern = rf"^((?:\w+, )*{name}(?:, \w+)* :.*(?:\n {{4}}.*)*)"
        found = re.search(pattern, inspect.cleandoc(other.__doc__ or ""), re.MULTILINE)
        assert found is not None, f"{other.__name__} does not describe {name}"
        return found[1]

    def entries(line: re.Match[str]) -> str:
        return "\n".join(entry(name) for name in line[1].split(", "))

    def write_out(cls: Class) -> Class:
        if cls.__doc__ is not None:  # as it is under python -OO
            text = inspect.cleandoc(cls.__doc__)
            cls.__doc__ = re.sub(r"^\[([\w, ]+)\]$", entries, text, flags=re.M)
        return cls

    return write_out
