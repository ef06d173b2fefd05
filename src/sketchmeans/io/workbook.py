"""An Excel workbook (.xlsx): a zip archive of XML, of which only what a table needs is read.

The XML comes from strangers: a document type, which is where entities and links to other documents
are declared, is refused at its first character, and relations that lead out of the file are never
followed. Parts are looked up by their names in the archive, which are no paths of this machine.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NoReturn
from xml.parsers import expat

from sketchmeans.io.limits import TEXT_RATIO, DataError, check_expansion
from sketchmeans.io.opening import DataFile

CHUNK = 1 << 18
"""Bytes of XML that are unpacked and parsed at a time."""
MOST_COLUMNS = 16_384
"""Of a sheet, as Excel has them."""
DEEPEST = 32
"""Elements within each other; a sheet has seven."""
DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
"""Numbers of the formats of dates and times that every workbook has."""
_NO_DATE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
"""Parts of a format that say nothing of its kind: texts, colours, languages, spaces."""

Attributes = dict[str, str]


class Workbook:
    """The sheets of a workbook, their texts and which styles show dates."""

    def __init__(self, file: DataFile) -> None:
        self.file = file
        file.handle.seek(0)
        self._archive = zipfile.ZipFile(file.handle)
        self._members = {member.filename: member for member in self._archive.infolist()}
        self._unpacked = 0
        self.sheets: dict[str, str] = {}
        """The parts of the sheets by their names, in the order of the workbook."""
        self.counts_from_1904 = False
        relations = self._relations("xl/_rels/workbook.xml.rels")
        listed: list[tuple[str, str]] = []

        def workbook(tag: str, attributes: Attributes) -> None:
            if tag == "sheet":
                listed.append((attributes.get("name", ""), _relation(attributes)))
            elif tag == "workbookPr":
                self.counts_from_1904 = attributes.get("date1904") in ("1", "true")

        self._parse("xl/workbook.xml", workbook)
        for name, relation in listed:
            if relation in relations:  # a chart or a macro has none of its own kind
                self.sheets[name] = relations[relation]
        if not self.sheets:
            raise DataError(f"{file.name} holds no sheet with cells.")
        self.texts = self._shared_texts()
        self.dates = self._date_styles()

    def _relations(self, part: str) -> dict[str, str]:
        """Return the parts that a part refers to as worksheets; links out of the file are none."""
        found: dict[str, str] = {}

        def relation(tag: str, attributes: Attributes) -> None:
            if tag != "Relationship" or attributes.get("TargetMode") == "External":
                return
            if attributes.get("Type", "").endswith("/worksheet"):
                target = posixpath.join("/xl", attributes.get("Target", ""))
                found[attributes.get("Id", "")] = posixpath.normpath(target).lstrip("/")

        self._parse(part, relation)
        return found

    def _shared_texts(self) -> list[str]:
        """Return the texts that cells refer to by number; without readings of Japanese."""
        texts: list[str] = []
        parts: list[str] = []
        reading = 0

        def start(tag: str, attributes: Attributes) -> None:
            nonlocal reading
            reading += tag == "rPh"
            if tag == "si":
                parts.clear()

        def end(tag: str, text: str) -> None:
            nonlocal reading
            reading -= tag == "rPh"
            if tag == "t" and not reading:
                parts.append(text)
            elif tag == "si":
                texts.append("".join(parts))

        self._parse("xl/sharedStrings.xml", start, end, needed=False)
        return texts

    def _date_styles(self) -> set[int]:
        """Return the numbers of the styles that show a number as a date or a time."""
        own: dict[str, str] = {}
        formats: list[str] = []
        inside = ""

        def start(tag: str, attributes: Attributes) -> None:
            nonlocal inside
            if tag == "numFmt":
                own[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            elif tag in ("cellXfs", "cellStyleXfs"):
                inside = tag
            elif tag == "xf" and inside == "cellXfs":
                formats.append(attributes.get("numFmtId", "0"))

        self._parse("xl/styles.xml", start, needed=False)
        return {
            style
            for style, number in enumerate(formats)
            if (shows_date(own[number]) if number in own else _is_built_in_date(number))
        }

    def date(self, days: float) -> str:
        """Return the date, the time or both that a number of days stands for."""
        if 0 <= days < 1:
            return (datetime(1900, 1, 1) + timedelta(days=days)).time().isoformat("seconds")
        first = datetime(1904, 1, 1) if self.counts_from_1904 else datetime(1899, 12, 30)
        try:
            moment = first + timedelta(days=days)
        except (OverflowError, ValueError):
            return f"{days:g} days"
        return moment.date().isoformat() if days == int(days) else moment.isoformat(" ", "seconds")

    def parse_sheet(
        self,
        part: str,
        start: Callable[[str, Attributes], None],
        end: Callable[[str, str], None],
    ) -> None:
        """Call ``start`` and ``end`` for the elements of a sheet, ``end`` with their text."""
        self._parse(part, start, end)

    def _parse(
        self,
        part: str,
        start: Callable[[str, Attributes], None],
        end: Callable[[str, str], None] | None = None,
        *,
        needed: bool = True,
    ) -> None:
        member = self._members.get(part)
        if member is None:
            if not needed:
                return
            raise DataError(f"{self.file.name} has no part {part!r:.80}: it is damaged.")
        self._unpacked += member.file_size
        check_expansion(
            self.file.name,
            self.file.size,
            self._unpacked,
            ratio=TEXT_RATIO,
            way_out="save it as CSV",
        )
        parser = _parser(self.file.name, start, end)
        with self._archive.open(member) as stream:  # gives no more than was declared
            while chunk := stream.read(CHUNK):
                parser.Parse(chunk, False)
        parser.Parse(b"", True)


def _parser(
    name: str,
    start: Callable[[str, Attributes], None],
    end: Callable[[str, str], None] | None,
) -> Any:
    """Return a parser of XML that refuses document types, and with them entities and links."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    text: list[str] = []
    depth = 0

    def refuse(*declared: Any) -> NoReturn:
        raise DataError(
            f"{name} declares a document type in its XML, by which entities and links to other "
            "documents come: Excel writes none, so it is taken for hostile. Save it as CSV."
        )

    def start_element(tag: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise DataError(f"{name} has XML of more than {DEEPEST} levels: it is damaged.")
        text.clear()
        start(tag.rpartition(":")[2], attributes)

    def end_element(tag: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end(tag.rpartition(":")[2], "".join(text))
        text.clear()

    parser.StartElementHandler, parser.EndElementHandler = start_element, end_element
    if end is not None:
        parser.CharacterDataHandler = text.append
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = parser.UnparsedEntityDeclHandler = refuse
    return parser


def _relation(attributes: Attributes) -> str:
    """Return the number of the relation that an element names, whatever its prefix."""
    return next((value for name, value in attributes.items() if name.endswith(":id")), "")


def _is_built_in_date(number: str) -> bool:
    return number.isdigit() and len(number) < 9 and int(number) in DATE_FORMATS


def shows_date(code: str) -> bool:
    """Whether a format of numbers shows dates or times.

    >>> shows_date("dd/mm/yyyy"), shows_date("[h]:mm"), shows_date("#,##0.00"), shows_date("0.0E+0")
    (True, True, False, False)
    >>> shows_date('[Red]0.0"days"'), shows_date("General")
    (False, False)
    """
    if re.search(r"\[(h+|m+|s+)\]", code, re.IGNORECASE):
        return True
    plain = _NO_DATE.sub("", code).lower()
    return "general" not in plain and re.search("[dmyhs]", plain) is not None


def column_of(reference: str) -> int:
    """Return the column of a cell such as ``C7``, from 0; −1 where there is none.

    >>> column_of("A1"), column_of("AB30"), column_of("7")
    (0, 27, -1)
    """
    column = 0
    for letter in reference[:4]:
        if not "A" <= letter <= "Z":
            break
        column = 26 * column + ord(letter) - 64
    if column > MOST_COLUMNS:
        raise ValueError(f"a cell lies in column {column:,}, and a sheet has {MOST_COLUMNS:,}")
    return column - 1
