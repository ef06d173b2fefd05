"""How far a clustering can be from the best: one file per theorem, and what they stand on.

``moments`` has what is known of the centred kernel; ``bracket``, ``optimum``, ``gap``, ``probable``
and, for the neighbours kernel, ``cut`` are the theorems; ``objective`` is what they bound.
``certifying`` brings them together into the ``Certificate`` of ``result``, and ``intervals`` shows
it on one line.

A new bound is a file here and a line in ``certifying``. May import: engine, operators, lowrank.
"""

from sketchmeans.certificate.certifying import certify
from sketchmeans.certificate.result import Certificate

__all__ = ["Certificate", "certify"]
