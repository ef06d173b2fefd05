"""What to ask for: ``choose`` recommends kernel, width and number, ``compare`` tries all methods.

``together`` judges what the kernels of ``candidates`` find, all in the same rows; ``borders`` says
how many clusters there are without a kernel. ``guidance`` says what to do next after a fit,
``plain`` is K-means without a kernel beside it, ``rivals`` are the rows of a comparison that are
not ours.

May import: engine, operators, disk, lowrank, certificate, estimators, metrics.
"""

from sketchmeans.advice.choosing import choose
from sketchmeans.advice.comparing import compare

__all__ = ["choose", "compare"]
