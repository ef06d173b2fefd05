"""The report: one HTML file that tells a person what was found, and how far to trust it.

It is readable offline, in light and dark, and printed. ``content`` and ``findings`` compute what it
says, ``clusters`` and ``fit`` say it, section by section, ``charts`` draws what needs no script,
``scatter.js`` the picture of the embedding, and ``page`` puts all of it together. Nothing in it is
larger for more samples: of many it shows a seeded choice, and says so.

Whatever comes from the data is text. ``html.tag`` escapes every child that it has not made itself;
the script puts text into text nodes only; and the page's Content-Security-Policy allows this style
and this script, by their hashes, and no request to any host.

May import: certificate, estimators, plotting. Of the last only the palette: a report needs no
matplotlib.
"""

from sketchmeans.report.content import Preparation
from sketchmeans.report.writing import write_report

__all__ = ["Preparation", "write_report"]
