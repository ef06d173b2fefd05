"""The report: one HTML file that tells a person what was found, and how far to trust it.

It is readable offline, on a screen of any width, in light and dark, and printed. First comes what
was found (the samples in a picture, the clusters, what to do next), then how it was found and what
is known of it. ``content``, ``profiles`` and ``pipelines`` compute what it says, ``findings`` keeps
it; ``pictures``, ``clusters``, ``next_steps`` and ``fit`` say it, section by section, ``charts``
draws what needs no script, ``pictures.js`` the samples, and ``page`` puts all of it together.
``proof`` is a page of its own, for a certificate without a model.
Nothing in it is larger for more samples: of many it shows a seeded choice, and says so.

Whatever comes from the data is text. ``html.tag`` escapes every child that it has not made itself;
the script puts text into text nodes only; and the page's Content-Security-Policy allows this style
and this script, by their hashes, and no request to any host.

May import: certificate, estimators, advice, plotting. Of the last only what draws nothing: a report
needs no matplotlib.
"""

from sketchmeans.report.content import Preparation
from sketchmeans.report.proof import write_proof
from sketchmeans.report.writing import write_report

__all__ = ["Preparation", "write_proof", "write_report"]
