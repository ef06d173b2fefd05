"""The paper's table and figures from one command.

    experiments ─▶ rows of data ─▶ claims: verdicts
                        │             │
                        ▼             ▼
                     drawing        page          (PNG, SVG)  (Markdown, JSON)

``trials`` runs a method on a problem many times; ``experiments`` says which methods on which
problems; ``claims`` measures what else the paper says and judges it; ``theorem`` tries every
partition of small cases. None of them draws or writes. ``drawing`` and ``page``, whose words stand
in ``page.md``, turn their results into files; ``writing`` runs all of it. Each file appears whole
or not at all.

May import: engine, sketches, operators, lowrank, estimators, advice, plotting, datasets. Of the
engine only the transform and the tiles that a claim measures.
"""

from sketchmeans.reproduce.writing import FILES, reproduce

__all__ = ["FILES", "reproduce"]
