"""What to do next: the advice for this run, with its commands to copy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sketchmeans.report.findings import Findings
from sketchmeans.report.html import Markup, printable, tag

_COMMAND = re.compile(r"(.*?:)\s+(sketchmeans (?:cluster|choose|compare|predict) .*)", re.DOTALL)
"""A line of advice that ends with a command."""


def next_steps(found: Findings) -> Iterator[Markup]:
    """What to do next, each line with its command."""
    if not found.advice:
        words = "The data behind the kernel were not given, so that there is no advice on them."
        yield tag("p", words)
        return
    yield tag("ul", *(tag("li", *_line(line)) for line in found.advice), class_="advice")


def _line(line: str) -> Iterator[Markup]:
    """Tell a command from the words before it."""
    ends_with = _COMMAND.fullmatch(line)
    if ends_with is None:
        yield tag("p", line)
        return
    words, command = ends_with.groups()
    yield tag("p", words)
    yield tag("pre", tag("code", printable(command)), tabindex="0")
