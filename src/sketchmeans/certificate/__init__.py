"""How far a clustering can be from the best: one file per theorem, and what they stand on.

``moments`` has what is known of the centred kernel; ``bracket``, ``optimum``, ``gap``, ``probable``
and, for the neighbours kernel, ``cut`` are the theorems that a fit uses; ``objective`` is what they
bound. ``certifying`` brings them together into the ``Certificate`` of ``result``, and ``intervals``
shows it on one line.

For a proof that is nearer to the truth there are ``parts`` (the block theorem; ``alike`` makes
blocks that lose little by it), ``spectral`` (what eigenvalues allow), ``lift`` and ``triangles``
(what improves that) and ``sampling`` (what blocks that are drawn show); ``above`` bounds the
objective of labels from above without all pairs. ``proving`` goes through the levels for one block,
``blockwise`` adds blocks up, ``proven`` brings it together; ``joining`` takes the best of two
certificates.

A new bound is a file here and a line in ``certifying`` or ``proven``. May import: kernels,
checkpoints, engine, operators, lowrank.
"""

from sketchmeans.certificate.result import Certificate

__all__ = ["Certificate"]
