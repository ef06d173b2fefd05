"""Text files: which encoding, and their lines."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator

from sketchmeans.io.limits import DataError
from sketchmeans.io.opening import DataFile
from sketchmeans.text import called, setting

LONGEST_LINE = 4_000_000
"""Characters of a line: beyond, a file is taken for something else than a table."""
LOOKED_AT = 1 << 20
"""Bytes at the start of a file that its encoding is guessed from."""
WESTERN = "cp1252"
"""What text is in that is not UTF-8, most likely: Windows' Western European, which has Latin-1."""
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, which begins in the same way
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""What files begin with that say their encoding themselves."""
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f")) + b"\x7f"


class Undecodable(DataError):
    """A file is not in the encoding that it was taken to be in."""

    def __init__(self, message: str, cause: UnicodeDecodeError) -> None:
        super().__init__(message)
        self.cause = cause


class TextFile:
    """A data file as lines of text.

    Parameters
    ----------
    file : DataFile
    encoding : str, optional
        If left out: what the file begins with says it, or it is UTF-8; or, where that cannot be,
        Windows' Western European encoding, which ``note`` then tells.
    """

    def __init__(self, file: DataFile, encoding: str | None = None) -> None:
        self.file = file
        self.note: str | None = None
        self.encoding = encoding or self._guessed()
        self._is_guessed = encoding is None
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except LookupError as error:
            raise DataError(
                f"{setting('encoding', encoding)} is not the name of an encoding of text. Common "
                "ones are utf-8, utf-16, cp1252, latin-1, cp1250, mac-roman, shift-jis and gbk."
            ) from error

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are UTF-8, as other readers take them to be."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")

    def _guessed(self) -> str:
        start = self.file.stream().read(LOOKED_AT)
        for mark, name in MARKS.items():
            if start.startswith(mark):
                if name != "utf-8-sig":
                    self.note = (
                        f"{self.file.name} is read as {name.upper()}, by the mark that it begins "
                        "with."
                    )
                return name
        try:
            # A letter of several bytes may be cut where this ends.
            codecs.getincrementaldecoder("utf-8")().decode(start)
        except UnicodeDecodeError as error:
            if self._is_western(start):
                return self._western(error)
        return "utf-8-sig"

    def _is_western(self, content: bytes) -> bool:
        if content.translate(None, _CONTROL) != content:
            return False
        try:
            content.decode(WESTERN)
        except UnicodeDecodeError:
            return False
        return True

    def _western(self, error: UnicodeDecodeError) -> str:
        letter = error.object[error.start : error.start + 1]
        self.note = (
            f"{self.file.name} is not UTF-8 and is read as {WESTERN}: byte 0x{letter.hex()} is "
            f"taken for {letter.decode(WESTERN)!r}. Say {called('encoding')} if that is wrong."
        )
        return WESTERN

    def settle(self, error: Undecodable) -> bool:
        """Guess again where UTF-8 was guessed and cannot be; say whether that was so."""
        if not self._is_guessed or self.encoding == WESTERN or not self.is_utf8:
            return False
        if not self._is_western(error.cause.object):
            return False
        self.encoding = self._western(error.cause)
        return True

    def lines(self) -> Iterator[str]:
        """Yield the lines, with their ends."""
        text = io.TextIOWrapper(self.file.stream(), encoding=self.encoding, newline="")
        number = 0
        try:
            while line := text.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE and not line.endswith(("\n", "\r")):
                    raise DataError(
                        f"{self.file.name}: line {number} is longer than {LONGEST_LINE:,} "
                        f"characters. {self.doubt()}"
                    )
                yield line
        except UnicodeDecodeError as error:
            name = "UTF-8" if self.is_utf8 else self.encoding
            raise Undecodable(
                f"{self.file.name} is not {name} text: byte {error.object[error.start]:#04x} after "
                f"line {number}. Say {called('encoding')} if it is text, or {called('format')} if "
                "it is none at all.",
                error,
            ) from error

    def doubt(self) -> str:
        """Ask whether the format is right."""
        kind = self.file.format.upper()
        return f"Is this a {kind} file? Say {called('format')} otherwise."
