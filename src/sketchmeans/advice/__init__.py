"""What to ask for: ``choose`` recommends a number of clusters, ``compare`` tries all methods.

``guidance`` says what to do next after a fit, ``plain`` is K-means without a kernel beside it,
``rivals`` are the rows of a comparison that are not ours.

May import: engine, operators, lowrank, certificate, estimators, metrics.
"""

from sketchmeans.advice.choosing import choose
from sketchmeans.advice.comparing import compare

__all__ = ["choose", "compare"]
