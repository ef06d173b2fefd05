"""HTML that cannot be broken by what it shows: text is escaped unless it is Markup."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

LONGEST = 40
"""Characters of a name, an id or a label that are shown."""
_UNSEEN = r"\u2028-\u202e\u2066-\u2069\ufeff"
"""Marks that turn or break the text after them and are not seen themselves."""
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff{_UNSEEN}]")
_LONG = re.compile(r"(\S{16})(?=\S)")
_ATTRIBUTE = re.compile(r"[a-z][a-zA-Z0-9-]*")


class Markup(str):
    """Text that is HTML already. Nothing from the data is made so but by ``tag`` and ``join``."""

    __slots__ = ()


def printable(text: Any) -> str:
    r"""Return text with control characters as their pictures, and others that nobody sees marked.

    >>> printable("a\x00b\ud800")
    'a␀b�'
    """

    def picture(found: re.Match[str]) -> str:
        code = ord(found[0])
        return chr(0x2400 + code) if code < 0x20 else "\ufffd"

    return _CONTROL.sub(picture, str(text))


def short(text: Any, longest: int = LONGEST) -> str:
    """Return text on one line, cut to so many characters.

    >>> short("a very long name", 8)
    'a very …'
    """
    whole = str(text)
    line = printable(whole[: longest + 1]).replace("\n", "␊").replace("\t", "␉")
    return line if len(line) <= longest else line[: longest - 1] + "…"


def breakable(name: str) -> Markup:
    """Return a name that a line may break after each of its parts, and within very long ones.

    >>> breakable("malic_acid")
    'malic_<wbr>acid'
    """
    parts = re.split(r"(?<=[_/.,:;=])(?=[^\s_/.,:;=])", printable(name))
    # A sign that is not printable cannot be in the name: it marks where a long part may break.
    pieces = [piece for part in parts for piece in _LONG.sub("\\1\0", part).split("\0")]
    return Markup("<wbr>".join(escaped(piece) for piece in pieces))


def figure(value: float, digits: int) -> str:
    """Return a number of so many digits, or all of those before its point; empty for NaN.

    >>> figure(1203.5, 3), figure(0.12345, 3), figure(1.5e20, 3), figure(float("nan"), 3)
    ('1204', '0.123', '1.5e+20', '')
    """
    if value != value:
        return ""
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e7 else f"{value:.{digits}g}"


def escaped(child: Any) -> str:
    """Return a child as HTML."""
    if isinstance(child, Markup):
        return child
    return html.escape(printable(child))


def join(children: Sequence[Any], between: str = "") -> Markup:
    """Return children one after the other."""
    return Markup(html.escape(between).join(escaped(child) for child in children))


def tag(element: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element; None among the children or attributes is left out.

    >>> tag("a", "<b>", class_="x", aria_label='"')
    '<a class="x" aria-label="&quot;">&lt;b&gt;</a>'
    """
    parts = [element]
    for name, value in attributes.items():
        if value is None:
            continue
        name = name.rstrip("_").replace("_", "-")
        assert _ATTRIBUTE.fullmatch(name), name
        parts.append(f'{name}="{html.escape(printable(value))}"')
    inner = "".join(escaped(child) for child in children if child is not None)
    return Markup(f"<{' '.join(parts)}>{inner}</{element}>")


def table(
    head: Sequence[Any],
    rows: Sequence[Sequence[Any]],
    *,
    label: str,
    numbers: Sequence[int] = (),
    style: str | None = None,
) -> Markup:
    """Return a table that scrolls by itself where the page is narrow; ``numbers`` are right."""
    top = tag("tr", *cells(head, numbers, "th", scope="col"))
    body = [tag("tr", *cells(row, numbers)) for row in rows]
    return scrolling(tag("table", tag("thead", top), tag("tbody", *body), class_=style), label)


def cells(
    row: Sequence[Any], numbers: Sequence[int], name: str = "td", *, first: int = 0, **more: Any
) -> list[Markup]:
    """Return the cells of a row from column ``first`` on; ``numbers`` are right."""
    return [
        tag(name, child, class_="number" if column in numbers else None, **more)
        for column, child in enumerate(row, start=first)
    ]


def scrolling(content: Markup, label: str) -> Markup:
    """Return a box that scrolls sideways, also by keyboard."""
    return tag("div", content, class_="wide", tabindex="0", role="region", aria_label=label)


def pairs(rows: Sequence[tuple[Any, Any]], *, label: str) -> Markup:
    """Return a table of two columns, names and values; a row whose value is None is left out."""
    body = [
        tag("tr", tag("th", name, scope="row"), tag("td", value))
        for name, value in rows
        if value is not None
    ]
    return scrolling(tag("table", tag("tbody", *body), class_="pairs"), label)


def script_data(name: str, data: Any) -> Markup:
    """Return data for a script: JSON in which no element can end or begin."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(
        f'<script type="application/json" id="{name}">{text.replace("<", chr(92) + "u003c")}'
        "</script>"
    )


def command_line(command: str | Sequence[str]) -> str:
    r"""Return a command as one types it; what cannot be seen as $'\x1b'.

    >>> command_line(["sketchmeans", "cluster", "my data.csv", "-k", "3"])
    "sketchmeans cluster 'my data.csv' -k 3"
    >>> command_line(["cluster", "a\rb"])
    "cluster $'a\\x0db'"
    """
    if isinstance(command, str):
        return command
    return " ".join(_quoted(str(word)) for word in command)


def _quoted(word: str) -> str:
    if not re.search(rf"[\x00-\x1f\x7f-\x9f\ud800-\udfff{_UNSEEN}]", word):
        return shlex.quote(word)

    def code(found: re.Match[str]) -> str:
        if found[0] in "\\'":
            return "\\" + found[0]
        return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", "surrogateescape"))

    return "$'" + re.sub(rf"[\x00-\x1f\x7f-\x9f\udc80-\udcff{_UNSEEN}\\']", code, word) + "'"
