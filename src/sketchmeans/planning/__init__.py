"""What a fit will do and cost, before it starts.

``planning`` asks the estimators what they would do (``estimators.foreseen``), and what that spends
on the kernel (``estimators.costs``); ``result`` is what it states. Times come from ``timing``: it
runs parts of the fit on a few rows (``samples``), and multiplies. ``landmarks``, ``anchors`` and
``clustering`` are those parts, ``watch`` is the clock.

May import: engine, operators, lowrank, estimators.
"""

from sketchmeans.planning.planning import plan
from sketchmeans.planning.result import Alternative, FitPlan

__all__ = ["Alternative", "FitPlan", "plan"]
