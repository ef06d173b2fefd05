"""Long runs that look for a broken promise: ``make soak``, or ``python -m soak PART``.

``registry`` names the parts and what they consist of, ``running`` runs them. A check is a function
from a seed and a number of cases to these, in the ``CHECKS`` of its module; each case says what was
broken in it. A run ends with a table of cases and violations, and with an error if there were any.
"""
