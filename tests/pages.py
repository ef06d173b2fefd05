"""A report as a test reads it: its words, its tables, and what its script draws."""

import json
import re
from html.parser import HTMLParser


class Text(HTMLParser):
    """The words of a page, with tables as lists of rows, and the scatter's data."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.words, self._cell, self._skip = [], [], None, 0
        self.feed(page)
        self.text = " ".join(" ".join(self.words).split())
        found = re.search(r'<script type="application/json" id="samples">(.*?)</script>', page)
        self.picture = json.loads(found[1])

    def handle_starttag(self, tag, attrs):
        self._skip += tag in ("style", "script")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag):
        self._skip -= tag in ("style", "script")
        if tag in ("td", "th"):
            self.tables[-1][-1].append("".join(self._cell).strip())
            self._cell = None

    def handle_data(self, data):
        if not self._skip:
            self.words.append(data)
        if self._cell is not None:
            self._cell.append(data)

    def table(self, first, *more):
        """The first table whose head begins with these words."""
        head = [first, *more]
        return next(table for table in self.tables if table[0][: len(head)] == head)

    def drawn(self, name):
        """The picture of this name: "features" or "embedding"."""
        return next(one for one in self.picture["pictures"] if one["id"] == name)


def read(path):
    return Text(path.read_text(encoding="utf-8"))
