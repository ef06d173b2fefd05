"""What to do next: the advice for this run, with its commands to copy.

A line of advice may name a column, and the name of a column may look like a command. What is shown
to be copied is the end of a line, where names never stand, and one command to any shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, tag

_COMMAND = re.compile(r"(.*:) (sketchmeans (?:cluster|choose|compare|predict) .*)", re.DOTALL)
"""A line of advice that ends with a command; the last, for a name before it may hold anything."""
_PYTHON = re.compile(r"(.*:) ([\w.]+\(.*\)|\w+=\S+)", re.DOTALL)
"""A line that ends with a piece of Python."""


def next_steps(found: Findings) -> Iterator[Markup]:
    """What to do next, each line with its command."""
    if not found.advice:
        words = "The data were not given, so that there is no advice on them."
        yield tag("p", words)
        return
    ran = found.command is not None
    lines = (tag("li", *_line(line, ran)) for line in found.advice)
    yield tag("ul", *lines, class_="advice")


def _line(line: str, ran: bool) -> Iterator[Markup]:
    """Tell a command from the words before it; there is none where no command ran."""
    found = _COMMAND.fullmatch(line) if ran else None
    if found is not None and is_quoted(found[2]):
        yield tag("p", found[1])
        yield tag("pre", tag("code", found[2]), tabindex="0")
    elif (found := _PYTHON.fullmatch(line)) is not None:
        yield tag("p", f"{found[1]} ", tag("code", found[2]))
    else:
        yield tag("p", line)


def is_quoted(command: str) -> bool:
    """Whether a shell reads these words as they stand: one command, and nothing beside it.

    >>> is_quoted("sketchmeans choose 'my data.csv'"), is_quoted("sketchmeans choose a; ls")
    (True, False)
    """
    try:
        return shlex.join(shlex.split(command)) == command
    except ValueError:  # a quotation mark without its partner
        return False
